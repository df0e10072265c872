"""SendMessage and RecallMessage: checked, put to a queue, and stored by the broker.

Mirrors: SendMessageActivity, ProducerProcessor, RecallMessageActivity.

    with a message group    the queue that Guava's consistent hash of the group's Java hash picks
    without                 the front's own round robin in the topic; the request's queue id is not used

Several messages in one request are stored as a batch, and one entry counts for all.
"""

from __future__ import annotations

import math
from typing import Any

from mqlab.cluster.grpc import conversion
from mqlab.cluster.grpc.clients import Caller, GrpcClient
from mqlab.cluster.grpc.codes import Code, MessageType, ProxyRefusal, StatusError, common_status, ok
from mqlab.cluster.grpc.message_checks import check_message, check_type
from mqlab.cluster.grpc.messages import make, milliseconds_of
from mqlab.cluster.grpc.state import FrontState, checked_topic
from mqlab.cluster.grpc.transactions import OpenTransactions
from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker import Broker
from mqlab.rocketmq.broker.tables.topics import is_writeable
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire import batch, properties
from mqlab.rocketmq.wire.batch import BatchItem
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_hash import string_hash
from mqlab.rocketmq.wire.java_numbers import parse_long
from mqlab.rocketmq.wire.names import AUTO_CREATE_TOPIC
from mqlab.rocketmq.wire.recall_handle import decode_recall_handle

_STORED = {
    ResponseCode.SUCCESS: Code.OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: Code.MASTER_PERSISTENCE_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: Code.SLAVE_PERSISTENCE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: Code.HA_NOT_AVAILABLE,
}
_TEXTS = {
    Code.OK: "OK",
    Code.MASTER_PERSISTENCE_TIMEOUT: "send message failed, sendStatus=FLUSH_DISK_TIMEOUT",
    Code.SLAVE_PERSISTENCE_TIMEOUT: "send message failed, sendStatus=FLUSH_SLAVE_TIMEOUT",
    Code.HA_NOT_AVAILABLE: "send message failed, sendStatus=SLAVE_NOT_AVAILABLE",
}
_MULTIPLIER, _WORD = 2_862_933_555_777_941_757, 1 << 64


def queue_of_group(group: str, queues: int) -> int:
    """Which of a topic's queues a message group goes to. Mirrors Hashing.consistentHash of Guava.

    >>> [queue_of_group("order-1001", queues) for queues in (1, 2, 3, 16)]
    [0, 1, 2, 2]
    """
    state, candidate = string_hash(group) % _WORD, 0
    while True:
        state = (state * _MULTIPLIER + 1) % _WORD
        following = math.floor((candidate + 1) / (((state >> 33) + 1) / (1 << 31)))
        if not 0 <= following < queues:
            return candidate
        candidate = following


