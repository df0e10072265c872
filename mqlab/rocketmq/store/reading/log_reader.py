"""Reads a commit log unit by unit, past damaged stretches, and only the parts that are asked for.

Mirrors: what CommitLog.recoverAbnormally reads, but it stops at the first damage. Lab 01 looks at a killed store.

    piece   UNIT 0..177   UNIT 177..350   GAP 350..512 (damaged)   UNIT 512..900   BLANK 900..1024   UNIT 1024..

    where is the end?   after the last unit that the queues name; they are read first, so that the end of a log of any
                        size is found by reading a few pages; without queues: in the newest file that begins with a unit

Left out: check sums. This lists what the files contain; a recovery decides what is valid.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from mqlab.errors import CorruptionError
from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.reading.file_sizes import offset_names
from mqlab.rocketmq.store.reading.open_files import OpenFiles
from mqlab.rocketmq.wire.message import MessageExt
from mqlab.rocketmq.wire.record import Record, decode
from mqlab.rocketmq.wire.record_layout import BLANK_SIZE, MAGIC_BLANK, MAGIC_V1, MAGIC_V2, Shape, fixed_offset, measure
from mqlab.rocketmq.wire.sys_flag import COMPRESSED

UNIT, BLANK, GAP = "UNIT", "BLANK", "GAP"
_MAGICS = (struct.pack(">i", MAGIC_V1), struct.pack(">i", MAGIC_V2))
_HEAD = struct.Struct(">ii")
_I64 = struct.Struct(">q")
_PHYSICAL_OFFSET_AT = fixed_offset("physical_offset")
_STORE_TIMESTAMP = 10  # its place in Shape.fixed
_PHYSICAL_OFFSET = 6
_SEARCH = 1 << 20
_ZEROS = bytes(_SEARCH + 7)
_WINDOWS = (4096, 262_144, 4 * 1024 * 1024 + 65_536 + BLANK_SIZE)  # the last: the longest unit that may not have fitted


class Segment(NamedTuple):
    """One file of the log: the physical offset of its first byte, its path, its length in bytes."""

    start: int
    path: str
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size


class Piece(NamedTuple):
    """A stretch of the log. ``shape`` (positions in the file ``view``) is there for units, ``text`` describes a gap."""

    kind: str
    physical_offset: int
    size: int
    view: memoryview
    shape: Shape | None = None
    text: str = ""

    @property
    def store_timestamp(self) -> int:
        return self.shape.fixed[_STORE_TIMESTAMP] if self.shape else 0

    @property
    def stored_physical_offset(self) -> int:
        """The physical offset that is stored in the unit."""
        return self.shape.fixed[_PHYSICAL_OFFSET] if self.shape else self.physical_offset

    @property
    def topic(self) -> bytes:
        return bytes(self.view[self.shape.topic_at : self.shape.topic_end]) if self.shape else b""

    @property
    def properties(self) -> bytes:
        return bytes(self.view[self.shape.properties_at : self.shape.properties_end]) if self.shape else b""

    def record(self) -> Record:
        """The unit, decoded."""
        assert self.shape is not None
        start = self.shape.properties_end - self.size
        return decode(self.view, start, limit=start + self.size)

    def message(self) -> MessageExt:
        """The unit as a message; a body that cannot be decompressed stays as it is stored."""
        record = self.record()
        try:
            return MessageExt.from_record(record)
        except CorruptionError:
            message = MessageExt.from_record(replace(record, sys_flag=record.sys_flag & ~COMPRESSED))
            message.sys_flag = record.sys_flag
            return message

    def raw(self) -> bytes:
        """The bytes as stored."""
        assert self.shape is not None
        return bytes(self.view[self.shape.properties_end - self.size : self.shape.properties_end])


class LogReader:
    """The commit log in ``folder``. Nothing is opened before it is needed; the list of files is re-read each time."""

    def __init__(self, files: Files, folder: str, open_files: OpenFiles) -> None:
        self._files = files
        self._open_files = open_files
        self.folder = folder

    def segments(self) -> list[Segment]:
        """The files in order of their offsets."""
        segments = []
        for name in offset_names(self._files, self.folder):
            path = f"{self.folder}/{name}"
            try:
                segments.append(Segment(int(name), path, self._files.size(path)))
            except FileNotFoundError:
                continue
        return segments

    def piece_at(self, physical_offset: int, segments: list[Segment] | None = None) -> Piece | None:
        """The unit or blank that starts there; a GAP when what is there is neither; None outside of the files."""
        segments = self.segments() if segments is None else segments
        segment = segment_at(segments, physical_offset)
        if segment is None:
            return None
        view = self._open_files.view(segment.path)
        return self._piece(view, segment.start, physical_offset - segment.start)

    def view(self, segment: Segment) -> memoryview:
        """The present bytes of a file; none when it was deleted."""
        return self._open_files.view(segment.path)

    def unit_at(self, physical_offset: int, segments: list[Segment] | None = None) -> Piece | None:
        """The unit that starts there, None when there is none."""
        piece = self.piece_at(physical_offset, segments)
        return piece if piece is not None and piece.kind == UNIT else None

    def scan(self, start: int, end: int, segments: list[Segment] | None = None) -> Iterator[Piece]:
        """All pieces from ``start``, where a piece must begin, up to ``end``. Damage becomes a GAP up to the next unit.

        The next unit is the next place that has a unit's magic and the physical offset of that very place.
        """
        segments = self.segments() if segments is None else segments
        position = start
        for number, segment in enumerate(segments):
            if segment.end <= position:
                continue
            # A file is missing before this one; before the first file nothing is expected.
            if position < segment.start:
                if position < min(end, segment.start) and number:
                    yield Piece(
                        GAP, position, min(end, segment.start) - position, memoryview(b""), None, "no file here"
                    )
                position = segment.start
            if position >= end:
                return
            view = self._open_files.view(segment.path)
            for piece in self._scan_segment(view, segment, position, end):
                yield piece
                position = piece.physical_offset + piece.size
            # A file that was cut short ends early; the next one begins where its name says.
            position = max(position, segment.end)

    def _scan_segment(
        self, view: memoryview, segment: Segment, position: int, end: int, *, over_gaps: bool = True
    ) -> Iterator[Piece]:
        while position < min(end, segment.start + len(view)):
            piece = self._piece(view, segment.start, position - segment.start)
            if piece.kind == GAP:
                if not over_gaps:
                    return
                next_unit = self._next_unit(view, segment.start, position - segment.start + 1)
                stop = min(end, segment.start + (len(view) if next_unit is None else next_unit))
                piece = piece._replace(size=stop - position)
            yield piece
            position += piece.size

    def _piece(self, view: memoryview, file_start: int, at: int) -> Piece:
        physical_offset = file_start + at
        try:
            shape = measure(view, at, len(view))
        except CorruptionError as error:
            if len(view) - at >= BLANK_SIZE:
                size, magic = _HEAD.unpack_from(view, at)
                if magic == MAGIC_BLANK and size <= len(view) - at:
                    return Piece(BLANK, physical_offset, len(view) - at, view)
            return Piece(GAP, physical_offset, len(view) - at, view, None, str(error))
        return Piece(UNIT, physical_offset, shape.total_size, view, shape)

    def _next_unit(self, view: memoryview, file_start: int, at: int) -> int | None:
        """Where in the file the next unit starts that names its own place; None when there is none."""
        for start in range(at, len(view), _SEARCH):
            chunk = bytes(view[start : start + _SEARCH + 7])
            if chunk == _ZEROS[: len(chunk)]:  # the unwritten part of a file
                continue
            for candidate in sorted(start + hit - 4 for magic in _MAGICS for hit in _hits(chunk, magic)):
                if candidate < at or candidate + _PHYSICAL_OFFSET_AT + _I64.size > len(view):
                    continue
                own_offset = _I64.unpack_from(view, candidate + _PHYSICAL_OFFSET_AT)[0]
                if own_offset == file_start + candidate and self._piece(view, file_start, candidate).kind == UNIT:
                    return candidate
        return None

    def tail(self, known_units: Iterable[int], segments: list[Segment] | None = None) -> tuple[int, Piece | None]:
        """Where the next unit would be appended, and the last unit before it.

        ``known_units`` is where the queues' last units start, in any order; the more of them, the less has to be read.

        From the last known unit on, units must follow each other without a gap: after the end of a recovered log there
        may be old ones. Later files that begin with a unit are part of the log in any case.
        """
        segments = self.segments() if segments is None else segments
        if not segments:
            return 0, None

        # 1. Begin at the last unit that a queue names; without one, at the newest file that begins with a unit.
        start, over_gaps = self._start_near_the_end(known_units, segments)

        # 2. Follow the units to the end.
        end = start
        last: Piece | None = None
        for segment in segments:
            if segment.end <= start:
                continue
            position = max(start, segment.start)
            first = self.piece_at(position, segments)
            if position == segment.start and position != start and (first is None or first.kind != UNIT):
                break  # made ahead and not used yet
            view = self._open_files.view(segment.path)
            for piece in self._scan_segment(view, segment, position, segment.end, over_gaps=over_gaps):
                if piece.kind == GAP:
                    continue
                if piece.kind == UNIT:
                    if last and piece.store_timestamp < last.store_timestamp and end != piece.physical_offset:
                        break  # older than the unit before the gap: left over from before a recovery
                    last = piece
                    end = piece.physical_offset + piece.size
                elif segment is not segments[-1]:
                    end = segment.end
        return end, last

    def _start_near_the_end(self, known_units: Iterable[int], segments: list[Segment]) -> tuple[int, bool]:
        newest = next((s.start for s in reversed(segments) if self._begins_with_a_unit(s.start, segments)), None)
        for physical_offset in sorted({known for known in known_units if newest is not None and known >= newest})[::-1]:
            piece = self.unit_at(physical_offset, segments)
            if piece is not None and piece.stored_physical_offset == physical_offset:
                return physical_offset, False
        return (segments[0].start if newest is None else newest), True

    def _begins_with_a_unit(self, physical_offset: int, segments: list[Segment]) -> bool:
        return self.unit_at(physical_offset, segments) is not None

    def blank_of(self, segment: Segment) -> Piece | None:
        """The blank at the end of a file, searched from the end: its size leads exactly to the file's end."""
        view = self._open_files.view(segment.path)
        pattern = struct.pack(">i", MAGIC_BLANK)
        for window in _WINDOWS:
            first = max(0, len(view) - window)
            for hit in _hits(bytes(view[first:]), pattern):
                position = first + hit - 4
                if position >= 0 and _HEAD.unpack_from(view, position)[0] == len(view) - position:
                    return Piece(BLANK, segment.start + position, len(view) - position, view)
        return None

    def __repr__(self) -> str:
        segments = self.segments()
        reach = f"{segments[0].start}..{segments[-1].end}" if segments else "no files"
        return f"<LogReader {self.folder} {len(segments)} files, {reach}>"


def segment_at(segments: list[Segment], physical_offset: int) -> Segment | None:
    """The file that holds a physical offset, None when none does."""
    number = bisect_right(segments, physical_offset, key=lambda segment: segment.start) - 1
    if number < 0 or physical_offset >= segments[number].end:
        return None
    return segments[number]


def _hits(chunk: bytes, pattern: bytes) -> Iterator[int]:
    hit = chunk.find(pattern)
    while hit >= 0:
        yield hit
        hit = chunk.find(pattern, hit + 1)
