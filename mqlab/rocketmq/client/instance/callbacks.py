"""What a broker may ask of a client: rebalance now, check a transaction, reset, report, consume one message.

Mirrors: ClientRemotingProcessor.

    NOTIFY_CONSUMER_IDS_CHANGED      40     wake the rebalance; never answered
    CHECK_TRANSACTION_STATE          39     the producer group of property PGROUP; answered by a new END_TRANSACTION
    RESET_CONSUMER_CLIENT_OFFSET    220     takes ten seconds; topics one after another
    GET_CONSUMER_STATUS_FROM_CLIENT 221     commit offsets in memory
    GET_CONSUMER_RUNNING_INFO       307     see consuming/running_info.py
    CONSUME_MESSAGE_DIRECTLY        309     calls the listener with this one message, now

Left out: replies to a requester (326).
"""

from __future__ import annotations

import json
from typing import Any

from mqlab.errors import MqlabError
from mqlab.rocketmq.client import statuses
from mqlab.rocketmq.client.instance.background import background
from mqlab.rocketmq.client.instance.members import ListenerAnswer, Members, RegisteredConsumer
from mqlab.rocketmq.client.instance.rebalance_timer import RebalanceTimer
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.remoting import Channel, Handler, Reply
from mqlab.rocketmq.remoting.requests import Refused, answering, text
from mqlab.rocketmq.wire import java_json, property_names, record
from mqlab.rocketmq.wire.body import queue_key
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

DIRECT_RESULTS = {
    statuses.CONSUME_SUCCESS: "CR_SUCCESS",
    statuses.SUCCESS: "CR_SUCCESS",
    statuses.RECONSUME_LATER: "CR_LATER",
    statuses.SUSPEND_CURRENT_QUEUE_A_MOMENT: "CR_LATER",
    statuses.COMMIT: "CR_COMMIT",
    statuses.ROLLBACK: "CR_ROLLBACK",
}


class BrokerCallbacks:
    """The handlers of one client instance; they ask its members."""

    def __init__(self, ports: Ports, members: Members, rebalance_timer: RebalanceTimer) -> None:
        self._ports = ports
        self._members = members
        self._rebalance_timer = rebalance_timer
        self._resets: Promise[Any] = Promise.of(None)  # one reset at a time, as under RocketMQ's lock

    def handlers(self) -> dict[int, Handler]:
        """A handler per request code."""
        return {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._consumer_ids_changed,
            RequestCode.CHECK_TRANSACTION_STATE: answering(self._check_transaction),
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: answering(self._reset),
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: answering(self._offsets),
            RequestCode.GET_CONSUMER_RUNNING_INFO: answering(self._running_info),
            RequestCode.CONSUME_MESSAGE_DIRECTLY: answering(self._consume_directly),
        }

    def _consumer_ids_changed(self, channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        self._rebalance_timer.wake()

    def _check_transaction(self, channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        messages = record.decode_all(request.body or b"")
        if not messages:
            self._ports.note("transaction.check_failed", error="the request carries no message")
            return
        message = MessageExt.from_record(messages[0], request.ext_fields.get("bname", ""))
        group = message.properties.get(property_names.PGROUP, "")
        check = getattr(self._members.producers.get(group), "check_transaction", None)
        if check is None:
            self._ports.note("transaction.check_failed", error=f"no transaction producer of group {group!r} here")
            return
        background(self._ports, check(channel.remote_address, message, request.ext_fields), "transaction check")

    def _reset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        consumer = self._members.consumers.get(text(request, "group"))
        if consumer is None:
            return
        topic, offsets = text(request, "topic"), _offset_table(request.body or b"{}")
        background(self._ports, self._reset_in_turn(consumer, topic, offsets), "offset reset")

    @flow
    def _reset_in_turn(self, consumer: RegisteredConsumer, topic: str, offsets: dict[MessageQueue, int]) -> Flow[None]:
        before, done = self._resets, Promise[Any]()
        self._resets = done
        yield before
        try:
            reset = consumer.reset_offsets(topic, offsets)
            if reset is not None:  # pull consumers keep their offsets themselves
                yield reset
        except MqlabError as error:
            self._ports.note("consumer.reset_failed", group=consumer.group, error=error.text)
        done.resolve(None)

    def _offsets(self, channel: Channel, request: RemotingCommand, reply: Reply) -> RemotingCommand:
        consumer = self._members.consumers.get(text(request, "group"))
        table = {} if consumer is None else consumer.reported_offsets(text(request, "topic"))
        body = {"consumerTable": {}, "messageQueueTable": {queue_key(queue): offset for queue, offset in table.items()}}
        return request.reply(body=_json(body))

    def _running_info(self, channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        group = text(request, "consumerGroup")
        consumer = self._members.consumers.get(group)
        if consumer is None:
            raise _not_here(group)
        background(self._ports, self._answer_running_info(consumer, request, reply), "running info")

    @flow
    def _answer_running_info(self, consumer: RegisteredConsumer, request: RemotingCommand, reply: Reply) -> Flow[None]:
        info = yield consumer.running_info()
        reply(request.reply(body=_json(info)))

    def _consume_directly(self, channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        group = text(request, "consumerGroup")
        consumer = self._members.consumers.get(group)
        messages = record.decode_all(request.body or b"")
        if consumer is None:
            raise _not_here(group)
        if not messages:
            raise Refused(ResponseCode.SYSTEM_ERROR, "the request carries no message")
        broker_name = request.ext_fields.get("brokerName") or request.ext_fields.get("bname", "")
        message = MessageExt.from_record(messages[0], broker_name)
        consumed = consumer.consume_directly(message, MessageQueue(message.topic, broker_name, message.queue_id))
        if consumed is None:  # it has no listener
            raise _not_here(group)
        background(self._ports, self._answer_directly(consumed, request, reply), "consume directly")

    @flow
    def _answer_directly(self, consumed: Promise[ListenerAnswer], request: RemotingCommand, reply: Reply) -> Flow[None]:
        direct: ListenerAnswer = yield consumed
        if direct.error is not None:
            result = "CR_THROW_EXCEPTION"
        else:
            result = "CR_RETURN_NULL" if direct.answer is None else DIRECT_RESULTS.get(direct.answer, "CR_LATER")
        body = {
            "autoCommit": True,
            "consumeResult": result,
            "order": direct.in_order,
            "remark": direct.error,
            "spentTimeMills": direct.took_ms,
        }
        reply(request.reply(body=_json(body)))


def _not_here(group: str) -> Refused:
    return Refused(ResponseCode.SYSTEM_ERROR, f"The Consumer Group <{group}> not exist in this consumer")


def _offset_table(body: bytes) -> dict[MessageQueue, int]:
    """The offsets of a reset request: an object with queues as keys, or the list form of C++ clients."""
    table = java_json.loads(body.decode("utf-8", "replace")).get("offsetTable") or {}
    if isinstance(table, list):
        return {
            MessageQueue(row["topic"], row["brokerName"], java_json.to_int(row["queueId"])): java_json.to_long(
                row["offset"]
            )
            for row in table
        }
    offsets = {}
    for key, offset in table.items():
        fields = java_json.loads(key) if isinstance(key, str) else dict(key)
        queue = MessageQueue(fields["topic"], fields["brokerName"], java_json.to_int(fields["queueId"]))
        offsets[queue] = java_json.to_long(offset)
    return offsets


def _json(body: dict[str, Any]) -> bytes:
    kept = {name: value for name, value in body.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()
