"""The ``checkpoint`` file: how far each part of a store is known to be on disk, in store times.

Mirrors: org.apache.rocketmq.store.StoreCheckpoint. Lab 01 opens it with a hex dump.

The layout of the file is in mqlab.rocketmq.store.reading.checkpoint_format.
Left out: the mapped file that stays open in Java. Here it is opened for each flush, so it need not be closed.
"""

from __future__ import annotations

from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.reading.checkpoint_format import FIELDS, LAYOUT, SIZE, decode

SAFETY_MS = 3000  # recovery starts this much before the older of the two times


class Checkpoint:
    """The five numbers in memory, loaded from ``path`` if it is there; ``flush`` writes and syncs them.

    Times are ms since the epoch, offsets bytes in the commit log. A short file is read as if zeros followed: zeros only
    make a recovery start earlier. Mirrors StoreCheckpoint.
    """

    __slots__ = (*FIELDS, "_files", "_flushed", "path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self.physic_msg_timestamp = 0
        self.logics_msg_timestamp = 0
        self.index_msg_timestamp = 0
        self.master_flushed_offset = 0
        self.confirm_physical_offset = 0
        self.load()

    def load(self) -> None:
        """Read the file again: its numbers may have changed before the store was locked."""
        stored = self._files.read(self.path) if self._files.exists(self.path) else b""
        for name, number in decode(stored).items():
            setattr(self, name, number)
        self._flushed: tuple[int, ...] | None = self._numbers() if len(stored) == SIZE else None

    def min_timestamp(self) -> int:
        """Where crash recovery must start: 3 s before the older of the log's and the queues' time, never negative."""
        return max(0, min(self.physic_msg_timestamp, self.logics_msg_timestamp) - SAFETY_MS)

    def min_timestamp_index(self) -> int:
        """The same when the key index must be complete after a crash (``message_index_safe``)."""
        return min(self.min_timestamp(), self.index_msg_timestamp)

    def flush(self) -> None:
        """Write and sync the file; does nothing when the file holds these numbers already."""
        numbers = self._numbers()
        if numbers == self._flushed:
            return
        mapping = self._files.map(self.path, SIZE)
        try:
            mapping.write(0, LAYOUT.pack(*numbers))
            mapping.flush(0, SIZE)
        finally:
            mapping.close()
        self._flushed = numbers

    def _numbers(self) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in FIELDS)

    def __repr__(self) -> str:
        return "<Checkpoint " + " ".join(f"{name}={getattr(self, name)}" for name in FIELDS) + ">"