class FrontSending:
    """The two RPCs of producers."""

    def __init__(self, state: FrontState, transactions: OpenTransactions) -> None:
        self._state = state
        self._transactions = transactions
        self._turns: dict[str, int] = {}

    @flow
    def send_message(self, request: Any, caller: Caller) -> Flow[Any]:
        """SendMessage."""
        client = self._state.clients.of(caller)
        messages = list(request.messages)
        self._check(messages)
        peer = caller.remote_address
        maps = [conversion.property_map_of(message, peer) for message in messages]
        topic = messages[0].topic.name
        actual = {conversion.type_of_properties(properties) for properties in maps}
        for kind in sorted(actual):
            check_type(self._state.type_of(topic), kind)
        broker, queue_id = self._queue(topic, messages[0].system_properties)
        if len(messages) > 1:
            answer: RemotingCommand = yield self._send_batch(client, broker, queue_id, messages, maps)
        else:
            answer = yield self._send_one(client, broker, queue_id, messages[0], maps[0])
        entry = self._entry(broker, messages, answer)
        return make("SendMessageResponse", status=common_status([entry.status]), entries=[entry])

    def _check(self, messages: list[Any]) -> None:
        if not messages:
            raise StatusError(Code.MESSAGE_CORRUPTED, "no message to send")
        topic = checked_topic(messages[0].topic.name)
        if any(message.topic.name != topic for message in messages):
            raise StatusError(Code.MESSAGE_CORRUPTED, "topic in message is not same")
        for message in messages:
            due = message.system_properties.delivery_timestamp
            ahead_ms = self._state.ahead_ms()
            if ahead_ms and message.system_properties.HasField("delivery_timestamp"):
                due.FromMilliseconds(milliseconds_of(due) + ahead_ms)
            check_message(message, self._state.now_ms())

    def _queue(self, topic: str, system: Any) -> tuple[Broker, int]:
        """The queue that takes a message. ProxyRefusal when there is none to write."""
        queues = [
            (broker, queue_id)
            for broker, config in self._state.brokers.with_topic(topic)
            if is_writeable(config.perm)
            for queue_id in range(config.write_queue_nums)
        ]
        if not queues:
            raise ProxyRefusal("no writable queue", Code.FORBIDDEN)
        if system.HasField("message_group"):
            return queues[queue_of_group(system.message_group, len(queues))]
        turn = self._turns.get(topic)
        turn = self._turns[topic] = self._state.ports.rng.randrange(1 << 16) if turn is None else turn + 1
        return queues[turn % len(queues)]

    def _send_one(
        self, client: GrpcClient, broker: Broker, queue_id: int, message: Any, property_map: dict[str, str]
    ) -> Any:
        return self._state.clients.ask(
            client,
            broker,
            RequestCode.SEND_MESSAGE,
            message.body,
            **self._header(message, queue_id),
            sysFlag=conversion.sys_flag_of(message),
            properties=properties.to_text(property_map),
        )

    def _send_batch(
        self, client: GrpcClient, broker: Broker, queue_id: int, messages: list[Any], maps: list[dict[str, str]]
    ) -> Any:
        items = [
            BatchItem(0, message.body, properties.encode(property_map))
            for message, property_map in zip(messages, maps, strict=True)
        ]
        return self._state.clients.ask(
            client,
            broker,
            RequestCode.SEND_MESSAGE,
            batch.encode(items),
            **self._header(messages[0], queue_id),
            sysFlag=0,
            properties="",
            batch=True,
        )

    def _header(self, message: Any, queue_id: int) -> dict[str, str | int | bool]:
        return {
            "producerGroup": message.topic.name,
            "topic": message.topic.name,
            "defaultTopic": AUTO_CREATE_TOPIC,
            "defaultTopicQueueNums": 4,
            "queueId": queue_id,
            "bornTimestamp": milliseconds_of(message.system_properties.born_timestamp) or self._state.now_ms(),
            "flag": 0,
        }

    def _entry(self, broker: Broker, messages: list[Any], answer: RemotingCommand) -> Any:
        code = _STORED.get(ResponseCode(answer.code)) if answer.code in _STORED else None
        if code is None:
            raise ProxyRefusal(answer.remark or str(answer.code))
        fields, message = answer.ext_fields, messages[0]
        message_id = transaction_id = message.system_properties.message_id
        if len(messages) > 1:
            message_id = broker.state.unique_ids.next(self._state.now_ms())  # of the batch; no message has it
        if message.system_properties.message_type == MessageType.TRANSACTION:
            self._transactions.opened(broker, message.topic.name, transaction_id, fields)
        return make(
            "SendResultEntry",
            status={"code": code, "message": _TEXTS[code]},
            message_id=message_id,
            transaction_id=transaction_id,
            offset=parse_long(fields.get("queueOffset", "0")),
            recall_handle=fields.get("recallHandle"),
        )

    @flow
    def recall_message(self, request: Any, caller: Caller) -> Flow[Any]:
        """RecallMessage."""
        client = self._state.clients.of(caller)
        topic = checked_topic(request.topic.name)
        check_type(self._state.type_of(topic), MessageType.DELAY)
        try:
            handle = decode_recall_handle(request.recall_handle)
        except CorruptionError as error:
            raise ProxyRefusal(error.text) from error
        answer: RemotingCommand = yield self._state.clients.ask(
            client,
            self._state.brokers.named(handle.broker_name),
            RequestCode.RECALL_MESSAGE,
            producerGroup=topic,
            topic=topic,
            recallHandle=request.recall_handle,
        )
        if answer.code != ResponseCode.SUCCESS:
            raise ProxyRefusal(answer.remark or str(answer.code))
        return make("RecallMessageResponse", status=ok(), message_id=answer.ext_fields["msgId"])
