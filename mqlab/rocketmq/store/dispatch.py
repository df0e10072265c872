"""Dispatch: reads what was appended to the commit log, and adds it to queues and index; waiting pulls are woken.

Mirrors: DefaultMessageStore.ReputMessageService and its CommitLogDispatchers. Lab 01 stops between put and dispatch.

    commit log   ├ unit ┼ unit ┼ unit ┼ unit ┤
                               ▲ reput_from    ▲ confirm offset (SYNC_FLUSH: what is flushed; ASYNC_FLUSH: the end)
    one unit ──▶ consume queue ──▶ index ──▶ on_arrival       consumers can see the message from here on

Left out: filter bitmaps, compaction; the CRC is not checked here, as in RocketMQ.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from mqlab.rocketmq.ports import Note
from mqlab.rocketmq.store.config import parse_delay_levels
from mqlab.rocketmq.store.consumequeue import ConsumeQueue
from mqlab.rocketmq.store.put_checks import is_directory_name
from mqlab.rocketmq.store.state import StoreState
from mqlab.rocketmq.wire import properties as property_text
from mqlab.rocketmq.wire.host import V4_SIZE, V6_SIZE
from mqlab.rocketmq.wire.java_hash import tags_code as hash_of_tags
from mqlab.rocketmq.wire.java_numbers import int_or
from mqlab.rocketmq.wire.layout import NUMBERS
from mqlab.rocketmq.wire.names import SCHEDULE_TOPIC
from mqlab.rocketmq.wire.property_names import DELAY, KEYS, TAGS, UNIQ_KEY
from mqlab.rocketmq.wire.record_layout import BLANK_SIZE, LAYOUT, MAGIC_BLANK, MAGIC_V1, MAGIC_V2
from mqlab.rocketmq.wire.sys_flag import TRANSACTION_PREPARED

_PICKED = ("total_size", "magic", "queue_id", "queue_offset", "sys_flag", "store_timestamp", "body_length")
_UNIQ_KEY, _KEYS = UNIQ_KEY.encode("ascii"), KEYS.encode("ascii")
_CACHE_LIMIT = 10_000

Arrival = Callable[[str, int, int, int, int, Mapping[str, str]], None]


def _head_struct(sys_flag: int) -> struct.Struct:
    """The struct that reads the picked fields of a unit's fixed part and steps over the others."""
    codes = ">"
    for spec in LAYOUT[: [spec.name for spec in LAYOUT].index("body")]:
        size = spec.size or (V6_SIZE if sys_flag & spec.v6_bit else V4_SIZE)
        codes += NUMBERS[spec.kind][0] if spec.name in _PICKED else f"{size}x"
    return struct.Struct(codes)


_HEADS = [_head_struct(kinds << 4) for kinds in range(4)]
_HEAD, _V4_HEAD_SIZE = _HEADS[0].unpack_from, _HEADS[0].size
_SIZE_AND_MAGIC = struct.Struct(">ii")
_HALF = TRANSACTION_PREPARED  # set in prepared and in rolled back units
SMALLEST_UNIT = _V4_HEAD_SIZE + 3


class StoredProperties(Mapping[str, str]):
    """A stored unit's properties, decoded when first looked at."""

    __slots__ = ("_data", "_decoded")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._decoded: dict[str, str] | None = None

    def _map(self) -> dict[str, str]:
        if self._decoded is None:
            self._decoded = property_text.decode(self._data)
        return self._decoded

    def __getitem__(self, name: str) -> str:
        return self._map()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._map())

    def __len__(self) -> int:
        return len(self._map())

    def __repr__(self) -> str:
        return f"<StoredProperties {self._map()}>"


class UndecodableUnit(Exception):
    """The log has bytes that are not a unit where a unit should begin."""


