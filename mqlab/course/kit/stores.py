"""Stores that hold exactly what a case asks for: messages at planned times, written by the store itself.

    store_of(folder / "broker-a", [Stored(at_ms, "orders", 3, b"...", {"KEYS": "O1"}), ...])     in the order of time
    shared_folder("lab12")     a folder that answers can read, deleted when the process ends

A store's clock is set to each message's time before it is put, so that log, queues and offsets are what a broker would
have written then. Left out: flushing in between.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.machine.this_machine import PolledClock
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.wire import properties
from mqlab.rocketmq.wire.host import Host
from mqlab.rocketmq.wire.record import Record

LOG_FILE_BYTES, QUEUE_FILE_BYTES = 1 << 20, 20_000


@dataclass(frozen=True, slots=True)
class Stored:
    """A message and the time at which its broker stored it; ``born_ms`` None: at the same time."""

    stored_ms: int
    topic: str
    queue_id: int = 0
    body: bytes = b""
    properties: Mapping[str, str] = field(default_factory=dict)
    born_ms: int | None = None
    reconsume_times: int = 0

    def record(self, store_host: Host) -> Record:
        """The message as the store takes it."""
        born_ms = self.stored_ms if self.born_ms is None else self.born_ms
        return Record(
            self.topic,
            self.body,
            queue_id=self.queue_id,
            born_timestamp=born_ms,
            store_host=store_host,
            reconsume_times=self.reconsume_times,
            properties=properties.encode(dict(self.properties)),
        )


class _PlannedClock(PolledClock):
    """A clock that shows what it was set to; nothing becomes due by itself."""

    def __init__(self, now_ms: int) -> None:
        super().__init__()
        self.shows_ms = now_ms

    def now_ms(self) -> int:
        return self.shows_ms


def store_of(directory: Path, messages: Iterable[Stored], log_file_bytes: int = LOG_FILE_BYTES) -> Path:
    """A finished store with these messages, sorted by time; its directory, which is made.

    Its last letter is the number of its broker's host, so that two brokers do not give one offset_msg_id.
    """
    ordered = sorted(messages, key=lambda message: message.stored_ms)
    clock = _PlannedClock(ordered[0].stored_ms if ordered else 0)
    config = StoreConfig(
        mapped_file_size_commit_log=log_file_bytes,
        mapped_file_size_consume_queue=QUEUE_FILE_BYTES,
        message_index_enable=False,
    )
    host = (f"10.0.0.{ord(directory.name[-1])}", 10911)
    directory.mkdir(parents=True)
    store = MessageStore(str(directory), files=RealFiles(), clock=clock, config=config, auto_dispatch=False)
    store.load()
    store.start()
    for message in ordered:
        clock.shows_ms = message.stored_ms
        store.put(message.record(host))
    store.dispatch()
    store.shutdown()
    return directory


def shared_folder(name: str) -> Path:
    """A new folder that other processes can read; it is deleted when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix=f"mqlab-{name}-"))
    folder.chmod(0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
