"""The last step before the store: every message passes here, from a producer, a retry, the schedule or a transaction.

Mirrors: HookUtils (checkBeforePutMessage, handleScheduleMessage).

    a message with DELAY 3 for orders/2          the same message as it is stored
    topic orders, queue 2                        topic SCHEDULE_TOPIC_XXXX, queue 2 (level - 1)
    properties DELAY=3 …                         properties DELAY=3 REAL_TOPIC=orders REAL_QID=2 …

    a message with TIMER_DELIVER_MS              topic rmq_sys_wheel_timer, queue 0, with TIMER_OUT_MS (timed_form)

Left out: inner batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.timed_form import TIMER_REQUESTS, Timing, asks_for_timer
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.remoting.requests import Refused
from mqlab.rocketmq.store import put_result
from mqlab.rocketmq.store.config import parse_delay_levels
from mqlab.rocketmq.store.put_result import MESSAGE_ILLEGAL, PutResult
from mqlab.rocketmq.wire import names, sys_flag
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.java_numbers import parse_int
from mqlab.rocketmq.wire.properties import PARSED_MAP_CAPACITY, encode_as_java
from mqlab.rocketmq.wire.record import Record

MAX_TOPIC_BYTES = 127
DELAY_NAME = p.DELAY.encode()
NEW_MAP_CAPACITY = 16
MAX_RETRY_TOPIC_BYTES = 255

STORED_CODES = {
    put_result.PUT_OK: ResponseCode.SUCCESS,
    put_result.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    put_result.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    "SLAVE_NOT_AVAILABLE": ResponseCode.SLAVE_NOT_AVAILABLE,
}
"""Statuses after which the message is stored, and their response codes."""

REFUSED_CODES = {
    put_result.MESSAGE_ILLEGAL: ResponseCode.MESSAGE_ILLEGAL,
    put_result.PROPERTIES_SIZE_EXCEEDED: ResponseCode.MESSAGE_ILLEGAL,
    put_result.SERVICE_NOT_AVAILABLE: ResponseCode.SERVICE_NOT_AVAILABLE,
    put_result.CREATE_MAPPED_FILE_FAILED: ResponseCode.SYSTEM_ERROR,
    put_result.WHEEL_TIMER_NOT_ENABLE: ResponseCode.SYSTEM_ERROR,
    put_result.WHEEL_TIMER_MSG_ILLEGAL: ResponseCode.MESSAGE_ILLEGAL,
    put_result.WHEEL_TIMER_FLOW_CONTROL: ResponseCode.SYSTEM_ERROR,
}


def delay_level_of(property_map: Mapping[str, str]) -> int:
    """The delay level a message asks for, 0 for none. Raises Refused, SYSTEM_ERROR, for a DELAY that is not an Integer.

    Mirrors Message.getDelayTimeLevel, whose NumberFormatException becomes the answer to the send.

    >>> delay_level_of({"DELAY": "3"}), delay_level_of({})
    (3, 0)
    """
    try:
        return parse_int(property_map.get(p.DELAY, "0"))
    except ValueError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"the property {p.DELAY} is not a delay level: {error}") from error


def delayed_form(record: Record, level: int, max_level: int, capacity: int = PARSED_MAP_CAPACITY) -> Record:
    """The message as it waits in the schedule topic; a level above the highest becomes the highest.

    ``capacity`` is that of the Java map with its properties. Mirrors transformDelayLevelMessage.
    """
    property_map = {name: value for name, value in record.property_map.items() if name not in TIMER_REQUESTS}
    if level > max_level:  # otherwise the text stays as its sender wrote it: +1 is a 1, too
        level = max_level
        property_map[p.DELAY] = str(level)
    property_map[p.REAL_TOPIC] = record.topic
    property_map[p.REAL_QID] = str(record.queue_id)
    return record.changed(
        topic=names.SCHEDULE_TOPIC, queue_id=level - 1, properties=encode_as_java(property_map, capacity), magic=None
    )


class Putter:
    """Checks a message, moves it to the schedule topic if it is delayed, and stores it.

    The counters of the store count it, also when it is refused.
    """

    def __init__(self, state: BrokerState) -> None:
        self._store = state.store
        self._max_delay_level = len(parse_delay_levels(state.store.config.message_delay_level))
        self._stats = state.store_stats
        self._broker_stats = state.stats
        self._timing = Timing(state)

    def put(self, record: Record, *, delay_level: int | None = None, capacity: int = PARSED_MAP_CAPACITY) -> PutResult:
        """Store one message, in the schedule topic when its delay level is above 0.

        ``delay_level``: what the property DELAY says, for a caller who has read it; 0 for the delivery of a message
        that has waited and still has the property. ``capacity`` is that of the Java map with its properties.
        Raises Refused for a DELAY that is not an Integer.
        """
        problem = _topic_problem(record.topic)
        if problem is not None:
            return PutResult.refused(MESSAGE_ILLEGAL, problem)
        if _may_wait(record):
            if delay_level is None:
                delay_level = delay_level_of(record.property_map) if DELAY_NAME in record.properties else 0
            if delay_level > 0:
                record = delayed_form(record, delay_level, self._max_delay_level, capacity)
                return self._counted(self._store.put(record), record)
            if b"TIMER_DEL" in record.properties and asks_for_timer(record):
                timed = self._timing.timed(record)
                if isinstance(timed, PutResult):
                    return self._counted(timed)
                if timed is not record:
                    return self._counted(self._store.put(timed), timed)
        return self._counted(self._store.put(record))

    def put_again(self, record: Record, capacity: int = PARSED_MAP_CAPACITY) -> PutResult:
        """Store a message that the broker puts itself: it is counted for its topic, too."""
        result = self.put(record, capacity=capacity)
        if result.status in STORED_CODES:
            self._broker_stats.put(record.topic, record.queue_id, 1, result.size)
        return result

    def put_own(self, record: Record) -> PutResult:
        """Store a message that the broker itself makes: RocketMQ keeps its properties in a small map."""
        if not asks_for_timer(record):
            return self.put_again(record)
        timed = self._timing.timed(record, NEW_MAP_CAPACITY)
        return self._counted(timed) if isinstance(timed, PutResult) else self.put_again(timed)

    def waiting_form(self, batch: Record) -> Record | PutResult:
        """The topic, queue and properties of all messages of a batch; a refusal when it may not be timed like that."""
        return self._timing.timed(batch) if asks_for_timer(batch) else batch

    def put_batch(self, records: list[Record]) -> PutResult:
        """Store the messages of one batch together."""
        problem = _topic_problem(records[0].topic)
        if problem is not None:
            return PutResult.refused(MESSAGE_ILLEGAL, problem)
        return self._counted(self._store.put_batch(records), records[0])

    def when_safe(self, result: PutResult) -> Promise[str]:
        """Resolves to the status of the put when it is flushed and copied as configured; counts how long that took."""
        safe = self._store.wait_durable(result)
        if not safe.done:
            safe.then(lambda _: self._stats.waited(result.store_timestamp))
        return safe

    def _counted(self, result: PutResult, waits_as: Record | None = None) -> PutResult:
        result.waits_as = waits_as
        if result.message_count:
            self._stats.put(result.message_count, result.size, result.store_timestamp)
        else:
            self._stats.failed += 1
        return result


def refusal(result: PutResult) -> tuple[int, str]:
    """The response code and remark for a message that was not stored."""
    code = REFUSED_CODES.get(result.status, ResponseCode.SYSTEM_ERROR)
    return code, result.reason if result.status.startswith("WHEEL_TIMER") else f"{result.status}: {result.reason}"


def _may_wait(record: Record) -> bool:
    """False for a message whose flag marks it as a half message: RocketMQ delays plain and committed messages only."""
    return not record.sys_flag & sys_flag.TRANSACTION_PREPARED  # the bit is set in rolled back messages, too


@lru_cache(maxsize=1024)
def _topic_problem(topic: str) -> str | None:
    length = len(topic.encode("utf-8", "replace"))
    limit = MAX_RETRY_TOPIC_BYTES if topic.startswith(names.RETRY_PREFIX) else MAX_TOPIC_BYTES
    return f"topic of {length} bytes, at most {limit} are allowed: {topic}" if length > limit else None
