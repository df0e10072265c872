"""Dispatch: reads the commit log behind the writer and tells queues, index and waiting pulls what came.

Mirrors: DefaultMessageStore.ReputMessageService and its CommitLogDispatchers. Lab 02 stops between put and dispatch.

    commit log   ├ unit ┼ unit ┼ unit ┼ unit ┤
                               ▲ reput_from    ▲ confirm offset (SYNC_FLUSH: what is flushed; ASYNC_FLUSH: the end)
    one unit ──▶ consume queue ──▶ index ──▶ on_arrival       a message is visible to consumers from here on

Left out: filter bitmaps, compaction; the CRC is not checked here, as in RocketMQ.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping

from mqlab.ports import Note
from mqlab.store.commitlog import CommitLog
from mqlab.store.config import StoreConfig, parse_delay_levels
from mqlab.store.consume_queues import ConsumeQueues
from mqlab.store.consumequeue import ConsumeQueue
from mqlab.store.index_service import IndexService
from mqlab.wire import properties as property_text
from mqlab.wire.host import V4_SIZE, V6_SIZE
from mqlab.wire.java_hash import tags_code as hash_of_tags
from mqlab.wire.layout import NUMBERS
from mqlab.wire.names import SCHEDULE_TOPIC
from mqlab.wire.record_layout import LAYOUT, MAGIC_BLANK, MAGIC_V1, MAGIC_V2
from mqlab.wire.sys_flag import TRANSACTION_MASK, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK

_PICKED = ("total_size", "magic", "queue_id", "queue_offset", "sys_flag", "store_timestamp", "body_length")
_CACHE_LIMIT = 10_000
_UNKNOWN_LEVEL_MS = 1_000

Arrival = Callable[[str, int, int, int, int, Mapping[str, str]], None]


def _head_struct(sys_flag: int) -> struct.Struct:
    """The struct that reads the picked fields of a unit's fixed part and steps over the others."""
    codes = ">"
    for spec in LAYOUT[: [spec.name for spec in LAYOUT].index("body")]:
        size = spec.size or (V6_SIZE if sys_flag & spec.v6_bit else V4_SIZE)
        codes += NUMBERS[spec.kind][0] if spec.name in _PICKED else f"{size}x"
    return struct.Struct(codes)


_HEADS = [_head_struct(kinds << 4) for kinds in range(4)]
SMALLEST_UNIT = _HEADS[0].size + 3


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
    """Bytes in the log that are no unit although one should stand there."""


