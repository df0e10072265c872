"""Reads one consume queue: its bounds and any of its units, without reading all of it.

Mirrors: the reading half of org.apache.rocketmq.store.ConsumeQueue. Lab 01 walks from a queue into the log.

    file 0                                              file 6000000
    | pre-blank … | unit 37 | unit 38 | … | unit 299999 | unit 300000 | … | unit 300811 | zeros … |
                    ▲ min_offset: first unit in the log                                 max_offset ▲ first empty place

Left out: batch consume queues and queue extensions (units of another shape; the inspector names them).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from mqlab.errors import UsageError
from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.reading.file_sizes import offset_names
from mqlab.rocketmq.store.reading.open_files import OpenFiles
from mqlab.rocketmq.wire.layout import Field
from mqlab.rocketmq.wire.units import CQ_UNIT_SIZE, PREBLANK_SIZE, CqUnit, cq_field_map, decode_cq


class QueueFile(NamedTuple):
    """One file: the queue offset of its first unit, its path, how many units it has room for."""

    first_offset: int
    path: str
    capacity: int


class QueueReader:
    """The queue ``topic``/``queue_id`` in ``folder``. ``min_physical_offset`` is where the commit log begins.

    Offsets count units; ``min_offset`` is the first one that can be read, ``max_offset`` the next one to be written.
    """

    def __init__(
        self, files: Files, folder: str, open_files: OpenFiles, topic: str, queue_id: int, min_physical_offset: int = 0
    ) -> None:
        self._files = files
        self._open_files = open_files
        self._min_physical_offset = min_physical_offset
        self.folder = folder
        self.topic = topic
        self.queue_id = queue_id

    def queue_files(self) -> list[QueueFile]:
        """The files in order; a file too short for one unit is left out."""
        files = []
        for name in offset_names(self._files, self.folder):
            path = f"{self.folder}/{name}"
            try:
                capacity = self._files.size(path) // CQ_UNIT_SIZE
            except FileNotFoundError:
                continue
            if capacity:
                files.append(QueueFile(int(name) // CQ_UNIT_SIZE, path, capacity))
        return files

    @property
    def max_offset(self) -> int:
        """The next queue offset: after the last written unit (a file is written from its start without holes)."""
        files = self.queue_files()
        for file in reversed(files):
            written = self._written(file)
            if written:
                return file.first_offset + written
        return files[0].first_offset if files else 0

    @property
    def min_offset(self) -> int:
        """The first queue offset whose message the commit log still has. Mirrors ConsumeQueue.correctMinOffset."""
        files = self.queue_files()
        if not files:
            return 0
        first, max_offset = files[0], self.max_offset
        # 1. No unit is written: the name of the first file has the numbering.
        if max_offset <= first.first_offset:
            return first.first_offset
        last = self.unit(max_offset - 1)
        # 2. All messages are deleted: nothing can be read, and the numbering continues.
        if last is None or last.physical_offset < self._min_physical_offset:
            return max_offset
        # 3. Only the first file can have units of deleted messages: older files are deleted whole.
        written = min(first.capacity, max_offset - first.first_offset)
        index = bisect_left(
            range(written), self._min_physical_offset, key=lambda at: self._unit(first, at).physical_offset
        )
        return first.first_offset + index

    def unit(self, queue_offset: int, files: list[QueueFile] | None = None) -> CqUnit | None:
        """The unit at a queue offset, which may be a pre-blank one; None where nothing is written.

        ``files``: what ``queue_files`` gave before, for a caller that asks for many units.
        """
        for file in self.queue_files() if files is None else files:
            if 0 <= queue_offset - file.first_offset < file.capacity:
                unit = self._unit(file, queue_offset - file.first_offset)
                return unit if _is_a_message(unit) else None
        return None

    def units(self, start: int | None = None, stop: int | None = None) -> Iterator[tuple[int, CqUnit]]:
        """(queue offset, unit) from ``start`` (min_offset) up to ``stop`` (max_offset); pre-blank ones are left out."""
        start = self.min_offset if start is None else start
        stop = self.max_offset if stop is None else stop
        for file in self.queue_files():
            view = self._open_files.view(file.path)
            for index in range(max(0, start - file.first_offset), min(file.capacity, stop - file.first_offset)):
                if (index + 1) * CQ_UNIT_SIZE > len(view):
                    break
                unit = decode_cq(view, index * CQ_UNIT_SIZE)
                if unit.size > 0 and unit.size != PREBLANK_SIZE:
                    yield file.first_offset + index, unit

    def bytes_of_unit(self, queue_offset: int) -> tuple[list[Field], int, str]:
        """The fields of one unit, its byte in its file, and the file's name. UsageError where no unit is written."""
        for file in self.queue_files():
            index = queue_offset - file.first_offset
            if 0 <= index < file.capacity and self._is_written(file, index):
                position = index * CQ_UNIT_SIZE
                fields = cq_field_map(self._open_files.view(file.path), position)
                return fields, position, file.path.rpartition("/")[2]
        raise UsageError(f"{self!r} has no unit {queue_offset}", hint="units run from min_offset up to max_offset")

    def _written(self, file: QueueFile) -> int:
        return bisect_left(range(file.capacity), True, key=lambda at: not self._is_written(file, at))

    def _unit(self, file: QueueFile, at: int) -> CqUnit:
        view = self._open_files.view(file.path)
        position = at * CQ_UNIT_SIZE
        return decode_cq(view, position) if position + CQ_UNIT_SIZE <= len(view) else CqUnit(0, 0, 0)

    def _is_written(self, file: QueueFile, at: int) -> bool:
        return _is_a_message(self._unit(file, at))

    def __repr__(self) -> str:
        return f"<QueueReader {self.topic}[{self.queue_id}] {self.min_offset}..{self.max_offset}>"


def _is_a_message(unit: CqUnit) -> bool:
    return unit.physical_offset >= 0 and unit.size > 0
