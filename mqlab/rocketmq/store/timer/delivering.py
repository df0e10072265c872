"""Puts what left the wheel into the log again: into its real topic, or into the timer topic once more when it rolls.

Mirrors: TimerMessageStore.convert, doPut and TimerDequeuePutMessageService.

    waiting ──▶ put ──▶ stored                                 next
                   └──▶ refused for good                       dropped
                   └──▶ not possible now ──▶ again in 500 ms   dropped after 3 tries, unless timer_enable_retry_…

The stored text keeps REAL_TOPIC and REAL_QID, as that of delay levels does. Nothing else of the timer happens while a
put has to be tried again: RocketMQ's threads wait for each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from mqlab.rocketmq.ports import Deadline
from mqlab.rocketmq.store import put_result
from mqlab.rocketmq.store.timer.state import TimerState
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.java_numbers import int_or
from mqlab.rocketmq.wire.names import TIMER_TOPIC
from mqlab.rocketmq.wire.properties import encode_as_java
from mqlab.rocketmq.wire.record import Record

RETRY_MS = 500
MOST_RETRIES = 3
NEVER_ENQUEUED = (1 << 63) - 1  # TIMER_ENQUEUE_MS of a message that came too late for its slot
_STORED = (
    put_result.PUT_OK,
    put_result.FLUSH_DISK_TIMEOUT,
    put_result.FLUSH_SLAVE_TIMEOUT,
    "SLAVE_NOT_AVAILABLE",
)
_TRY_AGAIN = (put_result.SERVICE_NOT_AVAILABLE, put_result.CREATE_MAPPED_FILE_FAILED)


@dataclass(slots=True)
class TimerDelivery:
    """A message that left its slot. ``enqueued_ms``: the write clock when it entered the wheel."""

    record: Record
    enqueued_ms: int
    rolls: bool = False
    tries: int = 0


class Deliverer:
    """Stores deliveries in their order. ``on_idle`` is called when a queue that had to wait is empty again."""

    def __init__(self, state: TimerState, on_idle: Callable[[], None]) -> None:
        self._state = state
        self._on_idle = on_idle
        self._waiting: deque[TimerDelivery] = deque()
        self._retry: Deadline | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing has to be put again."""
        return not self._waiting

    def add(self, delivery: TimerDelivery) -> None:
        """Store a message now, or after those that wait."""
        self._waiting.append(delivery)
        if self._retry is None:
            self._run()

    def stop(self) -> None:
        """Try nothing again."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._waiting.clear()

    def _try_again(self) -> None:
        self._retry = None
        self._run()
        if not self._waiting:
            self._on_idle()

    def _run(self) -> None:
        state = self._state
        while self._waiting:
            delivery = self._waiting[0]
            if not self._put(delivery):
                keeps_trying = state.config.timer_enable_retry_until_success
                if keeps_trying or delivery.tries < MOST_RETRIES:
                    delivery.tries += 1
                    self._retry = state.clock.call_later(state.scaled(RETRY_MS), self._try_again, "timer.retry")
                    return
                self._drop(delivery, f"not stored after {MOST_RETRIES} retries")
            self._waiting.popleft()

    def _put(self, delivery: TimerDelivery) -> bool:
        """Store one message; False when it should be tried again. Mirrors doPut."""
        state, record = self._state, delivery.record
        property_map = record.property_map
        if delivery.tries == 0 and delivery.enqueued_ms != NEVER_ENQUEUED:
            state.metrics.add(property_map.get(p.REAL_TOPIC, ""), -1)
        if p.TIMER_DEL_UNIQKEY in property_map and not delivery.rolls:
            self._drop(delivery, "a marker whose slot was read before")
            return True
        again = converted(record, delivery.enqueued_ms, state.clock.now_ms(), rolls=delivery.rolls)
        result = state.put(again)
        if result.status not in _STORED:
            if result.status in _TRY_AGAIN:
                return False
            self._drop(delivery, f"{result.status}: {result.reason}")
            return True
        state.note(
            "timer.rolled" if delivery.rolls else "timer.delivered",
            topic=again.property_map.get(p.REAL_TOPIC) if delivery.rolls else again.topic,
            queue_id=again.queue_id,
            msg_id=property_map.get(p.UNIQ_KEY),
            physical_offset=result.physical_offset,
            queue_offset=result.queue_offset,
        )
        return True

    def _drop(self, delivery: TimerDelivery, reason: str) -> None:
        property_map = delivery.record.property_map
        self._state.note(
            "timer.dropped", topic=property_map.get(p.REAL_TOPIC), msg_id=property_map.get(p.UNIQ_KEY), reason=reason
        )


def converted(record: Record, enqueued_ms: int, now_ms: int, *, rolls: bool) -> Record:
    """The message as it is put back. Mirrors convert and convertMessage.

    >>> waiting = Record(TIMER_TOPIC, b"x", properties=b"REAL_TOPIC\\x01orders\\x02REAL_QID\\x013\\x02")
    >>> back = converted(waiting, 1_000, 2_016, rolls=False)
    >>> back.topic, back.queue_id, back.property_map["TIMER_DEQUEUE_MS"]
    ('orders', 3, '2016')
    """
    property_map = dict(record.property_map)
    property_map[p.TIMER_ENQUEUE_MS] = str(enqueued_ms)
    if rolls:
        times = property_map.get(p.TIMER_ROLL_TIMES, "0")
        property_map[p.TIMER_ROLL_TIMES] = str(int_or(times, 0) + 1)
    property_map[p.TIMER_DEQUEUE_MS] = str(now_ms)
    queue_id = property_map.get(p.REAL_QID, "0")
    return record.changed(
        topic=TIMER_TOPIC if rolls else property_map.get(p.REAL_TOPIC, ""),
        queue_id=record.queue_id if rolls else int_or(queue_id, 0),
        properties=encode_as_java(property_map),
        magic=None,
    )
