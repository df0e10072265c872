"""A consumer whose program receives messages on lease, and acknowledges each of them itself.

Mirrors: SimpleConsumer of the 5.x clients, here over remoting: RocketMQ's own asks its proxy.

    for message in consumer.receive(16, "30s"):      waits up to await_duration for the first one
        consumer.ack(message)                         done
        consumer.change_invisible_duration(message, "2m")   needs longer, or is to come again in two minutes

What is neither acknowledged nor given more time comes again, with one more in ``reconsume_times``. No queue is its own.

Left out: orderly pop, which the proxy asks for (mqlab.cluster.grpc).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mqlab.durations import milliseconds
from mqlab.errors import ClientError
from mqlab.rocketmq.client.consuming.group_member import GroupMember, client_for
from mqlab.rocketmq.client.consuming.member_state import MemberState
from mqlab.rocketmq.client.consuming.pop_loop import INIT_MAX, INIT_MIN
from mqlab.rocketmq.client.consuming.popped import PopApi, PopCall, PopResult
from mqlab.rocketmq.client.consuming.pull_api import note_polled
from mqlab.rocketmq.client.consuming.subscriptions import subscription
from mqlab.rocketmq.client.instance.background import background
from mqlab.rocketmq.client.instance.mq_client import MQClient
from mqlab.rocketmq.client.instance.pending import Pending, begin
from mqlab.rocketmq.client.instance.service_state import ServiceState
from mqlab.rocketmq.client.settings import CONSUME_FROM_FIRST_OFFSET, SimpleConsumerConfig, make_config
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

MOST_MESSAGES = 32


class SimpleConsumer(GroupMember[MemberState[SimpleConsumerConfig]]):
    """A member of ``group``; ``await_duration``: how long a receive waits for messages (see SimpleConsumerConfig)."""

    kind = "SimpleConsumer"
    consume_type = "CONSUME_POP"

    def __init__(
        self, ports: Ports, group: str, name_servers: Sequence[str], *, client: MQClient | None = None, **settings: Any
    ) -> None:
        config = make_config(SimpleConsumerConfig, settings, "simple consumer")
        client = client_for(ports, group, name_servers, config, client)
        super().__init__(client, MemberState(client.cluster, client.statistics, group, config, ServiceState(self.kind)))
        self.pop_api = PopApi(client.cluster, group)
        self._turn = 0

    def subscribe(self, topic: str, expression: str | None = "*", *, sql: str | None = None) -> None:
        """Receive a topic's messages: all, those with some tags, or those an SQL92 text selects."""
        self.state.subscriptions[topic] = subscription(topic, expression, sql, self.ports.clock.now_ms())
        if self.is_running:
            self.client.call(self.client.membership.heartbeat_all)

    def unsubscribe(self, topic: str) -> None:
        """Receive a topic's messages no more."""
        self.state.subscriptions.pop(topic, None)

    def start(self) -> None:
        """Join the group. ClientError when started before."""
        self.client.call(self.start_async)

    @flow
    def start_async(self) -> Flow[None]:
        """The same, as a Promise."""
        self.service.must_be_new()
        yield self.join()

    def try_rebalance(self) -> Promise[bool]:
        """Nothing is divided."""
        return Promise.of(True)

    def receive(self, max_message_num: int = 16, invisible_duration: str | int = "30s") -> list[MessageExt]:
        """Messages of one subscribed topic, leased for that long; [] when none came within ``await_duration``.

        Topics and brokers take turns. Raises ClientError without a subscription, BrokerError for a refusal.
        """
        messages: list[MessageExt] = self.client.call(
            lambda: self._receive(max_message_num, milliseconds(invisible_duration))
        )
        return messages

    def receive_async(
        self, max_message_num: int = 16, invisible_duration: str | int = "30s"
    ) -> Pending[list[MessageExt]]:
        """The same without waiting."""
        return begin(self.ports.workers, lambda: self._receive(max_message_num, milliseconds(invisible_duration)))

    @flow
    def _receive(self, max_nums: int, invisible_ms: int) -> Flow[list[MessageExt]]:
        self.service.must_run()
        if not 1 <= max_nums <= MOST_MESSAGES:
            raise ClientError(f"a receive asks for 1 to {MOST_MESSAGES} messages, not {max_nums}")
        queue = yield from self._next_queue()
        from_first = self.config.consume_from_where == CONSUME_FROM_FIRST_OFFSET
        call = PopCall(
            self.group,
            queue,
            max_nums,
            invisible_ms,
            self.config.await_duration,
            INIT_MIN if from_first else INIT_MAX,
            self.state.subscriptions[queue.topic],
        )
        result: PopResult = yield self.pop_api.pop(call)
        for message in result.filtered:
            background(self.ports, self.pop_api.ack(message), "ack")
        if result.messages:
            note_polled(self.ports, self.group, queue, result.messages)
        return result.messages

    def _next_queue(self) -> Flow[MessageQueue]:
        """All queues of one broker, of the next topic and broker in turn."""
        places: list[MessageQueue] = []
        for topic in list(self.state.subscriptions):
            if topic not in self.state.topic_subscribe_info:
                yield self.client.cluster.update_route(topic)
            queues = self.state.topic_subscribe_info.get(topic, [])
            places += [MessageQueue(topic, name, -1) for name in dict.fromkeys(queue.broker_name for queue in queues)]
        if not places:
            raise ClientError("there is nothing to receive", hint='consumer.subscribe("orders"), and does it exist?')
        self._turn += 1
        return places[(self._turn - 1) % len(places)]

    def ack(self, message: MessageExt) -> None:
        """Say that a message is done. A broker takes it even when the lease is over; the message then comes again."""
        self.client.call(lambda: self.pop_api.ack(message))

    def change_invisible_duration(self, message: MessageExt, invisible_duration: str | int) -> None:
        """Let the message stay invisible for that long from now; "0s" gives it back. Its handle changes."""
        self.client.call(lambda: self.pop_api.change_invisible_time(message, milliseconds(invisible_duration)))