class Dispatcher:
    """Feeds queues and index from the log, from ``reput_from`` on. ``run`` is one visible step."""

    def __init__(
        self, commit_log: CommitLog, queues: ConsumeQueues, index: IndexService | None, config: StoreConfig,
        note: Note | None,
    ) -> None:  # fmt: skip
        self._log = commit_log
        self._queues = queues
        self._index = index
        self.config = config
        self._note = note
        self._delays_ms = parse_delay_levels(config.message_delay_level)
        self._topics: dict[bytes, str] = {}
        self._tags: dict[bytes, int] = {}
        self.reput_from = 0
        self.logics_msg_timestamp = 0  # store time of the last unit dispatched to a queue
        self.touched: dict[ConsumeQueue, None] = {}  # queues with units that may not be synced
        self.on_arrival: Arrival | None = None

    def run(self, limit: int, max_units: int | None = None) -> int:
        """Dispatch units that end at or before ``limit``, at most so many; returns how many. Mirrors doReput."""
        done = 0
        left = max_units if max_units is not None else -1
        while self.reput_from < limit and left != 0:
            mapped = self._log.queue.find(self.reput_from)
            if mapped is None:
                if self.reput_from >= self._log.min_offset:
                    break
                self.reput_from = self._log.min_offset  # files were deleted before they were dispatched
                continue
            view, base = mapped.view, mapped.start_offset
            end = min(mapped.wrote_position, limit - base)
            at = self.reput_from - base
            while at < end and left != 0:
                try:
                    size = self.dispatch_unit(view, at, end, base)
                except UndecodableUnit as problem:
                    at = self._skip(mapped.start_offset + at, base + end, str(problem)) - base
                    break
                if not size:  # BLANK
                    at = mapped.size
                    break
                at += size
                done += 1
                left -= 1
            if base + at == self.reput_from:
                break
            self.reput_from = base + at
        return done

    def _skip(self, position: int, end: int, reason: str) -> int:
        """A master goes on behind the bytes at hand; a slave waits for the rest of a unit that is still under way."""
        if self.config.broker_role == "SLAVE":
            return position
        if self._note is not None:
            skipped = end - position
            self._note("store.problem", where="dispatch", physical_offset=position, skipped=skipped, reason=reason)
        return end

    def dispatch_unit(self, view: memoryview, at: int, end: int, base: int) -> int:
        """Dispatch the unit at ``at`` of a file that begins at ``base``; its size, 0 for a BLANK.

        Raises UndecodableUnit when the lengths do not fit before ``end``.
        """
        if end - at < SMALLEST_UNIT:
            return self._short_of_a_unit(view, at, end)
        head = _HEADS[0]
        size, magic, queue_id, queue_offset, sys_flag, timestamp, body_length = head.unpack_from(view, at)
        if magic == MAGIC_BLANK:
            return 0
        if sys_flag & 0x30:
            head = _HEADS[sys_flag >> 4 & 3]
            if head.size + 3 > end - at:
                raise UndecodableUnit("cut off")
            timestamp, body_length = head.unpack_from(view, at)[5:]
        topic_at = at + head.size + (body_length if body_length > 0 else 0)
        if magic not in (MAGIC_V1, MAGIC_V2) or size > end - at or topic_at + 3 > at + size:
            raise UndecodableUnit(f"size {size}, magic {magic & 0xFFFFFFFF:08X}")
        tail = bytes(view[topic_at : at + size])
        topic_start = 1 if magic == MAGIC_V1 else 2
        topic_end = topic_start + (tail[0] if magic == MAGIC_V1 else tail[0] << 8 | tail[1])
        properties = tail[topic_end + 2 :]
        if topic_end + 2 > len(tail) or (tail[topic_end] << 8 | tail[topic_end + 1]) != len(properties):
            raise UndecodableUnit("the parts do not add up")
        topic_bytes = tail[topic_start:topic_end]
        topic = self._topics.get(topic_bytes)
        if topic is None:
            topic = self._topic(topic_bytes)
        self._dispatch(topic, queue_id, queue_offset, sys_flag, timestamp, base + at, size, properties)
        return int(size)

    def _short_of_a_unit(self, view: memoryview, at: int, end: int) -> int:
        if end - at >= 8 and struct.unpack_from(">i", view, at + 4)[0] == MAGIC_BLANK:
            return 0
        raise UndecodableUnit(f"{end - at} bytes are too few for a unit")

    def _dispatch(
        self, topic: str, queue_id: int, queue_offset: int, sys_flag: int, timestamp: int, physical_offset: int,
        size: int, properties: bytes,
    ) -> None:  # fmt: skip
        tags_code = self._tags_code(properties)
        if topic == SCHEDULE_TOPIC:
            tags_code = self._deliver_time(properties, timestamp, tags_code)
        transaction = sys_flag & TRANSACTION_MASK
        if transaction != TRANSACTION_PREPARED and transaction != TRANSACTION_ROLLBACK:
            of_topic = self._queues.queues.get(topic)
            queue = of_topic.get(queue_id) if of_topic is not None else None
            if queue is None:
                queue = self._queues.find_or_create(topic, queue_id)
            queue.put(physical_offset, size, tags_code, queue_offset)
            self.touched[queue] = None
            self.logics_msg_timestamp = timestamp
        if self._index is not None:
            found = property_text.decode(properties)
            self._index.put(
                topic, physical_offset, timestamp, unique_key=found.get("UNIQ_KEY"), keys=found.get("KEYS"),
                sys_flag=sys_flag,
            )  # fmt: skip
        if self._note is not None:
            self._note("message.dispatched", topic=topic, queue_id=queue_id, queue_offset=queue_offset)
        if self.on_arrival is not None:
            self.on_arrival(topic, queue_id, queue_offset + 1, tags_code, timestamp, StoredProperties(properties))

    def _topic(self, data: bytes) -> str:
        if len(self._topics) >= _CACHE_LIMIT:
            self._topics.clear()
        topic = self._topics[data] = str(data, "utf-8", "replace")
        return topic

    def _tags_code(self, properties: bytes) -> int:
        """The hash of the whole TAGS property, 0 without one; found without decoding the others."""
        at = properties.find(b"TAGS\x01")
        if at < 0:
            return 0
        end = properties.find(b"\x02", at)
        tags = properties[at + 5 : end] if end >= 0 else properties[at + 5 :]
        if (at and properties[at - 1] != 2) or not tags or properties.find(b"TAGS\x01", at + 5) >= 0:
            return hash_of_tags(property_text.decode(properties).get("TAGS"))
        code = self._tags.get(tags)
        if code is None:
            if len(self._tags) >= _CACHE_LIMIT:
                self._tags.clear()
            code = self._tags[tags] = hash_of_tags(str(tags, "utf-8", "replace"))
        return code

    def _deliver_time(self, properties: bytes, timestamp: int, tags_code: int) -> int:
        """In the schedule topic the tags code is when to deliver, ms. Mirrors computeDeliverTimestamp."""
        text = property_text.decode(properties).get("DELAY", "")
        if not text.isascii() or not text.lstrip("-").isdigit():
            return tags_code
        level = min(int(text), len(self._delays_ms))
        if level <= 0:
            return tags_code
        return timestamp + self._delays_ms[level - 1]

    def __repr__(self) -> str:
        return f"<Dispatcher at {self.reput_from}>"
