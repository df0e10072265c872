"""Delayed messages: they wait in one queue per level and are stored in their real topic when their time has come.

Mirrors: ScheduleMessageService.

    SCHEDULE_TOPIC_XXXX queue 2 (level 3, 10 s)      entry 41: due 12:00:20.000   entry 42: due 12:00:21.500
    delay_offset_table  {3: 41}                      the next entry to look at
    how long each level waits                        message_delay_level in mqlab.rocketmq.store.config

All entries of a queue wait equally long, so the one stored first is due first. There is one deadline per level: when
its first entry is due, rounded up to the 100 ms grid on which RocketMQ looks.

Left out: asynchronous delivery (enableScheduleAsyncDeliver, off by default).
"""

from __future__ import annotations

from mqlab.rocketmq.broker.putting import Putter
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.store import put_result
from mqlab.rocketmq.store.config import parse_delay_levels
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.java_numbers import parse_int
from mqlab.rocketmq.wire.record import Record

FIRST_RUN_MS = 1_000
POLL_MS = 100
AFTER_AN_ERROR_MS = 10_000  # DELAY_FOR_A_PERIOD
SCHEDULE_GROUP = "SCHEDULE_CONSUMER"


class Schedule:
    """Delivers what waits in the schedule topic. Mirrors ScheduleMessageService."""

    def __init__(self, state: BrokerState, putter: Putter) -> None:
        self._store = state.store
        self._putter = putter
        self._clock = state.ports.clock
        self._delays_ms = parse_delay_levels(state.store.config.message_delay_level)  # level 1 first
        self._offsets = state.delay_offset_table
        self._stats = state.stats
        self._note = state.ports.note
        self._first_run_ms: int | None = None
        self._deadlines: dict[int, Deadline] = {}

    def correct_offsets(self) -> None:
        """Move the offset of each level into its queue; called after the store was loaded.

        An offset after the end of its queue would skip messages that are still to come. Mirrors correctDelayOffset.
        """
        for level in range(1, len(self._delays_ms) + 1):
            before = self._offsets.get(level)
            if before is None:
                continue
            queue_offset = self._first_readable(level - 1, before)
            if queue_offset != before:
                self._offsets.correct(level, queue_offset)
                self._note("schedule.offset_corrected", level=level, before=before, queue_offset=queue_offset)

    def start(self) -> None:
        """Look at the queue of every level for the first time after 1 s."""
        self._first_run_ms = self._clock.now_ms() + FIRST_RUN_MS
        for level in range(1, len(self._delays_ms) + 1):
            if self._store.max_offset(names.SCHEDULE_TOPIC, level - 1) > self._offsets.get(level, 0):
                self._arm(level, self._first_run_ms)

    def stop(self) -> None:
        """Deliver no more messages."""
        self._first_run_ms = None
        for deadline in self._deadlines.values():
            deadline.cancel()
        self._deadlines.clear()

    def arrived(self, queue_id: int, deliver_ms: int) -> None:
        """A delayed message can be read now; arm the deadline of its level if it is not armed yet."""
        level = queue_id + 1
        if level <= len(self._delays_ms) and level not in self._deadlines:
            self._offsets.update(level, self._offsets.get(level, 0))
            self._arm(level, deliver_ms)

    def _arm(self, level: int, due_ms: int) -> None:
        if self._first_run_ms is None:
            return
        # RocketMQ looks every 100 ms, counted from its first look.
        due_ms = next_on_grid(max(due_ms, self._first_run_ms), POLL_MS, self._first_run_ms)
        if level in self._deadlines:
            self._deadlines[level].cancel()
        self._deadlines[level] = self._clock.call_at(due_ms, lambda: self._deliver_due(level), "schedule.deliver")

    def _deliver_due(self, level: int) -> None:
        self._deadlines.pop(level, None)
        now_ms = self._clock.now_ms()
        queue_id, delay_ms = level - 1, self._delays_ms[level - 1]
        queue_offset = self._first_readable(queue_id, self._offsets.get(level, 0))
        while (unit := self._store.consume_queue_unit(names.SCHEDULE_TOPIC, queue_id, queue_offset)) is not None:
            # 1. The index entry of a delayed message holds its due time in place of a tags code.
            deliver_ms = unit.tags_code
            if deliver_ms > now_ms + delay_ms:  # the clock was set back, or the level is shorter now
                deliver_ms = now_ms
            # 2. Not due yet: nothing after it is due either.
            if deliver_ms > now_ms:
                self._offsets.update(level, queue_offset)
                self._arm(level, deliver_ms)
                return
            # 3. Due. If the store refuses it, the same entry is tried again; an entry without a message is skipped.
            record = self._store.message_at(unit.physical_offset)
            try:
                delivered = record is None or self._deliver(record, queue_id)
            except ValueError as error:  # as in RocketMQ, it stays the next message of its level
                self._note("schedule.undeliverable", level=level, queue_offset=queue_offset, error=str(error))
                self._arm(level, now_ms + AFTER_AN_ERROR_MS)
                return
            if not delivered:
                self._arm(level, now_ms + POLL_MS)
                return
            queue_offset += 1
            if record is not None:
                self._offsets.update(level, queue_offset)

    def _first_readable(self, queue_id: int, queue_offset: int) -> int:
        """The offset itself, or the nearest one that the queue has."""
        first_offset = self._store.min_offset(names.SCHEDULE_TOPIC, queue_id)
        end_offset = self._store.max_offset(names.SCHEDULE_TOPIC, queue_id)
        return min(max(queue_offset, first_offset), end_offset)

    def _deliver(self, parked: Record, queue_id: int) -> bool:
        """Store the message in its real queue; False when the store refused it. Mirrors messageTimeUp.

        Raises ValueError for a REAL_QID that is not an Integer.
        """
        property_map = parked.property_map
        topic = property_map.get(p.REAL_TOPIC, "")
        if not topic or topic == names.HALF_TOPIC:
            return True  # it has no real topic to go to: skipped, as RocketMQ does
        record = parked.changed(
            topic=topic,
            queue_id=parse_int(property_map.get(p.REAL_QID, "")),
            prepared_transaction_offset=0,
            properties=parked.properties,  # DELAY, REAL_TOPIC and REAL_QID stay in the stored properties
            magic=None,
        )
        result = self._putter.put(record, delay_level=0)
        if result.status != put_result.PUT_OK:
            return False
        # The message leaves the schedule topic and enters its real topic: both are counted.
        self._stats.delivered_late(f"{names.SCHEDULE_TOPIC}@{queue_id}@{SCHEDULE_GROUP}", 1, result.size)
        self._stats.put(topic, record.queue_id, 1, result.size)
        self._note(
            "message.delivered_late",
            topic=topic,
            queue_id=record.queue_id,
            level=queue_id + 1,
            msg_id=property_map.get(p.UNIQ_KEY),
            physical_offset=result.physical_offset,
            queue_offset=result.queue_offset,
        )
        return True

    def __repr__(self) -> str:
        return f"<Schedule: {len(self._deadlines)} of {len(self._delays_ms)} levels wait for a message>"
