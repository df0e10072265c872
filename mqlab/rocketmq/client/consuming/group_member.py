"""What every kind of consumer is: a member of a group with queues, offsets and a client instance.

Mirrors: MQConsumerInner and what the three consumer implementations of RocketMQ repeat.

    state      what the member knows, its queues and its offsets among it     handed to all parts
    client     the client instance it lives in                                routes, heartbeats, connections
    rebalance  which queues are its own
    pull_api   one pull
    PushConsumer, PullConsumer, LitePullConsumer      what a program does with the messages
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from mqlab.errors import ClientError, MqlabError, UsageError
from mqlab.rocketmq.client.allocate import STRATEGY_NAMES, AllocateStrategy, strategy
from mqlab.rocketmq.client.consuming.member_state import MemberState
from mqlab.rocketmq.client.consuming.offset_store import NOT_FOUND
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue, is_pull_expired
from mqlab.rocketmq.client.consuming.pull_api import PullApi
from mqlab.rocketmq.client.consuming.rebalance import Rebalance
from mqlab.rocketmq.client.consuming.running_info import running_info
from mqlab.rocketmq.client.consuming.subscriptions import SQL92
from mqlab.rocketmq.client.instance.members import ListenerAnswer
from mqlab.rocketmq.client.instance.mq_client import MQClient
from mqlab.rocketmq.client.sending.send_request import check_group
from mqlab.rocketmq.client.settings import ClientConfig, ConsumerConfig
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire.bodies import ConsumerData, SubscriptionData
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

DEFAULT_CONSUMER_GROUP = "DEFAULT_CONSUMER"

QueueListener = Callable[[str, list[MessageQueue], list[MessageQueue]], object]

State = TypeVar("State", bound=MemberState[Any])
T = TypeVar("T")


def client_for(
    ports: Ports,
    group: str,
    name_servers: Sequence[str],
    config: ClientConfig,
    client: MQClient | None,
    *,
    stream: bool = False,
) -> MQClient:
    """The client instance a consumer lives in: the given one, or one of its own. ClientError for an illegal group."""
    check_group(group, DEFAULT_CONSUMER_GROUP)
    return client or MQClient(ports, name_servers, config, stream=stream)


class GroupMember(Generic[State]):
    """A member of ``group``. ``process_queues``: what it owns and holds; ``offset_store``: how far it is."""

    kind = "consumer"
    consume_type = "CONSUME_ACTIVELY"
    repairs_expired_pulls = False

    def __init__(self, client: MQClient, state: State) -> None:
        self.client = client
        self.state: State = state
        self.ports = state.ports
        self.group = state.group
        self.service = state.service
        self.process_queues = state.process_queues
        self.offset_store = state.offset_store
        self.pull_api = PullApi(state.cluster, state.group)
        self.rebalance = Rebalance(state, _strategy_of(state.config), self, client.rebalance_timer.wake_later)

    def use_config(self, config: ConsumerConfig) -> None:
        """Use other settings; the strategy counts only before the start, as in RocketMQ."""
        self.state.config = config
        if not self.service.was_started:
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
    def config(self) -> Any:
        """The settings in force."""
        return self.state.config

    @property
    def is_running(self) -> bool:
        return self.service.is_running

    @property
    def message_queues(self) -> list[MessageQueue]:
        """The queues it owns now, sorted, retry queues included."""
        return sorted(self.process_queues)

    def on_node(self, action: Callable[[], T]) -> T:
        """Call a function as a step of this consumer's node, from any thread."""
        return self.client.call(lambda: Promise.of(action()))

    @flow
    def join(self) -> Flow[None]:
        """Live in the client: routes of the subscribed topics, a heartbeat, then the first rebalance."""
        # 1. From here on timers and broker callbacks reach this member.
        with self.service.starting():
            self.client.register_consumer(self)
            self.client.start()
        # 2. Routes first: a heartbeat goes to the brokers that they name.
        for topic in list(self.state.subscriptions):
            yield self.client.cluster.update_route(topic)
        yield self._check_expressions()
        # 3. Queues are divided among those that the brokers know, so the rebalance comes after the heartbeat.
        if (yield self.client.membership.heartbeat_all()):
            self.client.rebalance_timer.wake()

    @flow
    def leave(self) -> Flow[None]:
        """Commit, tell the brokers, let the queues go."""
        self.persist_offsets()
        yield self.client.membership.unregister_consumer(self.group)
        self.service.move("shut down")
        self.rebalance.drop_all()
        yield self.client.shutdown()
        # A round that was under way may have added a queue since: RocketMQ joins its thread before it lets go.
        yield self.rebalance.round_is_over()
        self.rebalance.drop_all()

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
        cluster = self.state.cluster
        for topic, subscription in list(self.state.subscriptions.items()):
            addresses = cluster.routes.addresses_of_topic(topic)
            if subscription.expression_type != SQL92 or not addresses:
                continue
            address = addresses[self.ports.rng.randrange(len(addresses))]
            try:
                yield cluster.calls.check_client_config(
                    address, self.client_id, self.group, subscription, cluster.config.mq_client_api_timeout
                )
            except MqlabError as error:
                yield self.shutdown_async()
                raise ClientError(
                    f"Check client in broker error, maybe because you use {subscription.expression_type} to filter "
                    f"message, but server has not been upgraded to support! topic {topic}: {error.text}",
                    hint="the broker needs enable_property_filter=True, and the expression must parse",
                ) from error

    def subscribed_topics(self) -> list[str]:
        """The topics whose routes are polled."""
        return list(self.state.subscriptions)

    def update_subscribe_info(self, topic: str, queues: list[MessageQueue]) -> None:
        """Take the queues of a new route."""
        if topic in self.state.subscriptions:
            self.state.topic_subscribe_info[topic] = queues

    def needs_queues_of(self, topic: str) -> bool:
        """True while a subscribed topic's queues are not known."""
        return topic in self.state.subscriptions and topic not in self.state.topic_subscribe_info

    def heartbeat_subscriptions(self) -> list[SubscriptionData]:
        """The subscriptions that a heartbeat carries."""
        return list(self.state.subscriptions.values())

    def heartbeat_data(self) -> ConsumerData:
        """What a heartbeat tells brokers about this member."""
        return ConsumerData(
            group_name=self.group,
            consume_type=self.consume_type,
            message_model=self.config.message_model,
            consume_from_where=self.config.consume_from_where,
            subscription_data_set=self.heartbeat_subscriptions(),
            unit_mode=self.config.unit_mode,
        )

    def try_rebalance(self) -> Promise[bool]:
        """A round of rebalance."""
        return self.rebalance.do_rebalance(orderly=False) if self.is_running else Promise.of(True)

    def reported_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues that an operator sees; a pull consumer reports none."""
        return {}

    def persist_offsets(self) -> None:
        """Send the owned queues' offsets to where they are stored."""
        self.offset_store.persist_all(self.process_queues)

    def reported_offsets(self, topic: str) -> dict[MessageQueue, int]:
        """The commit offsets in memory that an operator sees."""
        return self.offset_store.clone_offset_table(topic)

    @flow
    def running_info(self) -> Flow[dict[str, Any]]:
        """What an operator sees of this member: see running_info.py."""
        queues = self.reported_queues()
        commit_offsets: dict[MessageQueue, int] = {}
        for queue in list(queues):
            commit_offsets[queue] = self.offset_store.read_memory(queue)
            if commit_offsets[queue] == NOT_FOUND:
                commit_offsets[queue] = yield self.offset_store.read_store(queue)
        queues = self.reported_queues()  # as they are now that the store has answered
        started_ms = self.client.started_ms
        parked, popped = self.parked_queues(), self.reported_pops()
        return running_info(self.state, self.consume_type, started_ms, queues, commit_offsets, parked, popped)

    def reported_pops(self) -> dict[MessageQueue, dict[str, Any]]:
        """What an operator sees of the queues that are popped; only a push consumer has some."""
        return {}

    def parked_queues(self) -> list[MessageQueue]:
        """Queues whose next pull waits for a check to hold."""
        return []

    def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> Promise[None] | None:
        """Move queues to other offsets, as a broker asks; only a push consumer does."""
        return None

    def consume_directly(self, message: MessageExt, queue: MessageQueue) -> Promise[ListenerAnswer] | None:
        """Have the listener consume one message now; only a push consumer has a listener."""
        return None

    def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> Promise[bool]:
        """Let a queue go: commit its offset and remove it from memory."""
        self.offset_store.persist(queue)
        self.offset_store.remove_offset(queue)
        return Promise.of(True)

    def compute_pull_from(self, queue: MessageQueue) -> Promise[int]:
        """Where to begin to pull a queue."""
        return self.state.first_offset_of(queue)

    def lock_queue(self, queue: MessageQueue) -> Promise[bool]:
        """Ask the broker for a queue; only orderly consumption does."""
        return Promise.of(True)

    def remove_offset(self, queue: MessageQueue) -> None:
        """Remove the offset in memory of a queue that is about to be added."""
        self.offset_store.remove_offset(queue)

    def is_pull_expired(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """True when its pull loop is dead."""
        return is_pull_expired(process_queue, self.ports.clock.now_ms())

    def queue_added(self, queue: MessageQueue, process_queue: ProcessQueue, next_offset: int) -> None:
        """A queue was added; who pulls it depends on the kind of consumer."""

    def message_queue_changed(self, topic: str, queues: list[MessageQueue], mine: list[MessageQueue]) -> Promise[Any]:
        """The allocation of a topic changed."""
        return Promise.of(None)

    def __repr__(self) -> str:
        queues = len(self.process_queues)
        return f"<{type(self).__name__} {self.group} {self.client_id} {self.service.state}: {queues} queues>"


def _strategy_of(config: ConsumerConfig) -> AllocateStrategy:
    """The strategy that a setting names, or is."""
    chosen = config.allocate_message_queue_strategy
    if isinstance(chosen, str):
        return strategy(chosen)
    if isinstance(chosen, type) or not callable(getattr(chosen, "allocate", None)):
        raise UsageError(
            f"{chosen!r} is not an allocation strategy",
            hint="one of " + ", ".join(STRATEGY_NAMES) + ", or an object with allocate(group, client_id, queues, "
            "client_ids) that returns this member's queues",
        )
    own: AllocateStrategy = chosen
    return own
