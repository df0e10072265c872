"""A consumer gives a failed message back. It is tried again later, or becomes a dead letter after too many tries.

Mirrors: AbstractSendMessageProcessor.consumerSendMsgBack; CONSUMER_SEND_MSG_BACK.

    a message that was tried r times     r < limit: to %RETRY%group, with delay level 3 + r or the level in the request
                                         r >= limit, or level < 0: to %DLQ%group, without a delay
    how long a level waits               message_delay_level in mqlab.rocketmq.store.config
    units in the log for one retry       original ─▶ SCHEDULE_TOPIC_XXXX (level - 1) ─▶ %RETRY%group

    kept       body, flag, properties, born time and host
    changed    reconsumeTimes + 1, WAIT=false; the first time also RETRY_TOPIC (the original topic) and
               ORIGIN_MESSAGE_ID (the offset id of the original)

RocketMQ answers for a copy with WAIT=false before it is flushed. Here the answer waits for the flush under SYNC_FLUSH,
so that a power cut cannot take a message that was acknowledged to its producer.

Left out: reading the original from another broker of the same name.
"""

from __future__ import annotations

from mqlab.rocketmq.broker.putting import Putter
from mqlab.rocketmq.broker.sending import DLQ_QUEUES, V3_4_9
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables import topics
from mqlab.rocketmq.broker.tables.stats import SNDBCK2DLQ_TIMES
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, text, truth, whole, whole_long, whole_or
from mqlab.rocketmq.store import put_result
from mqlab.rocketmq.store.put_result import PutResult
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.bodies import SubscriptionGroupConfig
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.properties import encode_as_java
from mqlab.rocketmq.wire.record import Record

FIRST_RETRY_LEVEL = 3


class SendBackHandler:
    """Handler of CONSUMER_SEND_MSG_BACK."""

    def __init__(self, state: BrokerState, putter: Putter) -> None:
        self._state = state
        self._putter = putter

    def consumer_send_msg_back(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """CONSUMER_SEND_MSG_BACK."""
        state = self._state
        # 1. The group and its retry topic, which is created if it is missing.
        group_name = text(request, "group")
        group = state.groups.find(group_name)
        if group is None:
            raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {group_name}")
        if not topics.is_writeable(state.config.broker_permission):
            raise Refused(ResponseCode.NO_PERMISSION, f"the broker[{state.identity.ip}] sending message is forbidden")
        if group.retry_queue_nums <= 0:
            return request.reply()  # the group does not retry: the message is dropped
        retry_topic = state.topics.create_on_send_back(
            names.retry_topic(group_name),
            group.retry_queue_nums,
            topic_sys_flag=topics.UNIT_SUB_FLAG if truth(request, "unitMode") else 0,
        )
        queue_id = state.ports.rng.randrange(group.retry_queue_nums)
        if not topics.is_writeable(retry_topic.perm):
            raise Refused(ResponseCode.NO_PERMISSION, f"sending to topic[{retry_topic.topic_name}] is forbidden")
        # 2. The original. The consumer sends its offset, not its body.
        physical_offset = whole_long(request, "offset")
        original = state.store.message_at(physical_offset)
        if original is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {physical_offset}")
        # 3. A copy of it, for a later try or for the dead letters.
        level = whole(request, "delayLevel")
        dead = original.reconsume_times >= self._max_tries(group, request) or level < 0
        if dead:
            dlq_topic = state.topics.create_on_send_back(names.dlq_topic(group_name), DLQ_QUEUES)
            copy, level = _copy(original, dlq_topic.topic_name, 0, 0), 0
        else:
            level = level or FIRST_RETRY_LEVEL + original.reconsume_times
            copy = _copy(original, retry_topic.topic_name, queue_id, level)
        # 4. Store the copy and answer when it is safe.
        copy.store_host = state.identity.store_host
        result = self._putter.put(copy, delay_level=level)
        if result.status != put_result.PUT_OK:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{result.status}: {result.reason}")
        self._count(group_name, copy, result, level, dead)
        result.wait_store_msg_ok = True  # the consumer removes the original after this answer
        self._putter.when_safe(result).then(lambda status: reply(_answer(request, status)))
        return None

    def _max_tries(self, group: SubscriptionGroupConfig, request: RemotingCommand) -> int:
        """The limit that the client sends; for clients that send none, the limit of the group."""
        client_limit = whole_or(request, "maxReconsumeTimes", None)
        sends_limit = request.version >= V3_4_9 and client_limit is not None
        return client_limit if sends_limit and client_limit is not None else group.retry_max_times

    def _count(self, group: str, copy: Record, result: PutResult, level: int, dead: bool) -> None:
        state = self._state
        property_map = copy.property_map
        first_topic = property_map.get(p.RETRY_TOPIC, copy.topic)
        stored = result.waits_as or copy
        state.stats.sent_back(group, first_topic, stored.topic, stored.queue_id, result.size)
        values = {
            "group": group,
            "topic": copy.topic,
            "msg_id": property_map.get(p.UNIQ_KEY),
            "origin_msg_id": property_map.get(p.ORIGIN_MESSAGE_ID),
            "reconsume_times": copy.reconsume_times,
        }
        if dead:
            state.stats.add(SNDBCK2DLQ_TIMES, f"{first_topic}@{group}", 1)
            state.ports.note("message.dead", by="send_back", **values)
        else:
            state.ports.note("message.sent_back", delay_level=level, **values)


def _answer(request: RemotingCommand, status: str) -> RemotingCommand:
    if status == put_result.PUT_OK:
        return request.reply()
    return request.reply(ResponseCode.SYSTEM_ERROR, status)


def _copy(original: Record, topic: str, queue_id: int, level: int) -> Record:
    property_map = dict(original.property_map)
    property_map.setdefault(p.RETRY_TOPIC, original.topic)
    property_map[p.WAIT] = "false"
    property_map[p.DELAY] = str(level)
    if not property_map.get(p.ORIGIN_MESSAGE_ID, "").strip():
        property_map[p.ORIGIN_MESSAGE_ID] = original.offset_msg_id
    return original.changed(
        topic=topic,
        queue_id=queue_id,
        reconsume_times=original.reconsume_times + 1,
        prepared_transaction_offset=0,
        properties=encode_as_java(property_map),
        magic=None,
    )
