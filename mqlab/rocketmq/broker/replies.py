"""Replies of request-reply: a consumer's answer is pushed to the producer that waits for it, then stored as well.

Mirrors: ReplyMessageProcessor; SEND_REPLY_MESSAGE, SEND_REPLY_MESSAGE_V2.

    requester ── message with CORRELATION_ID, REPLY_TO_CLIENT ─▶ topic ─▶ consumer
    consumer  ── SEND_REPLY_MESSAGE to <cluster>_REPLY_TOPIC ─▶ broker ── PUSH_REPLY_MESSAGE_TO_CLIENT ─▶ requester
                                                                      ◀── its answer decides SUCCESS or SYSTEM_ERROR

The requester is found by its client id among the producers that have sent heartbeats here. A reply that could not be
pushed is stored all the same, and never read (storeReplyMessageEnable, true by default).
Left out: metrics of replies.
"""

from __future__ import annotations

from typing import Any

from mqlab.rocketmq.broker.putting import STORED_CODES, Putter
from mqlab.rocketmq.broker.sending import SendHeader, Sending
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused
from mqlab.rocketmq.wire import properties
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.command import request as make_request
from mqlab.rocketmq.wire.host import host_of
from mqlab.rocketmq.wire.record import Record

PUSH_TIMEOUT_MS = 10_000  # Broker2Client.callClient


class Replies:
    """Handlers of the two reply requests. ``sending`` checks them as it checks messages."""

    def __init__(self, state: BrokerState, sending: Sending, putter: Putter) -> None:
        self._state = state
        self._sending = sending
        self._putter = putter

    def send_reply(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """SEND_REPLY_MESSAGE and SEND_REPLY_MESSAGE_V2: push it, and answer when the requester has taken it."""
        # 1. The checks that every message goes through.
        header = SendHeader.of(request)
        if not request.body:
            raise Refused(ResponseCode.SYSTEM_ERROR, "the reply has no body")
        content = request.body
        queue_id = self._sending.checked_queue(header, channel)
        property_map = self._sending.named_properties(header)
        stored_properties = properties.encode_as_java(property_map)
        requester = property_map.get(p.REPLY_TO_CLIENT)

        def done(problem: str | None) -> None:
            # 3. Stored whatever became of the push; the answer says where it is, or "0" when it is not stored.
            fields: dict[str, Any] = {"msgId": "0", "queueId": queue_id, "queueOffset": 0} if problem is None else {}
            if self._state.config.store_reply_message_enable:
                stored = self._putter.put(self._record(header, queue_id, content, stored_properties, channel))
                if stored.status in STORED_CODES:
                    self._state.stats.put(header.topic, queue_id, stored.message_count, stored.size)
                    fields = {"msgId": stored.offset_msg_id, "queueId": queue_id, "queueOffset": stored.queue_offset}
            code = ResponseCode.SUCCESS if problem is None else ResponseCode.SYSTEM_ERROR
            reply(request.reply(code, problem, **fields, **self._sending.stamp))

        # 2. The push.
        member = None if requester is None else self._state.producers.find(requester)
        if requester is None:
            done(f"reply message properties[{p.REPLY_TO_CLIENT}] is null")
        elif member is None:
            done(f"push reply message fail, channel of <{requester}> not found.")
        else:
            failed = f"push reply message to {requester}fail."
            push = self._push_request(header, content, property_map, channel)
            member.channel.invoke(push, PUSH_TIMEOUT_MS).then(
                lambda answer: done(None if answer.code == ResponseCode.SUCCESS else failed), lambda error: done(failed)
            )
        return None

    def _record(
        self, header: SendHeader, queue_id: int, content: bytes, stored_properties: bytes, channel: Channel
    ) -> Record:
        return Record(
            header.topic,
            content,
            queue_id,
            flag=header.flag,
            born_timestamp=header.born_timestamp,
            born_host=host_of(channel.remote_address),
            store_host=self._state.identity.store_host,
            reconsume_times=header.reconsume_times,
            properties=stored_properties,
        )

    def _push_request(
        self, header: SendHeader, content: bytes, property_map: dict[str, str], channel: Channel
    ) -> RemotingCommand:
        now_ms = self._state.now_ms()
        text = properties.encode_as_java({**property_map, p.PUSH_REPLY_TIME: str(now_ms)}).decode("utf-8", "replace")
        return make_request(
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
            content,
            bornHost=channel.remote_address,
            storeHost=self._state.identity.address,
            storeTimestamp=now_ms,
            producerGroup=header.producer_group,
            topic=header.topic,
            defaultTopic=header.default_topic,
            defaultTopicQueueNums=header.default_topic_queue_nums,
            queueId=header.queue_id,
            sysFlag=header.sys_flag,
            bornTimestamp=header.born_timestamp,
            flag=header.flag,
            properties=text,
            reconsumeTimes=header.reconsume_times,
            unitMode=header.unit_mode,
        )