class Dispatcher:
    """Adds units of the log to queues and index, from ``reput_from`` on. ``run`` is one step of a journal.

    ``note``: where each dispatched message is noted.
    """

    def __init__(self, state: StoreState, note: Note | None) -> None:
        self._state = state
        self._log = state.commit_log
        self._queues = state.queues
        self._index = state.index
        self._note = note
        self._is_slave = state.config.is_slave
        self._delays_ms = parse_delay_levels(state.config.message_delay_level)
        self._topics: dict[bytes, str] = {}
        self._tags: dict[bytes, int] = {}
        self.reput_from = 0
        self.logics_msg_timestamp = 0  # store time of the last unit dispatched to a queue
        self.touched: dict[ConsumeQueue, None] = {}  # queues with units that may not be synced
        self.on_arrival = None
        self.on_problem: Callable[[int, str], None] = self._note_problem

    def run(self, limit: int, max_units: int | None = None) -> int:
        """Dispatch units that end at or before ``limit``, at most this many. Returns how many. Mirrors doReput."""
        done = 0
        left = max_units if max_units is not None else -1
        dispatch_unit = self.dispatch_unit
        while self.reput_from < limit and done != left:
            mapped = self._log.queue.find_late(self.reput_from)
            if mapped is None:
                if self.reput_from >= self._log.min_offset:
                    break
                self.reput_from = self._log.min_offset  # files were deleted before they were dispatched
                continue
            view, base = mapped.view, mapped.start_offset
            end = limit - base if limit - base < mapped.wrote_position else mapped.wrote_position
            start = position = self.reput_from - base
            try:
                while position < end and done != left:
                    size = dispatch_unit(view, position, end, base)
                    if not size:  # BLANK
                        position = mapped.size
                        break
                    position += size
                    done += 1
            except UndecodableUnit as problem:
                position = self._skip(base + position, base + end, str(problem)) - base
            finally:
                self.reput_from = (
                    base + position
                )  # a unit that raised an error is dispatched again, those before it are not
            if position == start:
                break
        if self._index is not None:
            self._index.write_header()
        return done

    def _skip(self, position: int, end: int, reason: str) -> int:
        """A master continues after the bytes it has; a slave waits for the rest of a unit that is not complete yet."""
        if self._is_slave:
            return position
        self.on_problem(position, f"{reason}; {end - position} bytes skipped")
        return end

    def _note_problem(self, physical_offset: int, reason: str) -> None:
        self._state.problem("dispatch", reason, physical_offset=physical_offset)

    def dispatch_unit(self, view: memoryview, at: int, end: int, base: int) -> int:
        """Dispatch the unit at ``at`` of a file that begins at ``base``; its size, 0 for a BLANK.

        Raises UndecodableUnit when the lengths do not fit before ``end``.
        """
        # 1. The fixed fields. Nearly all units are V1 with IPv4 hosts; others are read with the struct that fits.
        if end - at < SMALLEST_UNIT:
            return self._short_of_a_unit(view, at, end)
        size: int
        size, magic, queue_id, queue_offset, sys_flag, timestamp, body_length = _HEAD(view, at)
        topic_at = at + _V4_HEAD_SIZE + body_length
        if magic != MAGIC_V1 or sys_flag & 0x30 or body_length < 0:
            if magic == MAGIC_BLANK:
                return 0
            head = _HEADS[sys_flag >> 4 & 3]
            if magic not in (MAGIC_V1, MAGIC_V2) or head.size + 3 > end - at:
                raise UndecodableUnit(f"magic {magic & 0xFFFFFFFF:08X}, {end - at} bytes left")
            timestamp, body_length = head.unpack_from(view, at)[5:]
            topic_at = at + head.size + max(0, body_length)
        if size > end - at or topic_at + 3 > at + size:
            raise UndecodableUnit(f"size {size} where {end - at} bytes are left, body of {body_length}")

        # 2. Topic and properties are at the end. The lengths must lead exactly to the unit's end.
        tail = bytes(view[topic_at : at + size])
        topic_start, topic_end = (1, 1 + tail[0]) if magic == MAGIC_V1 else (2, 2 + (tail[0] << 8 | tail[1]))
        if topic_end + 2 > len(tail) or (tail[topic_end] << 8 | tail[topic_end + 1]) != len(tail) - topic_end - 2:
            raise UndecodableUnit("the lengths of topic and properties do not match the size")
        topic_bytes = tail[topic_start:topic_end]
        topic = self._topics.get(topic_bytes) or self._topic(topic_bytes)

        # 3. The tags code. A value that was seen before is not hashed again; "TAGS" may also be part of another value.
        tags_code = 0
        tags_at = tail.rfind(b"TAGS\x01", topic_end + 2) + 5
        if tags_at > 4:
            tags_end = tail.find(b"\x02", tags_at)
            tags = tail[tags_at:tags_end] if tags_end >= 0 else tail[tags_at:]
            code = self._tags.get(tags)
            if code is None or (tags_at > topic_end + 7 and tail[tags_at - 6] != 2):
                code = self._tags_code(tail[topic_end + 2 :], tags)
            tags_code = code
        if topic == SCHEDULE_TOPIC:
            tags_code = self._deliver_time(tail[topic_end + 2 :], timestamp, tags_code)

        # 4. The queue. Half and rolled back messages are in no queue.
        if not sys_flag & _HALF:
            of_topic = self._queues.queues.get(topic)
            queue = of_topic.get(queue_id) if of_topic is not None else None
            if queue is None:
                if not is_directory_name(topic):
                    self.on_problem(base + at, f"topic {topic!r} cannot be the name of a directory: it is in no queue")
                    return size
                queue = self._queues.find_or_create(topic, queue_id)
            queue.put(base + at, size, tags_code, queue_offset)
            self.touched[queue] = None
            self.logics_msg_timestamp = timestamp

        # 5. The index, the journal, and pulls that wait.
        if self._has_listeners:
            self._share(topic, queue_id, queue_offset, sys_flag, timestamp, base + at, tags_code, tail[topic_end + 2 :])
        return size

    @contextmanager
    def silent(self) -> Iterator[None]:
        """During recovery: queues and index are written, the journal and waiting pulls learn nothing."""
        note, action = self._note, self._on_arrival
        self._note, self.on_arrival = None, None
        try:
            yield
        finally:
            self._note, self.on_arrival = note, action

    @contextmanager
    def without_index(self) -> Iterator[None]:
        """While another part writes the index."""
        index, self._index = self._index, None
        self.on_arrival = self._on_arrival
        try:
            yield
        finally:
            self._index = index
            self.on_arrival = self._on_arrival

    def _short_of_a_unit(self, view: memoryview, at: int, end: int) -> int:
        if end - at >= BLANK_SIZE and _SIZE_AND_MAGIC.unpack_from(view, at)[1] == MAGIC_BLANK:
            return 0
        raise UndecodableUnit(f"{end - at} bytes are too few for a unit")

    def _share(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        sys_flag: int,
        timestamp: int,
        physical_offset: int,
        tags_code: int,
        properties: bytes,
    ) -> None:
        """Hand a unit to the index, the journal and waiting pulls, in this order."""
        if self._index is not None:
            unique_key, keys = property_text.value_of(properties, _UNIQ_KEY), property_text.value_of(properties, _KEYS)
            self._index.put(topic, physical_offset, timestamp, unique_key=unique_key, keys=keys, sys_flag=sys_flag)
        if self._note is not None:
            self._note("message.dispatched", topic=topic, queue_id=queue_id, queue_offset=queue_offset)
        if self._on_arrival is not None:
            self._on_arrival(topic, queue_id, queue_offset + 1, tags_code, timestamp, StoredProperties(properties))

    def _topic(self, data: bytes) -> str:
        if len(self._topics) >= _CACHE_LIMIT:
            self._topics.clear()
        topic = self._topics[data] = str(data, "utf-8", "replace")
        return topic

    def _tags_code(self, properties: bytes, tags: bytes) -> int:
        """The hash of the TAGS property, 0 without one; remembered if ``tags`` is the whole property."""
        value = property_text.decode(properties).get(TAGS)
        code = hash_of_tags(value)
        if value is not None and value.encode("utf-8", "replace") == tags:
            if len(self._tags) >= _CACHE_LIMIT:
                self._tags.clear()
            self._tags[tags] = code
        return code

    @property
    def on_arrival(self) -> Arrival | None:
        """Called for each dispatched unit: topic, queue id, next queue offset, tags code, store time, properties."""
        return self._on_arrival

    @on_arrival.setter
    def on_arrival(self, action: Arrival | None) -> None:
        self._on_arrival = action
        self._has_listeners = self._index is not None or self._note is not None or action is not None

    def _deliver_time(self, properties: bytes, timestamp: int, tags_code: int) -> int:
        """In the schedule topic the tags code is the time of delivery, ms. Mirrors computeDeliverTimestamp."""
        level = min(int_or(property_text.decode(properties).get(DELAY), 0), len(self._delays_ms))
        if level <= 0:
            return tags_code
        return timestamp + self._delays_ms[level - 1]

    def __repr__(self) -> str:
        return f"<Dispatcher at {self.reput_from}>"
