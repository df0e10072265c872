"""The progress of a group, queue by queue, read from the tables of brokers and consumers.

Mirrors: consumerProgress of mqadmin (ConsumeStats, OffsetWrapper), with the same formulas.

    topic  broker  queue  broker_offset  consumer_offset  pull_offset  lag  inflight  client  last_timestamp

Left out: the broker's metrics, which count differently (ConsumerLagCalculator).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mqlab.lab.world.cluster import readable_brokers
from mqlab.lab.world.handles import NodeHandle
from mqlab.lab.world.state import LabState
from mqlab.rocketmq.wire.message import MessageQueue


@dataclass(frozen=True, slots=True)
class QueueOffsets:
    """One queue of a group. Offsets are next-to-read.

    ``consumer_offset`` is -1 if nothing is committed; ``lag`` then counts from 0.
    """

    topic: str
    broker: str
    queue_id: int
    broker_offset: int
    consumer_offset: int
    pull_offset: int
    lag: int
    inflight: int
    client: str
    last_timestamp: int


def progress_rows(state: LabState, group: str) -> list[QueueOffsets]:
    """The rows, sorted by topic, broker and queue; a broker that is down is read from a slave, or left out."""
    rows: list[QueueOffsets] = []
    consumers = [handle for handle in state.handles.values() if handle.role == "consumer" and handle.is_up]
    for name, broker in readable_brokers(state):
        for topic in _topics_of(broker, group):
            rows.extend(_queues_of(broker, name, topic, group, consumers))
    return sorted(rows, key=lambda row: (row.topic, row.broker, row.queue_id))


def _topics_of(broker: Any, group: str) -> list[str]:
    topics = set(broker.offset_table.topics_of(group))
    if group in broker.consumers:
        topics.update(broker.consumers[group].subscriptions)
    return sorted(topic for topic in topics if topic in broker.topics)


def _queues_of(broker: Any, name: str, topic: str, group: str, consumers: list[NodeHandle]) -> list[QueueOffsets]:
    committed = broker.offset_table.queues_of(group, topic) or {}
    rows = []
    for queue_id in range(broker.topics[topic].read_queue_nums):
        broker_offset = broker.store.max_offset(topic, queue_id)
        consumer_offset = committed.get(queue_id, -1)
        confirmed = max(consumer_offset, 0)
        pull_offset = max(confirmed, broker.offset_table.query_pull(group, topic, queue_id))
        last = broker.store.store_time_at(topic, queue_id, confirmed - 1) if confirmed else None
        rows.append(
            QueueOffsets(
                topic=topic,
                broker=name,
                queue_id=queue_id,
                broker_offset=broker_offset,
                consumer_offset=consumer_offset,
                pull_offset=pull_offset,
                lag=broker_offset - confirmed,
                inflight=pull_offset - confirmed,
                client=_owner(MessageQueue(topic, name, queue_id), group, consumers),
                last_timestamp=last or 0,
            )
        )
    return rows


def _owner(queue: MessageQueue, group: str, consumers: list[NodeHandle]) -> str:
    owners = [c.name for c in consumers if c.node.group == group and queue in c.node.process_queues]
    return ", ".join(owners)
