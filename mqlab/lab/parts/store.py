"""A broker's store that asks a learner's own for everything: where it is used, the broker notices no difference.

    broker ─▶ PartStore ─▶ MyStore ─▶ Disk          every answer is judged by what was put (stored)

It has the methods of MessageStore that a broker uses. The timer wheel over it is mqlab's own, so timed messages and POP
work. Left out: deleting, the index, replication.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from mqlab.lab.parts.broken import BrokenPart, anything, ask, is_whole
from mqlab.lab.parts.disk import Disk
from mqlab.lab.parts.stored import StoredUnits
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.store.config import parse_delay_levels
from mqlab.rocketmq.store.dispatch import Arrival
from mqlab.rocketmq.store.get_result import (
    FOUND,
    NO_MATCHED_MESSAGE,
    NO_MESSAGE_IN_QUEUE,
    OFFSET_OVERFLOW_BADLY,
    OFFSET_OVERFLOW_ONE,
    OFFSET_TOO_SMALL,
    GetResult,
)
from mqlab.rocketmq.store.getting import MAX_PULL_BYTES, MessageFilter, TagCodes
from mqlab.rocketmq.store.message_store import MessageStore
from mqlab.rocketmq.store.put_checks import WAIT_FALSE, batch_refusal_of, record_of, refusal_of
from mqlab.rocketmq.store.put_result import PUT_OK, PutResult
from mqlab.rocketmq.store.recovery.recovery import RecoveryReport
from mqlab.rocketmq.wire import record as units
from mqlab.rocketmq.wire.java_hash import tags_code
from mqlab.rocketmq.wire.message import Message
from mqlab.rocketmq.wire.names import SCHEDULE_TOPIC
from mqlab.rocketmq.wire.property_names import DELAY, TAGS, UNIQ_KEY
from mqlab.rocketmq.wire.record import Record
from mqlab.rocketmq.wire.units import CqUnit

DISPATCH_MS, FLUSH_MS, MOST = 1, 500, 32


class PartStore(MessageStore):
    """A broker's store, kept by a learner's part: ``make`` gives its class for each life, ``memory`` outlives it."""

    make: Callable[[], Callable[[Disk], Any]]
    memory: StoredUnits
    was_cut: Callable[[], bool]
    _arrival: Arrival | None = None

    def load(self) -> RecoveryReport:
        """Let the part open what is on the disk, and judge it."""
        self._disk = Disk(self.files, self.directory)
        self._armed = False
        self.flusher.sync_log = self._sync_log  # type: ignore[method-assign]  # tables and wheel are saved after it
        kind = self.make()
        self._part = ask("MyStore", kind, self._disk, fits=anything, form="an object")
        ask("MyStore.dispatch", self._part.dispatch, fits=_are_places, form=PLACES)
        power_cut = self.was_cut()
        for key in list(self.memory.units):
            end = self._end(*key)
            self.memory.lived_again(key, end, self._got(*key, 0, end) if end else [], power_cut=power_cut)
        self.memory.begin_again()
        return self.life.report

    def start(self) -> None:
        """Begin to take messages."""
        self.state.phase = "running"
        self.admission.decide()
        self.clock.call_later(FLUSH_MS, self._flush_again, "store.flush")

    def shutdown(self) -> None:
        """Dispatch and flush. What breaks here has no run left to stop: the next life is judged by what is there."""
        if self.state.phase == "running":
            with contextlib.suppress(BrokenPart):
                self.dispatch()
                self._flush()
            self.state.phase = "closed"
            self._disk.close()

    def put(self, message: Record | Message, *, queue_id: int | None = None) -> PutResult:
        """Hand one message to the part, as a unit without its place."""
        record = message if isinstance(message, Record) else record_of(message, queue_id, self.store_host, self.clock)
        refusal = refusal_of(record, self.config.max_message_size)
        if refusal is not None:
            return refusal
        now_ms = self.clock.now_ms()
        unit = units.encode_at(record, 0, 0, now_ms)
        asked = (record.topic, record.queue_id, unit)
        answer = ask("MyStore.put", self._part.put, *asked, fits=_is_pair, form="(queue_offset, physical_offset)")
        self.memory.put(*asked, tuple(answer))
        self._end(record.topic, record.queue_id)
        queue_offset, physical_offset = answer
        wait = WAIT_FALSE not in record.properties
        result = PutResult(PUT_OK, physical_offset, len(unit), queue_offset, now_ms, record.store_host, wait)
        if self._note is not None:
            location = {"queue_offset": queue_offset, "physical_offset": physical_offset, "size": len(unit), "count": 1}
            msg_id = record.property_map.get(UNIQ_KEY) or result.offset_msg_id
            self._note("message.stored", topic=record.topic, queue_id=record.queue_id, msg_id=msg_id, **location)
        if not self._armed:
            self._armed = True
            self.clock.call_later(DISPATCH_MS, self._dispatch_soon, "store.dispatch")
        return result

    def put_batch(self, records: list[Record]) -> PutResult:
        """Hand the messages of a batch over one by one."""
        refusal = batch_refusal_of(records, self.config.max_message_size)
        if refusal is not None:
            return refusal
        results = [self.put(record) for record in records]
        first, places = results[0], tuple(result.physical_offset for result in results)
        size = sum(result.size for result in results)
        return PutResult(
            PUT_OK,
            first.physical_offset,
            size,
            first.queue_offset,
            first.store_timestamp,
            first.store_host,
            first.wait_store_msg_ok,
            places,
        )

    def wait_durable(self, result: PutResult) -> Promise[str]:
        """Under SYNC_FLUSH the part flushes before the answer."""
        if result.physical_offset >= 0 and self.config.is_sync_flush and result.wait_store_msg_ok:
            self._flush()
        return Promise.of(result.status)

    def dispatch(self, max_units: int | None = None) -> int:
        """Let the part put into the queues what was put; the broker learns of each message."""
        answer = ask("MyStore.dispatch", self._part.dispatch, fits=_are_places, form=PLACES)
        self.memory.dispatched(answer)
        for topic, queue_id, queue_offset in answer:
            (unit,) = self._got(topic, queue_id, queue_offset, 1)
            record = units.decode(unit)
            if self._note is not None:
                self._note("message.dispatched", topic=topic, queue_id=queue_id, queue_offset=queue_offset)
            if self._arrival is not None:
                code = self._code(record)
                properties = record.property_map
                self._arrival(topic, queue_id, queue_offset + 1, code, record.store_timestamp, properties)
        return len(answer)

    @property
    def on_arrival(self) -> Arrival | None:
        """The parts that learn of each dispatched message."""
        return self._arrival

    @on_arrival.setter
    def on_arrival(self, action: Arrival | None) -> None:
        self._arrival = action

    def get(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_nums: int = MOST,
        *,
        sub_expression: str = "*",
        message_filter: MessageFilter | None = None,
        max_bytes: int = MAX_PULL_BYTES,
    ) -> GetResult:
        """Read from the part, and filter what it gives."""
        if message_filter is None and sub_expression != "*":
            message_filter = TagCodes(sub_expression)
        end = self._end(topic, queue_id)
        if end == 0:
            return GetResult(NO_MESSAGE_IN_QUEUE, 0, 0, 0)
        if queue_offset < 0:
            return GetResult(OFFSET_TOO_SMALL, 0, 0, end)
        if queue_offset >= end:
            status = OFFSET_OVERFLOW_ONE if queue_offset == end else OFFSET_OVERFLOW_BADLY
            return GetResult(status, end, 0, end)
        result, offset = GetResult(NO_MATCHED_MESSAGE, queue_offset, 0, end), queue_offset
        while offset < end and len(result.units) < max_nums:
            for unit in self._got(topic, queue_id, offset, min(MOST, max_nums)):
                if len(result.units) == max_nums:
                    break
                if message_filter is None or self._passes(unit, message_filter):
                    result.units.append(unit)
                    result.queue_offsets.append(offset)
                    result.buffer_total_size += len(unit)
                offset += 1
        result.next_begin_offset = offset
        result.status = FOUND if result.units else NO_MATCHED_MESSAGE
        return result

    def max_offset(self, topic: str, queue_id: int) -> int:
        """What the part says."""
        return self._end(topic, queue_id)

    def min_offset(self, topic: str, queue_id: int) -> int:
        """0: a learner's store deletes nothing."""
        return 0

    def consume_queue_unit(self, topic: str, queue_id: int, queue_offset: int) -> CqUnit | None:
        """The place of a message, read from its unit."""
        record = self._record(topic, queue_id, queue_offset)
        return None if record is None else CqUnit(record.physical_offset, record.total_size, self._code(record))

    def message_at(self, physical_offset: int) -> Record | None:
        """The message that the part has at a place; None for a place where nothing was put."""
        if physical_offset not in self.memory.by_place:
            return None
        unit = ask("MyStore.unit_at", self._part.unit_at, physical_offset, fits=_is_unit, form="bytes")
        self.memory.placed_at(physical_offset, unit)
        return units.decode(unit)

    def store_time_at(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """When a message was stored."""
        record = self._record(topic, queue_id, queue_offset)
        return None if record is None else record.store_timestamp

    def search_offset(self, topic: str, queue_id: int, timestamp_ms: int, boundary: str = "lower") -> int:
        """What the part says; ``upper`` is one before the first that is later."""
        later = 0 if boundary == "lower" else 1
        asked = (topic, queue_id, timestamp_ms + later)
        answer = ask("MyStore.offset_at", self._part.offset_at, *asked, fits=is_whole, form="a whole number")
        self.memory.timed(*asked, answer)
        return max(0, int(answer) - later)

    def topics(self) -> dict[str, list[int]]:
        """The topics that were put, with their queues."""
        answer: dict[str, list[int]] = {}
        for topic, queue_id in sorted(self.memory.units):
            answer.setdefault(topic, []).append(queue_id)
        return answer

    def delete_topic(self, topic: str) -> bool:
        """False: a learner's store deletes nothing."""
        return False

    @property
    def max_physical_offset(self) -> int:
        """One past the last unit that was put."""
        return max((location + len(unit) for location, unit in self.memory.by_place.items()), default=0)

    def is_resident(self, physical_offset: int) -> bool:
        """True: where a learner's store keeps a message is its own affair."""
        return True

    def _end(self, topic: str, queue_id: int) -> int:
        answer = ask("MyStore.max_offset", self._part.max_offset, topic, queue_id, fits=is_whole, form="a whole number")
        if self.state.phase == "running":
            self.memory.ended(topic, queue_id, answer)
        return int(answer)

    def _got(self, topic: str, queue_id: int, queue_offset: int, most: int) -> list[bytes]:
        asked = (topic, queue_id, queue_offset, most)
        answer: list[bytes] = list(ask("MyStore.get", self._part.get, *asked, fits=_are_units, form="a list of units"))
        if self.state.phase == "running":
            self.memory.got(*asked, answer)
        return answer

    def _record(self, topic: str, queue_id: int, queue_offset: int) -> Record | None:
        answer = self._got(topic, queue_id, queue_offset, 1) if 0 <= queue_offset < self._end(topic, queue_id) else []
        return units.decode(answer[0]) if answer else None

    def _code(self, record: Record) -> int:
        """What a consume queue has as tags code: of a delayed message its due time."""
        if record.topic == SCHEDULE_TOPIC:
            delays_ms = parse_delay_levels(self.config.message_delay_level)
            level = min(int(record.property_map.get(DELAY, "1")), len(delays_ms))
            return record.store_timestamp + delays_ms[level - 1]
        return tags_code(record.property_map.get(TAGS) or "") if record.property_map.get(TAGS) else 0

    def _passes(self, unit: bytes, message_filter: MessageFilter) -> bool:
        record = units.decode(unit)
        return message_filter.matches_code(self._code(record)) and message_filter.matches_properties(
            record.property_map
        )

    def _dispatch_soon(self) -> None:
        self._armed = False
        if self.state.phase == "running":
            self.dispatch()

    def _flush_again(self) -> None:
        if self.state.phase == "running":
            self._flush()
            self.clock.call_later(FLUSH_MS, self._flush_again, "store.flush")

    def _sync_log(self, least_pages: int = 0) -> bool:
        self._flush()
        return True

    def _flush(self) -> None:
        ask("MyStore.flush", self._part.flush, fits=anything, form="nothing")
        self.memory.flush()


PLACES = "a list of (topic, queue_id, queue_offset)"


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2 and all(map(is_whole, value))


def _are_places(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(triple, tuple | list) and len(triple) == 3 and isinstance(triple[0], str) and is_whole(triple[2])
        for triple in value
    )


def _is_unit(value: Any) -> bool:
    return isinstance(value, bytes | bytearray | memoryview)


def _are_units(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_unit, value))
