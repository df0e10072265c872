"""Messages of producers: checked, given the properties of the broker, stored, and answered when they are safe.

Mirrors: SendMessageProcessor; SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE. Lab 00 follows one message.

    request ─▶ checks: broker writable for order topics NO_PERMISSION · name INVALID_PARAMETER · system topic
               NO_PERMISSION · topic or template TOPIC_NOT_EXIST · queue id INVALID_PARAMETER
            ─▶ properties: the client's + MSG_REGION TRACE_ON CLUSTER (+ UNIQ_KEY if it sent none)
            ─▶ to %RETRY%, sent by a consumer: after too many tries, or consumed in order ─▶ %DLQ%
            ─▶ TRAN_MSG ─▶ half topic          DELAY ─▶ schedule topic (putting)
            ─▶ store.put ─▶ wait for flush and copies as configured ─▶ SEND_OK

Replies of request-reply are in broker/replies.
Left out: static topics, compaction topics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.putting import STORED_CODES, Putter, delay_level_of, refusal
from mqlab.rocketmq.broker.recall import handle_of
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables import topics
from mqlab.rocketmq.broker.tables.stats import TOPIC_PUT_LATENCY
from mqlab.rocketmq.broker.transactions import Transactions
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, truth, whole, whole_if_there, whole_long, whole_or
from mqlab.rocketmq.store.put_result import PutResult
from mqlab.rocketmq.wire import batch, names, properties, sys_flag
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.bodies import TopicConfig
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.host import host_of
from mqlab.rocketmq.wire.properties import encode_as_java
from mqlab.rocketmq.wire.record import Record

V3_4_9 = 121  # from this client version on, the request's maxReconsumeTimes counts
DLQ_QUEUES = 1

LETTERS = {
    "producerGroup": "a",
    "topic": "b",
    "defaultTopic": "c",
    "defaultTopicQueueNums": "d",
    "queueId": "e",
    "sysFlag": "f",
    "bornTimestamp": "g",
    "flag": "h",
    "properties": "i",
    "reconsumeTimes": "j",
    "unitMode": "k",
    "maxReconsumeTimes": "l",
    "batch": "m",
    "brokerName": "n",
}
"""Field names of SEND_MESSAGE -> those of SEND_MESSAGE_V2. Mirrors SendMessageRequestHeaderV2."""

WITH_LONG_NAMES = (RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE)
_LONG_NAMES = {name: name for name in LETTERS}


@dataclass(slots=True)
class SendHeader:
    """The header of a send request, in long or in short field names. Mirrors SendMessageRequestHeader."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: int | None
    queue_id: int
    sys_flag: int
    born_timestamp: int
    flag: int
    properties: str
    reconsume_times: int
    unit_mode: bool
    max_reconsume_times: int | None
    is_batch: bool

    @classmethod
    def of(cls, request: RemotingCommand) -> SendHeader:
        """Read it from a request; Refused when a needed field is missing."""
        name, optional, fields = LETTERS, whole_if_there, request.ext_fields
        if request.code in WITH_LONG_NAMES:
            name, optional = _LONG_NAMES, whole_or
        return cls(
            fields.get(name["producerGroup"], ""),
            fields.get(name["topic"], ""),
            fields.get(name["defaultTopic"], ""),
            optional(request, name["defaultTopicQueueNums"], None),
            whole(request, name["queueId"]),
            whole(request, name["sysFlag"]),
            whole_long(request, name["bornTimestamp"]),
            whole(request, name["flag"]),
            fields.get(name["properties"]) or "",
            optional(request, name["reconsumeTimes"], 0),
            truth(request, name["unitMode"]),
            optional(request, name["maxReconsumeTimes"], None),
            truth(request, name["batch"]),
        )


