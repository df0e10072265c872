"""The recovery scan with numpy, many units at a time: the same result as the plain scan, several times faster.

RocketMQ scans unit by unit; tests compare this with mqlab.rocketmq.store.recovery.recovery.

    walk       from size to size: where each unit begins                            one Python step per unit
    gather     fields and lengths of all units as columns                           numpy
    check      magics, sums of lengths, zeros at the end; body CRCs                 numpy; zlib per unit
    dispatch   rows of one queue that follow each other are written at once         numpy

It stops before the first unit that may be damaged and leaves that one to the plain scan.
Left out: the schedule topic (its tags codes are times) and queues with misfits: the plain dispatch handles those units.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mqlab.rocketmq.ports import OS_PAGE_SIZE
from mqlab.rocketmq.store.consume_queues import ConsumeQueues
from mqlab.rocketmq.store.consumequeue import ConsumeQueue
from mqlab.rocketmq.store.dispatch import SMALLEST_UNIT, Dispatcher
from mqlab.rocketmq.store.index_service import IndexService
from mqlab.rocketmq.store.put_checks import is_directory_name
from mqlab.rocketmq.store.reading.torn_units import is_torn
from mqlab.rocketmq.store.recovery.index_bulk import BulkIndex, Units, packed
from mqlab.rocketmq.wire.java_hash import tags_code
from mqlab.rocketmq.wire.names import SCHEDULE_TOPIC
from mqlab.rocketmq.wire.property_names import TAGS
from mqlab.rocketmq.wire.record_layout import (
    FIXED_PARTS,
    MAGIC_V1,
    MAGIC_V2,
    QUEUE_OFFSET_AT,
    STORE_TIMESTAMP_AT,
    SYS_FLAG_AT,
    fixed_offset,
)
from mqlab.rocketmq.wire.sys_flag import TRANSACTION_PREPARED

if TYPE_CHECKING:
    import numpy

    Column = numpy.ndarray[Any, Any]

MOST_UNITS = 20_000
MOST_BYTES = 16 << 20
MOST_DISTINCT = 40
WORTH_IT = 2_000  # units: with fewer, the plain scan ends before numpy is imported
_TAGS = TAGS.encode()
_I32 = struct.Struct(">i")
_BODY_CRC_AT = fixed_offset("body_crc")
_QUEUE_ID_AT = fixed_offset("queue_id")


@dataclass(slots=True)
class Scanned:
    """How far a scan came: ``at`` is a position in the file, ``last_unit_at`` where the last whole unit begins."""

    at: int
    units: int = 0
    dispatched: int = 0
    last_unit_at: int = -1


@dataclass(slots=True)
class _Rows:
    """Columns of some units: positions in the file, and fields."""

    at: Column
    size: Column
    queue_id: Column
    queue_offset: Column
    sys_flag: Column
    timestamp: Column
    body_at: Column
    body_end: Column
    topic_at: Column
    topic_length: Column
    properties_at: Column

    def first(self, count: int) -> _Rows:
        return _Rows(*(getattr(self, name)[:count] for name in self.__slots__))

    def chosen(self, rows: Column) -> _Rows:
        return _Rows(*(getattr(self, name)[rows] for name in self.__slots__))


def walk(view: memoryview, position: int, end: int) -> list[int]:
    """Where units may begin: each total size leads to the next unit, as long as sizes are plausible."""
    positions: list[int] = []
    add, unpack = positions.append, _I32.unpack_from
    last = end - SMALLEST_UNIT
    while position <= last:
        (size,) = unpack(view, position)
        if size < SMALLEST_UNIT:
            break
        add(position)
        position += size
    if positions and position > end:
        positions.pop()  # it would end after the end of the file
    return positions


class FastScan:
    """Scans and dispatches one store's files for a recovery."""

    def __init__(
        self,
        queues: ConsumeQueues,
        index: IndexService | None,
        dispatcher: Dispatcher,
        *,
        check_crc: bool,
        accepts_torn: bool,
    ) -> None:
        import numpy

        self._np = numpy
        self._queues = queues
        self._index = index
        self._bulk: BulkIndex | None = None
        self._dispatcher = dispatcher
        self._check_crc = check_crc
        self._accepts_torn = accepts_torn
        self._unit_type = numpy.dtype([("physical_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])

    def run(self, view: memoryview, positions: list[int], end: int, base: int, first_new: int) -> Scanned:
        """Scan units at these positions of a file that begins at ``base``; dispatch those from ``first_new`` on."""
        data = self._np.frombuffer(view, dtype=self._np.uint8)
        scanned = Scanned(positions[0])
        self._bulk = BulkIndex(self._index) if self._index is not None else None
        done = 0
        while done < len(positions):
            # 1. As many units as fit into memory at a time; one that is larger than the limit comes alone.
            some = positions[done : done + MOST_UNITS]
            most = bisect_right(some, some[0] + MOST_BYTES)
            some = some[: max(1, most)]
            # 2. Those before the first doubtful one are dispatched, older ones only counted.
            rows = self._whole_units(view, data, some)
            count = len(rows.at)
            if count:
                new = rows.chosen(rows.at + base >= first_new)
                if len(new.at):
                    self._dispatch(view, data, new, base, end)
                scanned.units += count
                scanned.dispatched += len(new.at)
                scanned.last_unit_at = int(rows.at[-1])
                scanned.at = int(rows.at[-1] + rows.size[-1])
            # 3. A doubtful unit ends the fast scan: the plain scan decides about it.
            if count < len(some):
                break
            done += count
        if self._bulk is not None:
            self._bulk.finish()
        return scanned

    def _numbers(self, data: Column, positions: Column, size: int) -> Column:
        """The big-endian signed numbers of that many bytes at these positions."""
        np = self._np
        windows = np.lib.stride_tricks.sliding_window_view(data, size)
        numbers: Column = windows[positions].view(f">i{size}")[:, 0].astype(np.int64)
        return numbers

    def _whole_units(self, view: memoryview, data: Column, positions: list[int]) -> _Rows:
        """The rows before the first unit that may be damaged."""
        np = self._np

        # 1. Fixed fields: magic, size, and the flags that say how long the hosts are.
        starts = np.array(positions, dtype=np.int64)
        size = self._numbers(data, starts, 4)
        magic = self._numbers(data, starts + 4, 4)
        sys_flag = self._numbers(data, starts + SYS_FLAG_AT, 4)
        kind = sys_flag >> 4 & 3
        fixed = np.array([part.size for part in FIXED_PARTS])[kind]
        is_v1 = magic == MAGIC_V1
        sure = (is_v1 | (magic == MAGIC_V2)) & (size >= fixed + 5)

        # 2. The lengths of body, topic and properties. Rows that failed before read at 0, a valid position.
        body_at = starts + fixed
        body_length = self._numbers(data, np.where(sure, body_at - 4, 0), 4)
        body_end = body_at + body_length
        end = starts + size
        sure &= (body_length >= 0) & (body_end + 4 <= end)
        here = np.where(sure, body_end, 0)
        topic_at = here + np.where(is_v1, 1, 2)
        topic_length = np.where(is_v1, data[here], data[here].astype(np.int64) << 8 | data[here + 1]).astype(np.int64)
        topic_end = topic_at + topic_length
        sure &= (topic_length <= np.where(is_v1, 127, 32_767)) & (topic_end + 2 <= end)
        here = np.where(sure, topic_end, 0)
        properties_length = data[here].astype(np.int64) << 8 | data[here + 1]
        properties_at = topic_end + 2
        sure &= properties_at + properties_length == end

        # 3. Rows up to the first failure; then the checks that need a unit's bytes.
        rows = _Rows(
            starts,
            size,
            self._numbers(data, starts + _QUEUE_ID_AT, 4),
            self._numbers(data, starts + QUEUE_OFFSET_AT, 8),
            sys_flag,
            self._numbers(data, starts + np.array(STORE_TIMESTAMP_AT)[kind], 8),
            body_at,
            body_end,
            topic_at,
            topic_length,
            properties_at,
        ).first(_prefix(sure))
        if not self._accepts_torn:
            rows = rows.first(self._complete_ends(view, data, rows))
        return rows.first(self._fitting_bodies(view, data, rows)) if self._check_crc else rows

    def _complete_ends(self, view: memoryview, data: Column, rows: _Rows) -> int:
        """How many units come before the first torn one. Only ends with a zero or a page border are checked."""
        np = self._np
        last = rows.at + rows.size - 1
        doubtful = (rows.properties_at // OS_PAGE_SIZE != last // OS_PAGE_SIZE) | (data[last] == 0)
        numbers, topics = self._distinct(data, rows.topic_at, rows.topic_length)
        for number, topic in enumerate(topics):
            if 0 in topic:
                doubtful |= numbers == number
        for row in np.flatnonzero(doubtful).tolist():
            if is_torn(view, int(rows.at[row]), int(rows.size[row])):
                return int(row)
        return len(rows.at)

    def _fitting_bodies(self, view: memoryview, data: Column, rows: _Rows) -> int:
        """How many units from the first on have bodies that match their check sums."""
        np = self._np
        crc32 = zlib.crc32
        bounds = zip(rows.body_at.tolist(), rows.body_end.tolist(), strict=True)
        computed = np.array([crc32(view[start:stop]) for start, stop in bounds], dtype=np.int64) & 0x7FFFFFFF
        stored = self._numbers(data, rows.at + _BODY_CRC_AT, 4)
        return _prefix((computed == stored) | (rows.body_at == rows.body_end))

    def _dispatch(self, view: memoryview, data: Column, rows: _Rows, base: int, end: int) -> None:
        np = self._np

        # 1. Units of the schedule topic, and of topics that cannot be a folder, are left to the plain dispatch.
        topic_numbers, topics = self._distinct(data, rows.topic_at, rows.topic_length)
        plain = np.zeros(len(rows.at), dtype=bool)
        names = [str(topic, "utf-8", "replace") for topic in topics]
        for number, name in enumerate(names):
            if name == SCHEDULE_TOPIC or not is_directory_name(name):
                plain |= topic_numbers == number

        # 2. The others go to their queues, one queue after the other.
        in_queue = ~plain & (rows.sys_flag & TRANSACTION_PREPARED == 0)
        codes = self._tags_codes(view, rows)
        places = topic_numbers << 32 | rows.queue_id & 0xFFFFFFFF
        for queue_key in np.unique(places[in_queue]).tolist():
            chosen = np.flatnonzero(in_queue & (places == queue_key))
            queue_id = int(rows.queue_id[chosen[0]])
            queue = self._queues.find_or_create(names[queue_key >> 32], queue_id)
            self._put(queue, rows.at[chosen] + base, rows.size[chosen], codes[chosen], rows.queue_offset[chosen])

        # 3. The index takes all units in the order of the log.
        if self._bulk is not None:
            self._index_all(self._bulk, view, rows, base, names, topic_numbers)
        with self._dispatcher.without_index():
            for position in rows.at[plain].tolist():
                self._dispatcher.dispatch_unit(view, position, end, base)
        kept = np.array([is_directory_name(name) for name in names])[topic_numbers]
        dispatched = rows.timestamp[kept & (rows.sys_flag & TRANSACTION_PREPARED == 0)]
        if len(dispatched):
            self._dispatcher.logics_msg_timestamp = int(dispatched[-1])

    def _index_all(
        self, bulk: BulkIndex, view: memoryview, rows: _Rows, base: int, names: list[str], topic_numbers: Column
    ) -> None:
        np = self._np
        kept = np.array([is_directory_name(name) for name in names])[topic_numbers]
        rows, topic_numbers = rows.chosen(kept), topic_numbers[kept]
        units = Units(
            names, topic_numbers, rows.properties_at, rows.at + rows.size, rows.at + base, rows.timestamp, rows.sys_flag
        )
        bulk.add(view, units)

    def _put(self, queue: ConsumeQueue, offsets: Column, sizes: Column, codes: Column, queue_offsets: Column) -> None:
        np = self._np
        fresh = int(np.searchsorted(offsets + sizes, queue.max_physical_offset, side="right"))
        if fresh == len(offsets):
            return
        self._dispatcher.touched[queue] = None
        offsets, sizes, codes, queue_offsets = offsets[fresh:], sizes[fresh:], codes[fresh:], queue_offsets[fresh:]
        following = queue.max_queue_offset + np.arange(len(offsets))
        if (queue_offsets == following).all():
            units = np.empty(len(offsets), dtype=self._unit_type)
            units["physical_offset"], units["size"], units["tags_code"] = offsets, sizes, codes
            queue.append_all(units.tobytes(), int(offsets[-1] + sizes[-1]))
            return
        for unit in zip(offsets.tolist(), sizes.tolist(), codes.tolist(), queue_offsets.tolist(), strict=True):
            queue.put(*unit)

    def _distinct(self, data: Column, starts: Column, lengths: Column) -> tuple[Column, list[bytes]]:
        """Number the byte strings at these places: equal ones get the same number. Also the strings, by number."""
        np = self._np
        numbers = np.full(len(starts), -1, dtype=np.int64)
        texts: list[bytes] = []
        left = np.arange(len(starts))
        while len(left) and len(texts) < MOST_DISTINCT:
            start, length = int(starts[left[0]]), int(lengths[left[0]])
            text = data[start : start + length]
            alike = left[lengths[left] == length]
            equal = (data[starts[alike][:, None] + np.arange(length)] == text).all(axis=1)
            numbers[alike[equal]] = len(texts)
            texts.append(text.tobytes())
            left = left[numbers[left] < 0]
        # Many different values: comparing rows with rows would be slower than a dictionary.
        number_of = {text: number for number, text in enumerate(texts)}
        for row in left.tolist():
            text_here = data[starts[row] : starts[row] + lengths[row]].tobytes()
            numbers[row] = number_of.setdefault(text_here, len(number_of))
        return numbers, list(number_of)

    def _tags_codes(self, view: memoryview, rows: _Rows) -> Column:
        """The tags code of each row: the hash of its last TAGS that is not empty, else 0."""
        np = self._np
        data, starts, ends = packed(view, rows.properties_at, rows.at + rows.size)

        # 1. Every name ends with byte 1: keep the places where TAGS is before it, at the start of a property.
        marks = np.flatnonzero(data == 1)
        marks = marks[marks >= len(_TAGS)]
        for back, letter in enumerate(reversed(_TAGS), 1):
            marks = marks[data[marks - back] == letter]
        row = np.searchsorted(starts, marks, side="right") - 1
        name_at = marks - len(_TAGS)
        begins = (name_at == starts[row]) | ((name_at > starts[row]) & (data[name_at - 1] == 2))

        # 2. A value ends with byte 2 or with the properties.
        value_ends = np.append(np.flatnonzero(data == 2), len(data))
        value_end = np.minimum(value_ends[np.searchsorted(value_ends, marks)], ends[row])
        real = begins & (value_end > marks + 1)
        values_at, lengths = np.zeros((2, len(rows.at)), dtype=np.int64)
        values_at[row[real]] = marks[real] + 1  # if there are several, the last counts
        lengths[row[real]] = value_end[real] - marks[real] - 1

        # 3. Each distinct value is hashed once.
        tagged = np.flatnonzero(lengths)
        numbers, texts = self._distinct(data, values_at[tagged], lengths[tagged])
        hashes = np.array([tags_code(str(text, "utf-8", "replace")) for text in texts], dtype=np.int64)
        codes: Column = np.zeros(len(rows.at), dtype=np.int64)
        if len(tagged):
            codes[tagged] = hashes[numbers]
        return codes


def _prefix(sure: Column) -> int:
    """How many rows from the first on are True."""
    return len(sure) if bool(sure.all()) else int(sure.argmin())
