"""ReceiveMessage: a pop of all queues of a topic at one broker, held until something comes.

Mirrors: ReceiveMessageActivity, ReceiveMessageResponseStreamWriter, ConsumerProcessor.popMessage.

    poll time       the request's, between 5 and 20 s, but not longer than the client waits
    invisible time  60 s for a push consumer (auto_renew), whatever it says; else 10 s to 12 h
    each message    of a tag that is not wanted: acknowledged   delivered often enough: to %DLQ%group   else: answered

The queue of the request is not used: none is owned. The answer is a stream of status, messages and the delivery time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mqlab.cluster.grpc import conversion
from mqlab.cluster.grpc.clients import Caller, GrpcClient, subscription_of
from mqlab.cluster.grpc.codes import Code, ProxyRefusal, StatusError, ok
from mqlab.cluster.grpc.handles import ReceiptHandle
from mqlab.cluster.grpc.leasing import Leasing
from mqlab.cluster.grpc.messages import make, milliseconds_of, moment
from mqlab.cluster.grpc.renewing import AFTER_THE_END_MS, RenewedLease, Renewing
from mqlab.cluster.grpc.settings import MOST_POLLING_MS, max_attempts
from mqlab.cluster.grpc.state import FrontState, checked_group, checked_invisible_ms, checked_topic
from mqlab.errors import FilterError
from mqlab.rocketmq.broker import Broker
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.bodies import SubscriptionData, SubscriptionGroupConfig
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_numbers import parse_int, parse_long
from mqlab.rocketmq.wire.pop import NORMAL, Handle, kind_of_topic, offsets_of
from mqlab.rocketmq.wire.record import Record, decode_all

FEWEST_POLLING_MS = 5_000
SHORTEST_INVISIBLE_MS = 10_000
AUTO_RENEWED_MS = 60_000
MOST_MESSAGES = 32
FROM_END = 1  # ConsumeInitMode.MAX
NO_SETTINGS = (
    'Cannot invoke "apache.rocketmq.v2.Settings.getSubscription()" because "settings" is null. NullPointerException. '
    "org.apache.rocketmq.proxy.grpc.v2.consumer.ReceiveMessageActivity.receiveMessage(ReceiveMessageActivity.java:63)"
)
NO_TOPIC = (
    'Cannot invoke "org.apache.rocketmq.common.TopicConfig.getPerm()" because "topicConfig" is null. '
    "NullPointerException. org.apache.rocketmq.proxy.service.route.LocalTopicRouteService.toTopicRouteData("
    "LocalTopicRouteService.java:83)"
)


@dataclass(slots=True)
class Received:
    """The answer to one call. ``leases``: its messages, to be given back when they do not reach the client."""

    status: Any
    delivered_ms: int
    messages: list[Any] = field(default_factory=list)
    leases: list[RenewedLease] = field(default_factory=list)

    def responses(self) -> list[Any]:
        """The messages of the stream."""
        stream = [make("ReceiveMessageResponse", status=self.status)]
        stream += [make("ReceiveMessageResponse", message=message) for message in self.messages]
        return [*stream, make("ReceiveMessageResponse", delivery_timestamp=moment(self.delivered_ms))]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A checked request."""

    client: GrpcClient
    broker: Broker
    group: SubscriptionGroupConfig
    topic: str
    subscription: SubscriptionData
    batch: int
    poll_ms: int
    invisible_ms: int
    auto_renew: bool
    attempt_id: str | None


