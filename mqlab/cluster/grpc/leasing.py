"""AckMessage, ChangeInvisibleDuration and ForwardMessageToDeadLetterQueue: what becomes of a leased message.

Mirrors: AckMessageActivity, ChangeInvisibleDurationActivity, ForwardMessageToDLQActivity, ConsumerProcessor.

    ack        the lease must not be over by the front's clock
    change     the answer has the handle to use from now on
    forward    a copy of the message in the log for %DLQ%group, then an ack

A handle that the front has renewed meanwhile is replaced by the one that is valid now; see renewing.
"""

from __future__ import annotations

from typing import Any

from mqlab.cluster.grpc.clients import Caller, GrpcClient
from mqlab.cluster.grpc.codes import Code, StatusError, common_status, ok, status_of_broker
from mqlab.cluster.grpc.handles import ReceiptHandle, receipt_handle_of, valid_handle_of
from mqlab.cluster.grpc.messages import make
from mqlab.cluster.grpc.renewing import Renewing
from mqlab.cluster.grpc.state import FrontState, checked_group, checked_invisible_ms, checked_topic
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand

TO_DEAD_LETTERS = -1  # the delay level that says so


class Leasing:
    """The three RPCs."""

    def __init__(self, state: FrontState, renewing: Renewing) -> None:
        self._state = state
        self._renewing = renewing

    @flow
    def ack_message(self, request: Any, caller: Caller) -> Flow[Any]:
        """AckMessage: an entry with a status of its own for each handle."""
        client = self._state.clients.of(caller)
        group, topic = checked_group(request.group.name), checked_topic(request.topic.name)
        entries = []
        for asked in request.entries:
            try:
                status = yield self._ack_entry(client, group, topic, asked)
            except StatusError as refusal:
                status = refusal.status
            entries.append(
                make(
                    "AckMessageResultEntry",
                    message_id=asked.message_id,
                    receipt_handle=asked.receipt_handle,
                    status=status,
                )
            )
        status = common_status(entry.status for entry in entries)
        if status.code == Code.OK:
            status = ok()
        return make("AckMessageResponse", status=status, entries=entries)

    @flow
    def _ack_entry(self, client: GrpcClient, group: str, topic: str, asked: Any) -> Flow[Any]:
        handle = receipt_handle_of(asked.receipt_handle)
        handle = self._renewing.taken(client, group, topic, asked.message_id, handle) or handle
        handle = valid_handle_of(handle.text, self._state.now_ms())
        answer: RemotingCommand = yield self.ack(client, group, topic, handle)
        if answer.code != ResponseCode.SUCCESS:
            raise StatusError(Code.INTERNAL_SERVER_ERROR, "ack failed: status is abnormal")
        return ok()

    def ack(self, client: GrpcClient, group: str, topic: str, handle: ReceiptHandle) -> Any:
        """Say to the broker that a message is done."""
        return self._state.clients.ask(
            client,
            self._state.brokers.named(handle.pop.broker_name),
            RequestCode.ACK_MESSAGE,
            consumerGroup=group,
            topic=handle.topic_of(topic, group),
            queueId=handle.pop.queue_id,
            extraInfo=handle.pop.text,
            offset=handle.pop.queue_offset,
        )

    @flow
    def change_invisible_duration(self, request: Any, caller: Caller) -> Flow[Any]:
        """ChangeInvisibleDuration."""
        client = self._state.clients.of(caller)
        group, topic = checked_group(request.group.name), checked_topic(request.topic.name)
        invisible_ms = checked_invisible_ms(request.invisible_duration)
        old = receipt_handle_of(request.receipt_handle)
        old = self._renewing.taken(client, group, topic, request.message_id, old) or old
        old = valid_handle_of(old.text, self._state.now_ms())
        new: ReceiptHandle = yield self._renewing.change(client, group, topic, old, invisible_ms)
        text = new.as_in_5_3_3(old) if self._state.config.as_in_5_3_3 else new.text
        return make("ChangeInvisibleDurationResponse", status=ok(), receipt_handle=text)

    @flow
    def forward_to_dead_letters(self, request: Any, caller: Caller) -> Flow[Any]:
        """ForwardMessageToDeadLetterQueue. Whether the lease is over is not asked."""
        client = self._state.clients.of(caller)
        group, topic = checked_group(request.group.name), checked_topic(request.topic.name)
        handle = receipt_handle_of(request.receipt_handle)
        handle = self._renewing.taken(client, group, topic, request.message_id, handle) or handle
        answer: RemotingCommand = yield self.bury(client, group, topic, handle, request.message_id)
        return make(
            "ForwardMessageToDeadLetterQueueResponse", status=status_of_broker(answer.code, answer.remark or None)
        )

    @flow
    def bury(
        self, client: GrpcClient, group: str, topic: str, handle: ReceiptHandle, message_id: str
    ) -> Flow[RemotingCommand]:
        """Copy a message to the dead letters of its group, and acknowledge it when that went well."""
        answer: RemotingCommand = yield self._state.clients.ask(
            client,
            self._state.brokers.named(handle.pop.broker_name),
            RequestCode.CONSUMER_SEND_MSG_BACK,
            group=group,
            offset=handle.physical_offset,
            delayLevel=TO_DEAD_LETTERS,
            originMsgId=message_id,
            originTopic=handle.topic_of(topic, group),
            maxReconsumeTimes=0,
        )
        if answer.code == ResponseCode.SUCCESS:
            yield self.ack(client, group, topic, handle)
        return answer
