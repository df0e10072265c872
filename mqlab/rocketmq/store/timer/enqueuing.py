"""From the timer topic into the wheel: each stored message gets a unit in the timer log and a place in a slot.

Mirrors: TimerMessageStore.enqueue and doEnqueue.

    ahead = out - write clock
    out before the write clock               delivered at once
    ahead < window                           slot of out
    window <= ahead < window + a third       rolls: slot of now + half a window         (window: 2 days by default)
    ahead >= that                            rolls: slot of now + window

Rolling keeps the commit log's unit of a message younger than the window, so that it is not deleted as too old.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.rocketmq.ports import Deadline
from mqlab.rocketmq.store.timer.delivering import NEVER_ENQUEUED, Deliverer, TimerDelivery
from mqlab.rocketmq.store.timer.state import TIMER_QUEUE, TimerState
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.java_hash import string_hash
from mqlab.rocketmq.wire.java_numbers import long_or
from mqlab.rocketmq.wire.names import TIMER_TOPIC
from mqlab.rocketmq.wire.record import Record
from mqlab.rocketmq.wire.timer_units import (
    MAGIC_DEFAULT,
    MAGIC_DELETE,
    MAGIC_ROLL,
    NO_POSITION,
    TIMER_UNIT_SIZE,
    USABLE_SLOTS,
    TimerUnit,
)

MOST_WINDOW = USABLE_SLOTS - 60


class Enqueuer:
    """Reads the timer topic from ``queue_offset`` on; ``arrived`` arms the next look at it."""

    def __init__(self, state: TimerState, deliverer: Deliverer, on_change: Callable[[], None]) -> None:
        self._state = state
        self._deliverer = deliverer
        self._on_change = on_change
        self._deadline: Deadline | None = None
        self._stuck_at = -1

    def arm(self) -> None:
        """Look at the next poll, if there is something to enqueue."""
        state = self._state
        if self._deadline is None and state.is_running and self._next_offset() is not None:
            self._deadline = state.clock.call_at(state.next_poll(0), self._look, "timer.enqueue")

    def stop(self) -> None:
        """Enqueue nothing more."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _look(self) -> None:
        self._deadline = None
        self.run()
        self._on_change()
        self.arm()

    def run(self) -> None:
        """Enqueue everything that is there."""
        state = self._state
        while self._deliverer.is_idle and (queue_offset := self._next_offset()) is not None:
            unit = state.store.consume_queue_unit(TIMER_TOPIC, TIMER_QUEUE, queue_offset)
            record = state.store.message_at(unit.physical_offset) if unit is not None else None
            if record is not None:
                if not self._is_readable(record, queue_offset):
                    break
                self._enqueue(record)
            state.queue_offset = queue_offset + 1

    def _next_offset(self) -> int | None:
        """The next queue offset to enqueue; None when there is none, and on a slave that has reached its master."""
        state, store = self._state, self._state.store
        if state.config.timer_stop_enqueue:
            return None
        queue_offset = max(state.queue_offset, store.min_offset(TIMER_TOPIC, TIMER_QUEUE))
        end = store.max_offset(TIMER_TOPIC, TIMER_QUEUE)
        if not state.delivers:
            end = min(end, state.checkpoint.master_queue_offset)
        return queue_offset if queue_offset < end and queue_offset != self._stuck_at else None

    def _is_readable(self, record: Record, queue_offset: int) -> bool:
        """Whether the message says when it is due. RocketMQ tries one that does not for ever, mqlab once."""
        out_ms = long_or(record.property_map.get(p.TIMER_OUT_MS), None)
        if out_ms is not None or self._state.config.timer_skip_unknown_error:
            return True
        self._stuck_at = queue_offset
        self._state.note("timer.problem", queue_offset=queue_offset, reason="the message has no TIMER_OUT_MS")
        return False

    def _enqueue(self, record: Record) -> None:
        state, out_ms = self._state, long_or(record.property_map.get(p.TIMER_OUT_MS), None)
        if out_ms is None:
            return
        write_ms = state.write_ms()
        if state.delivers and out_ms < write_ms:
            self._deliverer.add(TimerDelivery(record, NEVER_ENQUEUED))
        else:
            enqueue(state, record, out_ms, write_ms)


def enqueue(state: TimerState, record: Record, out_ms: int, write_ms: int) -> int:
    """Append a unit for a message and put it at the end of its slot's list; returns its position. Mirrors doEnqueue."""
    # 1. Which slot: the message's own, or one on the way there.
    slots, precision_ms = roll_window(state.config.timer_roll_window_slot), state.precision_ms
    ahead_ms, window_ms = out_ms - write_ms, slots * precision_ms
    magic, slot_ms = MAGIC_DEFAULT, out_ms
    if ahead_ms >= window_ms:
        magic |= MAGIC_ROLL
        is_near = ahead_ms - window_ms < slots // 3 * precision_ms
        slot_ms = write_ms + (slots // 2 * precision_ms if is_near else window_ms)
    property_map = record.property_map
    is_marker = p.TIMER_DEL_UNIQKEY in property_map
    if is_marker:
        magic |= MAGIC_DELETE
    topic = property_map.get(p.REAL_TOPIC, "")
    # 2. The unit refers to the one before it, and the slot to this one.
    slot = state.wheel.slot(slot_ms)
    position = state.log.append(
        TimerUnit(
            TIMER_UNIT_SIZE,
            slot.last,
            magic,
            write_ms,
            slot_ms - write_ms,
            record.physical_offset,
            record.total_size,
            string_hash(topic),
        )
    )
    first = position if slot.first == NO_POSITION else slot.first
    state.wheel.put(slot_ms, first, position, slot.num + (-1 if is_marker else 1))
    state.metrics.add(topic, -1 if is_marker else 1)
    state.note(
        "timer.enqueued",
        topic=topic,
        msg_id=property_map.get(p.UNIQ_KEY),
        slot_ms=slot_ms,
        out_ms=out_ms,
        position=position,
        rolls=bool(magic & MAGIC_ROLL),
    )
    return position


def roll_window(slots: int) -> int:
    """The slots of the roll window; a setting that the wheel cannot hold becomes the most that it can.

    >>> roll_window(172_800), roll_window(1)
    (172800, 604740)
    """
    return slots if 2 <= slots <= MOST_WINDOW else MOST_WINDOW
