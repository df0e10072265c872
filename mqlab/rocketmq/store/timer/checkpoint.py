"""The timer's check file: how far the wheel was read and filled when the service last flushed.

Mirrors: org.apache.rocketmq.store.timer.TimerCheckpoint; file ``config/timercheck``, 4096 bytes of which 56 are used.
A slave asks its master for these 56 bytes (GET_TIMER_CHECK_POINT).
"""

from __future__ import annotations

from mqlab.errors import CorruptionError
from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.wire.bodies import DataVersion
from mqlab.rocketmq.wire.timer_units import CHECK, CHECK_FILE_SIZE, CHECK_SIZE


class TimerCheckpoint:
    """The numbers in memory; ``flush`` writes and syncs them. Times are ms, offsets are the timer topic's."""

    __slots__ = (
        "_files",
        "_flushed",
        "data_version",
        "log_flushed",
        "master_queue_offset",
        "path",
        "queue_offset",
        "read_ms",
    )

    def __init__(self, files: Files, path: str, now_ms: int) -> None:
        self._files = files
        self.path = path
        self.read_ms = 0
        self.log_flushed = 0
        self.queue_offset = 0
        self.master_queue_offset = 0
        self.data_version = DataVersion.at(now_ms)
        self._flushed = b""

    def load(self) -> None:
        """Read the file, if it is there; a short one counts as missing."""
        data = self._files.read(self.path) if self._files.exists(self.path) else b""
        if len(data) >= CHECK_SIZE:
            self.decode(data)
            self._flushed = data[:CHECK_SIZE]

    def encode(self) -> bytes:
        """The 56 bytes. Mirrors TimerCheckpoint.encode."""
        version = self.data_version
        return CHECK.pack(
            self.read_ms,
            self.log_flushed,
            self.queue_offset,
            self.master_queue_offset,
            version.state_version,
            version.timestamp,
            version.counter,
        )

    def decode(self, data: bytes) -> None:
        """Use the numbers of 56 bytes. Raises CorruptionError when there are fewer."""
        if len(data) < CHECK_SIZE:
            raise CorruptionError("a timer check point is cut off", expected=f"{CHECK_SIZE} bytes", found=len(data))
        (
            self.read_ms,
            self.log_flushed,
            self.queue_offset,
            self.master_queue_offset,
            state_version,
            timestamp,
            counter,
        ) = CHECK.unpack_from(data)
        self.data_version = DataVersion(counter, state_version, timestamp)

    def flush(self) -> None:
        """Write and sync the file; does nothing when the file holds these numbers already."""
        data = self.encode()
        if data == self._flushed:
            return
        is_new = not self._files.exists(self.path)
        folder = self.path.rpartition("/")[0]
        if not self._files.exists(folder):
            self._files.make_directory(folder)
        mapping = self._files.map(self.path, CHECK_FILE_SIZE)
        try:
            mapping.write(0, data)
            mapping.flush(0, CHECK_FILE_SIZE)
        finally:
            mapping.close()
        if is_new:
            self._files.sync_directory(folder)
        self._flushed = data

    def __repr__(self) -> str:
        return f"<TimerCheckpoint read {self.read_ms}, queue offset {self.queue_offset}, log {self.log_flushed}>"
