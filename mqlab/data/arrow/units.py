"""The places of the units of a range: the plain hop from one to the next.

Mirrors: CommitLog.checkMessageAndReturnSize without its check sum. Lab 10 compares its speed with the vectorised one.

    at ── total size ──> at + total size ── ... ──> exactly the range's end, or a blank that fills its file

Left out: body check sums, which are compared when the column body is made (mqlab.data.arrow.columns).
"""

from __future__ import annotations

import mmap
import struct
from typing import NoReturn

import numpy
import numpy.typing

from mqlab.data.arrow.ranges import SMALLEST_UNIT, LogRange
from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire.record import decode
from mqlab.rocketmq.wire.record_layout import BLANK_SIZE, MAGIC_BLANK, MAGIC_V1, MAGIC_V2, fixed_offset

Positions = numpy.typing.NDArray[numpy.int64]

_BETWEEN = fixed_offset("physical_offset") - 8
_HEAD = struct.Struct(f">ii{_BETWEEN}xq")  # total size, magic, ..., physical offset


def unit_positions(view: mmap.mmap | bytes, where: LogRange) -> Positions:
    """The positions in the file of all units of a range. Raises CorruptionError at a place without a unit.

    A unit counts when its magic and its own physical offset agree with its place; its parts are not checked.
    """
    positions = []
    position, end = where.start - where.file_start, where.end - where.file_start
    unpack, file_start = _HEAD.unpack_from, where.file_start
    readable = min(end, len(view))  # the file may have become shorter since the range was planned
    while position + _HEAD.size <= readable:
        size, magic, physical_offset = unpack(view, position)
        if (magic != MAGIC_V1 and magic != MAGIC_V2) or physical_offset != file_start + position:
            break
        if not SMALLEST_UNIT <= size <= readable - position:
            break
        positions.append(position)
        position += size
    if position != end and not is_blank(view, position, end):
        raise_corrupt(view, where, position)
    return numpy.array(positions, dtype=numpy.int64)


def is_blank(view: mmap.mmap | bytes, at: int, end: int) -> bool:
    """Whether the rest of a file is marked as left empty.

    RocketMQ's readers do not look at a blank's size. Here it must lead to the file's end: a unit damaged into a blank
    would hide every message after it.
    """
    if end != len(view) or at + BLANK_SIZE > end:
        return False
    return struct.unpack_from(">ii", view, at) == (end - at, MAGIC_BLANK)


def raise_corrupt(view: mmap.mmap | bytes, where: LogRange, at: int) -> NoReturn:
    """Raise the CorruptionError that says what is wrong with the unit at ``at``, by the strict reader."""
    end = min(where.end - where.file_start, len(view))
    hint = "compare with 'mqlab inspect' on the same directory, which steps over damage"
    try:
        record = decode(memoryview(view)[:end], at)
    except CorruptionError as error:
        raise CorruptionError(
            error.what,
            where=where.path,
            offset=where.file_start + (at if error.offset is None else error.offset),
            expected=error.expected,
            found=error.found,
            hint=hint,
        ) from None
    raise CorruptionError(
        "a unit that does not belong here",
        where=where.path,
        offset=where.file_start + at,
        expected=f"physical offset {where.file_start + at}",
        found=record.physical_offset,
        hint=hint,
    )
