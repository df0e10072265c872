"""From the wheel back into the log: the slots that are due, one after another.

Mirrors: TimerMessageStore.dequeue and TimerDequeueGetMessageService.

    slot 12:00:05 ──last──▶ unit ──previous──▶ unit ──▶ unit ──▶ -1
    1. recall markers of the slot           their keys: real topic + unique key
    2. all others, the oldest first         one whose key is among them is dropped; one that rolls goes round again

RocketMQ reads a slot with three threads and stores with three: the order inside a slot is not kept. Here it is.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.rocketmq.ports import Deadline
from mqlab.rocketmq.store.timer.delivering import Deliverer, TimerDelivery
from mqlab.rocketmq.store.timer.state import TimerState
from mqlab.rocketmq.store.timer.wheel import EMPTY_SLOT
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.names import TIMER_TOPIC
from mqlab.rocketmq.wire.record import Record
from mqlab.rocketmq.wire.timer_units import NO_POSITION, TimerUnit

GET_THREADS = 3  # timerGetMessageThreadNum: each remembers the markers of its last slot


class Dequeuer:
    """Reads the slots up to the write clock; the next slot that has messages is its one deadline."""

    def __init__(self, state: TimerState, deliverer: Deliverer, on_change: Callable[[], None]) -> None:
        self._state = state
        self._deliverer = deliverer
        self._on_change = on_change
        self._deadline: Deadline | None = None
        self._markers: list[list[str]] = [[] for _ in range(GET_THREADS)]
        self._slots_with_markers = 0

    def arm(self) -> None:
        """Arm the deadline of the next slot; called when the wheel has changed."""
        state = self._state
        due_ms = state.next_slot_ms() if state.is_running and state.delivers else None
        if state.config.timer_stop_dequeue or not self._deliverer.is_idle:
            due_ms = None
        if due_ms is not None:
            due_ms = state.next_poll(due_ms + state.precision_ms)
        if self._deadline is not None:
            if self._deadline.due_ms == due_ms:
                return
            self._deadline.cancel()
            self._deadline = None
        if due_ms is not None:
            self._deadline = state.clock.call_at(due_ms, self.run, "timer.dequeue")

    def stop(self) -> None:
        """Deliver nothing more."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def run(self) -> None:
        """Deliver every slot that is due."""
        state = self._state
        self._deadline = None
        while self._deliverer.is_idle:
            slot_ms = state.next_slot_ms()
            if slot_ms is None or slot_ms >= state.write_ms():
                break
            self._deliver_slot(slot_ms)
            state.read_ms = slot_ms + state.precision_ms
        state.catch_up()
        self._on_change()

    def _deliver_slot(self, slot_ms: int) -> None:
        units = self.units_of(slot_ms)
        recalled = self._recalled([unit for unit in units if unit.deletes and not unit.rolls])
        for unit in reversed(units):
            if unit.deletes and not unit.rolls:
                continue
            record = self._message_of(unit)
            if record is None:
                continue
            property_map = record.property_map
            topic, key = property_map.get(p.REAL_TOPIC), property_map.get(p.UNIQ_KEY)
            if f"{topic}+{key}" in recalled:
                self._state.note("timer.recalled", topic=topic, msg_id=key, rolls=unit.rolls)
            else:
                self._deliverer.add(TimerDelivery(record, unit.write_ms, unit.rolls))

    def units_of(self, slot_ms: int) -> list[TimerUnit]:
        """The units of a slot, the newest first."""
        slot = self._state.wheel.slot(slot_ms)
        units: list[TimerUnit] = []
        position = slot.last if slot is not EMPTY_SLOT else NO_POSITION
        while position != NO_POSITION:
            unit = self._state.log.unit_at(position)
            if unit is None or unit.previous >= position:  # the log was cut, or is damaged
                break
            units.append(unit)
            position = unit.previous
        return units

    def _recalled(self, markers: list[TimerUnit]) -> frozenset[str]:
        """The keys of the slot's markers. Markers of an earlier slot are counted out of the metrics only now."""
        keys: dict[str, None] = {}
        topics: list[str] = []
        for unit in markers:
            record = self._message_of(unit)
            key = record.property_map.get(p.TIMER_DEL_UNIQKEY) if record is not None else None
            if record is not None and key is not None:
                keys[key] = None
                topics.append(record.property_map.get(p.REAL_TOPIC, ""))
        if topics:
            thread = self._slots_with_markers % GET_THREADS
            self._slots_with_markers += 1
            for topic in self._markers[thread]:
                self._state.metrics.add(topic, 1)
            self._markers[thread] = topics
        return frozenset(keys)

    def _message_of(self, unit: TimerUnit) -> Record | None:
        """The message that a unit refers to; None when the commit log has another one there, or none."""
        record = self._state.store.message_at(unit.physical_offset)
        if record is None or record.topic != TIMER_TOPIC or record.total_size != unit.unit_size:
            return None
        return record
