"""The place in a commit log at which a moment begins, found by bisection over the store times of its units.

Mirrors: getMappedFileByTime for the file, and what searchOffset does in a queue, here in the log itself.

    files    09:00 ──── 09:20 ──── 09:40 ──── 10:00 ──── (made ahead, empty)      asked: 09:50
                                     └ the last file whose first unit is older than the moment
    units                            ├──── half: younger ┤ half: older … 20 steps for a file of 1 GB
                                              └ the first unit stored at or after the moment

Left out: logs whose store times fall because the machine's clock was set back. The search ends at one of the places
where the times pass the moment.
"""

from __future__ import annotations

import mmap

from mqlab.data.arrow.ranges import next_unit
from mqlab.rocketmq.store.reading.log_reader import GAP, UNIT, Segment
from mqlab.rocketmq.store.reading.store_reader import StoreReader

NEAR = 65_536  # bytes that are walked from unit to unit


def first_stored_at(inspector: StoreReader, timestamp_ms: int, end: int) -> int:
    """The physical offset of the first unit stored at or after a moment (ms); ``end`` when all units are older.

    ``end`` is a place between two units, such as ``confirmed_end``; what comes after it is not looked at.
    """
    segments = inspector.log.segments()
    # 1. The last file that begins before the moment. When there is none, the log begins at or after it.
    low, high = 0, len(segments)
    while low < high:
        middle = (low + high) // 2
        if _is_before(inspector, segments, segments[middle].start, timestamp_ms, end):
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return min(inspector.min_physical_offset, end)
    # 2. Halve the part of the file in which the moment is, until it is short enough to be walked.
    segment = segments[low - 1]
    older, not_older = segment.start, min(segment.end, end)
    with open(segment.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        while not_older - older > NEAR:
            middle = (older + not_older) // 2
            unit_start = next_unit(view, segment.start, middle - segment.start, not_older - segment.start)
            position = not_older if unit_start is None else segment.start + unit_start
            if position < not_older and _is_before(inspector, segments, position, timestamp_ms, end):
                older = position
            else:
                not_older = middle
    return _walked(inspector, segments, older, timestamp_ms, end)


def _is_before(inspector: StoreReader, segments: list[Segment], position: int, timestamp_ms: int, end: int) -> bool:
    """Whether a unit begins at a place before ``end`` and is older than the moment."""
    unit = inspector.log.unit_at(position, segments) if position < end else None
    return unit is not None and unit.store_timestamp < timestamp_ms


def _walked(inspector: StoreReader, segments: list[Segment], position: int, timestamp_ms: int, end: int) -> int:
    """The first unit from ``position`` on that is not older than the moment.

    A damaged stretch right before it counts as part of it: the reader of the range has to come to it and report it.
    """
    damage: int | None = None
    for piece in inspector.log.scan(position, end, segments):
        if piece.kind == UNIT:
            if piece.store_timestamp >= timestamp_ms:
                return piece.physical_offset if damage is None else damage
            damage = None
        elif piece.kind == GAP and damage is None:
            damage = piece.physical_offset
    return end if damage is None else damage
