"""One pop and what follows it, as a client sees them: messages with their handles, acks, longer leases.

Mirrors: MQClientAPIImpl.processPopResponse, PopResult, ackMessageAsync, changePopInvisibleTimeAsync.

    POP_MESSAGE ─▶ units ─▶ messages, each with POP_CK: the handle, made of the answer's offsets
    ack         ─▶ topic, queue and offset of the handle, not of the message: a retry message has another topic
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mqlab.errors import BrokerError, ClientError
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire import command
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_numbers import parse_int, parse_long
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue, decode_messages
from mqlab.rocketmq.wire.pop import NORMAL, Handle, kind_of_topic, offsets_of, real_topic

FOUND, NO_NEW_MSG, POLLING_FULL = "FOUND", "NO_NEW_MSG", "POLLING_FULL"
POP_TIMEOUT_MARGIN_MS = 10_000
ACK_TIMEOUT_MS = 3_000
_STATUS: dict[int, str] = {
    ResponseCode.SUCCESS: FOUND,
    ResponseCode.POLLING_TIMEOUT: NO_NEW_MSG,
    ResponseCode.PULL_NOT_FOUND: NO_NEW_MSG,
    ResponseCode.POLLING_FULL: POLLING_FULL,
}


@dataclass(frozen=True, slots=True)
class PopCall:
    """What a pop asks for; ``queue.queue_id`` -1 means all queues of the broker. Times are ms."""

    group: str
    queue: MessageQueue
    max_nums: int
    invisible_ms: int
    poll_ms: int
    init_mode: int
    subscription: SubscriptionData


@dataclass(frozen=True, slots=True)
class PopResult:
    """A broker's answer. ``filtered``: messages of tags without a subscription, which must be acknowledged."""

    status: str
    messages: list[MessageExt] = field(default_factory=list)
    filtered: list[MessageExt] = field(default_factory=list)
    pop_time: int = 0
    invisible_ms: int = 0


class PopApi:
    """Pops, acks and changes of one consumer group."""

    def __init__(self, cluster: ClusterAccess, group: str) -> None:
        self._cluster = cluster
        self.group = group

    @flow
    def pop(self, call: PopCall) -> Flow[PopResult]:
        """Ask a broker's master. BrokerError when it refuses, ClientError when no route names it."""
        address: str = yield self._cluster.find_master(call.queue)
        request = command.request(
            RequestCode.POP_MESSAGE,
            consumerGroup=call.group,
            topic=call.queue.topic,
            queueId=call.queue.queue_id,
            maxMsgNums=call.max_nums,
            invisibleTime=call.invisible_ms,
            pollTime=call.poll_ms,
            bornTime=self._cluster.ports.clock.now_ms(),
            initMode=call.init_mode,
            expType=call.subscription.expression_type,
            exp=call.subscription.sub_string,
            order=False,
            bname=call.queue.broker_name,
        )
        answer: RemotingCommand = yield self._cluster.invoke(address, request, call.poll_ms + POP_TIMEOUT_MARGIN_MS)
        return pop_result_of(answer, call, address)

    @flow
    def ack(self, message: MessageExt) -> Flow[None]:
        """Say that a message is done. BrokerError when its queue is gone; its lease is not checked."""
        handle, address = yield from self._place(message)
        request = command.request(
            RequestCode.ACK_MESSAGE,
            consumerGroup=self.group,
            topic=real_topic(message.topic, self.group, handle.kind),
            queueId=handle.queue_id,
            extraInfo=handle.text,
            offset=handle.queue_offset,
            bname=handle.broker_name,
        )
        answer: RemotingCommand = yield self._cluster.invoke(address, request, ACK_TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, address=address)

    @flow
    def change_invisible_time(self, message: MessageExt, invisible_ms: int) -> Flow[None]:
        """Let a message stay invisible for that long from now; its handle is another one afterwards."""
        handle, address = yield from self._place(message)
        request = command.request(
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
            consumerGroup=self.group,
            topic=real_topic(message.topic, self.group, handle.kind),
            queueId=handle.queue_id,
            extraInfo=handle.text,
            offset=handle.queue_offset,
            invisibleTime=invisible_ms,
            bname=handle.broker_name,
        )
        answer: RemotingCommand = yield self._cluster.invoke(address, request, ACK_TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, address=address)
        fields = answer.ext_fields
        message.properties[p.POP_CK] = Handle(
            handle.queue_offset,
            parse_long(fields["popTime"]),
            parse_long(fields["invisibleTime"]),
            parse_int(fields["reviveQid"]),
            handle.kind,
            handle.broker_name,
            handle.queue_id,
            handle.queue_offset,
        ).text

    def _place(self, message: MessageExt) -> Flow[tuple[Handle, str]]:
        handle = handle_of(message)
        queue = MessageQueue(message.topic, handle.broker_name, handle.queue_id)
        address: str = yield self._cluster.find_master(queue)
        return handle, address


def handle_of(message: MessageExt) -> Handle:
    """The handle of a popped message. ClientError for a message that was not popped."""
    text = message.properties.get(p.POP_CK)
    if text is None:
        raise ClientError(f"{message!r} was not popped", hint="ack what receive() gave, or what a popping listener got")
    return Handle.parse(text)


def pop_result_of(answer: RemotingCommand, call: PopCall, address: str) -> PopResult:
    """The messages of an answer, each with its handle. BrokerError for a refusal. Mirrors processPopResponse."""
    status = _STATUS.get(answer.code)
    if status is None:
        raise BrokerError(answer.code, answer.remark, address=address)
    fields = answer.ext_fields
    pop_time, invisible_ms = parse_long(fields.get("popTime", "0")), parse_long(fields.get("invisibleTime", "0"))
    if status != FOUND:
        return PopResult(status, pop_time=pop_time, invisible_ms=invisible_ms)
    starts = offsets_of(fields.get("startOffsetInfo", ""))
    revive_queue = parse_int(fields.get("reviveQid", "0"))
    messages: list[MessageExt] = []
    filtered: list[MessageExt] = []
    tags = call.subscription.tags_set
    for message in decode_messages(answer.body or b"", call.queue.broker_name):
        # A retry message brings its handle along: its topic says nothing about where it is.
        if p.POP_CK not in message.properties:
            kind = kind_of_topic(message.topic)
            start = starts.get((kind, message.queue_id), starts.get((NORMAL, message.queue_id), [message.queue_offset]))
            message.properties[p.POP_CK] = Handle(
                start[0],
                pop_time,
                invisible_ms,
                revive_queue,
                kind,
                call.queue.broker_name,
                message.queue_id,
                message.queue_offset,
            ).text
        message.properties.setdefault(p.FIRST_POP_TIME, str(pop_time))
        (filtered if tags and message.tags not in tags else messages).append(message)
    return PopResult(FOUND, messages, filtered, pop_time, invisible_ms)
