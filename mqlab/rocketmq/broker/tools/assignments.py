"""Queues that the broker divides for clients which do not do it themselves (clientRebalance=false).

Mirrors: QueryAssignmentProcessor; QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE, GET_ALL_MESSAGE_REQUEST_MODE.

    QUERY_ASSIGNMENT    route of the topic from a name server ─▶ its queues, sorted
                        members of the group here, sorted     ─▶ AVG or AVG_BY_CIRCLE ─▶ the asking member's queues
    broadcasting        all queues
    no route, no members, another strategy: an answer without a list, and the client changes nothing

Left out: the mode POP (refused), caching of routes: RocketMQ asks again every 30 s, here each question asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.request_modes import PULL
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
            reply(_answer(request, queues, self._state.request_modes.mode_of(topic, str(asked.get("consumerGroup")))))

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
        return share(queues, members.index(client_id), len(members)) if client_id in members else []

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
        if mode != PULL:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"the mode {mode} is not modelled here, {PULL} is")
        shared = asked.get("popShareQueueNum") or 0
        if not isinstance(shared, int):
            raise Refused(ResponseCode.SYSTEM_ERROR, f"popShareQueueNum is a whole number, not {shared!r}")
        self._state.request_modes.set(topic, group, mode, shared)
        return request.reply()

    def get_all_message_request_mode(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ALL_MESSAGE_REQUEST_MODE."""
        return request.reply(body=self._state.request_modes.encode().encode("utf-8"))


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
