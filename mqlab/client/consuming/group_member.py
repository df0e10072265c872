"""What every kind of consumer is: a member of a group with queues, offsets and a client instance.

Mirrors: MQConsumerInner and what the three consumer implementations of RocketMQ repeat. Lab 03.

    GroupMember ── rebalance ── process_queues        which queues, and what is held of them
                └─ offset_store                       how far
                └─ client                             routes, heartbeats, connections
    PushConsumer, PullConsumer, LitePullConsumer      what a program does with the messages

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from mqlab.client.allocate import STRATEGY_NAMES, AllocateStrategy, strategy
from mqlab.client.consuming.first_offset import DEFAULT_TIMESTAMP_AGO_MS, first_offset, timestamp_ms
from mqlab.client.consuming.offset_store import OffsetStore, offset_store_for
from mqlab.client.consuming.process_queue import ProcessQueue, new_process_queue
from mqlab.client.consuming.pull_api import PullApi
from mqlab.client.consuming.rebalance import Rebalance
from mqlab.client.consuming.subscriptions import SQL92
from mqlab.client.instance.client_id import client_of
from mqlab.client.instance.mq_client import MQClient
from mqlab.client.sending.send_request import check_group
from mqlab.client.settings import ConsumerConfig
from mqlab.errors import ClientError, MqlabError, UsageError
from mqlab.ports import Ports
from mqlab.promises import Flow, Promise, flow
from mqlab.wire.bodies import ConsumerData, SubscriptionData
from mqlab.wire.message import MessageQueue

CREATED, RUNNING, SHUT_DOWN = "created", "running", "shut down"
DEFAULT_CONSUMER_GROUP = "DEFAULT_CONSUMER"

QueueListener = Callable[[str, list[MessageQueue], list[MessageQueue]], object]

Config = TypeVar("Config", bound=ConsumerConfig)
T = TypeVar("T")


class GroupMember(Generic[Config]):
    """A member of ``group``. ``process_queues``: what it owns and holds; ``offset_store``: how far it is."""

    kind = "consumer"
    consume_type = "CONSUME_ACTIVELY"
    repairs_expired_pulls = False

    def __init__(
        self, ports: Ports, group: str, name_servers: Sequence[str], config: Config, client: MQClient | None, *,
        stream: bool = False,
    ) -> None:  # fmt: skip
        check_group(group, DEFAULT_CONSUMER_GROUP)
        self.ports = ports
        self.group = group
        self.config: Config = config
        self.client = client or client_of(ports, name_servers, config, stream=stream)
        self.rebalance = Rebalance(self.client, group, config, _strategy_of(config), self)
        self.process_queues = self.rebalance.process_queues
        self.offset_store: OffsetStore = offset_store_for(self.client, group, config)
        new_process_queue(config.process_queue, 0)  # a class that cannot be one is refused here, not in the first round
        self.pull_api = PullApi(self.client, group)
        self.state = CREATED
        text = config.consume_timestamp
        default_ms = ports.clock.now_ms() - DEFAULT_TIMESTAMP_AGO_MS
        self.consume_timestamp_ms = default_ms if text is None else timestamp_ms(text)

    def use_config(self, config: Config) -> None:
        """Take other settings; the strategy counts only before the start, as in RocketMQ."""
        self.config = self.rebalance.config = config
        if self.state == CREATED:
            self.rebalance.strategy = _strategy_of(config)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.ports.node

    @property
    def client_id(self) -> str:
        """``ip@instance_name``."""
        return self.client.client_id

    @property
    def is_running(self) -> bool:
        return self.state == RUNNING

    @property
    def message_queues(self) -> list[MessageQueue]:
        """The queues it owns now, sorted, retry queues included."""
        return sorted(self.process_queues)

    def on_node(self, action: Callable[[], T]) -> T:
        """Do something to this consumer as a step of its node, whoever asks."""
        return self.client.call(lambda: Promise.of(action()))

    # joining and leaving -----------------------------------------------------------------------------------------

    def must_be_new(self) -> None:
        """ClientError when it was started before."""
        if self.state != CREATED:
            raise ClientError(f"The {self.kind} service state not OK, maybe started once, {self.state}")

    def must_run(self) -> None:
        """ClientError when it is not running."""
        if not self.is_running:
            raise ClientError(f"The {self.kind} service state not OK, {self.state}", hint="start it first")

    @flow
    def join(self) -> Flow[None]:
        """Live in the client: routes of the subscribed topics, a heartbeat, then the first rebalance."""
        self.client.register_consumer(self)
        self.client.start()
        self.state = RUNNING
        for topic in list(self.rebalance.subscriptions):
            yield self.client.update_route(topic)
        yield self._check_expressions()
        if (yield self.client.heartbeat_all()):
            self.client.rebalance_timer.wake()

    @flow
    def leave(self) -> Flow[None]:
        """Commit, tell the brokers, let the queues go."""
        self.persist_offsets()
        yield self.client.unregister_consumer(self.group)
        self.state = SHUT_DOWN
        self.rebalance.drop_all()
        yield self.client.shutdown()

    @flow
    def shutdown_async(self) -> Flow[None]:
        """Leave the group; harmless when not running."""
        if self.is_running:
            yield self.leave()

    def shutdown(self) -> None:
        """Leave the group: commit offsets, tell the brokers. Harmless when not running."""
        if self.is_running:
            self.client.call(self.shutdown_async)

    @flow
    def _check_expressions(self) -> Flow[None]:
        """Ask one broker of each topic whether it takes the SQL expression; a refusal ends the start."""
        for topic, wanted in list(self.rebalance.subscriptions.items()):
            addresses = self.client.routes.addresses_of_topic(topic)
            if wanted.expression_type != SQL92 or not addresses:
                continue
            address = addresses[self.ports.rng.randrange(len(addresses))]
            try:
                yield self.client.calls.check_client_config(
                    address, self.client_id, self.group, wanted, self.client.config.mq_client_api_timeout
                )
            except MqlabError as error:
                yield self.shutdown_async()
                raise ClientError(
                    f"Check client in broker error, maybe because you use {wanted.expression_type} to filter message, "
                    f"but server has not been upgraded to support! topic {topic}: {error.text}",
                    hint="the broker needs enable_property_filter=True, and the expression must parse",
                ) from error

    # what the client instance asks (RegisteredConsumer) ------------------------------------------------------------

    def subscribed_topics(self) -> list[str]:
        """The topics whose routes are polled."""
        return list(self.rebalance.subscriptions)

    def update_subscribe_info(self, topic: str, queues: list[MessageQueue]) -> None:
        """A route came."""
        if topic in self.rebalance.subscriptions:
            self.rebalance.topic_subscribe_info[topic] = queues

    def needs_queues_of(self, topic: str) -> bool:
        """True while a subscribed topic's queues are not known."""
        return topic in self.rebalance.subscriptions and topic not in self.rebalance.topic_subscribe_info

    def heartbeat_subscriptions(self) -> list[SubscriptionData]:
        """What brokers are told it wants."""
        return list(self.rebalance.subscriptions.values())

    def heartbeat_data(self) -> ConsumerData:
        """What brokers are told about this member."""
        return ConsumerData(
            group_name=self.group, consume_type=self.consume_type, message_model=self.config.message_model,
            consume_from_where=self.config.consume_from_where,
            subscription_data_set=self.heartbeat_subscriptions(), unit_mode=self.config.unit_mode,
        )  # fmt: skip

    def try_rebalance(self) -> Promise[bool]:
        """A round of rebalance."""
        return self.rebalance.do_rebalance(orderly=False) if self.is_running else Promise.of(True)

    def reported_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues it tells an operator about; a pull consumer has none to tell of."""
        return {}

    def persist_offsets(self) -> None:
        """Tell the owned queues' offsets to where they are kept."""
        self.offset_store.persist_all(self.process_queues)

    # what the rebalance asks (QueueKeeper) -------------------------------------------------------------------------

    def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> Promise[bool]:
        """Let a queue go: commit its offset and forget it."""
        self.offset_store.persist(queue)
        self.offset_store.remove_offset(queue)
        return Promise.of(True)

    @flow
    def compute_pull_from(self, queue: MessageQueue) -> Flow[int]:
        """Where to begin to pull a queue."""
        stored = yield self.offset_store.read_store(queue)
        where = self.config.consume_from_where
        offset: int = yield first_offset(self.client, queue, stored, where, self.consume_timestamp_ms)
        return offset

    def lock_queue(self, queue: MessageQueue) -> Promise[bool]:
        """Ask the broker for a queue; only orderly consumption does."""
        return Promise.of(True)

    def forget_offset(self, queue: MessageQueue) -> None:
        """Forget what memory says of a queue that is about to be added."""
        self.offset_store.remove_offset(queue)

    def is_pull_expired(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """True when its pull loop is dead."""
        return process_queue.is_pull_expired(self.ports.clock.now_ms())

    def queue_added(self, queue: MessageQueue, process_queue: ProcessQueue, next_offset: int) -> None:
        """A queue came; who pulls is the kind's own business."""

    def message_queue_changed(self, topic: str, queues: list[MessageQueue], mine: list[MessageQueue]) -> Promise[Any]:
        """The allocation of a topic changed."""
        return Promise.of(None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.group} {self.client_id} {self.state}: {len(self.process_queues)} queues>"


def _strategy_of(config: ConsumerConfig) -> AllocateStrategy:
    """The strategy that a setting names, or is."""
    chosen = config.allocate_message_queue_strategy
    if isinstance(chosen, str):
        return strategy(chosen)
    if isinstance(chosen, type) or not callable(getattr(chosen, "allocate", None)):
        raise UsageError(
            f"{chosen!r} is no allocation strategy",
            hint="one of " + ", ".join(STRATEGY_NAMES) + ", or an object with allocate(group, client_id, queues, "
            "client_ids) that returns this member's queues",
        )
    own: AllocateStrategy = chosen
    return own
