"""Messages that no listener of a group got, and why: read from stores and offsets on demand.

RocketMQ has nothing like it; an operator works it out from offsets and subscriptions.

    offset passed, and a subscription of the group excludes it     FILTERED_BY_BROKER
    in a member's cache                                            (no row: it will be delivered)
    everything else without a delivery                             NOT_PULLED: not yet, or skipped

Left out: brokers that are down with all their slaves; deleted messages; messages that a group had read before the Lab
began.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mqlab.lab.world.cluster import readable_brokers
from mqlab.lab.world.deliveries import Delivery
from mqlab.lab.world.state import LabState
from mqlab.rocketmq.wire import names, property_names
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

FILTERED_BY_BROKER = "FILTERED_BY_BROKER"
NOT_PULLED = "NOT_PULLED"


def absences(state: LabState, group: str) -> list[Delivery]:
    """One row per stored message of the group's topics that no listener got, sorted by queue; times are None."""
    delivered = {(row.message_queue, row.queue_offset) for row in state.delivery_book.of(group)}
    members = [h.node for h in state.handles.values() if h.role == "consumer" and h.is_up and h.node.group == group]
    rows: list[Delivery] = []
    for name, broker in readable_brokers(state):
        rows += _of_broker(state, name, broker, group, delivered, members)
    return sorted(rows, key=lambda row: (row.message_queue, row.queue_offset))


def _of_broker(
    state: LabState, name: str, broker: Any, group: str, delivered: set[tuple[MessageQueue, int]], members: list[Any]
) -> Iterator[Delivery]:
    for topic, wishes in state.delivery_book.wishes.get(group, {}).items():
        for queue_id in broker.store.topics().get(topic, ()):
            queue = MessageQueue(topic, name, queue_id)
            committed = broker.offset_table.query(group, topic, queue_id)
            passed = max(committed, broker.offset_table.query_pull(group, topic, queue_id))
            store = broker.store
            first_offset, end_offset = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
            for queue_offset in range(first_offset, end_offset):
                if (queue, queue_offset) in delivered or _is_cached(members, queue, queue_offset):
                    continue
                message = _message(broker, queue, queue_offset)
                # A message of an earlier life of the store may have been delivered then: it is not reported.
                if message is not None and not _of_an_earlier_life(state, message, committed):
                    filtered = queue_offset < passed and any(wish.wants(message.properties) is False for wish in wishes)
                    yield _row(group, message, queue, FILTERED_BY_BROKER if filtered else NOT_PULLED)


def _of_an_earlier_life(state: LabState, message: MessageExt, committed: int) -> bool:
    """Whether a message was stored before this Lab began and is committed: its delivery is not known here."""
    return message.store_timestamp < state.began_ms and message.queue_offset < committed


def _is_cached(members: list[Any], queue: MessageQueue, queue_offset: int) -> bool:
    for member in members:
        process_queue = getattr(member, "process_queues", {}).get(queue)
        if process_queue is not None and queue_offset in getattr(process_queue, "msg_tree_map", ()):
            return True
    return False


def _message(broker: Any, queue: MessageQueue, queue_offset: int) -> MessageExt | None:
    unit = broker.store.consume_queue_unit(queue.topic, queue.queue_id, queue_offset)
    record = broker.store.message_at(unit.physical_offset) if unit is not None else None
    return MessageExt.from_record(record, queue.broker_name) if record is not None else None


def _row(group: str, message: MessageExt, queue: MessageQueue, status: str) -> Delivery:
    is_retry = queue.topic.startswith(names.RETRY_PREFIX)
    topic = message.properties.get(property_names.RETRY_TOPIC, queue.topic) if is_retry else queue.topic
    return Delivery(
        group, message.msg_id, topic, queue, message.queue_offset, "", None, None, status, message.reconsume_times
    )
