"""Delayed messages: parked in one queue a level, moved to their real topic when their time has come.

Mirrors: ScheduleMessageService; file config/delayOffset.json; opened by the lab on delayed messages and retries.

    SCHEDULE_TOPIC_XXXX queue 2 (level 3, 10 s)      entry 41: due 12:00:20.000   entry 42: due 12:00:21.500
    delay_offset_table  {3: 41}                      the next entry to look at

    one deadline a level: the due time of the first entry, rounded up to the 100 ms grid on which RocketMQ looks
    a queue's entries all wait equally long, so the first stored is the first due

Left out: asynchronous delivery (enableScheduleAsyncDeliver, off by default).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mqlab.broker.putting import Putter
from mqlab.broker.tables.stats import BrokerStats
from mqlab.errors import CorruptionError
from mqlab.ports import Clock, Deadline, next_on_grid
from mqlab.store import put_result
from mqlab.wire import java_json, names
from mqlab.wire import property_names as p
from mqlab.wire.bodies import DataVersion
from mqlab.wire.record import Record

if TYPE_CHECKING:
    from mqlab.store.message_store import MessageStore

FIRST_RUN_MS = 1_000
POLL_MS = 100
SCHEDULE_GROUP = "SCHEDULE_CONSUMER"


class DelayOffsetTable(Mapping[int, int]):
    """Delay level -> the next queue offset to look at in that level's queue. Part of ScheduleMessageService."""

    def __init__(self, now_ms: Callable[[], int], *, version_step: int, on_changed: Callable[[], None]) -> None:
        self._now_ms = now_ms
        self._version_step = version_step
        self._on_changed = on_changed
        self._updates = 0
        self._offsets: dict[int, int] = {}
        self.data_version = DataVersion.at(now_ms())

    def update(self, level: int, queue_offset: int) -> None:
        """Remember how far a level has come."""
        self._updates += 1
        if self._updates % self._version_step == 0:
            self.data_version = self.data_version.next(self._now_ms())
        if self._offsets.get(level) != queue_offset:
            self._offsets[level] = queue_offset
            self._on_changed()

    def correct(self, level: int, queue_offset: int) -> None:
        """Set a level to an offset that its queue has; the data version does not count that."""
        self._offsets[level] = queue_offset
        self._on_changed()

    def to_value(self) -> dict[str, Any]:
        """What the file and request 45 hold."""
        return {"dataVersion": self.data_version.to_value(), "offsetTable": dict(self._offsets)}

    def to_json(self) -> bytes:
        """The body of request 45's answer."""
        return java_json.to_json(self.to_value())

    def encode(self) -> str:
        """The text of delayOffset.json."""
        return java_json.pretty(self.to_value())

    def decode(self, text: str) -> None:
        """Take over a file's offsets; levels that it does not name stay. Raises CorruptionError."""
        try:
            value = java_json.loads(text)
            self._offsets = self._offsets | {int(level): int(at) for level, at in value["offsetTable"].items()}
            version = value.get("dataVersion")
            self.data_version = DataVersion.from_value(version) if version else self.data_version
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptionError(
                "delay offsets cannot be read", expected='{"offsetTable":{1:10}}', found=error
            ) from error

    def take_over(self, text: str) -> bool:
        """A slave's table takes its master's offsets (the answer to request 45); False when it has them already.

        They may be ahead of the slave's own queues, which follow later: the next start corrects what still is.
        Raises CorruptionError. Mirrors SlaveSynchronize.syncDelayOffset and loadWhenSyncDelayOffset.
        """
        before = self._offsets
        self.decode(text)
        if self._offsets != before:
            self._on_changed()
        return self._offsets != before

    def __getitem__(self, level: int) -> int:
        return self._offsets[level]

    def __iter__(self) -> Iterator[int]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def __repr__(self) -> str:
        return f"<DelayOffsetTable {self._offsets}>"


