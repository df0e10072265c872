"""Queues that the broker divides: the client asks for its share of a topic and does what the answer says.

Mirrors: RebalanceImpl.getRebalanceResultFromBroker and updateMessageQueueAssignment (clientRebalance=false).

    QUERY_ASSIGNMENT ─▶ mode PULL    these queues are pulled as usual
                        mode POP     these are popped; queue -1 stands for all queues of a broker
                        no list      nothing changes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mqlab.rocketmq.client.consuming.member_state import MemberState
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire import command, java_json
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.pop import pop_retry_topic

QUERY_TIMEOUT_MS = 3_000
Assignment = list[tuple[MessageQueue, str]]


class BrokerRebalance:
    """Asks one broker for the queues of a topic. ``pop`` takes those that are to be popped."""

    def __init__(
        self,
        state: MemberState[Any],
        strategy_name: str,
        pop: Callable[[str, Sequence[MessageQueue]], bool],
        subscribe: Callable[[str], None],
    ) -> None:
        self._state = state
        self._strategy_name = strategy_name
        self._pop = pop
        self._subscribe = subscribe

    @flow
    def assigned(self, topic: str) -> Flow[list[MessageQueue] | None]:
        """The queues of a topic to pull, after those to pop were passed on; None: nothing changes."""
        assignment: Assignment | None = yield self._ask(topic)
        if assignment is None:
            return None
        popped = [queue for queue, mode in assignment if mode == "POP"]
        pulled = [queue for queue, mode in assignment if mode != "POP"]
        self._pop(topic, popped)
        # A group that pulls again still has messages in the retry topic of its pops.
        retry = pop_retry_topic(topic, self._state.group)
        if pulled and not popped and retry in self._state.cluster.routes.topic_route_table:
            self._subscribe(retry)
        return pulled

    @flow
    def _ask(self, topic: str) -> Flow[Assignment | None]:
        cluster = self._state.cluster
        addresses = cluster.routes.addresses_of_topic(topic)
        if not addresses:
            yield cluster.update_route(topic)
            addresses = cluster.routes.addresses_of_topic(topic)
        if not addresses:
            return None
        body = {
            "clientId": cluster.client_id,
            "consumerGroup": self._state.group,
            "messageModel": self._state.config.message_model,
            "strategyName": self._strategy_name,
            "topic": topic,
        }
        address = addresses[cluster.ports.rng.randrange(len(addresses))]
        request = command.request(RequestCode.QUERY_ASSIGNMENT, java_json.to_json(body))
        answer: RemotingCommand = yield cluster.invoke(address, request, QUERY_TIMEOUT_MS)
        return _assignment_in(answer)


def _assignment_in(answer: RemotingCommand) -> Assignment | None:
    if answer.code != ResponseCode.SUCCESS:
        return None
    value = java_json.loads((answer.body or b"{}").decode("utf-8"))
    rows = value.get("messageQueueAssignments") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        return None
    return [(_queue_of(row["messageQueue"]), str(row.get("mode") or "PULL")) for row in rows if row.get("messageQueue")]


def _queue_of(value: Mapping[str, Any]) -> MessageQueue:
    return MessageQueue(value["topic"], value["brokerName"], java_json.to_int(value["queueId"]))
