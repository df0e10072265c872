"""What listeners of several nodes share and wait for: slots of a resource, a database with its locks.

Mirrors: a connection pool and a SQL database next to a RocketMQ consumer; SQLite stands for any database.

    with lab.resource("db", slots=10): context.sleep("20ms")     the eleventh waits, in virtual time
    lab.resource("db").resize(2)                                 eight slots fewer, as soon as calls give theirs back
    with lab.database("billing").connect() as connection: …    the file survives kill, uncommitted rows do not

When the process of a listener ends, its slots are released and its connections are closed, which rolls them back; a
connection from elsewhere is rolled back. A process that ended runs no code, so its finally blocks write nothing.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mqlab.errors import NodeDown, UsageError
from mqlab.lab.runtime import sim_workers
from mqlab.lab.runtime.world import World
from mqlab.rocketmq.promises import Promise

T = TypeVar("T")

LOCK_RETRY_MS = 10
LOCK_TIMEOUT_MS = 5_000


class Resource:
    """A number of slots; ``with resource:`` takes one, waits for it if necessary, and releases it."""

    def __init__(self, world: World[Any], name: str, slots: int) -> None:
        if slots < 1:
            raise UsageError(f"slots must be 1 or more, got {slots}")
        self._world = world
        self.name = name
        self.slots = slots
        self.in_use = 0
        self.longest_queue = 0
        self._queue: deque[Promise[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def __enter__(self) -> Resource:
        turn: Promise[None] = Promise()
        if self.in_use < self.slots:
            self.in_use += 1
            turn.resolve(None)
        else:
            self._queue.append(turn)
            self.longest_queue = max(self.longest_queue, len(self._queue))
        try:
            self._world.wait_for(turn)
        except BaseException:  # killed in the queue, or with a slot it just got
            if turn.done:
                self.__exit__()
            else:
                self._queue.remove(turn)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.in_use -= 1
        self._hand_out()

    def resize(self, slots: int) -> None:
        """Change the number of slots. Holders keep their slot; waiters get the newly free ones."""
        if slots < 1:
            raise UsageError(f"slots must be 1 or more, got {slots}")
        self.slots = slots
        self._hand_out()

    def _hand_out(self) -> None:
        while self._queue and self.in_use < self.slots:
            self.in_use += 1
            self._queue.popleft().resolve(None)

    def __repr__(self) -> str:
        return f"<Resource {self.name}: {self.in_use}/{self.slots} in use, {self.waiting} waiting>"


class Database:
    """A SQLite file of a Lab. ``connect()`` gives ordinary sqlite3 connections."""

    def __init__(self, world: World[Any], path: Path) -> None:
        self._world = world
        self.path = path

    def connect(self) -> sqlite3.Connection:
        """A new connection; in a listener it dies with its node and waits for locks in virtual time.

        What a call has not committed of its own connections when it returns is rolled back, as a pool of connections
        does with those that are given back.
        """
        if not self._world.is_simulated:
            return sqlite3.connect(self.path, timeout=LOCK_TIMEOUT_MS / 1000)
        connection = sqlite3.connect(self.path, timeout=0, factory=WaitingConnection)
        connection.world = self._world
        # The database's own machine never loses its power in a Lab, so a commit need neither wait for the disk nor make
        # a journal file; a process that is killed loses only what it had not committed. Without the lock these settings
        # are left as they were.
        with contextlib.suppress(sqlite3.DatabaseError):
            for setting in ("synchronous = OFF", "journal_mode = MEMORY"):
                sqlite3.Connection.execute(connection, f"PRAGMA {setting}")
        caller = sim_workers.current_listener()
        if caller is not None:
            caller.dies_with.append(connection.close)
            # Python would close it, and free its lock, at an uncertain moment: when nothing refers to it any more.
            caller.ends_with.append(functools.partial(connection.given_back, caller))
        return connection

    def __repr__(self) -> str:
        return f"<Database {self.path.name}>"


class WaitingConnection(sqlite3.Connection):
    """A connection that waits for the lock of another one in virtual time, in steps of 10 ms, up to 5 s."""

    world: World[Any]

    def execute(self, *args: Any) -> sqlite3.Cursor:
        """As sqlite3's, waiting for a lock in virtual time."""
        return self._patiently(lambda: super(WaitingConnection, self).execute(*args))

    def executemany(self, *args: Any) -> sqlite3.Cursor:
        """As sqlite3's, waiting for a lock in virtual time."""
        return self._patiently(lambda: super(WaitingConnection, self).executemany(*args))

    def executescript(self, *args: Any) -> sqlite3.Cursor:
        """As sqlite3's, waiting for a lock in virtual time."""
        return self._patiently(lambda: super(WaitingConnection, self).executescript(*args))

    def commit(self) -> None:
        """As sqlite3's, waiting for a lock in virtual time."""
        self._patiently(super().commit)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        if kind is None:
            self.commit()
        elif kind is NodeDown:
            self.forget()  # the dead process's connection may be closed, and NodeDown is what goes on
        else:
            self.rollback()
        return False

    def forget(self) -> None:
        """Roll back what had not been committed when the process ended."""
        with contextlib.suppress(sqlite3.ProgrammingError):  # closed by its owner
            self.rollback()

    def given_back(self, caller: sim_workers.ListenerCoroutine) -> None:
        """Roll back what the call that opened the connection had not committed when it returned, and note it."""
        with contextlib.suppress(sqlite3.ProgrammingError):  # closed by its owner
            if self.in_transaction:
                self.rollback()
                self.world.note(caller.workers.node, "database.rolled_back")

    def _patiently(self, act: Callable[[], T]) -> T:
        caller, waited_ms = sim_workers.current_listener(), 0
        if caller is not None:
            caller.must_be_up()
            # A connection from elsewhere stays open when this listener ends, but its transaction must not.
            if not {self.close, self.forget} & set(caller.dies_with):
                caller.dies_with.append(self.forget)
        while True:
            try:
                return act()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or waited_ms >= LOCK_TIMEOUT_MS:
                    raise
            # The lock is held by another connection: wait in virtual time and try again.
            pause: Promise[None] = Promise()
            due_ms = self.world.now_ms + LOCK_RETRY_MS
            self.world.arm(self.world.outside, due_ms, "database.retry", functools.partial(pause.resolve, None))
            self.world.wait_for(pause)
            waited_ms += LOCK_RETRY_MS