class Schedule:
    """Delivers what waits in the schedule topic. ``delays_ms[level - 1]`` is a level's delay.

    Mirrors ScheduleMessageService.
    """

    def __init__(
        self,
        store: MessageStore,
        putter: Putter,
        clock: Clock,
        delays_ms: tuple[int, ...],
        offsets: DelayOffsetTable,
        stats: BrokerStats,
        note: Callable[..., None],
    ) -> None:
        self._store = store
        self._putter = putter
        self._clock = clock
        self._delays_ms = delays_ms
        self._offsets = offsets
        self._stats = stats
        self._note = note
        self._first_run_ms: int | None = None
        self._deadlines: dict[int, Deadline] = {}

    def correct_offsets(self) -> None:
        """Bring the levels' offsets back into their queues; to be called when the store is loaded.

        An offset ahead of its queue would pass over the messages still to come. Mirrors correctDelayOffset.
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
        """Look at every level's queue for the first time after 1 s."""
        self._first_run_ms = self._clock.now_ms() + FIRST_RUN_MS
        for level in range(1, len(self._delays_ms) + 1):
            if self._store.max_offset(names.SCHEDULE_TOPIC, level - 1) > self._offsets.get(level, 0):
                self._arm(level, self._first_run_ms)

    def stop(self) -> None:
        """Deliver nothing more."""
        self._first_run_ms = None
        for deadline in self._deadlines.values():
            deadline.cancel()
        self._deadlines.clear()

    def arrived(self, queue_id: int, deliver_ms: int) -> None:
        """A delayed message can be read now; if its level waits for nothing yet, it waits for this one."""
        level = queue_id + 1
        if level <= len(self._delays_ms) and level not in self._deadlines:
            self._offsets.update(level, self._offsets.get(level, 0))
            self._arm(level, deliver_ms)

    def _arm(self, level: int, due_ms: int) -> None:
        if self._first_run_ms is None:
            return
        due_ms = next_on_grid(max(due_ms, self._first_run_ms), POLL_MS, self._first_run_ms)
        self._deadlines[level] = self._clock.call_at(due_ms, lambda: self._deliver_due(level), "schedule.deliver")

    def _deliver_due(self, level: int) -> None:
        del self._deadlines[level]
        now_ms = self._clock.now_ms()
        queue_id, delay_ms = level - 1, self._delays_ms[level - 1]
        queue_offset = self._first_readable(queue_id, self._offsets.get(level, 0))
        while (unit := self._store.consume_queue_unit(names.SCHEDULE_TOPIC, queue_id, queue_offset)) is not None:
            deliver_ms = unit.tags_code
            if deliver_ms > now_ms + delay_ms:  # the clock was set back, or the level is shorter now
                deliver_ms = now_ms
            if deliver_ms > now_ms:
                self._offsets.update(level, queue_offset)
                self._arm(level, deliver_ms)
                return
            record = self._store.message_at(unit.physical_offset)
            if record is not None and not self._deliver(record, queue_id):
                self._arm(level, now_ms + POLL_MS)
                return
            queue_offset += 1
            if record is not None:
                self._offsets.update(level, queue_offset)

    def _first_readable(self, queue_id: int, queue_offset: int) -> int:
        """The offset, held within what the queue has."""
        least = self._store.min_offset(names.SCHEDULE_TOPIC, queue_id)
        most = self._store.max_offset(names.SCHEDULE_TOPIC, queue_id)
        return min(max(queue_offset, least), most)

    def _deliver(self, parked: Record, queue_id: int) -> bool:
        """Store the message in its real queue; False when the store refused it. Mirrors messageTimeUp."""
        named = parked.property_map
        topic = named.get(p.REAL_TOPIC, "")
        if not topic or topic == names.HALF_TOPIC:
            return True  # nothing that can be delivered: skipped, as RocketMQ does
        record = parked.changed(
            topic=topic,
            queue_id=int(named.get(p.REAL_QID) or 0),
            prepared_transaction_offset=0,
            properties=parked.properties,  # DELAY, REAL_TOPIC and REAL_QID stay in the stored text
            magic=None,
        )
        result = self._putter.put(record)
        if result.status != put_result.PUT_OK:
            return False
        self._stats.delivered_late(f"{names.SCHEDULE_TOPIC}@{queue_id}@{SCHEDULE_GROUP}", 1, result.size)
        self._stats.put(topic, record.queue_id, 1, result.size)
        self._note(
            "message.delivered_late",
            topic=topic,
            queue_id=record.queue_id,
            level=queue_id + 1,
            msg_id=named.get(p.UNIQ_KEY),
            physical_offset=result.physical_offset,
            queue_offset=result.queue_offset,
        )
        return True

    def __repr__(self) -> str:
        return f"<Schedule: {len(self._deadlines)} of {len(self._delays_ms)} levels wait for a message>"
