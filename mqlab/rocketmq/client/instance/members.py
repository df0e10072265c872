"""The members of a client instance: its producers and consumers, by group.

Mirrors: the producerTable and consumerTable of MQClientInstance. A client instance holds a group at most once.

    register ─▶ producers, consumers ─▶ heartbeat_data()        what brokers get to know
                                     ─▶ topics()                whose routes are polled
                                     ─▶ learn_route(...)        a new route is passed on to all members
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mqlab.errors import ClientError
from mqlab.rocketmq.client.instance.routes import publish_queues
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire.bodies import ConsumerData, HeartbeatData, ProducerData, TopicRouteData
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue


@dataclass(frozen=True, slots=True)
class ListenerAnswer:
    """What a listener answered to a message that an operator had it consume. Mirrors ConsumeMessageDirectlyResult."""

    took_ms: int
    answer: Any
    error: str | None
    in_order: bool


class RegisteredProducer(Protocol):
    """What a client instance needs of a producer that lives in it."""

    group: str

    def publish_topics(self) -> list[str]: ...

    def update_publish_info(self, topic: str, queues: list[MessageQueue]) -> None: ...

    def needs_queues_of(self, topic: str) -> bool: ...


class RegisteredConsumer(Protocol):
    """What a client instance needs of a consumer that lives in it: for its timers, and to answer brokers.

    ``reset_offsets`` and ``consume_directly`` return None when this kind of consumer does not do it.
    """

    group: str

    def subscribed_topics(self) -> list[str]: ...

    def update_subscribe_info(self, topic: str, queues: list[MessageQueue]) -> None: ...

    def needs_queues_of(self, topic: str) -> bool: ...

    def heartbeat_data(self) -> ConsumerData: ...

    def try_rebalance(self) -> Promise[bool]: ...

    def persist_offsets(self) -> None: ...

    def reported_offsets(self, topic: str) -> dict[MessageQueue, int]: ...

    def running_info(self) -> Promise[dict[str, Any]]: ...

    def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> Promise[None] | None: ...

    def consume_directly(self, message: MessageExt, queue: MessageQueue) -> Promise[ListenerAnswer] | None: ...


class Members:
    """The producers and consumers of one client instance, by group."""

    def __init__(self) -> None:
        self.producers: dict[str, RegisteredProducer] = {}
        self.consumers: dict[str, RegisteredConsumer] = {}

    def add_producer(self, producer: RegisteredProducer) -> None:
        """Register a producer. ClientError when its group has one already."""
        _must_be_new(self.producers, producer.group, "producer")
        self.producers[producer.group] = producer

    def add_consumer(self, consumer: RegisteredConsumer) -> None:
        """Register a consumer. ClientError when its group has one already."""
        _must_be_new(self.consumers, consumer.group, "consumer")
        self.consumers[consumer.group] = consumer

    @property
    def is_empty(self) -> bool:
        return not (self.producers or self.consumers)

    def topics(self) -> list[str]:
        """The topics whose routes are polled: first those that consumers subscribe to, each topic once."""
        topics = [topic for consumer in self.consumers.values() for topic in consumer.subscribed_topics()]
        topics += [topic for producer in self.producers.values() for topic in producer.publish_topics()]
        return list(dict.fromkeys(topics))

    def heartbeat_data(self, client_id: str) -> HeartbeatData:
        """What a heartbeat tells a broker about this client instance."""
        return HeartbeatData(
            client_id=client_id,
            producer_data_set=[ProducerData(group) for group in self.producers],
            consumer_data_set=[consumer.heartbeat_data() for consumer in self.consumers.values()],
        )

    def need_queues_of(self, topic: str) -> bool:
        """True while a member uses a topic whose queues are not known."""
        members: list[RegisteredProducer | RegisteredConsumer] = [*self.producers.values(), *self.consumers.values()]
        return any(member.needs_queues_of(topic) for member in members)

    def learn_route(self, topic: str, route: TopicRouteData) -> None:
        """Pass the queues of a new route on to all members."""
        for producer in list(self.producers.values()):
            producer.update_publish_info(topic, publish_queues(topic, route))
        for consumer in list(self.consumers.values()):
            consumer.update_subscribe_info(topic, route.readable_queues(topic))

    def persist_offsets(self) -> None:
        """Have every consumer send its offsets to where they are stored."""
        for consumer in list(self.consumers.values()):
            consumer.persist_offsets()

    @flow
    def rebalance(self) -> Flow[bool]:
        """One round of rebalance for every consumer; True when all own the queues they should."""
        balanced = True
        for consumer in list(self.consumers.values()):
            balanced = bool((yield consumer.try_rebalance())) and balanced
        return balanced

    def __repr__(self) -> str:
        return f"<Members {len(self.producers)} producers, {len(self.consumers)} consumers>"


def _must_be_new(table: Mapping[str, object], group: str, kind: str) -> None:
    if group in table:
        raise ClientError(
            f"The {kind} group[{group}] has been created before, specify another name please.",
            hint="one client instance holds a group once; a second member of the group is a client of its own",
        )
