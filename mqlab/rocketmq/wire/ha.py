"""The bytes between a master and its slave: blocks of commit log one way, offsets the other.

Mirrors: DefaultHAConnection and DefaultHAClient, the two ends of RocketMQ's own replication link.

    slave  -> master   8       physical offset, i64: where to begin; later, how far the slave has written
    master -> slave    12 + n  physical offset i64, size i32, n bytes of commit log (n = 0: a heartbeat)

Big-endian, no handshake, no version, no outer length: a reader that has lost its place cannot find it again.
A block may begin and end inside a message.
Left out: the formats of controller mode (epochs, handshake states).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from mqlab.errors import CorruptionError

REPORT_SIZE = 8
HEADER_SIZE = 12
MAX_BLOCK_BYTES = 4 << 20  # the slave's read buffer: no block can be larger
_REPORT = struct.Struct(">q")
_HEADER = struct.Struct(">qi")


@dataclass(frozen=True, slots=True)
class HaReport:
    """A slave's report: the physical offset after the last byte it has written (not flushed)."""

    physical_offset: int

    def encode(self) -> bytes:
        """Its 8 bytes.

        >>> HaReport(1_048_576).encode().hex()
        '0000000000100000'
        """
        return _REPORT.pack(self.physical_offset)


@dataclass(frozen=True, slots=True)
class HaBlock:
    """A piece of commit log that begins at a physical offset; without bytes it is a heartbeat."""

    physical_offset: int
    data: bytes = b""

    @property
    def is_heartbeat(self) -> bool:
        return not self.data

    def encode(self) -> bytes:
        """Header and bytes.

        >>> HaBlock(0, "中".encode()).encode().hex(" ", -4)
        '00000000 00000000 00000003 e4b8ad'
        """
        return _HEADER.pack(self.physical_offset, len(self.data)) + self.data


class ReportReader:
    """The master's reader. It uses only the last complete group of eight bytes that has arrived."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> HaReport | None:
        """Take bytes and return the newest report that they complete, or None.

        >>> reader = ReportReader(); reader.feed(HaReport(5).encode() + HaReport(7).encode() + bytes(3))
        HaReport(physical_offset=7)
        """
        data = self._rest + data
        whole = len(data) - len(data) % REPORT_SIZE
        self._rest = data[whole:]
        return HaReport(_REPORT.unpack_from(data, whole - REPORT_SIZE)[0]) if whole else None


class BlockReader:
    """The slave's reader: ``feed`` bytes in any pieces, look at ``header``, ``take`` the block when it is complete."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        """Take bytes as they arrived."""
        self._data += data

    @property
    def header(self) -> tuple[int, int] | None:
        """Physical offset and size of the block that is coming in; None until its twelve bytes have arrived.

        Raises CorruptionError for a size that no master sends: the place in the stream is lost.
        """
        if len(self._data) < HEADER_SIZE:
            return None
        physical_offset, size = _HEADER.unpack_from(self._data)
        if not 0 <= size <= MAX_BLOCK_BYTES - HEADER_SIZE:
            raise CorruptionError(
                "the replication stream is out of step",
                where=f"block at physical offset {physical_offset}",
                expected=f"a size of 0 to {MAX_BLOCK_BYTES - HEADER_SIZE} bytes",
                found=size,
                hint="the slave closes the connection and begins again with its own end offset",
            )
        return physical_offset, size

    def take(self) -> HaBlock | None:
        """The next complete block, None when some of its bytes are still to come. Raises as ``header`` does."""
        header = self.header
        if header is None or len(self._data) < HEADER_SIZE + header[1]:
            return None
        physical_offset, size = header
        data = bytes(self._data[HEADER_SIZE : HEADER_SIZE + size])
        del self._data[: HEADER_SIZE + size]
        return HaBlock(physical_offset, data)

    def __repr__(self) -> str:
        return f"<BlockReader {len(self._data)} bytes of a block>"
