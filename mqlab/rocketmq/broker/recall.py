"""Recalling a timed message: a marker is stored that is due at the same moment, and the wheel lets both vanish.

Mirrors: RecallMessageProcessor; RECALL_MESSAGE. Off by default (recall_message_enable), as in RocketMQ.

    handle ─▶ checks ─▶ marker: body 0, TIMER_DEL_UNIQKEY=orders+7F00…, TIMER_DELIVER_MS=… ─▶ timer topic ─▶ SUCCESS

SUCCESS says that the marker is stored, and no more: nothing checks whether its message exists or still waits.
"""

from __future__ import annotations

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.putting import STORED_CODES, Putter
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables import topics
from mqlab.rocketmq.broker.timed_form import Timing
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused
from mqlab.rocketmq.store.put_result import PutResult
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import NOT_SET, RemotingCommand
from mqlab.rocketmq.wire.host import host_of
from mqlab.rocketmq.wire.java_numbers import long_or, parse_long
from mqlab.rocketmq.wire.properties import encode_as_java
from mqlab.rocketmq.wire.recall_handle import RecallHandle, decode_recall_handle
from mqlab.rocketmq.wire.record import Record

RECALL_TAG = "_RECALL_TAG_"
RECALL_BODY = b"0"
NEW_MAP_CAPACITY = 16


def handle_of(stored: Record, broker_name: str) -> str | None:
    """The handle of a message in the timer topic; None for one of a retry topic. Mirrors attachRecallHandle."""
    property_map = stored.property_map
    topic, out_ms = property_map.get(p.REAL_TOPIC), property_map.get(p.TIMER_OUT_MS)
    if topic is None or out_ms is None or topic.startswith(names.RETRY_PREFIX):
        return None
    # One more than out, which rounding down makes out again.
    return RecallHandle(topic, broker_name, str(parse_long(out_ms) + 1), property_map.get(p.UNIQ_KEY, "")).encode()


class Recall:
    """Handler of the request. Mirrors RecallMessageProcessor."""

    def __init__(self, state: BrokerState, putter: Putter) -> None:
        self._state = state
        self._timing = Timing(state)
        self._putter = putter

    def recall_message(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """RECALL_MESSAGE."""
        region = self._state.config.region_id
        try:
            handle = self._checked(request)
            marker = self._marker(handle, request, channel)
            result = marker if isinstance(marker, PutResult) else self._putter.put(marker)
            if result.status not in STORED_CODES:
                raise Refused(ResponseCode.SYSTEM_ERROR, "recall failed, execute error")
        except Refused as refusal:
            refusal.fields = {p.MSG_REGION: region}
            raise
        return request.reply(ResponseCode.SUCCESS, NOT_SET, msgId=handle.message_id, MSG_REGION=region)

    def _checked(self, request: RemotingCommand) -> RecallHandle:
        state, config = self._state, self._state.config
        unavailable = "recall failed, broker service not available"
        topic = request.ext_fields.get("topic", "")
        if not config.recall_message_enable:
            raise Refused(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
        if state.identity.is_slave:
            raise Refused(ResponseCode.SLAVE_NOT_AVAILABLE, unavailable)
        if state.now_ms() < config.start_accept_send_request_time_stamp:
            raise Refused(ResponseCode.SERVICE_NOT_AVAILABLE, unavailable)
        may_write = topics.is_writeable(config.broker_permission)
        if not may_write and not config.allow_recall_when_broker_not_writeable:
            raise Refused(ResponseCode.SERVICE_NOT_AVAILABLE, unavailable)
        if state.topics.get(topic) is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"recall failed, the topic[{topic}] not exist")
        try:
            handle = decode_recall_handle(request.ext_fields.get("recallHandle"))
        except CorruptionError as error:
            raise Refused(ResponseCode.ILLEGAL_OPERATION, error.text) from error
        if handle.topic != topic:
            raise Refused(ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match")
        if handle.broker_name != config.broker_name:
            raise Refused(ResponseCode.ILLEGAL_OPERATION, unavailable)
        left_ms = long_or(handle.timestamp_text, -1) - state.now_ms()
        if not 0 < left_ms < state.store.config.timer_max_delay_sec * 1000:
            raise Refused(ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid")
        return handle

    def _marker(self, handle: RecallHandle, request: RemotingCommand, channel: Channel) -> Record | PutResult:
        now_ms = self._state.now_ms()
        property_map = {
            p.TAGS: RECALL_TAG,
            p.TIMER_DEL_UNIQKEY: f"{handle.topic}+{handle.message_id}",
            p.UNIQ_KEY: handle.message_id,
            p.TIMER_DELIVER_MS: handle.timestamp_text,
            p.BORN_TIMESTAMP: str(now_ms),
            p.TRACE_CONTEXT: "",
            p.PGROUP: request.ext_fields.get("producerGroup", ""),
        }
        self._state.ports.note("timer.recall_asked", topic=handle.topic, msg_id=handle.message_id)
        marker = Record(
            handle.topic,
            RECALL_BODY,
            0,
            born_timestamp=now_ms,
            born_host=host_of(channel.remote_address),
            store_host=self._state.identity.store_host,
            properties=encode_as_java(property_map),
        )
        timed = self._timing.timed(marker)
        if isinstance(timed, Record):
            # RocketMQ makes the marker in a small map, and its empty property is stored.
            waiting = {name: timed.property_map[name] for name in (p.TIMER_OUT_MS, p.REAL_TOPIC, p.REAL_QID)}
            timed.properties = encode_as_java(property_map | waiting, NEW_MAP_CAPACITY)
        return timed
