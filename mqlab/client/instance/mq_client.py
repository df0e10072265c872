"""One client process: its connections, its routes, its heartbeats, and the producers and consumers that live in it.

Mirrors: MQClientInstance (and RebalanceService). Lab 00 shows its frames, lab 02 its routes.

    client.heartbeat     30 s, first after 1.13 s       who lives here, to every broker
    client.route_poll    30 s, first at once            every topic published or subscribed
    client.offset_persist 5 s, first after 10 s         only with consumers
    rebalance.timer      20 s after the last run (1 s when not balanced, never sooner than 1 s)

Left out: heartbeat V2, address servers, and one thread per job (a node runs one step at a time).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mqlab.client.instance.background import background
from mqlab.client.instance.broker_calls import BrokerCalls
from mqlab.client.instance.callbacks import BrokerCallbacks
from mqlab.client.instance.name_servers import NameServerChoice
from mqlab.client.instance.rebalance_timer import RebalanceTimer
from mqlab.client.instance.routes import Routes
from mqlab.client.instance.statistics import ConsumerStatistics
from mqlab.client.instance.timers import Periodic
from mqlab.client.sending.queue_selection import MASTER_ID, publish_queues, subscribe_queues
from mqlab.client.settings import ClientConfig
from mqlab.errors import ClientError, MqlabError, RemotingError
from mqlab.ports import Ports
from mqlab.promises import Flow, Promise, flow
from mqlab.remoting import Channel, Remoting
from mqlab.wire.bodies import ConsumerData, HeartbeatData, ProducerData, TopicRouteData
from mqlab.wire.command import RemotingCommand
from mqlab.wire.ids import UniqueIdMaker
from mqlab.wire.java_hash import string_hash
from mqlab.wire.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.client.sending.sender import Sender

T = TypeVar("T")

FIRST_ROUTE_POLL_MS = 0  # RocketMQ: 10, but its start-up takes longer, so that the first poll is before the heartbeat
#                          that makes a new group's retry topic; here a start takes no time but that of its frames
START_TAKES_MS = 130  # from making the rebalance service to arming the timers, as measured with a Java client; with 0
#                       the first rebalance and the first heartbeat would meet in one ms, and the heartbeat that tells
#                       the new subscription version would be skipped every time instead of rarely
FIRST_HEARTBEAT_MS = 1_000 + START_TAKES_MS
FIRST_PERSIST_MS = 10_000
INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"


class RegisteredProducer(Protocol):
    """What a client instance needs of a producer that lives in it."""

    group: str

    def publish_topics(self) -> list[str]: ...

    def update_publish_info(self, topic: str, queues: list[MessageQueue]) -> None: ...

    def needs_queues_of(self, topic: str) -> bool: ...


class RegisteredConsumer(Protocol):
    """What a client instance needs of a consumer that lives in it."""

    group: str

    def subscribed_topics(self) -> list[str]: ...

    def update_subscribe_info(self, topic: str, queues: list[MessageQueue]) -> None: ...

    def needs_queues_of(self, topic: str) -> bool: ...

    def heartbeat_data(self) -> ConsumerData: ...

    def try_rebalance(self) -> Promise[bool]: ...

    def persist_offsets(self) -> None: ...


class MQClient:
    """One client instance. ``client_id`` is ``ip@instance_name[@unit_name][@STREAM]``."""

    def __init__(
        self, ports: Ports, name_servers: Sequence[str], client_id: str, config: ClientConfig | None = None
    ) -> None:
        self.ports = ports
        self.client_id = client_id
        self.config = config or ClientConfig()
        self.name_servers = NameServerChoice(name_servers, ports.rng)
        self.routes = Routes()
        self.producers: dict[str, RegisteredProducer] = {}
        self.consumers: dict[str, RegisteredConsumer] = {}
        self.remoting = Remoting(ports, BrokerCallbacks(self).handlers(), on_channel_closed=self._channel_closed)
        self.calls = BrokerCalls(self.invoke, self.invoke_oneway)
        self.statistics = ConsumerStatistics(ports.clock)
        self.unique_ids = UniqueIdMaker(ports.ip, string_hash(client_id) & 0xFFFF, string_hash("mqlab"))
        self.rebalance_timer = RebalanceTimer(ports.clock, self._rebalance_all)
        self.inner_sender: Sender | None = None  # sends on behalf of consumers; set by client_of
        self.marks: dict[str, str] = {}  # header fields of every request; set by client_of
        self.started_ms: int | None = None
        self.is_running = False
        self._connected: dict[str, bool] = {}
        self._heartbeat_under_way = False
        self._route_poll_under_way = False
        clock = ports.clock
        self._timers = (
            (Periodic(clock, "client.route_poll", self.config.poll_name_server_interval, self._poll_tick),
             FIRST_ROUTE_POLL_MS),
            (Periodic(clock, "client.heartbeat", self.config.heartbeat_broker_interval, self._heartbeat_tick),
             FIRST_HEARTBEAT_MS),
        )  # fmt: skip
        self._persist_timer = Periodic(
            clock, "client.offset_persist", self.config.persist_consumer_offset_interval, self.persist_all_offsets
        )

    # life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Arm the timers; calling it again does nothing."""
        if self.is_running:
            return
        self.is_running = True
        self.started_ms = self.ports.clock.now_ms()
        for timer, first_ms in self._timers:
            timer.start(first_ms)

    @flow
    def shutdown(self) -> Flow[None]:
        """Stop timers and close connections, unless a producer or consumer still lives here."""
        if (
            self.consumers
            or [group for group in self.producers if group != INNER_PRODUCER_GROUP]
            or not self.is_running
        ):
            return
        self.is_running = False
        for timer, _ in self._timers:
            timer.stop()
        self._persist_timer.stop()
        self.rebalance_timer.stop()
        if INNER_PRODUCER_GROUP in self.producers:
            yield self.unregister_producer(INNER_PRODUCER_GROUP)
        self.remoting.close()

    def register_producer(self, producer: RegisteredProducer) -> None:
        """Let a producer live here. ClientError when its group has one already."""
        self._register(self.producers, producer, "producer")

    def register_consumer(self, consumer: RegisteredConsumer) -> None:
        """Let a consumer live here. ClientError when its group has one already."""
        self._register(self.consumers, consumer, "consumer")
        self._persist_timer.start(FIRST_PERSIST_MS)
        self.rebalance_timer.start()

    def _register(self, table: dict[str, Any], member: Any, what: str) -> None:
        if member.group in table:
            raise ClientError(
                f"The {what} group[{member.group}] has been created before, specify another name please.",
                hint="one client instance holds a group once; a second member of the group is a client of its own",
            )
        table[member.group] = member

    @flow
    def unregister_producer(self, group: str) -> Flow[None]:
        """Tell every broker that a producer group has left this client."""
        self.producers.pop(group, None)
        yield self._unregister(producer_group=group)

    @flow
    def unregister_consumer(self, group: str) -> Flow[None]:
        """Tell every broker that a consumer group has left this client."""
        self.consumers.pop(group, None)
        yield self._unregister(consumer_group=group)

    @flow
    def _unregister(self, **group: str) -> Flow[None]:
        for _, _, address in self.routes.all_addresses():
            try:
                yield self.calls.unregister(address, self.client_id, self.config.mq_client_api_timeout, **group)
            except MqlabError as error:  # the broker finds out by itself: the connection closes
                self.ports.note("unregister.failed", address=address, error=error.text)

    # requests ----------------------------------------------------------------------------------------------------

    def invoke(self, address: str, request: RemotingCommand, timeout_ms: int = 3_000) -> Promise[RemotingCommand]:
        """Ask a node. The first request to a broker address is followed by a heartbeat (its channel became active)."""
        request.ext_fields.update(self.marks)
        promise = self.remoting.invoke(address, request, timeout_ms)
        self._used(address)
        return promise

    def invoke_oneway(self, address: str, request: RemotingCommand) -> None:
        """Tell a node."""
        request.ext_fields.update(self.marks)
        self.remoting.invoke_oneway(address, request)
        self._used(address)

    def _used(self, address: str) -> None:
        if address not in self._connected:
            self._connected[address] = True
            if address not in self.name_servers.addresses:
                background(self.ports, self._channel_became_active(address), "heartbeat")

    @flow
    def _channel_became_active(self, address: str) -> Flow[None]:
        for name, broker_id, known in self.routes.all_addresses():
            if known == address and (yield self.heartbeat_one(name, broker_id, address)):
                self.rebalance_timer.wake()

    def _channel_closed(self, channel: Channel) -> None:
        self._connected.pop(channel.remote_address, None)
        self.name_servers.failed(channel.remote_address)

    # heartbeats --------------------------------------------------------------------------------------------------

    def heartbeat_data(self) -> HeartbeatData:
        """Who lives here, as told to brokers."""
        return HeartbeatData(
            client_id=self.client_id,
            producer_data_set=[ProducerData(group) for group in self.producers],
            consumer_data_set=[consumer.heartbeat_data() for consumer in self.consumers.values()],
        )

    @flow
    def heartbeat_all(self) -> Flow[bool]:
        """Tell every broker who lives here. False when nobody does, no broker is known, or another one is under way."""
        if self._heartbeat_under_way:
            self.ports.note("heartbeat.skipped", client=self.client_id)
            return False
        if not (self.producers or self.consumers) or not self.routes.broker_addr_table:
            return False
        self._heartbeat_under_way = True
        data = self.heartbeat_data()
        for name, broker_id, address in self.routes.all_addresses():
            yield self._heartbeat(name, broker_id, address, data)
        self._heartbeat_under_way = False
        return True

    @flow
    def heartbeat_one(self, broker_name: str, broker_id: int, address: str) -> Flow[bool]:
        """Tell one broker; False when it could not be told, or another heartbeat is under way."""
        if self._heartbeat_under_way or not (self.producers or self.consumers):
            return False
        self._heartbeat_under_way = True
        told: bool = yield self._heartbeat(broker_name, broker_id, address, self.heartbeat_data())
        self._heartbeat_under_way = False
        return told

    @flow
    def _heartbeat(self, broker_name: str, broker_id: int, address: str, data: HeartbeatData) -> Flow[bool]:
        if not self.consumers and broker_id != MASTER_ID:
            return False
        try:
            yield self.calls.heartbeat(address, data, self.config.mq_client_api_timeout)
        except MqlabError as error:
            self.ports.note("heartbeat.failed", broker=broker_name, address=address, error=error.text)
            return False
        return True

    def _heartbeat_tick(self) -> None:
        self.routes.forget_offline_brokers()
        background(self.ports, self.heartbeat_all(), "heartbeat")

    # routes ------------------------------------------------------------------------------------------------------

    @flow
    def update_route(self, topic: str, *, template: str | None = None, template_queues: int = 0) -> Flow[bool]:
        """Ask the name server for a topic's route; True when something changed. RemotingError when it cannot be asked.

        With ``template`` (TBW102) the topic is taken to be like that one, with at most ``template_queues`` queues.
        """
        route: TopicRouteData | None = yield self._ask_name_server(template or topic)
        if route is None:
            return False
        if template is not None:
            route = _limited(route, template_queues)
        changed = self.routes.learn(topic, route)
        if not changed and not self._is_needed(topic):
            return False
        if changed:
            self.ports.note("route.changed", topic=topic, brokers=[broker.broker_name for broker in route.broker_datas])
        for producer in list(self.producers.values()):
            producer.update_publish_info(topic, publish_queues(topic, route))
        for consumer in list(self.consumers.values()):
            consumer.update_subscribe_info(topic, subscribe_queues(topic, route))
        return True

    def _is_needed(self, topic: str) -> bool:
        members: list[RegisteredProducer | RegisteredConsumer] = [*self.producers.values(), *self.consumers.values()]
        return any(member.needs_queues_of(topic) for member in members)

    @flow
    def _ask_name_server(self, topic: str) -> Flow[TopicRouteData | None]:
        address = self.name_servers.current()
        try:
            route: TopicRouteData | None = yield self.calls.route(address, topic, self.config.mq_client_api_timeout)
        except RemotingError:
            self.name_servers.failed(address)
            raise
        return route

    def _poll_tick(self) -> None:
        background(self.ports, self._poll_routes(), "route poll")

    @flow
    def _poll_routes(self) -> Flow[None]:
        if self._route_poll_under_way:
            return
        self._route_poll_under_way = True
        try:
            topics = [topic for consumer in self.consumers.values() for topic in consumer.subscribed_topics()]
            topics += [topic for producer in self.producers.values() for topic in producer.publish_topics()]
            for topic in dict.fromkeys(topics):
                yield self.update_route(topic)
        except MqlabError as error:  # the rest of this round is skipped; cached routes stay in use
            self.ports.note("route_poll.failed", error=error.text)
        self._route_poll_under_way = False

    @flow
    def find_master(self, queue: MessageQueue) -> Flow[str]:
        """The master's address of a queue's broker; asks for the route once. ClientError when there is none."""
        address = self.routes.master_address(queue.broker_name)
        if address is None:
            yield self.update_route(queue.topic)
            address = self.routes.master_address(queue.broker_name)
        if address is None:
            raise _no_broker(queue.broker_name)
        return address

    @flow
    def find_any_broker(self, queue: MessageQueue, broker_id: int = MASTER_ID) -> Flow[str]:
        """An address to read a queue from; asks for the route once. ClientError when there is none."""
        address = self.routes.broker_address_in_subscribe(queue.broker_name, broker_id)
        if address is None:
            yield self.update_route(queue.topic)
            address = self.routes.broker_address_in_subscribe(queue.broker_name, broker_id)
        if address is None:
            raise _no_broker(queue.broker_name)
        return address

    @flow
    def consumer_ids(self, topic: str, group: str) -> Flow[list[str] | None]:
        """The members of a group as one random broker of the topic knows them; None when it cannot be asked."""
        addresses = self.routes.addresses_of_topic(topic)
        try:
            if not addresses:
                yield self.update_route(topic)
                addresses = self.routes.addresses_of_topic(topic)
            if not addresses:
                return None
            address = addresses[self.ports.rng.randrange(len(addresses))]
            members: list[str] = yield self.calls.consumer_ids(address, group, self.config.mq_client_api_timeout)
            return members
        except MqlabError as error:
            self.ports.note("consumer_list.failed", group=group, topic=topic, error=error.text)
            return None

    # consumers ---------------------------------------------------------------------------------------------------

    def persist_all_offsets(self) -> None:
        """Every consumer tells its offsets to where they are kept."""
        for consumer in list(self.consumers.values()):
            consumer.persist_offsets()

    @flow
    def _rebalance_all(self) -> Flow[bool]:
        balanced = True
        for consumer in list(self.consumers.values()):
            balanced = bool((yield consumer.try_rebalance())) and balanced
        return balanced

    def call(self, start: Callable[[], Promise[T]]) -> T:
        """Run a flow on this node and block the caller until it is over."""
        return self.ports.workers.call(start)

    def __repr__(self) -> str:
        state = "running" if self.is_running else "not running"
        return f"<MQClient {self.client_id} {state}: {len(self.producers)} producers, {len(self.consumers)} consumers>"


def _limited(route: TopicRouteData, most: int) -> TopicRouteData:
    """The template's route as that of a topic to be made: at most so many queues on each broker."""
    queue_datas = []
    for data in route.queue_datas:
        count = min(most, data.read_queue_nums)
        queue_datas.append(replace(data, read_queue_nums=count, write_queue_nums=count))
    return replace(route, queue_datas=queue_datas)


def _no_broker(broker_name: str) -> ClientError:
    return ClientError(
        f"The broker[{broker_name}] not exist", hint="no route names its address: it is down, or never registered"
    )
