"""Queues that the broker divides for clients which do not do it themselves (clientRebalance=false).

Mirrors: QueryAssignmentProcessor; QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE, GET_ALL_MESSAGE_REQUEST_MODE.

    QUERY_ASSIGNMENT    route of the topic from a name server ─▶ its queues, sorted
                        members of the group here, sorted     ─▶ AVG or AVG_BY_CIRCLE ─▶ the asking member's queues
    broadcasting        all queues
    no route, no members, another strategy: an answer without a list, and the client changes nothing

    mode POP            popShareQueueNum <= 0, or as large as the group: each member pops all (queue -1 of each broker)
                        else: its own queues and those of the next members

Left out: caching of routes: RocketMQ asks again every 30 s, here each question asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.request_modes import POP, PULL
from mqlab.rocketmq.remoting.endpoint import Channel, Remoting, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, body
from mqlab.rocketmq.wire import java_json, names, shares
from mqlab.rocketmq.wire.bodies import TopicRouteData
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.command import request as make_request
from mqlab.rocketmq.wire.java_json import to_json
from mqlab.rocketmq.wire.message import MessageQueue

STRATEGIES = {"AVG": shares.block, "AVG_BY_CIRCLE": shares.dealt}


class Assignments:
    """Handlers of the three requests. It has connections of its own to the name servers, as BrokerOuterAPI has."""

    def __init__(self, state: BrokerState, name_servers: Iterable[str]) -> None:
        self._state = state
        self._name_servers = list(name_servers)
        self._remoting = Remoting(state.ports, {})

    def stop(self) -> None:
        """Close the connections to the name servers."""
        self._remoting.close()

    def query_assignment(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """QUERY_ASSIGNMENT."""
        asked = _asked(request)
        topic = str(asked.get("topic") or "")
        if not self._name_servers:
            return _answer(request, None)

        def routed(answer: RemotingCommand) -> None:
            queues = None
            if answer.code == ResponseCode.SUCCESS:
                queues = self._assigned(asked, TopicRouteData.from_json(answer.body or b"{}").readable_queues(topic))
            reply(_answer(request, queues, self._mode(topic, str(asked.get("consumerGroup")))[0]))

        route = make_request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic)
        self._remoting.invoke(self._name_servers[0], route).then(routed, lambda error: reply(_answer(request, None)))
        return None

    def _assigned(self, asked: Mapping[str, Any], queues: list[MessageQueue]) -> list[MessageQueue] | None:
        if asked.get("messageModel") == "BROADCASTING":
            return queues
        group = self._state.consumers.get(str(asked.get("consumerGroup")))
        share = STRATEGIES.get(str(asked.get("strategyName")))
        if group is None or share is None:
            return None
        members = sorted(group.client_ids)
        client_id = str(asked.get("clientId"))
        if client_id not in members:
            return []
        mode, shared = self._mode(str(asked.get("topic") or ""), group.name)
        index = members.index(client_id)
        return (
            share(queues, index, len(members))
            if mode == PULL
            else pop_share(queues, index, len(members), shared, share)
        )

    def _mode(self, topic: str, group: str) -> tuple[str, int]:
        """How a group asks for a topic, and with how many members it shares its queues."""
        config, modes = self._state.config, self._state.request_modes
        if topic.startswith(names.RETRY_PREFIX):
            return PULL, 0
        return modes.mode_of(topic, group, config.default_message_request_mode), modes.share_of(
            topic, group, config.default_pop_share_queue_num
        )

    def set_message_request_mode(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """SET_MESSAGE_REQUEST_MODE."""
        asked = _asked(request)
        topic, group = str(asked.get("topic") or ""), str(asked.get("consumerGroup") or "")
        if topic.startswith(names.RETRY_PREFIX):
            raise Refused(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
        if self._state.topics.get(topic) is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        if self._state.groups.find(group) is None:
            raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist")
        mode = str(asked.get("mode") or PULL)
        if mode not in (PULL, POP):
            raise Refused(ResponseCode.SYSTEM_ERROR, f"unknown mode {mode}: expected {PULL} or {POP}")
        shared = asked.get("popShareQueueNum") or 0
        if not isinstance(shared, int):
            raise Refused(ResponseCode.SYSTEM_ERROR, f"popShareQueueNum is a whole number, not {shared!r}")
        self._state.request_modes.set(topic, group, mode, shared)
        return request.reply()

    def get_all_message_request_mode(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ALL_MESSAGE_REQUEST_MODE."""
        return request.reply(body=self._state.request_modes.encode().encode("utf-8"))


def pop_share(
    queues: list[MessageQueue], index: int, members: int, shared: int, share: Callable[..., list[MessageQueue]]
) -> list[MessageQueue]:
    """The queues that one member pops. Mirrors QueryAssignmentProcessor.allocate4Pop.

    >>> queues = [MessageQueue("r1", "broker-a", n) for n in range(4)]
    >>> [[queue.queue_id for queue in pop_share(queues, each, 3, 1, shares.block)] for each in range(3)]
    [[0, 1, 2], [2, 3], [3, 0, 1]]
    """
    if shared <= 0 or shared >= members - 1:
        brokers = dict.fromkeys((queue.topic, queue.broker_name) for queue in queues)
        return [MessageQueue(topic, broker_name, -1) for topic, broker_name in brokers]
    if members > len(queues):
        return [queues[index % len(queues)]] if queues else []
    own = [share(queues, (index + step) % members, members) for step in range(shared + 1)]
    return [queue for part in own for queue in part]


def _asked(request: RemotingCommand) -> Mapping[str, Any]:
    try:
        value = java_json.loads(body(request).decode("utf-8", "replace"))
    except ValueError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"the body is not JSON: {error}") from error
    return value if isinstance(value, dict) else {}


def _answer(request: RemotingCommand, queues: list[MessageQueue] | None, mode: str = PULL) -> RemotingCommand:
    if queues is None:
        return request.reply(body=to_json({}))
    rows = [
        {
            "messageQueue": {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic},
            "mode": mode,
        }
        for queue in queues
    ]
    return request.reply(body=to_json({"messageQueueAssignments": rows}))
