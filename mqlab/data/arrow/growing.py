"""How far a log that is being appended to can be read: to the end of its last unit that is surely complete.

Mirrors: the confirm offset that ReputMessageService reads up to, seen from outside the broker.

    ├ units ─────────────────────────┼ whole ┼ whole ┼ half-written ┼ zeros
                                     │               └ the end: from here on a unit may be incomplete
                                     └ the newest unit that a consume queue knows: the broker has finished it
    after it a unit counts when body and check sum agree, its end is written, and it is not older than the one before
    (after the end of a recovered log there may be old units)

A queue is written after the log, so a log in use never ends before its queues do; ``losses`` describes a log that does.
Left out: waiting; a reader that follows a log asks again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mqlab.errors import CorruptionError
from mqlab.rocketmq.store.reading.log_reader import BLANK, UNIT, Piece, Segment, segment_at
from mqlab.rocketmq.store.reading.queue_reader import QueueReader
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.store.reading.torn_units import is_torn
from mqlab.rocketmq.wire.record_layout import BLANK_SIZE, MAGIC_BLANK, MAGIC_V1, MAGIC_V2, check_body
from mqlab.rocketmq.wire.units import PREBLANK_SIZE, CqUnit

_HEAD = struct.Struct(">ii")  # total size, magic
WINDOW = 65_536  # how far before a limit the first search for a unit begins


@dataclass(frozen=True, slots=True)
class _Known:
    """A place between two units, and the store time of the one before it (0: unknown)."""

    physical_offset: int
    store_timestamp: int = 0


class LogEnd(NamedTuple):
    """Physical offsets: where the log ends, and the end of the newest unit that a queue knows (0: there is none)."""

    offset: int
    queues: int


def confirmed_end(inspector: StoreReader, known: int | None = None) -> int:
    """The physical offset of the end of the last unit that is surely complete.

    ``known`` is a place between two units that an earlier call or the reader of a range has reached: the search
    continues there. Damage before the last complete unit does not end the log; a reader of the range reports it.
    """
    return log_end(inspector, known).offset


def log_end(inspector: StoreReader, known: int | None = None) -> LogEnd:
    """The confirmed end, and the end that the queues know. The queues are read first: a broker writes them last."""
    units = [unit for queue in inspector.queues() if (unit := newest_unit(queue)) is not None]
    queues = max((unit.physical_offset + unit.size for unit in units), default=0)
    return LogEnd(_end(inspector, known, sorted(units, reverse=True)), queues)


def newest_unit(queue: QueueReader) -> CqUnit | None:
    """The last unit of a queue; None for an empty queue, or when its message was deleted before."""
    unit = queue.unit(queue.max_offset - 1)
    return None if unit is None or unit.size == PREBLANK_SIZE else unit


def _end(inspector: StoreReader, known: int | None, newest_first: Sequence[CqUnit]) -> int:
    segments = inspector.log.segments()
    if not segments:
        return 0
    dispatched = _newest_dispatched(inspector, newest_first)
    # Begin at the further of two places: the queues' newest unit, or the end that an earlier call found.
    begin = dispatched or _Known(_newest_file(inspector, segments) if known is None else known)
    if known is not None and known > begin.physical_offset:
        begin = _Known(known)
    end = _walk(inspector, segments, begin)
    if dispatched is None and _something_at(inspector, segments, end):
        # No queue knows whether this is damage with more units after it, or a unit that is being written.
        tail, last = inspector.log.tail([], segments)
        if last is not None and last.physical_offset >= end:
            return tail if _is_whole(last) else last.physical_offset
    return end


def boundary_before(inspector: StoreReader, known: int, limit: int) -> int:
    """The last place between two units from ``known`` (which is one) up to ``limit``; else ``known``."""
    segments = inspector.log.segments()
    segment = segment_at(segments, limit)
    if segment is None:
        return known
    low = max(known, segment.start)
    window = WINDOW
    while True:
        start = max(low, limit - window)
        boundary = low
        for piece in inspector.log.scan(start, limit + 1, [segment]):
            if piece.kind == UNIT and piece.stored_physical_offset == piece.physical_offset <= limit:
                boundary = max(boundary, piece.physical_offset)
        if boundary > low or start == low:
            return boundary
        window *= 8


def first_unit(inspector: StoreReader, known: int) -> Piece | None:
    """The first unit from ``known`` on, which may be after the blank of a full file; None when there is no unit."""
    segments = inspector.log.segments()
    piece = inspector.log.piece_at(known, segments)
    segment = segment_at(segments, known)
    if piece is not None and piece.kind == BLANK and segment is not None:
        piece = inspector.log.piece_at(segment.end, segments)
    return piece if piece is not None and piece.kind == UNIT else None


def unit_end(inspector: StoreReader, known: int) -> int:
    """The end of the first unit from ``known`` on; ``known`` if there is no unit."""
    piece = first_unit(inspector, known)
    return known if piece is None else piece.physical_offset + piece.size


def place_after(inspector: StoreReader, known: int, count: int, limit: int) -> tuple[int, int]:
    """The place after ``count`` units from ``known`` on, at most ``limit`` (both are places between two units), and
    how many units that are.

    Only sizes are looked at. From damage on it is ``limit``: a reader of the range reports it.
    """
    segments = inspector.log.segments()
    position, units = known, 0
    while units < count and position < limit:
        segment = segment_at(segments, position)
        if segment is None:  # a file is missing here
            position = next((later.start for later in segments if later.start > position), limit)
            continue
        view = inspector.log.view(segment)
        while units < count and position < min(limit, segment.end):
            if position - segment.start + BLANK_SIZE > len(view):
                return limit, units
            size, magic = _HEAD.unpack_from(view, position - segment.start)
            if magic == MAGIC_BLANK:
                position = segment.end
            elif magic in (MAGIC_V1, MAGIC_V2) and size > 0:
                position, units = position + size, units + 1
            else:
                return limit, units
    return min(position, limit), units


def is_boundary(inspector: StoreReader, position: int) -> bool:
    """Whether a unit begins or ends at a physical offset, or a file begins there."""
    segments = inspector.log.segments()
    unit = inspector.log.unit_at(position, segments)
    if unit is not None and unit.stored_physical_offset == position:
        return True
    if any(position == segment.start for segment in segments) or (not segments and position == 0):
        return True
    begin = boundary_before(inspector, segments[0].start, position - 1) if segments else position
    before = inspector.log.unit_at(begin, segments)
    return before is not None and begin + before.size == position


def unit_before(inspector: StoreReader, position: int) -> Piece | None:
    """The last unit before a place between two units; None when it was deleted or there never was one."""
    segments = inspector.log.segments()
    if not segments or position <= segments[0].start:
        return None
    return inspector.log.unit_at(boundary_before(inspector, segments[0].start, position - 1), segments)


def _newest_dispatched(inspector: StoreReader, newest_first: Sequence[CqUnit]) -> _Known | None:
    """The end of the newest unit that a consume queue and the log agree on."""
    for unit in newest_first:
        piece = inspector.log.unit_at(unit.physical_offset)
        if piece is not None and piece.size == unit.size and piece.stored_physical_offset == unit.physical_offset:
            return _Known(piece.physical_offset + piece.size, piece.store_timestamp)
    return None


def _newest_file(inspector: StoreReader, segments: list[Segment]) -> int:
    """The start of the newest file that begins with a unit: all files before it are full."""
    begun = [segment.start for segment in segments if inspector.log.unit_at(segment.start, segments) is not None]
    return begun[-1] if begun else segments[0].start


def _walk(inspector: StoreReader, segments: list[Segment], begin: _Known) -> int:
    """The end of the last complete unit, found from unit to unit, over the blanks of full files."""
    end = position = begin.physical_offset
    newest = begin.store_timestamp
    while (piece := inspector.log.piece_at(position, segments)) is not None:
        segment = segment_at(segments, position)
        if piece.kind == BLANK and segment is not None:
            position = segment.end
        elif piece.kind == UNIT and piece.store_timestamp >= newest and _is_whole(piece):
            end = position = position + piece.size
            newest = piece.store_timestamp
        else:
            break
    return end


def _is_whole(piece: Piece) -> bool:
    """Whether a unit is complete: its own place, a body that fits its check sum, an end that was written."""
    assert piece.shape is not None
    start = piece.shape.properties_end - piece.size
    try:
        check_body(piece.view, piece.shape, start)
    except CorruptionError:
        return False
    return piece.stored_physical_offset == piece.physical_offset and not is_torn(piece.view, start, piece.size)


def _something_at(inspector: StoreReader, segments: list[Segment], position: int) -> bool:
    """Whether the log goes on here: the bytes are neither zeros nor a blank."""
    piece, segment = inspector.log.piece_at(position, segments), segment_at(segments, position)
    if piece is None or segment is None or piece.kind == BLANK:
        return False
    return any(piece.view[position - segment.start :][:8])
