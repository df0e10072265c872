"""The commit log: every message of every topic, one after the other.

Mirrors: org.apache.rocketmq.store.CommitLog. Lab 01 reads it byte by byte.

    file 0                                        file 65536
    ├ unit ┼ unit ┼── unit ──┼ BLANK ┼ leftovers ┤├── unit ──┼ unit ┼ zeros ...
    A unit is appended to the current file if its size + 8 bytes are left. Otherwise a BLANK fills the file, and the
    unit is the first of the next file.

Left out: compaction, cold-data control, the put lock (a node runs one handler at a time).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from mqlab.errors import StoreError
from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.mapped_file import MappedFile
from mqlab.rocketmq.store.mapped_file_queue import MappedFileQueue
from mqlab.rocketmq.wire.record import Record, encode_at
from mqlab.rocketmq.wire.record_layout import BLANK_SIZE, MAGIC_BLANK, STORE_TIMESTAMP_AT, SYS_FLAG_AT

_SIZE_AND_MAGIC = struct.Struct(">ii")
_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")


class UnitTooLarge(Exception):
    """A unit (or a batch) that no file of this log can hold."""


class CommitLog:
    """Appends and reads units. Offsets are physical: bytes from the beginning of the log. Mirrors CommitLog."""

    def __init__(self, files: Files, directory: str, file_size: int) -> None:
        self.queue = MappedFileQueue(files, directory, file_size, make_ahead=True)

    @property
    def file_size(self) -> int:
        """Bytes of each file."""
        return self.queue.file_size

    @property
    def min_offset(self) -> int:
        """Where the oldest file begins; -1 without files. Mirrors getMinOffset."""
        return self.queue.min_offset

    @property
    def max_offset(self) -> int:
        """Where the next unit will begin."""
        return self.queue.max_offset

    @property
    def flushed_where(self) -> int:
        """Everything before this is on the disk."""
        return self.queue.flushed_where

    def append(self, record: Record, queue_offset: int, store_timestamp: int) -> tuple[int, int]:
        """Encode a record at the end of the log. Returns its offset and size. The record itself is not changed.

        Raises UnitTooLarge when no file can hold it, OSError when none can be made, UsageError when it has no layout.
        """
        queue = self.queue
        mapped_files = queue.mapped_files
        mapped = mapped_files[-1] if mapped_files else queue.file_to_write()
        position = mapped.wrote_position
        physical_offset = mapped.start_offset + position
        unit = encode_at(record, queue_offset, physical_offset, store_timestamp)
        size = len(unit)
        if position + size + BLANK_SIZE > mapped.size:
            mapped = self._roll(mapped, size)
            position, physical_offset = 0, mapped.start_offset  # the offset is part of the unit: encode it again
            unit = encode_at(record, queue_offset, physical_offset, store_timestamp)
        mapped.write_at(position, unit)
        mapped.wrote_position = position + size
        mapped.store_timestamp = store_timestamp
        return physical_offset, size

    def append_batch(self, records: Sequence[Record], queue_offset: int, store_timestamp: int) -> list[int]:
        """Encode several records next to each other in one file. Returns where each begins, and where the last ends.

        Raises as ``append`` does.
        """
        # A batch is never split over two files: what does not fit whole is encoded again for the next one.
        mapped = self.queue.file_to_write()
        here = mapped.start_offset + mapped.wrote_position
        units, offsets = _encode_from(records, here, queue_offset, store_timestamp)
        total = offsets[-1] - offsets[0]
        if mapped.wrote_position + total + BLANK_SIZE > mapped.size:
            mapped = self._roll(mapped, total)
            units, offsets = _encode_from(records, mapped.start_offset, queue_offset, store_timestamp)
        mapped.append(b"".join(units))
        mapped.store_timestamp = store_timestamp
        return offsets

    def _roll(self, mapped: MappedFile, needed: int) -> MappedFile:
        """End a file with a BLANK whose size is the rest of the file. Returns the next file."""
        if needed + BLANK_SIZE > self.file_size:
            raise UnitTooLarge(f"{needed} bytes do not fit into files of {self.file_size} (8 are kept for the filler)")
        left = mapped.size - mapped.wrote_position
        if 0 < left < BLANK_SIZE:  # appending keeps these bytes free, so the file was cut from outside
            raise StoreError(
                f"{mapped.path} has {mapped.size} bytes, {left} of them after the last unit; a BLANK has {BLANK_SIZE}",
                hint="the file was cut: stop, append zeros up to the size of the other files, and start again",
            )
        # The next file is made first: if that fails, this one is still as it was.
        following = self.queue.next_file(mapped)
        if left:
            mapped.append(_SIZE_AND_MAGIC.pack(left, MAGIC_BLANK))
            mapped.wrote_position = mapped.size
        self.queue.on_full(mapped)
        return following

    def read(self, physical_offset: int, size: int) -> bytes | None:
        """Bytes of the log, from one file; None when they are not there (deleted, or not written yet)."""
        mapped = self.queue.find(physical_offset)
        return mapped.read(physical_offset - mapped.start_offset, size) if mapped is not None else None

    def block_from(self, physical_offset: int, most: int) -> bytes:
        """Written bytes of one file from an offset on, at most ``most``; b"" where nothing is written.

        Units are not looked at: a block may begin and end inside one. Mirrors getData.
        """
        mapped = self.queue.find_late(physical_offset)
        if mapped is None:
            return b""
        position = physical_offset - mapped.start_offset
        return mapped.read(position, min(most, mapped.wrote_position - position)) or b""

    def append_block(self, physical_offset: int, block: bytes) -> bool:
        """Append bytes of another log at the offset they have there. Mirrors appendData.

        False, and nothing is written, when the block does not begin where this log ends or would cross a file's end.
        Raises OSError when a file cannot be made.
        """
        queue = self.queue
        if not queue.max_offset:
            while queue.mapped_files:  # an empty file of an earlier start: the master's log may begin at another offset
                queue.delete_last()
        mapped = queue.file_to_write(physical_offset)
        position = physical_offset - mapped.start_offset
        if position != mapped.wrote_position or position + len(block) > mapped.size:
            return False
        mapped.append(block)
        return True

    def unit_at(self, physical_offset: int) -> bytes | None:
        """The bytes of the unit that begins there; its first field is its size. None when no unit can begin there."""
        head = self.read(physical_offset, 4)
        if head is None:
            return None
        (size,) = _I32.unpack(head)
        return self.read(physical_offset, size) if size > BLANK_SIZE else None

    def store_timestamp_at(self, physical_offset: int) -> int:
        """Store time (ms) of the unit that begins there, -1 when it was deleted. Mirrors pickupStoreTimestamp."""
        mapped = self.queue.find(physical_offset)
        if mapped is None:
            return -1
        position = physical_offset - mapped.start_offset
        if position + STORE_TIMESTAMP_AT[3] + 8 > mapped.wrote_position:
            return -1
        (sys_flag,) = _I32.unpack_from(mapped.view, position + SYS_FLAG_AT)
        return int(_I64.unpack_from(mapped.view, position + STORE_TIMESTAMP_AT[sys_flag >> 4 & 3])[0])

    def next_file_start(self, physical_offset: int) -> int:
        """Where the next file begins. Mirrors rollNextFile."""
        return physical_offset + self.file_size - physical_offset % self.file_size

    def heads(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(physical_offset, size, magic) of each unit and filler between two offsets, trusting the sizes it reads."""
        while start < end:
            head = self.read(start, 8)
            if head is None:
                return
            size, magic = _SIZE_AND_MAGIC.unpack(head)
            yield start, size, magic
            if magic == MAGIC_BLANK:
                start = self.next_file_start(start)
            elif size > 0:
                start += size
            else:
                return

    def __repr__(self) -> str:
        bounds = f"{self.min_offset}..{self.max_offset}, flushed {self.flushed_where}"
        return f"<CommitLog {bounds}, files of {self.file_size}>"


def _encode_from(
    records: Sequence[Record], physical_offset: int, queue_offset: int, store_timestamp: int
) -> tuple[list[bytes], list[int]]:
    units, offsets = [], [physical_offset]
    for number, record in enumerate(records, queue_offset):
        unit = encode_at(record, number, physical_offset, store_timestamp)
        units.append(unit)
        physical_offset += len(unit)
        offsets.append(physical_offset)
    return units, offsets
