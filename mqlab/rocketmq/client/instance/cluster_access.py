"""The access to the cluster that all parts of a client share: requests, routes, and which address to use.

Mirrors: the half of MQClientInstance that knows name servers and brokers (updateTopicRouteInfoFromNameServer,
findBrokerAddress…). Parts are handed this object instead of the whole client instance.

    calls          every request as a method (broker_calls)
    routes         what the name server said last
    update_route   asks the name server; new queues go to the members
    find_master, find_any_broker     look into the routes; ask for the route once if the broker is unknown
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mqlab.errors import ClientError, MqlabError, RemotingError
from mqlab.rocketmq.client.instance.broker_calls import BrokerCalls
from mqlab.rocketmq.client.instance.members import Members
from mqlab.rocketmq.client.instance.name_servers import NameServerChoice
from mqlab.rocketmq.client.instance.routes import Routes
from mqlab.rocketmq.client.settings import ClientConfig
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.remoting import Channel, Handler, Remoting
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire.bodies import TopicRouteData
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.ids import UniqueIdMaker
from mqlab.rocketmq.wire.java_hash import string_hash
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.names import MASTER_ID


class ClusterAccess:
    """How one client instance reaches name servers and brokers. ``marks``: header fields of every request.

    ``channel_used(address)`` is signalled after the first request over a new channel to a broker.
    """

    def __init__(
        self,
        ports: Ports,
        name_servers: Sequence[str],
        client_id: str,
        config: ClientConfig,
        members: Members,
        handlers: Mapping[int, Handler],
        marks: Mapping[str, str],
    ) -> None:
        self.ports = ports
        self.client_id = client_id
        self.config = config
        self.name_servers = NameServerChoice(name_servers, ports.rng)
        self.routes = Routes()
        self.unique_ids = UniqueIdMaker(ports.ip, string_hash(client_id) & 0xFFFF, string_hash("mqlab"))
        self.channel_used: Signal[[str]] = Signal()
        self.remoting = Remoting(ports, handlers, on_channel_closed=self._channel_closed)
        self.calls = BrokerCalls(self.invoke, self.invoke_oneway)
        self._members = members
        self._marks = marks
        self._connected: dict[str, bool] = {}

    def invoke(self, address: str, request: RemotingCommand, timeout_ms: int = 3_000) -> Promise[RemotingCommand]:
        """Send a request and return the promise of its answer."""
        if self._marks:
            request.ext_fields.update(self._marks)
        promise = self.remoting.invoke(address, request, timeout_ms)
        if address not in self._connected:
            self._first_use(address)
        return promise

    def invoke_oneway(self, address: str, request: RemotingCommand) -> None:
        """Send a request that is not answered."""
        if self._marks:
            request.ext_fields.update(self._marks)
        self.remoting.invoke_oneway(address, request)
        if address not in self._connected:
            self._first_use(address)

    def _first_use(self, address: str) -> None:
        self._connected[address] = True
        if address not in self.name_servers.addresses:
            self.channel_used(address)

    def _channel_closed(self, channel: Channel) -> None:
        self._connected.pop(channel.remote_address, None)
        self.name_servers.failed(channel.remote_address)

    @flow
    def update_route(self, topic: str, *, template: str | None = None, template_queues: int = 0) -> Flow[bool]:
        """Ask the name server for a topic's route; True when something changed. RemotingError when it cannot be asked.

        With ``template`` (TBW102) the topic is taken to be like that one, with at most ``template_queues`` queues.
        """
        # 1. Ask. A topic that the name server does not know changes nothing.
        route: TopicRouteData | None = yield self._ask_name_server(template or topic)
        if route is None:
            return False
        if template is not None:
            route = _limited(route, template_queues)
        # 2. Remember it. A route that did not change is passed on only to members that have no queues of it yet.
        changed = self.routes.learn(topic, route)
        if not changed and not self._members.need_queues_of(topic):
            return False
        if changed:
            self.ports.note("route.changed", topic=topic, brokers=[broker.broker_name for broker in route.broker_datas])
        # 3. Pass the queues on.
        self._members.learn_route(topic, route)
        return True

    @flow
    def _ask_name_server(self, topic: str) -> Flow[TopicRouteData | None]:
        address = self.name_servers.current()
        try:
            route: TopicRouteData | None = yield self.calls.route(address, topic, self.config.mq_client_api_timeout)
        except RemotingError:
            self.name_servers.failed(address)
            raise
        return route

    @flow
    def find_master(self, queue: MessageQueue) -> Flow[str]:
        """The address of the queue's master; asks for the route once. ClientError when no route names it."""
        address = self.routes.master_address(queue.broker_name)
        if address is None:
            yield self.update_route(queue.topic)
            address = self.routes.master_address(queue.broker_name)
        if address is None:
            raise _no_broker(queue.broker_name)
        return address

    @flow
    def find_any_broker(self, queue: MessageQueue, broker_id: int = MASTER_ID) -> Flow[str]:
        """An address to read a queue from; asks for the route once. ClientError when no route names one."""
        address = self.routes.broker_address_in_subscribe(queue.broker_name, broker_id)
        if address is None:
            yield self.update_route(queue.topic)
            address = self.routes.broker_address_in_subscribe(queue.broker_name, broker_id)
        if address is None:
            raise _no_broker(queue.broker_name)
        return address

    @flow
    def consumer_ids(self, topic: str, group: str) -> Flow[list[str] | None]:
        """The members of a group as one random broker of the topic knows them; None when no broker can be asked."""
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

    def __repr__(self) -> str:
        return f"<ClusterAccess of {self.client_id}: {self.routes!r}>"


def _limited(route: TopicRouteData, limit: int) -> TopicRouteData:
    """The template's route as that of a new topic: at most ``limit`` queues on each broker."""
    queue_datas = []
    for data in route.queue_datas:
        count = min(limit, data.read_queue_nums)
        queue_datas.append(replace(data, read_queue_nums=count, write_queue_nums=count))
    return replace(route, queue_datas=queue_datas)


def _no_broker(broker_name: str) -> ClientError:
    return ClientError(
        f"The broker[{broker_name}] not exist", hint="no route names its address: it is down, or it never registered"
    )
