"""A consumer whose program asks for messages itself, one queue and one pull at a time, and keeps its own offsets.

Mirrors: DefaultMQPullConsumer (deprecated in RocketMQ, and still the plainest way to see a pull).

    for queue in puller.fetch_subscribe_message_queues("orders"):
        result = puller.pull(queue, "paid", offset, max_nums=32)
        FOUND            result.msg_found_list, go on at result.next_begin_offset
        NO_MATCHED_MSG   go on at next_begin_offset             NO_NEW_MSG   wait, or pull_block_if_not_found
        OFFSET_ILLEGAL   go on at next_begin_offset, which the broker corrected

Offsets given to update_consume_offset stay in memory; the 5 s timer sends those of queues this member owns, and it owns
queues only of registered topics. PullConsumerScheduleService (pull_schedule) calls back for each owned queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mqlab.durations import milliseconds
from mqlab.errors import ClientError
from mqlab.rocketmq.client import statuses
from mqlab.rocketmq.client.consuming.first_offset import max_offset, min_offset, search_offset
from mqlab.rocketmq.client.consuming.group_member import GroupMember, QueueListener, client_for
from mqlab.rocketmq.client.consuming.member_state import MemberState
from mqlab.rocketmq.client.consuming.offset_store import NOT_FOUND, RemoteOffsetStore
from mqlab.rocketmq.client.consuming.pull_api import PullResult, note_polled, note_pulled
from mqlab.rocketmq.client.consuming.send_back import SendBack
from mqlab.rocketmq.client.consuming.subscriptions import SQL92, subscription, tag_subscription
from mqlab.rocketmq.client.instance.background import call_back
from mqlab.rocketmq.client.instance.broker_calls import PullCall
from mqlab.rocketmq.client.instance.mq_client import MQClient
from mqlab.rocketmq.client.instance.pending import Pending, begin
from mqlab.rocketmq.client.instance.service_state import ServiceState
from mqlab.rocketmq.client.settings import PullConsumerConfig, make_config
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire import sys_flag
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue


class PullConsumer(GroupMember[MemberState[PullConsumerConfig]]):
    """Settings are those of DefaultMQPullConsumer in snake_case (see PullConsumerConfig)."""

    kind = "PullConsumer"

    def __init__(
        self, ports: Ports, group: str, name_servers: Sequence[str], *, client: MQClient | None = None, **settings: Any
    ) -> None:
        config = make_config(PullConsumerConfig, settings, "pull consumer")
        client = client_for(ports, group, name_servers, config, client, stream=True)
        super().__init__(client, MemberState(client.cluster, client.statistics, group, config, ServiceState(self.kind)))
        self._send_back = SendBack(client.cluster, client.inner_sender, group)
        self._queue_listener: QueueListener | None = None

    def register_topics(self, *topics: str) -> None:
        """Take part in the group's rebalance for these topics (before start)."""
        for topic in topics:
            self.state.subscriptions[topic] = tag_subscription(topic, "*", 0)

    def register_message_queue_listener(self, topic: str, listener: QueueListener | None) -> None:
        """Register a topic; ``listener(topic, all, mine)`` is called when its queues change (one for all, the last)."""
        self.register_topics(topic)
        self._queue_listener = listener or self._queue_listener

    def compute_pull_from(self, queue: MessageQueue) -> Promise[int]:
        """Always 0: the program decides where it pulls."""
        return Promise.of(0)

    def message_queue_changed(self, topic: str, queues: list[MessageQueue], mine: list[MessageQueue]) -> Promise[None]:
        """The allocation of a topic changed: call the program's listener."""
        if self._queue_listener is not None:
            call_back(self.ports, "message queue listener", partial(self._queue_listener, topic, queues, mine))
        return Promise.of(None)

    def start(self) -> None:
        """Join the group. ClientError when started before."""
        self.client.call(self.start_async)

    @flow
    def start_async(self) -> Flow[None]:
        """The same, as a Promise."""
        self.service.must_be_new()
        self.offset_store.load()
        yield self.join()

    def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic. ClientError when the name server does not know it."""
        self.service.must_run()
        return self.client.call(lambda: self._fetch_queues(topic))

    @flow
    def _fetch_queues(self, topic: str) -> Flow[list[MessageQueue]]:
        if topic not in self.client.cluster.routes.topic_route_table:
            yield self.client.cluster.update_route(topic)
        route = self.client.cluster.routes.topic_route_table.get(topic)
        queues = [] if route is None else route.readable_queues(topic)
        if not queues:
            raise ClientError(f"Can not find Message Queue for this topic, {topic}", hint="does the topic exist?")
        return queues

    def pull(
        self,
        queue: MessageQueue,
        sub_expression: str | None,
        offset: int,
        max_nums: int = 32,
        *,
        sql: str | None = None,
        timeout: str | int | None = None,
    ) -> PullResult:
        """Ask once; the broker answers at once, messages or not."""
        return self.client.call(lambda: self._pull(queue, sub_expression, sql, offset, max_nums, timeout, block=False))

    def pull_block_if_not_found(
        self,
        queue: MessageQueue,
        sub_expression: str | None,
        offset: int,
        max_nums: int = 32,
        *,
        sql: str | None = None,
    ) -> PullResult:
        """Ask; with nothing new the broker holds the request for up to 20 s."""
        return self.client.call(lambda: self._pull(queue, sub_expression, sql, offset, max_nums, None, block=True))

    def pull_async(
        self,
        queue: MessageQueue,
        sub_expression: str | None,
        offset: int,
        max_nums: int = 32,
        *,
        sql: str | None = None,
    ) -> Pending[PullResult]:
        """As pull, without waiting."""
        return begin(
            self.ports.workers, lambda: self._pull(queue, sub_expression, sql, offset, max_nums, None, block=False)
        )

    @flow
    def _pull(
        self,
        queue: MessageQueue,
        sub_expression: str | None,
        sql: str | None,
        offset: int,
        max_nums: int,
        timeout: str | int | None,
        *,
        block: bool,
    ) -> Flow[PullResult]:
        self.service.must_run()
        if not isinstance(queue, MessageQueue):
            raise ClientError(f"mq is not a MessageQueue: {queue!r}", hint='MessageQueue("orders", "broker-a", 0)')
        if offset < 0:
            raise ClientError(f"offset < 0: {offset}")
        if max_nums <= 0:
            raise ClientError(f"maxNums <= 0: {max_nums}")
        data = subscription(queue.topic, sub_expression, sql, 0 if sql is None else self.ports.clock.now_ms())
        timeout_ms = self.config.consumer_pull_timeout_millis if timeout is None else milliseconds(timeout)
        # 1. The request. It commits nothing: the program stores offsets itself.
        call = PullCall(
            group=self.group,
            queue=queue,
            queue_offset=offset,
            max_nums=max_nums,
            sys_flag=sys_flag.pull_sys_flag(suspend=block, subscription=True),
            commit_offset=0,
            suspend_ms=self.config.broker_suspend_max_time_millis,
            sub_version=data.sub_version,
            subscription=data.sub_string,
            expression_type=SQL92 if sql is not None else "TAG",
        )
        # 2. A held request is answered late on purpose, so it has a longer time-out.
        waits_ms = self.config.consumer_timeout_millis_when_suspend if block else timeout_ms
        answer = yield from self.pull_api.pull(call, waits_ms)
        result = self.pull_api.result(answer, queue, data)
        # 3. The journal: what was pulled, and what the program was given.
        if result.pull_status in (statuses.FOUND, statuses.NO_MATCHED_MSG):
            note_pulled(self.ports, self.group, queue, offset, result)
        if result.msg_found_list:
            note_polled(self.ports, self.group, queue, result.msg_found_list)
        return result

    def update_consume_offset(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset of this queue in memory."""
        self.on_node(lambda: self.offset_store.update_offset(queue, offset))

    def update_consume_offset_to_broker(self, queue: MessageQueue, offset: int, *, oneway: bool = False) -> None:
        """Store an offset at the broker now."""
        store = self.offset_store
        if isinstance(store, RemoteOffsetStore):
            self.client.call(lambda: store.commit_offset(queue, offset, oneway=oneway))

    def fetch_consume_offset(self, queue: MessageQueue, from_store: bool = False) -> int:
        """The offset of this queue in memory, else (or with ``from_store``) in the store; -1 none, -2 not readable."""
        offset = self.offset_store.read_memory(queue)
        if offset != NOT_FOUND and not from_store:
            return offset
        return self.client.call(lambda: self.offset_store.read_store(queue))

    def max_offset(self, queue: MessageQueue) -> int:
        """The queue offset the next message will get."""
        return self.client.call(lambda: max_offset(self.state.cluster, queue))

    def min_offset(self, queue: MessageQueue) -> int:
        """The smallest queue offset still stored."""
        return self.client.call(lambda: min_offset(self.state.cluster, queue))

    def search_offset(self, queue: MessageQueue, timestamp_ms: int, boundary: str = "LOWER") -> int:
        """The first queue offset stored at or after a time."""
        return self.client.call(lambda: search_offset(self.state.cluster, queue, timestamp_ms, boundary))

    def send_message_back(self, message: MessageExt, delay_level: int = 0) -> bool:
        """Send a message back, to be delivered again later, as a push consumer does; True when it is stored."""
        queue = MessageQueue(message.topic, message.broker_name, message.queue_id)
        limit = self.config.max_reconsume_times
        return self.client.call(lambda: self._send_back.send(message, delay_level, queue, max_reconsume_times=limit))
