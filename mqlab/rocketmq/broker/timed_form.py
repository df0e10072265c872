"""What makes a message a timed one, and the form in which it waits in the timer topic.

Mirrors: HookUtils (checkIfTimerMessage, transformTimerMessage) and TimerMessageStore.isReject.

    TIMER_DELAY_SEC=3, else TIMER_DELAY_MS=2500, else TIMER_DELIVER_MS=…      when it is to be delivered

    deliver 12:00:05.000      out 12:00:04.000       a slot is read when its moment and a whole step have passed, so a
    deliver 12:00:05.001      out 12:00:05.000       message comes at deliver or up to a step later, never before
    deliver in the past       stored at once, as a message without a timer
    more than 3 days ahead    refused (timer_max_delay_sec)
"""

from __future__ import annotations

from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.store.put_result import (
    WHEEL_TIMER_FLOW_CONTROL,
    WHEEL_TIMER_MSG_ILLEGAL,
    WHEEL_TIMER_NOT_ENABLE,
    PutResult,
)
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.java_numbers import long_or
from mqlab.rocketmq.wire.properties import PARSED_MAP_CAPACITY, encode_as_java
from mqlab.rocketmq.wire.record import Record

TIMER_REQUESTS = (p.TIMER_DELIVER_MS, p.TIMER_DELAY_MS, p.TIMER_DELAY_SEC)
_LONG = 1 << 64


def asks_for_timer(record: Record) -> bool:
    """Whether a message is a timed one that is not in the timer topic yet. Mirrors checkIfTimerMessage."""
    property_map = record.property_map
    return (
        record.topic != names.TIMER_TOPIC
        and p.TIMER_OUT_MS not in property_map
        and any(name in property_map for name in TIMER_REQUESTS)
    )


class Timing:
    """Gives timed messages the form in which they wait, or refuses them."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._config = state.store.config

    def timed(self, record: Record, capacity: int = PARSED_MAP_CAPACITY) -> Record | PutResult:
        """The message as it waits, itself when it is due already, or a refusal. Mirrors transformTimerMessage."""
        timer = self._state.timer
        if timer is None:
            reason = "accurate timer message is not enabled, timerWheelEnable is false"
            return PutResult.refused(WHEEL_TIMER_NOT_ENABLE, reason)
        now_ms, config = self._state.now_ms(), self._config
        deliver_ms = deliver_time(record.property_map, now_ms)
        is_marker = p.TIMER_DEL_UNIQKEY in record.property_map
        if deliver_ms is None or deliver_ms - now_ms > config.timer_max_delay_sec * 1000:
            return self._illegal()
        if deliver_ms <= now_ms:
            return self._illegal() if is_marker else record
        out_ms = out_time(deliver_ms, config.timer_precision)
        if self._is_congested(timer.state.congestion(out_ms)):
            most = config.timer_congest_num_each_slot
            reason = (
                f"timer message is under flow control, max num limit is {2 * most} or the current value is greater "
                f"than {most} and less than {2 * most}, trigger random flow control"
            )
            return PutResult.refused(WHEEL_TIMER_FLOW_CONTROL, reason)
        return timed_form(record, out_ms, capacity)

    def _illegal(self) -> PutResult:
        most_ms = self._config.timer_max_delay_sec * 1000
        return PutResult.refused(
            WHEEL_TIMER_MSG_ILLEGAL,
            f"timer message illegal, the delay time should not be bigger than the max delay {most_ms}ms; or if set del "
            "msg, the delay time should be bigger than the current time",
        )

    def _is_congested(self, count: int) -> bool:
        """Always at twice the limit, between that and the limit more and more often. Mirrors isReject."""
        most = self._config.timer_congest_num_each_slot
        if count <= most:
            return False
        return count >= 2 * most or self._state.ports.rng.randrange(1000) > 1000 * (count - most) / (most + 0.1)


def deliver_time(property_map: dict[str, str], now_ms: int) -> int | None:
    """When a message is to be delivered, ms; None when its first timer property is not a number.

    >>> deliver_time({"TIMER_DELAY_SEC": "2", "TIMER_DELIVER_MS": "9"}, 1_000), deliver_time({"TIMER_DELAY_MS": "x"}, 0)
    (3000, None)
    """
    for name, unit_ms in ((p.TIMER_DELAY_SEC, 1000), (p.TIMER_DELAY_MS, 1)):
        if name in property_map:
            number = long_or(property_map[name], None)
            return None if number is None else _wrapped(now_ms + _wrapped(number * unit_ms))
    return long_or(property_map.get(p.TIMER_DELIVER_MS), None)


def _wrapped(number: int) -> int:
    """A number as Java's 64 bits hold it: a delay of Long.MAX_VALUE seconds is one of -1 s."""
    return (number + _LONG // 2) % _LONG - _LONG // 2


def out_time(deliver_ms: int, precision_ms: int) -> int:
    """The moment of the wheel for a delivery.

    >>> out_time(226_000, 1000), out_time(226_001, 1000), out_time(226_999, 1000)
    (225000, 226000, 226000)
    """
    return (deliver_ms - 1) // precision_ms * precision_ms


def timed_form(record: Record, out_ms: int, capacity: int = PARSED_MAP_CAPACITY) -> Record:
    """The message as it waits in the timer topic; ``capacity`` is that of the Java map with its properties."""
    property_map = dict(record.property_map)
    property_map[p.TIMER_OUT_MS] = str(out_ms)
    property_map[p.REAL_TOPIC] = record.topic
    property_map[p.REAL_QID] = str(record.queue_id)
    return record.changed(
        topic=names.TIMER_TOPIC, queue_id=0, properties=encode_as_java(property_map, capacity), magic=None
    )
