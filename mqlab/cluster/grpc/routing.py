"""QueryRoute and QueryAssignment: where a topic is, and which queues a push consumer asks.

Mirrors: RouteActivity, LocalTopicRouteService.

    route       the name server's, at the address of each broker with the front's port; an entry per queue, with the
                kinds of messages that the topic takes
    assignment  of a group in order: every queue that can be read; else one entry per broker, with queue id -1
                every member gets the same: nothing is divided
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from mqlab.cluster.grpc.clients import Caller
from mqlab.cluster.grpc.codes import (
    DOMAIN_NAME,
    IPV4,
    IPV6,
    READ,
    READ_WRITE,
    WRITE,
    Code,
    MessageType,
    StatusError,
    ok,
)
from mqlab.cluster.grpc.messages import make
from mqlab.cluster.grpc.state import MIXED, FrontState, checked_group, checked_topic
from mqlab.errors import RemotingError
from mqlab.rocketmq.broker import Broker
from mqlab.rocketmq.broker.tables.topics import is_readable, is_writeable
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire.bodies import QueueData, TopicRouteData
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.command import request as make_request
from mqlab.rocketmq.wire.host import host_of
from mqlab.rocketmq.wire.names import MASTER_ID


class Routing:
    """The two RPCs."""

    def __init__(self, state: FrontState) -> None:
        self._state = state

    @flow
    def query_route(self, request: Any, caller: Caller) -> Flow[Any]:
        """QueryRoute."""
        self._state.clients.of(caller)
        topic = checked_topic(request.topic.name)
        route: TopicRouteData = yield self._route(topic)
        kinds = self._kinds(topic)
        queues = [
            make(
                "MessageQueue",
                topic={"name": topic, "resource_namespace": request.topic.resource_namespace},
                id=queue_id,
                permission=permission,
                broker=broker,
                accept_message_types=kinds,
            )
            for data, broker in self._places(route)
            for queue_id, permission in _queues(data)
        ]
        return make("QueryRouteResponse", status=ok(), message_queues=queues)

    @flow
    def query_assignment(self, request: Any, caller: Caller) -> Flow[Any]:
        """QueryAssignment."""
        self._state.clients.of(caller)
        topic, group = checked_topic(request.topic.name), checked_group(request.group.name)
        route: TopicRouteData = yield self._route(topic)
        assignments = []
        for data, broker in self._places(route):
            if not is_readable(data.perm):
                continue
            config = self._state.brokers.named(data.broker_name).groups.find(group)
            orderly = config is not None and config.consume_message_orderly
            for queue_id in range(data.read_queue_nums) if orderly else (-1,):
                queue = make("MessageQueue", topic={"name": topic}, id=queue_id, permission=READ_WRITE, broker=broker)
                assignments.append(make("Assignment", message_queue=queue))
        if not assignments:
            raise StatusError(Code.FORBIDDEN, "no readable queue")
        return make("QueryAssignmentResponse", status=ok(), assignments=assignments)

    @flow
    def _route(self, topic: str) -> Flow[TopicRouteData]:
        """A topic's route from the first name server that answers. StatusError when there is none."""
        broker: Broker = self._state.brokers.named("")
        problem = "no name server has answered"
        for address in self._state.config.name_servers:
            request = make_request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic)
            try:
                answer: RemotingCommand = yield broker.remoting.invoke(address, request)
            except RemotingError as error:
                problem = error.text
                continue
            if answer.code == ResponseCode.SUCCESS and answer.body:
                return TopicRouteData.from_json(answer.body)
            raise StatusError(Code.TOPIC_NOT_FOUND, f"CODE: {answer.code}  DESC: {_with_link(answer.remark)}")
        raise StatusError(Code.INTERNAL_SERVER_ERROR, problem)

    def _places(self, route: TopicRouteData) -> Iterator[tuple[QueueData, Any]]:
        """Each broker of a route with its queues; those without a master are left out."""
        masters = {data.broker_name: data.broker_addrs.get(MASTER_ID) for data in route.broker_datas}
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name):
            address = masters.get(data.broker_name)
            if address is not None:
                endpoints = endpoints_of(host_of(address)[0], self._state.config.port)
                yield data, make("Broker", name=data.broker_name, endpoints=endpoints)

    def _kinds(self, topic: str) -> list[int]:
        expected = self._state.type_of(topic)
        if expected == MIXED:
            return [MessageType.NORMAL, MessageType.FIFO, MessageType.DELAY, MessageType.TRANSACTION]
        return [MessageType[expected]]


def endpoints_of(host: str, port: int) -> Any:
    """Where clients reach the front."""
    try:
        scheme = IPV4 if ipaddress.ip_address(host).version == 4 else IPV6
    except ValueError:
        scheme = DOMAIN_NAME
    return make("Endpoints", scheme=scheme, addresses=[make("Address", host=host, port=port)])


def _queues(data: QueueData) -> Iterator[tuple[int, int]]:
    """Ids with permissions: first what can only be read, then what can only be written, then both."""
    reads = data.read_queue_nums if is_readable(data.perm) else 0
    writes = data.write_queue_nums if is_writeable(data.perm) else 0
    both = min(reads, writes)
    permissions = [READ] * (reads - both) + [WRITE] * (writes - both) + [READ_WRITE] * both
    yield from enumerate(permissions)


def _with_link(remark: str | None) -> str:
    """RocketMQ's client adds this to every text of a server."""
    link = "For more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ"
    return f"{(remark or '').partition(' See http')[0].strip()}\n{link}"
