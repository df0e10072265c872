"""A store in a directory of its own, with a clock that stands until a test moves it and files that can lose power."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import pytest

from mqlab.lab.runtime.crash_files import CrashFiles
from mqlab.rocketmq.store import MessageStore, StoreConfig
from mqlab.rocketmq.wire.record import Record

START_MS = 1_700_000_000_000  # 2023-11-14 22:13:20 UTC


class HandClock:
    """Virtual time; ``advance`` runs what becomes due, ``armed`` lists the kinds of what waits."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now = now_ms
        self._heap: list[tuple[int, int, Armed]] = []
        self._count = 0

    def now_ms(self) -> int:
        return self.now

    def call_at(self, due_ms: int, action: Callable[[], None], kind: str) -> Armed:
        self._count += 1
        armed = Armed(due_ms, action, kind)
        heappush(self._heap, (due_ms, self._count, armed))
        return armed

    def call_later(self, delay_ms: int, action: Callable[[], None], kind: str) -> Armed:
        return self.call_at(self.now + delay_ms, action, kind)

    def advance(self, ms: int) -> None:
        end = self.now + ms
        while self._heap and self._heap[0][0] <= end:
            due_ms, _, armed = heappop(self._heap)
            if armed.action is not None:
                self.now = max(self.now, due_ms)
                armed.action()
        self.now = end

    def armed(self) -> list[str]:
        waiting = sorted(self._heap, key=lambda item: item[:2])
        return [armed.kind for _, _, armed in waiting if armed.action is not None]


class Armed:
    def __init__(self, due_ms: int, action: Callable[[], None], kind: str) -> None:
        self.due_ms = due_ms
        self.action: Callable[[], None] | None = action
        self.kind = kind

    def cancel(self) -> None:
        self.action = None


SMALL = {
    "mapped_file_size_commit_log": 4096,
    "mapped_file_size_consume_queue": 200,  # ten units
    "max_hash_slot_num": 50,
    "max_index_num": 100,
}


class World:
    """One machine: files with a power switch, a clock, and the store that runs on it (again after each crash)."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.directory = str(directory)
        self.files = CrashFiles()
        self.clock = HandClock()
        self.config = StoreConfig(**{**SMALL, **settings})
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.store = self._new()

    def _new(self) -> MessageStore:
        return MessageStore(
            self.directory,
            files=self.files,
            clock=self.clock,
            config=self.config,
            note=lambda kind, **values: self.notes.append((kind, values)),
        )

    def start(self, **settings: Any) -> MessageStore:
        """Load and start a store on the directory, a new one each time."""
        if settings:
            self.config = StoreConfig(**{**SMALL, **settings})
        self.store = self._new()
        self.store.load()
        self.store.start()
        return self.store

    def kill(self) -> None:
        """kill -9: what was written stays."""
        self.files.process_ended()
        self.clock = HandClock(self.clock.now)

    def power_cut(self, keep: Callable[[Any], bool] | None = None) -> list[Any]:
        lost = self.files.power_cut(keep)
        self.clock = HandClock(self.clock.now)
        return lost

    def settle(self) -> None:
        """Let dispatch and group commit happen."""
        self.clock.advance(2)


class Machines:
    """Stores on any directory, each on files of its own that sync nothing for real: fast enough for thousands."""

    def __init__(self) -> None:
        self.files: list[CrashFiles] = []

    def open(self, directory: Path, **settings: Any) -> MessageStore:
        """A store that dispatches when ``dispatch`` is called and when it is shut down; a context manager."""
        files = CrashFiles()
        self.files.append(files)
        config = StoreConfig(**{**SMALL, **settings})
        store = MessageStore(str(directory), files=files, clock=HandClock(), config=config)
        store.load()
        store.start()
        return store

    def kill(self) -> None:
        """kill -9 for all."""
        for files in self.files:
            files.process_ended()
        self.files.clear()


def make_record(
    number: int, *, topic: str = "订单", queue_id: int = 0, body: bytes | None = None, **fields: Any
) -> Record:
    """A message with Cyrillic, Chinese and emoji in it."""
    if body is None:
        body = f"сообщение {number} 你好 🚀".encode()
    tag = ("TagA", "Б", "标签")[number % 3]
    properties = f"KEYS\x01k{number} common\x02TAGS\x01{tag}\x02UNIQ_KEY\x01U{number:06}\x02".encode()
    return Record(topic, body, queue_id, properties=fields.pop("properties", properties), **fields)


@pytest.fixture(scope="session")
def machines_type() -> type[Machines]:
    return Machines


@pytest.fixture(scope="session")
def world_type() -> type[World]:
    return World


@pytest.fixture
def new_record() -> Callable[..., Record]:
    return make_record


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory in memory where the system has one: tests that make thousands of files need no disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        yield Path(directory)


@pytest.fixture
def machines() -> Iterator[Machines]:
    made = Machines()
    yield made
    made.kill()


@pytest.fixture
def new_world(scratch: Path) -> Callable[..., World]:
    """``new_world(flush_disk_type="SYNC_FLUSH")``: a machine with an empty directory and small segments."""
    count = 0

    def world(**settings: Any) -> World:
        nonlocal count
        count += 1
        return World(scratch / f"store{count}", **settings)

    return world


@pytest.fixture
def world(new_world: Callable[..., World]) -> World:
    made = new_world()
    made.start()
    return made
