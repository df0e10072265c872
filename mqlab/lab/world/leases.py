"""What popping groups have out now, and until when: from check points and acks, wherever these are.

RocketMQ shows nothing like it: its consumerProgress says lag 0 as soon as everything was handed out.

    a check point in memory (merge buffer), in the timer topic, or in the revive topic       minus the acks of it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.names import REVIVE_LOG_PREFIX, TIMER_TOPIC
from mqlab.rocketmq.wire.pop import ACK_TAG, BATCH_ACK_TAG, CK_TAG, Ack, CheckPoint
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
