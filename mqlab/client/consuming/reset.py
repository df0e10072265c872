"""Moving a running consumer to other offsets, the client's way: stop, let running listeners end, set, go on.

Mirrors: MQClientInstance.resetOffset, DefaultMQPushConsumerImpl.resetOffsetByTimeStamp. Lab 04 compares it with the
broker's way (an answer 21 to the next pull).

    suspend ─▶ drop and clear the topic's queues ─▶ 10 s ─▶ set offsets (lower too), commit, forget ─▶ resume: rebalance

Listeners that run longer than ten seconds finish after the reset; their results are thrown away.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mqlab.client.consuming.first_offset import search_offset
from mqlab.promises import Flow, Promise, flow
from mqlab.wire.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.client.push_consumer import PushConsumer

WAIT_FOR_LISTENERS_MS = 10_000


@flow
def reset_offsets(consumer: PushConsumer, topic: str, offsets: Mapping[MessageQueue, int]) -> Flow[None]:
    """Set the commit offsets of a topic's owned queues; takes ten seconds."""
    clock = consumer.ports.clock
    consumer.suspend_now()
    for queue, process_queue in consumer.process_queues.items():
        if queue.topic == topic and queue in offsets:
            process_queue.dropped = True
            process_queue.clear()
    waited: Promise[None] = Promise()
    clock.call_later(WAIT_FOR_LISTENERS_MS, lambda: waited.resolve(None), "consumer.reset_wait")
    yield waited
    for queue in list(consumer.process_queues):
        if queue.topic == topic and queue in offsets:
            consumer.offset_store.update_offset(queue, offsets[queue])
            yield consumer.rebalance.remove_process_queue(queue)
    consumer.ports.note(
        "consumer.reset", client=consumer.ports.node, group=consumer.group, topic=topic,
        offsets={str(queue): offset for queue, offset in offsets.items()},
    )  # fmt: skip
    yield consumer.resume_async()


@flow
def reset_offset_by_timestamp(consumer: PushConsumer, timestamp_ms: int) -> Flow[None]:
    """Move every subscribed topic to a time, the retry topic included; ten seconds each."""
    for topic in consumer.subscribed_topics():
        queues = consumer.rebalance.topic_subscribe_info.get(topic, [])
        offsets: dict[MessageQueue, int] = {}
        for queue in queues:
            offsets[queue] = yield search_offset(consumer.client, queue, timestamp_ms)
        if offsets:
            yield reset_offsets(consumer, topic, offsets)
