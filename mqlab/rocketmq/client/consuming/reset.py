"""Moving a running consumer to other offsets, the client's way: stop, let running listeners end, set, go on.

Mirrors: MQClientInstance.resetOffset, DefaultMQPushConsumerImpl.resetOffsetByTimeStamp. The broker's own way is an
answer PULL_OFFSET_MOVED to the next pull.

    suspend ─▶ drop and clear the topic's queues ─▶ 10 s ─▶ set offsets (lower too), commit, remove ─▶ resume: rebalance

Listeners that run longer than ten seconds finish after the reset; their results are discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mqlab.rocketmq.client.consuming.first_offset import search_offset
from mqlab.rocketmq.client.consuming.member_state import PushState
from mqlab.rocketmq.client.consuming.process_queue import move
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire.message import MessageQueue

WAIT_FOR_LISTENERS_MS = 10_000


class OffsetReset:
    """Resets the offsets of one push consumer with three functions of it.

    ``suspend`` stops the pulls, ``remove_queue`` drops a queue and commits its offset, ``resume`` rebalances.
    """

    def __init__(
        self,
        state: PushState,
        suspend: Callable[[], None],
        remove_queue: Callable[[MessageQueue], Promise[bool]],
        resume: Callable[[], Promise[None]],
    ) -> None:
        self._state = state
        self._suspend = suspend
        self._remove_queue = remove_queue
        self._resume = resume

    @flow
    def to_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> Flow[None]:
        """Set the commit offsets of a topic's owned queues; takes ten seconds."""
        state, ports = self._state, self._state.ports
        # 1. Nothing new is pulled, and what is cached is gone. Running listeners have ten seconds to end.
        self._suspend()
        for queue, process_queue in state.process_queues.items():
            if queue.topic == topic and queue in offsets:
                move(process_queue, "drop")
                process_queue.clear()
        waited: Promise[None] = Promise()
        ports.clock.call_later(WAIT_FOR_LISTENERS_MS, lambda: waited.resolve(None), "consumer.reset_wait")
        yield waited
        # 2. Commit the new offsets by letting the queues go; the rebalance after resume adds them there.
        for queue in list(state.process_queues):
            if queue.topic == topic and queue in offsets:
                state.offset_store.update_offset(queue, offsets[queue])
                yield self._remove_queue(queue)
        ports.note(
            "consumer.reset",
            client=ports.node,
            group=state.group,
            topic=topic,
            offsets={str(queue): offset for queue, offset in offsets.items()},
        )
        yield self._resume()

    @flow
    def to_timestamp(self, timestamp_ms: int) -> Flow[None]:
        """Move every subscribed topic to a time, the retry topic included; ten seconds each."""
        for topic in list(self._state.subscriptions):
            offsets: dict[MessageQueue, int] = {}
            for queue in self._state.topic_subscribe_info.get(topic, []):
                offsets[queue] = yield search_offset(self._state.cluster, queue, timestamp_ms)
            if offsets:
                yield self.to_offsets(topic, offsets)
