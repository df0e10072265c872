"""The ports through which everything unpredictable enters a node: Clock, Network, Files, Workers, a seeded rng.

Mirrors: what Java code takes from the JDK (System.currentTimeMillis, Netty, MappedByteBuffer, ExecutorService).
The simulated drivers are in mqlab.lab.runtime.sim, the real ones in mqlab.lab.runtime.threads and
mqlab.rocketmq.machine.files.

    node code ── ports.clock.call_later(5_000, self.persist, "offset.persist")
              ── ports.network.connect("10.0.0.2:10911", on_data, on_closed)
              ── ports.files.map("…/commitlog/000…", 1 << 20)
              ── ports.workers.pool("ConsumeMessageThread", 20).submit(listener_call, on_done)
              ── ports.rng.randrange(4)
              ── ports.note("message.stored", topic="orders", …)      what changed, for the journal

Rules: a handler runs to completion, takes no lock, never sleeps, never polls. Every wait is a deadline or a Promise.
Every port has a simulated driver and a real one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from mqlab.rocketmq.promises import Promise

T = TypeVar("T")
OS_PAGE_SIZE = 4096  # bytes; what a power cut leaves written or not is decided page by page


class Deadline(Protocol):
    """An armed wait. ``cancel()`` prevents it, and does nothing if it has already happened."""

    due_ms: int
    kind: str

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The clock of one node, with its skew, and its deadlines. Times are ms since the epoch."""

    def now_ms(self) -> int: ...

    def call_at(self, due_ms: int, action: Callable[[], None], kind: str) -> Deadline: ...

    def call_later(self, delay_ms: int, action: Callable[[], None], kind: str) -> Deadline: ...


class Connection(Protocol):
    """One end of an open link: bytes are sent in order and arrive through callbacks.

    ``remote_address`` and ``local_address`` are ``"ip:port"``. ``send`` on a closed connection does nothing.
    """

    local_address: str
    remote_address: str
    is_open: bool

    def send(self, data: bytes) -> None: ...

    def close(self) -> None: ...


OnData = Callable[[Connection, bytes], None]
OnClosed = Callable[[Connection, str], None]  # the reason: one of NOT_OPENED, "closed by peer", "reset"

NOT_OPENED = ("refused", "timed out", "unknown host", "unreachable")
"""Why a connection could not be opened."""


class Network(Protocol):
    """Listens and connects. A refused connection is reported through ``on_closed``, later, never by an exception."""

    def listen(
        self, address: str, on_accept: Callable[[Connection], None], on_data: OnData, on_closed: OnClosed
    ) -> None: ...

    def connect(self, address: str, on_data: OnData, on_closed: OnClosed) -> Connection: ...


class Mapping(Protocol):
    """A file of fixed size in memory. Read ``view`` directly; write through ``write``, so that a driver sees it.

    ``zero`` makes bytes zero and writes only bytes that are not (the tail of a log may be a gigabyte of holes).

    What is written is *synced* only after ``flush`` of its range (or of everything).
    """

    path: str
    size: int
    view: memoryview

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None: ...

    def zero(self, start: int, end: int | None = None) -> None: ...

    def flush(self, start: int = 0, end: int | None = None) -> None: ...

    def close(self) -> None: ...


class Files(Protocol):
    """A directory tree. Paths are strings, joined with "/"; missing files raise FileNotFoundError."""

    def map(self, path: str, size: int, *, create: bool = True) -> Mapping: ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def list(self, directory: str) -> list[str]: ...

    def size(self, path: str) -> int: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, data: bytes, *, sync: bool = False) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def make_directory(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None: ...

    def used_ratio(self, path: str) -> float: ...

    def disk_space(self, path: str) -> tuple[int, int]: ...

    def lock(self, path: str) -> FileLock: ...


class FileLock(Protocol):
    """An exclusive lock between processes on byte 0 of a file, made by ``Files.lock`` (StoreError if taken)."""

    def release(self) -> None: ...


class Pool(Protocol):
    """A thread pool of fixed size with an unbounded queue. ``on_done(value, error)`` runs on the node, as a step."""

    size: int

    @property
    def running(self) -> int: ...

    @property
    def waiting(self) -> int: ...

    def submit(self, call: Callable[[], T], on_done: Callable[[T | None, BaseException | None], None]) -> None: ...

    def shutdown(self) -> None: ...


class Workers(Protocol):
    """Where a learner's code runs, and how a caller waits.

    ``call`` runs ``start`` on the node (in its mailbox where there are threads) and blocks its caller until the promise
    that ``start`` returns is settled: a listener's coroutine or thread, or the notebook, which plays the world.
    Every blocking method of a client is one line: ``return self.ports.workers.call(lambda: self.send_async(message))``.
    """

    cores: int

    def pool(self, name: str, size: int) -> Pool: ...

    def call(self, start: Callable[[], Promise[T]]) -> T: ...

    def sleep(self, ms: int) -> None: ...

    def compute(self, ms: int) -> None: ...


class Access(Protocol):
    """How a node says who it is, and whom it answers; see mqlab.rocketmq.remoting.access."""

    def sign(self, command: Any) -> None: ...

    def problem_of(self, command: Any) -> str | None: ...


Note = Callable[..., None]  # note(kind, **values)


@dataclass(frozen=True, slots=True)
class Ports:
    """All ports of one node. ``note(kind, **values)`` records a change in the step under way."""

    node: str
    ip: str
    clock: Clock
    network: Network
    files: Files
    workers: Workers
    rng: random.Random
    note: Note
    annotate: Callable[[Any], None]  # the subject of the step under way (a decoded command), formatted only when shown
    access: Access | None = None  # None: nothing is signed, every peer is answered
    refused: Callable[[str], None] | None = None  # told of each request that is answered with an error
    keeps_journal: bool = True  # False: nobody reads what would be noted of each message


def next_on_grid(due_ms: int, period_ms: int, origin_ms: int = 0) -> int:
    """The first moment at or after ``due_ms`` on a grid: RocketMQ polls there, mqlab computes the moment.

    >>> next_on_grid(10_001, 100), next_on_grid(10_000, 100), next_on_grid(12, 10, origin_ms=5)
    (10100, 10000, 15)
    """
    return due_ms + (origin_ms - due_ms) % period_ms
