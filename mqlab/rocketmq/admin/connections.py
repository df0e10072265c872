"""Which clients are connected, what they subscribe to, and what a running consumer reports about itself.

Mirrors: mqadmin consumerConnection, producerConnection, consumerStatus, producer; requests 203, 204, 307, 328, 223.

    members      client_id  address  language  version
    subscribed   topic  expression  type  sub_version
    running      per queue: cached messages, commit offset, dropped, locked, last pull and last consumption

Left out: stack traces of Java threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.errors import BrokerError
from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.answers import Rows, Shown
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.body import queue_from_key
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.java_json import to_long
from mqlab.rocketmq.wire.message import MessageQueue


@dataclass(frozen=True, slots=True)
class Connection:
    """One client of a group. Mirrors Connection."""

    client_id: str
    client_addr: str
    language: str
    version: int


@dataclass(frozen=True, slots=True)
class ConsumerConnection(Shown):
    """The online members of a group and their subscriptions, as the brokers have them. Mirrors ConsumerConnection."""

    group: str
    consume_type: str
    message_model: str
    consume_from_where: str
    connections: tuple[Connection, ...]
    subscriptions: tuple[SubscriptionData, ...]

    def shown_rows(self) -> Sequence[Connection]:
        return self.connections

    def shown_title(self) -> str:
        return f"members of {self.group}"

    def shown_notes(self) -> Sequence[str]:
        subscriptions = [
            f"{subscription.topic} {subscription.sub_string!r} ({subscription.expression_type})"
            for subscription in self.subscriptions
        ]
        return [f"{self.consume_type} {self.message_model} {self.consume_from_where}", *subscriptions]


@dataclass(frozen=True, slots=True)
class ProducerInfo:
    """One client of a producer group. Mirrors ProducerInfo."""

    group: str
    client_id: str
    client_addr: str
    last_update_timestamp: int


@dataclass(frozen=True, slots=True)
class RunningQueue:
    """The state of one queue in a consumer. Offsets are queue offsets, times are in ms. Mirrors ProcessQueueInfo."""

    message_queue: MessageQueue
    commit_offset: int
    cached_count: int
    cached_min_offset: int
    cached_max_offset: int
    locked: bool
    dropped: bool
    last_pull_timestamp: int
    last_consume_timestamp: int


@dataclass(frozen=True, slots=True)
class PoppedQueue:
    """The state of one queue that a consumer pops (queue -1: all of a broker). Mirrors PopProcessQueueInfo.

    ``wait_ack_count``: messages that are not acknowledged. A batch whose lease is over raises it for ever, as in 5.3.3.
    """

    message_queue: MessageQueue
    wait_ack_count: int
    dropped: bool
    last_pop_timestamp: int


@dataclass(frozen=True, slots=True)
class ConsumeStatus:
    """The recent counts of a consumer for one topic: rates per second, times in ms. Mirrors ConsumeStatus."""

    client_id: str
    topic: str
    pull_rt: float
    pull_tps: float
    consume_rt: float
    consume_ok_tps: float
    consume_failed_tps: float
    consume_failed_msgs: int


@dataclass(frozen=True, slots=True)
class ConsumerRunningInfo(Shown):
    """The report of a running consumer about itself. Mirrors ConsumerRunningInfo."""

    group: str
    client_id: str
    properties: dict[str, str]
    subscriptions: tuple[SubscriptionData, ...]
    queues: tuple[RunningQueue, ...]
    popped_queues: tuple[PoppedQueue, ...]
    statuses: tuple[ConsumeStatus, ...]

    def shown_rows(self) -> Sequence[RunningQueue | PoppedQueue]:
        return self.popped_queues or self.queues

    def shown_title(self) -> str:
        return f"queues of {self.client_id}"


@dataclass(frozen=True, slots=True)
class ClientOffset:
    """The offset of a queue in a member's memory, which may be ahead of the broker's table."""

    client_id: str
    message_queue: MessageQueue
    commit_offset: int


@dataclass(frozen=True, slots=True)
class DirectResult:
    """The answer of a consumer that consumed a message on request. Mirrors ConsumeMessageDirectlyResult."""

    msg_id: str
    client_id: str
    consume_result: str
    remark: str | None
    spent_ms: int


def examine_consumer_connection_info(admin: AdminNode, group: str) -> ConsumerConnection:
    """The online members of a group, in the order of their client ids; BrokerError with code 206 when there are none.

    A client id that two processes share is there twice, with the address of each (``client_addr``).
    """
    answers, refused = [], None
    for _, address in admin.brokers_of_group(group):
        try:
            answers.append(admin.ask_value(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, consumerGroup=group))
        except BrokerError as error:  # members connect to the brokers of their topics, so that some may have none
            if error.response_code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
            refused = error
    if not answers:
        raise refused or BrokerError(ResponseCode.CONSUMER_NOT_ONLINE, f"no broker has the group {group}")
    members = _members([_connections(answer) for answer in answers])
    wanted = {
        topic: SubscriptionData.from_value(value)
        for answer in answers
        for topic, value in (answer.get("subscriptionTable") or {}).items()
    }
    # All members of a group have the same mode, so any broker's answer will do.
    first = answers[0]
    return ConsumerConnection(
        group,
        first["consumeType"],
        first["messageModel"],
        first["consumeFromWhere"],
        members,
        tuple(wanted[topic] for topic in sorted(wanted)),
    )


def _members(of_brokers: Iterable[Iterable[Connection]]) -> tuple[Connection, ...]:
    """The members in the order of their ids, as the broker lists them that knows most of an id.

    A member is connected to several brokers and counts once; two processes with one client id are two members, and a
    broker that knows both lists the id twice.
    """
    members: dict[str, list[Connection]] = {}
    for connections in of_brokers:
        by_id: dict[str, list[Connection]] = {}
        for connection in connections:
            by_id.setdefault(connection.client_id, []).append(connection)
        for client_id, same in by_id.items():
            if len(same) > len(members.get(client_id, ())):
                members[client_id] = same
    return tuple(member for client_id in sorted(members) for member in members[client_id])


def online_members(admin: AdminNode, group: str) -> tuple[Connection, ...]:
    """The online members of a group; empty when there are none."""
    try:
        return examine_consumer_connection_info(admin, group).connections
    except BrokerError as error:
        if error.response_code != ResponseCode.CONSUMER_NOT_ONLINE:
            raise
        return ()


def examine_producer_connection_info(admin: AdminNode, group: str, topic: str | None = None) -> Rows[Connection]:
    """The clients of a producer group at the brokers (of a topic); BrokerError with code 1 for an unknown group."""
    producers, refused = {}, None
    for _, address in admin.brokers_of(topic) if topic else admin.brokers():
        try:
            answer = admin.ask_value(address, RequestCode.GET_PRODUCER_CONNECTION_LIST, producerGroup=group)
        except BrokerError as error:
            refused = error
            continue
        producers.update({connection.client_id: connection for connection in _connections(answer)})
    if refused is not None and not producers:
        raise refused
    return Rows([producers[client_id] for client_id in sorted(producers)], f"producers of {group}")


def get_all_producer_info(admin: AdminNode) -> Rows[ProducerInfo]:
    """Every producer that is connected to a broker."""
    producers = {}
    for _, address in admin.brokers():
        table = admin.ask_value(address, RequestCode.GET_ALL_PRODUCER_INFO).get("data") or {}
        for group, members in table.items():
            for member in members:
                updated_ms = to_long(member["lastUpdateTimestamp"])
                row = ProducerInfo(group, member["clientId"], member["remoteIP"], updated_ms)
                producers[group, row.client_id] = row
    return Rows([producers[key] for key in sorted(producers)], "producers")


def get_consumer_running_info(admin: AdminNode, group: str, client_id: str) -> ConsumerRunningInfo:
    """The report of one member about itself, requested through a broker."""
    _, address = admin.brokers_of_group(group)[0]
    code = RequestCode.GET_CONSUMER_RUNNING_INFO
    answer = admin.ask_value(address, code, consumerGroup=group, clientId=client_id, jstackEnable=False)
    queues = [_running_queue(queue_from_key(key), info) for key, info in (answer.get("mqTable") or {}).items()]
    popped = [_popped_queue(queue_from_key(key), info) for key, info in (answer.get("mqPopTable") or {}).items()]
    return ConsumerRunningInfo(
        group,
        client_id,
        dict(answer.get("properties") or {}),
        tuple(SubscriptionData.from_value(subscription) for subscription in answer.get("subscriptionSet") or []),
        tuple(sorted(queues, key=lambda row: row.message_queue)),
        tuple(sorted(popped, key=lambda row: row.message_queue)),
        tuple(_status(client_id, topic, status) for topic, status in sorted((answer.get("statusTable") or {}).items())),
    )


def consumer_status(admin: AdminNode, group: str) -> Rows[ConsumeStatus]:
    """The recent counts of every member, one row per member and topic. Mirrors consumerStatus."""
    members = examine_consumer_connection_info(admin, group).connections
    infos = [get_consumer_running_info(admin, group, member.client_id) for member in members]
    return Rows([status for info in infos for status in info.statuses], f"statistics of {group}")


def get_consume_status(admin: AdminNode, topic: str, group: str, client_id: str = "") -> Rows[ClientOffset]:
    """The offsets that members hold in memory for a topic."""
    rows = []
    code = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS
    for _, address in admin.brokers_of(topic)[:1]:  # members answer for all brokers at once
        answer = admin.ask_value(address, code, topic=topic, group=group, clientAddr=client_id)
        for member, offsets in (answer.get("consumerTable") or {}).items():
            rows += [ClientOffset(member, queue_from_key(key), to_long(offset)) for key, offset in offsets.items()]
    return Rows(sorted(rows, key=lambda row: (row.client_id, row.message_queue)), f"offsets in {group}'s memory")


def consume_message_directly(
    admin: AdminNode, group: str, client_id: str, topic: str, offset_msg_id: str
) -> DirectResult:
    """Let one member consume a stored message now, outside of its queues; no offset changes."""
    _, address = admin.brokers_of_group(group)[0]
    answer = admin.ask_value(
        address,
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
        consumerGroup=group,
        clientId=client_id,
        topic=topic,
        msgId=offset_msg_id,
    )
    return DirectResult(
        offset_msg_id, client_id, answer["consumeResult"], answer.get("remark"), to_long(answer["spentTimeMills"])
    )


def _connections(answer: dict[str, Any]) -> list[Connection]:
    return [
        Connection(member["clientId"], member["clientAddr"], member["language"], to_long(member["version"]))
        for member in answer.get("connectionSet") or []
    ]


def _running_queue(queue: MessageQueue, info: dict[str, Any]) -> RunningQueue:
    return RunningQueue(
        queue,
        to_long(info["commitOffset"]),
        to_long(info["cachedMsgCount"]),
        to_long(info["cachedMsgMinOffset"]),
        to_long(info["cachedMsgMaxOffset"]),
        bool(info["locked"]),
        bool(info["droped"]),
        to_long(info["lastPullTimestamp"]),
        to_long(info["lastConsumeTimestamp"]),
    )


def _popped_queue(queue: MessageQueue, info: dict[str, Any]) -> PoppedQueue:
    return PoppedQueue(queue, to_long(info["waitAckCount"]), bool(info["droped"]), to_long(info["lastPopTimestamp"]))


def _status(client_id: str, topic: str, status: dict[str, Any]) -> ConsumeStatus:
    return ConsumeStatus(
        client_id,
        topic,
        float(status.get("pullRT", 0)),
        float(status.get("pullTPS", 0)),
        float(status.get("consumeRT", 0)),
        float(status.get("consumeOKTPS", 0)),
        float(status.get("consumeFailedTPS", 0)),
        to_long(status.get("consumeFailedMsgs", 0)),
    )