class Receiving:
    """The RPC."""

    def __init__(self, state: FrontState, leasing: Leasing, renewing: Renewing) -> None:
        self._state = state
        self._leasing = leasing
        self._renewing = renewing

    @flow
    def receive_message(self, request: Any, caller: Caller) -> Flow[Received]:
        """ReceiveMessage; a refusal is a status as well."""
        try:
            received: Received = yield self._receive(request, caller)
        except StatusError as refusal:
            received = Received(refusal.status, self._state.now_ms())
        return received

    @flow
    def _receive(self, request: Any, caller: Caller) -> Flow[Received]:
        asked = self._checked(request, caller)
        answer: RemotingCommand = yield self._state.clients.ask(
            asked.client,
            asked.broker,
            RequestCode.POP_MESSAGE,
            consumerGroup=asked.group.group_name,
            topic=asked.topic,
            queueId=-1,
            maxMsgNums=asked.batch,
            invisibleTime=asked.invisible_ms,
            pollTime=asked.poll_ms,
            bornTime=self._state.now_ms(),
            initMode=FROM_END,
            expType=asked.subscription.expression_type,
            exp=asked.subscription.sub_string,
            order=asked.group.consume_message_orderly,
            attemptId=asked.attempt_id,
        )
        now_ms = self._state.now_ms()
        if answer.code == ResponseCode.POLLING_FULL:
            return Received(StatusError(Code.TOO_MANY_REQUESTS, "polling full").status, now_ms)
        if answer.code in (ResponseCode.POLLING_TIMEOUT, ResponseCode.PULL_NOT_FOUND):
            return Received(StatusError(Code.MESSAGE_NOT_FOUND, "no new message").status, now_ms)
        if answer.code != ResponseCode.SUCCESS:
            raise ProxyRefusal(answer.remark or str(answer.code))
        received = Received(ok(), now_ms)
        for record, handle in popped(answer, asked.broker.config.broker_name):
            self._take(asked, received, record, handle)
        if not received.messages:
            received.status = StatusError(Code.MESSAGE_NOT_FOUND, "no match message").status
        return received

    def _checked(self, request: Any, caller: Caller) -> _Asked:
        state, client = self._state, self._state.clients.of(caller)
        if client.settings is None and state.config.as_in_5_3_3:
            raise StatusError(Code.INTERNAL_SERVER_ERROR, NO_SETTINGS)
        poll_ms = self._poll_ms(request, client, caller)
        topic, group = checked_topic(request.message_queue.topic.name), checked_group(request.group.name)
        invisible_ms = _invisible_ms(request)
        try:
            subscription = subscription_of(topic, request.filter_expression, state.now_ms())
        except FilterError as error:
            raise StatusError(Code.INTERNAL_SERVER_ERROR, error.text) from error
        if not state.brokers.with_topic(topic):
            raise StatusError(Code.INTERNAL_SERVER_ERROR, NO_TOPIC)
        broker = state.brokers.named(request.message_queue.broker.name)
        config = broker.groups.find(group)
        if config is None:
            raise ProxyRefusal(f"subscription group [{group}] does not exist")
        batch, attempt_id = min(request.batch_size, MOST_MESSAGES), request.attempt_id or None
        auto_renew = bool(request.auto_renew)
        return _Asked(client, broker, config, topic, subscription, batch, poll_ms, invisible_ms, auto_renew, attempt_id)

    def _poll_ms(self, request: Any, client: GrpcClient, caller: Caller) -> int:
        """How long a request may be held. StatusError when the client does not wait long enough."""
        wanted_ms = MOST_POLLING_MS
        if request.HasField("long_polling_timeout"):
            wanted_ms = milliseconds_of(request.long_polling_timeout)
        elif client.settings is not None:
            wanted_ms = milliseconds_of(client.settings.subscription.long_polling_timeout)
        poll_ms = min(max(wanted_ms, FEWEST_POLLING_MS), MOST_POLLING_MS)
        if caller.left_ms is not None and poll_ms > caller.left_ms:
            if caller.left_ms < FEWEST_POLLING_MS:
                raise StatusError(
                    Code.ILLEGAL_POLLING_TIME,
                    "The deadline time remaining is not enough for polling, please check network condition",
                )
            poll_ms = caller.left_ms
        return poll_ms

    def _take(self, asked: _Asked, received: Received, record: Record, handle: ReceiptHandle) -> None:
        group, topic, client = asked.group.group_name, asked.topic, asked.client
        message_id = record.property_map.get(p.UNIQ_KEY, "")
        tags = asked.subscription.tags_set
        if tags and record.property_map.get(p.TAGS) not in tags:
            self._leasing.ack(client, group, topic, handle)
        elif record.reconsume_times >= max_attempts(asked.group):
            self._leasing.bury(client, group, topic, handle, message_id)
        else:
            now_ms = self._state.now_ms()
            lease = RenewedLease(client, group, topic, message_id, handle, record.reconsume_times, now_ms)
            received.messages.append(conversion.message_of(record, now_ms, handle.text, topic))
            received.leases.append(lease)
            if asked.auto_renew:
                self._renewing.keep(lease)

    def give_back(self, received: Received) -> None:
        """The client is gone before it got its messages: they come again in a second."""
        for lease in received.leases:
            self._renewing.taken(lease.client, lease.group, lease.topic, lease.message_id, lease.handle)
            self._renewing.change(lease.client, lease.group, lease.topic, lease.handle, AFTER_THE_END_MS)


def _invisible_ms(request: Any) -> int:
    if request.auto_renew:
        return AUTO_RENEWED_MS
    return checked_invisible_ms(request.invisible_duration, SHORTEST_INVISIBLE_MS)


def popped(answer: RemotingCommand, broker_name: str) -> list[tuple[Record, ReceiptHandle]]:
    """The messages of a pop's answer with their handles; bodies stay as they were sent.

    Mirrors LocalMessageService.popMessage.
    """
    fields = answer.ext_fields
    starts = offsets_of(fields.get("startOffsetInfo", ""))
    pop_time, invisible_ms = parse_long(fields["popTime"]), parse_long(fields["invisibleTime"])
    receipts = []
    for record in decode_all(answer.body or b""):
        text = record.property_map.get(p.POP_CK)
        kind = kind_of_topic(record.topic)
        # A retry message under its first topic brings its handle along; another is found by its queue.
        if text is not None:
            pop = Handle.parse(text)
        else:
            start = starts.get((kind, record.queue_id), starts.get((NORMAL, record.queue_id), [record.queue_offset]))
            revive_queue = parse_int(fields["reviveQid"])
            pop = Handle(
                start[0], pop_time, invisible_ms, revive_queue, kind, broker_name, record.queue_id, record.queue_offset
            )
        receipts.append((record, ReceiptHandle(pop, record.physical_offset)))
    return receipts
