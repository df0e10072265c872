"""What popping groups have out now, and until when: from check points and acks, wherever these are.

RocketMQ shows nothing like it: its consumerProgress says lag 0 as soon as everything was handed out.

    a check point in memory (merge buffer), in the timer topic, or in the revive topic       minus the acks of it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from mqlab.errors import CorruptionError
from mqlab.lab.runtime.journal import StepRecord
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.names import REVIVE_LOG_PREFIX, TIMER_TOPIC
from mqlab.rocketmq.wire.pop import ACK_TAG, BATCH_ACK_TAG, CK_TAG, Ack, CheckPoint, offsets_of, real_topic
from mqlab.rocketmq.wire.record import Record


@dataclass(frozen=True, slots=True)
class Lease:
    """One message that was popped and not acknowledged; ``until_ms`` is when it becomes invisible no longer."""

    group: str
    message_queue: MessageQueue
    queue_offset: int
    popped_ms: int
    until_ms: int
    left_ms: int


def leases_of(broker_name: str, broker: Any, group: str) -> list[Lease]:
    """The leases of a group at one broker that are not over, by queue and offset."""
    now_ms = broker.ports.clock.now_ms()
    points: dict[str, CheckPoint] = {}
    acked: dict[str, int] = {}
    for pop in broker.pop.buffer.pops():
        points[pop.check_point.merge_key] = pop.check_point
        acked[pop.check_point.merge_key] = pop.acked
    acks: list[Ack] = []
    for record in _records(broker):
        tag = record.property_map.get(p.TAGS)
        try:
            if tag == CK_TAG:
                point = CheckPoint.decode(record.body)
                points[point.merge_key] = point
            elif tag in (ACK_TAG, BATCH_ACK_TAG):
                acks.append(Ack.decode(record.body))
        except CorruptionError:
            continue  # the broker notes it when it reads the message
    for ack in acks:
        known = points.get(ack.merge_key)
        for offset in ack.acknowledged if known is not None else ():
            index = known.index_of(offset) if known is not None else -1
            if index >= 0:
                acked[ack.merge_key] = acked.get(ack.merge_key, 0) | 1 << index
    rows = [
        Lease(
            group,
            MessageQueue(point.topic, broker_name, point.queue_id),
            point.offset_of(index),
            point.pop_time,
            point.revive_time,
            point.revive_time - now_ms,
        )
        for key, point in points.items()
        if point.group == group and point.revive_time > now_ms
        for index in range(point.count)
        if not acked.get(key, 0) >> index & 1
    ]
    return sorted(rows, key=lambda row: (row.message_queue, row.queue_offset, row.until_ms))


def _records(broker: Any) -> Iterator[Record]:
    """Every message of the timer topic and of the revive topic."""
    store = broker.store
    for topic, queue_ids in store.topics().items():
        if topic != TIMER_TOPIC and not topic.startswith(REVIVE_LOG_PREFIX):
            continue
        for queue_id in queue_ids:
            for offset in range(store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)):
                unit = store.consume_queue_unit(topic, queue_id, offset)
                record = store.message_at(unit.physical_offset) if unit is not None else None
                if record is not None:
                    yield record


Spot = tuple[str, MessageQueue, int, int]
"""Group, queue, offset, and the moment of the pop: one lease of one message"""


class LeasedRow(Protocol):
    """One delivery of a message that may be on lease."""

    group: str
    message_queue: MessageQueue
    queue_offset: int
    leased_until_ms: int | None
    acked_ms: int | None
    revived_ms: int | None


class LeasesOfRows:
    """Follows pops, acks, changes and revivals for the deliveries of a Lab: each row knows its lease."""

    def __init__(self) -> None:
        # The newest lease of each message, and until when it is.
        self.newest: dict[tuple[str, MessageQueue, int], tuple[Spot, int]] = {}
        self._rows: dict[Spot, LeasedRow] = {}

    def listeners(self) -> dict[str, Callable[[StepRecord, dict[str, Any]], None]]:
        """Kind of change -> what notes it here."""
        return {
            "message.popped": self._popped,
            "message.acked": self._acked,
            "message.invisible_time_changed": self._changed,
            "message.revived": self._revived,
        }

    def add(self, row: LeasedRow) -> None:
        """A delivery begins; it has the newest lease of its message, if there is one."""
        lease = self.newest.get((row.group, row.message_queue, row.queue_offset))
        if lease is not None:
            self._rows[lease[0]] = row
            row.leased_until_ms = lease[1]

    def _popped(self, record: StepRecord, values: dict[str, Any]) -> None:
        group, pop_time = values["group"], values["pop_time"]
        for (kind, queue_id), offsets in offsets_of(values["offsets"]).items():
            queue = MessageQueue(real_topic(values["topic"], group, kind), record.node, queue_id)
            for offset in offsets:
                spot = group, queue, offset, pop_time
                self.newest[group, queue, offset] = spot, pop_time + values["invisible_time"]

    def _row(self, record: StepRecord, values: dict[str, Any]) -> LeasedRow | None:
        queue = MessageQueue(values["topic"], record.node, values["queue_id"])
        return self._rows.get((values["group"], queue, values["queue_offset"], values["pop_time"]))

    def _acked(self, record: StepRecord, values: dict[str, Any]) -> None:
        row = self._row(record, values)
        if row is not None and not values["late"]:
            row.acked_ms = record.now_ms

    def _changed(self, record: StepRecord, values: dict[str, Any]) -> None:
        row = self._row(record, values)
        if row is not None:
            row.leased_until_ms = values["visible_ms"]
            # From now on acks name the moment of the change.
            self._rows[row.group, row.message_queue, row.queue_offset, values["new_pop_time"]] = row

    def _revived(self, record: StepRecord, values: dict[str, Any]) -> None:
        queue = MessageQueue(values["popped_from"], record.node, values["popped_queue"])
        row = self._rows.get((values["group"], queue, values["popped_offset"], values["pop_time"]))
        if row is not None:
            row.revived_ms = record.now_ms
