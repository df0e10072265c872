"""The places of the units of a range, found by hundreds of cursors that advance together.

Lab 10 compares it with the plain hop of mqlab.data.arrow.units, which defines what is right.

    range     ├──────────────┬──────────────┬──────────────┬──────────────┤
    cursors   0→  →  →  →    1→  →  →  →    2→  →  →  →    3→  →  →  →        one numpy step moves all by one unit
    begins    at the first place from there on with a unit's magic and its own physical offset
    ends      exactly where the next one began; the last at the range's end, or at the blank that fills the file

When a cursor ends elsewhere, the plain hop reads the range and reports the place.
Left out: magic and offset of the units that cursors pass; mqlab.data.arrow.columns checks them with the other fields.
"""

from __future__ import annotations

import mmap

import numpy

from mqlab.data.arrow.ranges import SMALLEST_UNIT, LogRange, next_unit
from mqlab.data.arrow.units import Positions, is_blank, unit_positions

CURSORS = 512
BYTES_PER_CURSOR = 16_384  # fewer cursors for a short range: each has to find its first unit
FEWEST = 8


def boundaries(view: mmap.mmap | bytes, where: LogRange) -> Positions:
    """The same as ``unit_positions``, several times faster; raises its errors.

    Damage that does not break the chain of sizes (in a magic or a stored offset) is found later, by ``columns.Units``.
    """
    begin, end = where.start - where.file_start, where.end - where.file_start
    cursors = min(CURSORS, (end - begin) // BYTES_PER_CURSOR)
    if cursors < FEWEST or end > len(view):
        return unit_positions(view, where)
    starts = _starts(view, where.file_start, begin, end, cursors)
    positions = _advance(view, starts, end)
    if positions is not None and is_blank(view, int(positions[-1]), end):
        positions = positions[:-1]
    return unit_positions(view, where) if positions is None else positions


def _starts(view: mmap.mmap | bytes, file_start: int, at: int, end: int, cursors: int) -> list[int]:
    """Where the cursors begin: evenly spread, each at a unit; fewer of them if units are long."""
    starts = [at]
    for number in range(1, cursors):
        position = at + (end - at) * number // cursors
        if position > starts[-1]:
            unit = next_unit(view, file_start, position, end)
            if unit is None:
                break
            if unit > starts[-1]:
                starts.append(unit)
    return starts


def _advance(view: mmap.mmap | bytes, starts: list[int], end: int) -> Positions | None:
    """All places that the cursors pass, in order; None if one of them does not end where the next began."""
    # 1. Each step moves all cursors by one unit and notes where they were.
    sizes = numpy.ndarray((len(view) - 3,), dtype=">i4", buffer=view, strides=(1,))  # the number at every place
    here = numpy.array(starts, dtype=numpy.int64)
    stops = numpy.append(here[1:], end)
    moving = numpy.arange(len(starts))
    steps: list[tuple[Positions, Positions]] = []  # which cursors are where
    while len(moving):
        steps.append((moving, here))
        if here[-1] > end - SMALLEST_UNIT:  # only the last cursor gets there, and what is there is not a unit
            if not is_blank(view, int(here[-1]), end):
                return None
            steps[-1] = moving[:-1], here[:-1]
            moving, here, stops = moving[:-1], here[:-1], stops[:-1]
        size = sizes[here]
        if len(size) and size.min() < SMALLEST_UNIT:
            return None
        here = here + size
        going = here < stops
        if not going.all():
            if (here > stops).any():
                return None
            moving, here, stops = moving[going], here[going], stops[going]
    # 2. A table of steps and cursors, read cursor by cursor, has the places in the order of the file.
    places_of_steps = numpy.full((len(steps), len(starts)), -1, dtype=numpy.int64)
    for step, (which, places) in enumerate(steps):
        places_of_steps[step, which] = places
    by_cursor = places_of_steps.T
    return by_cursor[by_cursor >= 0]
