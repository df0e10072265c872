"""The files of a store, appended to in large pieces: commit log, consume queues, and the fingerprint of all units.

Mirrors: MappedFileQueue, CommitLog's roll with BLANK, ConsumeQueue. Lab 01 opens such files.

    sizes of units ──▶ places: a unit and 8 bytes must fit into what is left of a file, else BLANK and the next file
    buffer of a slice ──▶ written piece by piece, at most one file at a time; files are sparse, of full size
    queue            ──▶ 20 bytes per unit, appended

Left out: mmap; everything is written once, in order.
"""

from __future__ import annotations

import hashlib
import os
from typing import BinaryIO

import numpy as np

from mqlab.data.traffic.draws import Array
from mqlab.errors import StoreError
from mqlab.rocketmq.wire.record import blank
from mqlab.rocketmq.wire.record_layout import BLANK_SIZE
from mqlab.rocketmq.wire.units import CQ_UNIT_SIZE

CQ_UNITS = np.dtype([("physical_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])


class SizedFiles:
    """Files of one size in a folder, named by start offset, written from the front."""

    def __init__(self, folder: str, file_size: int) -> None:
        self._folder = folder
        self._file_size = file_size
        self._file: BinaryIO | None = None
        self.end = 0  # where the next byte goes

    def append(self, data: Array | bytes) -> None:
        """Append bytes (uint8) to those written so far, over as many files as they need."""
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        done = 0
        while done < len(view):
            position = self.end % self._file_size
            if position == 0:
                self._next()
            assert self._file is not None
            count = min(len(view) - done, self._file_size - position)
            piece = view[done : done + count]
            while len(piece):
                piece = piece[self._file.write(piece) :]
            done += count
            self.end += count

    def skip(self, count: int) -> None:
        """Leave a hole to the end of the file."""
        self.end += count
        assert self._file is not None
        if self.end % self._file_size:
            self._file.seek(self.end % self._file_size)

    def _next(self) -> None:
        self.close()
        os.makedirs(self._folder, exist_ok=True)
        self._file = open(f"{self._folder}/{self.end:020d}", "xb", buffering=0)  # noqa: SIM115 (closed when full)
        self._file.truncate(self._file_size)

    def close(self) -> None:
        """Sync and close the file being written."""
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


class Log:
    """The commit log of one store."""

    def __init__(self, directory: str, file_size: int) -> None:
        self._files = SizedFiles(f"{directory}/commitlog", file_size)
        self._file_size = file_size

    @property
    def end(self) -> int:
        """Where the next unit goes, if it fits there."""
        return self._files.end

    def places(self, sizes: Array) -> tuple[Array, list[int]]:
        """Physical offset of each unit to be appended, and where BLANKs go. Raises StoreError for too large a unit."""
        if int(sizes.max(initial=0)) + BLANK_SIZE > self._file_size:
            raise StoreError(f"a message of {int(sizes.max())} bytes does not fit into files of {self._file_size}")
        # 1. Places as if the log were one file.
        ends = np.cumsum(sizes)
        places = ends - sizes + self.end
        blanks: list[int] = []
        # 2. File by file: units that fit stay, all that follow move by the length of the blank.
        done, moved_to = 0, self.end
        while True:
            start = moved_to + (int(ends[done - 1]) if done else 0)
            room = self._file_size - start % self._file_size
            fitting = int(np.searchsorted(ends, int(ends[done - 1] if done else 0) + room - BLANK_SIZE, side="right"))
            places[done:fitting] += moved_to - self.end
            if fitting == len(sizes):
                return places, blanks
            end = moved_to + (int(ends[fitting - 1]) if fitting else 0)
            blanks.append(end)
            moved_to += self._file_size - end % self._file_size
            done = fitting

    def append(self, buffer: Array, blanks: list[int]) -> None:
        """Write a slice: ``buffer`` begins where the log ends and holds room for the bytes after each BLANK."""
        start, done = self.end, 0
        for boundary in blanks:
            left = self._file_size - boundary % self._file_size
            mark = boundary - start
            buffer[mark : mark + BLANK_SIZE] = np.frombuffer(blank(left), np.uint8)
            self._files.append(buffer[done : mark + BLANK_SIZE])
            self._files.skip(left - BLANK_SIZE)
            done = mark + left
        self._files.append(buffer[done:])

    def close(self) -> None:
        """Sync and close."""
        self._files.close()


class QueueFiles:
    """The consume queues of one store, each identified by a small number."""

    def __init__(self, directory: str, places: list[tuple[str, int]], file_size: int) -> None:
        self.places = places
        self.ends = np.zeros(len(places), np.int64)  # next queue offsets
        self._files = [SizedFiles(f"{directory}/consumequeue/{t}/{q}", file_size) for t, q in places]
        self._fingerprint = hashlib.sha256()

    def offsets(self, numbers: Array) -> Array:
        """The queue offset of each unit, given its queue's number, without appending it."""
        order, first = _grouped(numbers, len(self.places))
        offsets = np.empty(len(numbers), np.int64)
        counts = np.diff(first)
        offsets[order] = np.arange(len(numbers)) - np.repeat(first[:-1] - self.ends, counts)
        return offsets

    def append(self, numbers: Array, physical_offsets: Array, sizes: Array, tags_codes: Array) -> None:
        """Add units in the order of the log."""
        units = np.empty(len(numbers), CQ_UNITS)
        units["physical_offset"], units["size"], units["tags_code"] = physical_offsets, sizes, tags_codes
        order, first = _grouped(numbers, len(self.places))
        raw = units[order].view(np.uint8)
        for number in np.flatnonzero(np.diff(first)).tolist():
            self._files[number].append(raw[first[number] * CQ_UNIT_SIZE : first[number + 1] * CQ_UNIT_SIZE])
        self.ends += np.diff(first)
        self._fingerprint.update(raw.data)

    def count(self, numbers: Array) -> None:
        """Go on as if these units had been appended; their files stay as they are."""
        self.ends += np.bincount(numbers, minlength=len(self.places))

    def also(self, column: Array) -> None:
        """Include a column of the units in the fingerprint."""
        self._fingerprint.update(np.ascontiguousarray(column).data)

    def fingerprint(self) -> str:
        """SHA-256 over all queue units as written and the columns given to ``also``."""
        return self._fingerprint.hexdigest()

    def close(self) -> None:
        """Sync and close."""
        for files in self._files:
            files.close()


def _grouped(numbers: Array, queue_count: int) -> tuple[Array, Array]:
    """Rows ordered by number, and where each number's rows begin in that order (one more at the end)."""
    kind = np.uint8 if queue_count <= 256 else np.uint16
    order = np.argsort(numbers.astype(kind), kind="stable")
    first = np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=queue_count))))
    return order, first