class Sending:
    """Handlers of the send requests. Mirrors SendMessageProcessor."""

    def __init__(self, state: BrokerState, putter: Putter, transactions: Transactions) -> None:
        self._state = state
        self._putter = putter
        self._transactions = transactions
        trace_on = "true" if state.config.trace_on else "false"
        self.stamp: dict[str, Any] = {p.MSG_REGION: state.config.region_id, p.TRACE_ON: trace_on}

    def send_message(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE."""
        try:
            header = SendHeader.of(request)
            topic = self._checked_topic(header, channel)
            queue_id = self._queue(header, topic)
            if header.is_batch:
                self._store_batch(header, topic, queue_id, channel, request, reply)
            else:
                self._store_one(header, topic, queue_id, channel, request, reply)
            return None
        except Refused as refused:
            raise self._stamped(refused) from None

    def checked_queue(self, header: SendHeader, channel: Channel) -> int:
        """The queue that a message goes to, after all checks of its topic. Refused if it must not be sent there."""
        try:
            return self._queue(header, self._checked_topic(header, channel))
        except Refused as refused:
            raise self._stamped(refused) from None

    def _stamped(self, refused: Refused) -> Refused:
        refused.fields = {**refused.fields, **self.stamp}
        return refused

    def _queue(self, header: SendHeader, topic: TopicConfig) -> int:
        return header.queue_id if header.queue_id >= 0 else self._random_queue(topic.write_queue_nums)

    def _checked_topic(self, header: SendHeader, channel: Channel) -> TopicConfig:
        state, config = self._state, self._state.config
        until_ms = config.start_accept_send_request_time_stamp
        if until_ms and state.now_ms() < until_ms:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {until_ms}")
        known = state.topics.get(header.topic)
        if known is not None and known.order and not topics.is_writeable(config.broker_permission):
            raise Refused(ResponseCode.NO_PERMISSION, f"the broker[{state.identity.ip}] sending message is forbidden")
        problem = names.topic_problem(header.topic)
        if problem is not None:
            raise Refused(ResponseCode.INVALID_PARAMETER, problem)
        if header.topic in names.NOT_FOR_SENDING:
            raise Refused(ResponseCode.NO_PERMISSION, f"Sending message to topic[{header.topic}] is forbidden.")
        topic = known or self._created_topic(header)
        if header.queue_id >= max(topic.read_queue_nums, topic.write_queue_nums):
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"request queueId[{header.queue_id}] is illegal, topic {header.topic} has {topic.read_queue_nums} read "
                f"and {topic.write_queue_nums} write queues, producer {channel.remote_address}",
            )
        return topic

    def _created_topic(self, header: SendHeader) -> TopicConfig:
        is_retry = header.topic.startswith(names.RETRY_PREFIX)
        unit_flag = 0
        if header.unit_mode:
            unit_flag = topics.UNIT_SUB_FLAG if is_retry else topics.UNIT_FLAG
        queues = header.default_topic_queue_nums
        if queues is None:
            reason = f"a new topic needs a whole number in the field defaultTopicQueueNums: {header.topic}"
            raise Refused(ResponseCode.INVALID_PARAMETER, reason)
        topic = self._state.topics.create_on_send(header.topic, header.default_topic, queues, unit_flag)
        if topic is None and is_retry:
            topic = self._state.topics.create_on_send_back(header.topic, 1, topic_sys_flag=unit_flag)
        if topic is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist, create it first")
        return topic

    def _random_queue(self, queues: int) -> int:
        if queues <= 0:
            raise Refused(ResponseCode.SYSTEM_ERROR, "the topic has no write queue")
        return self._state.ports.rng.randrange(queues)

    def _store_one(
        self,
        header: SendHeader,
        topic: TopicConfig,
        queue_id: int,
        channel: Channel,
        request: RemotingCommand,
        reply: Reply,
    ) -> None:
        if not request.body:
            raise Refused(ResponseCode.SYSTEM_ERROR, "the message has no body")
        # 1. The properties, and the topic: a message that failed too often goes to the dead letters.
        property_map = self.named_properties(header)
        target, target_queue = header.topic, queue_id
        if header.topic.startswith(names.RETRY_PREFIX) and self._goes_to_dlq(header, request.version):
            target, target_queue = self._dead_letter_topic(header, property_map), 0
        if not property_map.get(p.UNIQ_KEY):
            property_map[p.UNIQ_KEY] = self._state.unique_ids.next(self._state.now_ms())
        property_map[p.CLUSTER] = self._state.config.broker_cluster_name
        # 2. The message as it will be stored.
        record = Record(
            target,
            request.body,
            target_queue,
            flag=header.flag,
            sys_flag=_sys_flag(header, topic),
            born_timestamp=header.born_timestamp,
            born_host=host_of(channel.remote_address),
            store_host=self._state.identity.store_host,
            reconsume_times=header.reconsume_times,
            properties=encode_as_java(property_map),
        )
        # 3. Store it. A half message waits in a topic of its own until its transaction ends.
        level = delay_level_of(property_map)
        is_half = property_map.get(p.TRAN_MSG, "").lower() == "true" and not (record.reconsume_times > 0 and level > 0)
        if is_half and self._state.config.reject_transaction_message:
            remark = f"the broker[{self._state.identity.ip}] sending transaction message is forbidden"
            raise Refused(ResponseCode.NO_PERMISSION, remark)
        if is_half:
            result = self._transactions.prepare(record, delay_level=level)
        else:
            result = self._putter.put(record, delay_level=level)
        # 4. Answer. A failed message that its consumer sends again is always flushed first, see send_back.
        if header.topic.startswith(names.RETRY_PREFIX):
            result.wait_store_msg_ok = True
        self._answer_when_safe(result, result.waits_as or record, queue_id, property_map[p.UNIQ_KEY], request, reply)

    def named_properties(self, header: SendHeader) -> dict[str, str]:
        """The client's properties with region and trace switch.

        RocketMQ writes them as a string here and reads it again into a map of the same size. That changes nothing:
        the order inside a bucket is the order of the keys. So the order is computed once, when they are encoded.
        """
        property_map = properties.decode(header.properties)
        property_map.update(self.stamp)
        property_map.pop(p.POP_CK, None)
        return property_map

    def _goes_to_dlq(self, header: SendHeader, version: int) -> bool:
        """Whether a failed message that its consumer sends again becomes a dead letter. Mirrors handleRetryAndDLQ."""
        group_name = names.group_of(header.topic) or ""
        group = self._state.groups.find(group_name)
        if group is None:
            raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {group_name}")
        max_tries = group.retry_max_times
        if version >= V3_4_9 and header.max_reconsume_times is not None:
            max_tries = header.max_reconsume_times
        # A group that holds queue locks consumes in order: its message may not come again later.
        return header.reconsume_times > max_tries or not self._state.queue_locks.all_expired(group_name)

    def _dead_letter_topic(self, header: SendHeader, property_map: dict[str, str]) -> str:
        group = names.group_of(header.topic) or ""
        property_map[p.DELAY] = "-1"
        dlq_topic = self._state.topics.create_on_send_back(names.dlq_topic(group), DLQ_QUEUES).topic_name
        self._state.ports.note(
            "message.dead",
            group=group,
            topic=dlq_topic,
            msg_id=property_map.get(p.UNIQ_KEY),
            origin_msg_id=property_map.get(p.ORIGIN_MESSAGE_ID),
            by="resend",
        )
        return dlq_topic

    def _store_batch(
        self,
        header: SendHeader,
        topic: TopicConfig,
        queue_id: int,
        channel: Channel,
        request: RemotingCommand,
        reply: Reply,
    ) -> None:
        if not request.body:
            raise Refused(ResponseCode.SYSTEM_ERROR, "the batch has no body")
        if header.topic.startswith(names.RETRY_PREFIX):
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, f"batch request does not support retry group {header.topic}")
        limit = self._state.store.config.max_message_size
        if len(request.body) > limit:
            remark = f"a batch of {len(request.body)} bytes, at most {limit} are allowed"
            raise Refused(ResponseCode.SYSTEM_ERROR, remark)  # RocketMQ's encoder throws, and the client tries again
        # 1. The messages of the batch share header and properties, each has its own body and properties too.
        try:
            items = batch.decode(request.body)
        except CorruptionError as error:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
        property_map = self.named_properties(header)
        property_map[p.CLUSTER] = self._state.config.broker_cluster_name
        whole = self._putter.waiting_form(Record(header.topic, b"", queue_id, properties=encode_as_java(property_map)))
        if isinstance(whole, PutResult):
            raise Refused(*refusal(whole))
        flags, born_host = _sys_flag(header, topic), host_of(channel.remote_address)
        store_host = self._state.identity.store_host
        records = [
            Record(
                whole.topic,
                item.body,
                whole.queue_id,
                flag=item.flag,
                sys_flag=flags,
                born_timestamp=header.born_timestamp,
                born_host=born_host,
                store_host=store_host,
                reconsume_times=header.reconsume_times,
                properties=_closed(item.properties) + whole.properties,
            )
            for item in items
        ]
        # 2. They are stored together, and one answer counts for all.
        result = self._putter.put_batch(records)
        self._answer_when_safe(result, records[0], queue_id, property_map.get(p.UNIQ_KEY), request, reply)

    def _answer_when_safe(
        self,
        result: PutResult,
        stored: Record,
        queue_id: int,
        unique_key: str | None,
        request: RemotingCommand,
        reply: Reply,
    ) -> None:
        # 1. Not stored: the answer can be given at once.
        if result.status not in STORED_CODES:
            raise Refused(*refusal(result))
        # 2. Stored: count it, and answer when it is flushed and copied as configured.
        self._state.stats.put(stored.topic, stored.queue_id, result.message_count, result.size)

        handle = None
        if stored.topic == names.TIMER_TOPIC and request.code != RequestCode.SEND_BATCH_MESSAGE:
            handle = handle_of(stored, self._state.config.broker_name)

        def durable(status: str) -> None:
            latency_ms = self._state.now_ms() - result.store_timestamp
            self._state.stats.add(TOPIC_PUT_LATENCY, f"{queue_id}@{stored.topic}", latency_ms)
            answer = request.reply(STORED_CODES.get(status, ResponseCode.SYSTEM_ERROR))
            fields = answer.ext_fields  # written as strings: reply would ask each value of each send for its type
            fields["msgId"], fields["queueId"] = result.offset_msg_id, str(queue_id)
            fields["queueOffset"] = str(result.queue_offset)
            if unique_key is not None:
                fields["transactionId"] = unique_key
            if handle is not None:
                fields["recallHandle"] = handle
            fields.update(self.stamp)
            reply(answer)

        self._putter.when_safe(result).then(durable)


def _sys_flag(header: SendHeader, topic: TopicConfig) -> int:
    return header.sys_flag | (sys_flag.MULTI_TAGS if topic.topic_filter_type == "MULTI_TAG" else 0)


def _closed(encoded: bytes) -> bytes:
    """The properties of an item, ended by the separator that some clients omit."""
    return encoded + b"\x02" if encoded and not encoded.endswith(b"\x02") else encoded
