"""A store's commit log cut into ranges that can be read apart, each beginning and ending between two units.

RocketMQ reads the log with one thread. Lab 10 looks at a read as Spark plans it.

    file 0          262144          524288 (made ahead, empty)
    ├ a ─┤├ b ─┤ blank├ c ──┤ end of the log
    range a   start 0, end where the first unit at or after the middle begins; so b begins where a ends

A cut is found by searching for a unit's magic whose stored physical offset is its own place.
Left out: waiting for what is still being written; a plan is a snapshot up to the present end of the log.
"""

from __future__ import annotations

import itertools
import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from mqlab.data.arrow.growing import log_end
from mqlab.data.arrow.losses import find_losses, report
from mqlab.data.arrow.stores import StoreFolder
from mqlab.rocketmq.store.reading.log_reader import Segment
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.wire.record_layout import FIXED_PARTS, MAGIC_V1, MAGIC_V2, fixed_offset

MAGIC_AT = fixed_offset("magic")
PHYSICAL_OFFSET_AT = fixed_offset("physical_offset")
SMALLEST_UNIT = FIXED_PARTS[0].size
_MAGICS = (struct.pack(">i", MAGIC_V1), struct.pack(">i", MAGIC_V2))
_I64 = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class LogRange:
    """A piece of one commit-log file: physical offsets ``start`` to ``end``, units of one broker."""

    path: str
    file_start: int
    start: int
    end: int
    broker_name: str

    @property
    def size(self) -> int:
        return self.end - self.start


def plan(
    store: StoreFolder,
    target_bytes: int,
    *,
    start: int | None = None,
    end: int | None = None,
    fail_on_data_loss: bool = True,
) -> list[LogRange]:
    """The ranges of a store, none much longer than ``target_bytes``, in order of their offsets; none for an empty log.

    ``start`` and ``end`` are physical offsets: units that begin at or after ``start`` and before ``end``; a unit
    need not begin there. Without an end: up to the last unit that is complete now. Raises CorruptionError when queues
    know messages there that the log does not hold; without ``fail_on_data_loss`` it warns of them instead.
    """
    inspector = StoreReader(store.directory)
    log = log_end(inspector)
    first = inspector.min_physical_offset if start is None else start
    last = log.offset if end is None else min(end, log.offset)
    report(find_losses(inspector, log, first, end), fail_on_data_loss)

    def bounds(view: mmap.mmap, segment: Segment) -> tuple[int, int]:
        stop = min(segment.end, log.offset)
        return _at_or_after(view, segment.start, first, stop), _at_or_after(view, segment.start, last, stop)

    return _ranges(inspector, store, first, last, target_bytes, bounds)


def plan_between(store: StoreFolder, target_bytes: int, start: int, end: int) -> list[LogRange]:
    """The ranges from ``start`` to ``end``, which must be places between two units: otherwise a reader raises."""

    def bounds(view: mmap.mmap, segment: Segment) -> tuple[int, int]:
        return max(start, segment.start), min(end, segment.end)

    return _ranges(StoreReader(store.directory), store, start, end, target_bytes, bounds)


def _ranges(
    inspector: StoreReader,
    store: StoreFolder,
    first: int,
    last: int,
    target_bytes: int,
    bounds: Callable[[mmap.mmap, Segment], tuple[int, int]],
) -> list[LogRange]:
    """The ranges of all files between two offsets; ``bounds`` gives the exact begin and end in a file."""
    ranges = []
    for segment in inspector.log.segments():
        if segment.end <= first or segment.start >= last or not segment.size:
            continue
        with open(segment.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            begin, finish = bounds(view, segment)
            cuts = _cuts(view, segment.start, begin, finish, target_bytes)
        for a, b in itertools.pairwise(cuts):
            if a < b:
                ranges.append(LogRange(segment.path, segment.start, a, b, store.broker_name))
    return ranges


def _cuts(view: mmap.mmap, file_start: int, begin: int, finish: int, target_bytes: int) -> list[int]:
    """Physical offsets at which units begin, from ``begin`` to ``finish`` about ``target_bytes`` apart, in one file."""
    pieces = max(1, -(-(finish - begin) // target_bytes))
    step = max(SMALLEST_UNIT, -(-(finish - begin) // pieces))
    cuts = [begin]
    while cuts[-1] < finish:
        cuts.append(_at_or_after(view, file_start, cuts[-1] + step, finish))
    return cuts


def _at_or_after(view: mmap.mmap, file_start: int, offset: int, stop: int) -> int:
    """Where the first unit at or after an offset begins, within one file; ``stop`` if none begins before it."""
    if offset <= file_start:
        return file_start
    if offset >= stop:
        return stop
    position = next_unit(view, file_start, offset - file_start, stop - file_start)
    return stop if position is None else file_start + position


def next_unit(view: mmap.mmap | bytes, file_start: int, start: int, end: int) -> int | None:
    """The first place of the file at or after ``start`` and before ``end`` where a unit begins, or None."""
    while True:
        hit = -1
        for magic in _MAGICS:  # the second is only searched for before the place of the first
            earlier = view.find(magic, start + MAGIC_AT, end if hit < 0 else hit)
            hit = earlier if earlier >= 0 else hit
        if hit < 0:
            return None
        position = hit - MAGIC_AT
        if position + SMALLEST_UNIT <= end:
            (stored,) = _I64.unpack_from(view, position + PHYSICAL_OFFSET_AT)
            if stored == file_start + position:
                return position
        start = position + 1


class Sized(Protocol):
    """A piece of a file to read, with its size in bytes."""

    @property
    def size(self) -> int: ...


Piece = TypeVar("Piece", bound=Sized)


def together(ranges: list[Piece], target_bytes: int) -> list[list[Piece]]:
    """The ranges in groups of about ``target_bytes``, in their order: many small files must not become many tasks."""
    groups: list[list[Piece]] = []
    room = 0
    for piece in ranges:
        if not groups or piece.size > room:
            groups.append([])
            room = target_bytes
        groups[-1].append(piece)
        room -= piece.size
    return groups
