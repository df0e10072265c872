"""What the store is compared with: a loop that only packs bytes, and queues of other projects.

raw loop    the same bytes as a commit log and consume queues, packed into mmaps, without any rule of RocketMQ
queuelib    Scrapy's file queue       sqlite3    a table in WAL mode       litequeue    a queue over sqlite3
"""

from __future__ import annotations

import mmap
import sqlite3
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path

HEAD = struct.Struct(">iiiiiqqiq8sq8siqi")
CQ_UNIT = struct.Struct(">qiq")
QUEUES = 4
HOST = bytes([127, 0, 0, 1, 0, 0, 42, 159])
MAGIC = -626843481
NOW_MS = 1700000000000


class RawLog:
    """A commit log and four consume queues as bare mmaps, for messages of (queue id, topic, body, properties)."""

    def __init__(self, directory: Path, messages: list[tuple[int, bytes, bytes, bytes]]) -> None:
        directory.mkdir(parents=True)
        self.messages, self.count = messages, len(messages)
        total = sum(HEAD.size + 3 + len(topic) + len(body) + len(tail) for _, topic, body, tail in messages)
        self.log = _mapped(directory / "log", total)
        self.queues = [
            _mapped(directory / f"queue-{number}", (self.count // QUEUES + 1) * 20) for number in range(QUEUES)
        ]

    def put(self) -> None:
        """Pack every message and its queue unit."""
        log, queues, offsets = self.log, self.queues, [0] * QUEUES
        pack, pack_unit, crc32, clock = HEAD.pack, CQ_UNIT.pack_into, zlib.crc32, time.time_ns
        position = 0
        for queue_id, topic, body, properties in self.messages:
            size = HEAD.size + 3 + len(body) + len(topic) + len(properties)
            queue_offset = offsets[queue_id]
            now_ms = clock() // 1_000_000
            # The same fields in the same order as in the store's units, so that the bytes are the same work.
            head = pack(
                size,
                MAGIC,
                crc32(body) & 0x7FFFFFFF,
                queue_id,
                0,
                queue_offset,
                position,
                0,
                NOW_MS,
                HOST,
                now_ms,
                HOST,
                0,
                0,
                len(body),
            )
            log[position : position + size] = b"".join(
                (head, body, bytes((len(topic),)), topic, len(properties).to_bytes(2, "big"), properties)
            )
            pack_unit(queues[queue_id], queue_offset * 20, position, size, 2598919)
            offsets[queue_id] = queue_offset + 1
            position += size

    def get(self) -> int:
        """Follow every queue unit and copy its message."""
        log, unpack = self.log, CQ_UNIT.unpack_from
        total = 0
        for queue in self.queues:
            # The whole queue in order, as a consumer that starts at 0.
            for at in range(0, self.count // QUEUES * 20, 20):
                position, size, _ = unpack(queue, at)
                total += len(log[position : position + size])
        return total

    def scan(self) -> int:
        """Go from unit to unit and check the bodies: what any recovery has to do."""
        log, view, unpack, crc32 = self.log, memoryview(self.log), HEAD.unpack_from, zlib.crc32
        position = valid = 0
        for _ in range(self.count):
            fields = unpack(log, position)
            start = position + HEAD.size
            valid += fields[2] == crc32(view[start : start + fields[14]]) & 0x7FFFFFFF
            position += fields[0]
        return valid


def _mapped(path: Path, size: int) -> mmap.mmap:
    with open(path, "w+b") as file:
        file.truncate(size)
        return mmap.mmap(file.fileno(), size)


class SqliteQueue:
    """Messages in one table, WAL, synchronous=NORMAL: a commit writes, a checkpoint syncs."""

    def __init__(self, directory: Path, count: int, body: bytes) -> None:
        directory.mkdir(parents=True)
        self.count, self.body = count, body
        self.database = sqlite3.connect(directory / "queue.db", isolation_level=None)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute("PRAGMA synchronous=NORMAL")
        self.database.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, queue INTEGER, key TEXT, body BLOB)")

    def put(self, batch: int) -> None:
        execute, body = self.database.execute, self.body
        for first in range(0, self.count, batch):
            execute("BEGIN")
            for number in range(first, min(first + batch, self.count)):
                execute(
                    "INSERT INTO message (queue, key, body) VALUES (?, ?, ?)", (number % QUEUES, f"k{number}", body)
                )
            execute("COMMIT")

    def get(self) -> None:
        for first in range(0, self.count, 32):
            self.database.execute("SELECT * FROM message WHERE id > ? ORDER BY id LIMIT 32", (first,)).fetchall()


def queuelib_put(directory: Path, count: int, body: bytes) -> tuple[Callable[[], None], Callable[[], None]]:
    """(put all, get all) of queuelib's FifoDiskQueue."""
    from queuelib import FifoDiskQueue

    queue = FifoDiskQueue(str(directory))

    def put() -> None:
        for _ in range(count):
            queue.push(body)

    def get() -> None:
        for _ in range(count):
            queue.pop()

    return put, get


def litequeue_put(directory: Path, count: int, body: bytes) -> Callable[[], None]:
    """Put all of litequeue, over a file. (Its pop reads the whole table: a get is not worth waiting for.)"""
    from litequeue import LiteQueue

    directory.mkdir(parents=True)
    queue = LiteQueue(directory / "queue.db")
    text = body.decode("ascii")

    def put() -> None:
        for _ in range(count):
            queue.put(text)

    return put
