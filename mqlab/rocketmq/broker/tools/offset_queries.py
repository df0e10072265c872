"""Offsets: those of a group, where a queue begins and ends, and the first message at or after a time.

Mirrors: ConsumerManageProcessor, AdminBrokerProcessor.

    QUERY_CONSUMER_OFFSET         the stored offset; otherwise 0 if message 0 is in memory, or QUERY_NOT_FOUND
    UPDATE_CONSUMER_OFFSET        SUBSCRIPTION_GROUP_NOT_EXIST, TOPIC_NOT_EXIST; ignored while a reset waits
    GET_MAX_OFFSET, GET_MIN_OFFSET, SEARCH_OFFSET_BY_TIMESTAMP      0 for an unknown topic
    GET_EARLIEST_MSG_STORETIME    when the first message of the queue was stored, -1 without one
    GET_ALL_CONSUMER_OFFSET, GET_ALL_DELAY_OFFSET                   as in their files
    QUERY_CORRECTION_OFFSET       per queue the smallest offset of a topic's groups, 2^63-1 if the group is behind it

Left out: static topics.
"""

from __future__ import annotations

from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.offsets import OFFSETS_FILE
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import (
    Answer,
    Refused,
    text,
    text_or_null,
    truth,
    whole,
    whole_long,
    whole_long_or,
    whole_or,
)
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_json import to_json

LONG_MAX = (1 << 63) - 1
RESET_REMARK = "Offset has been previously reset"


class OffsetQueries:
    """Handlers of the requests that ask for or set offsets."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def query_consumer_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """QUERY_CONSUMER_OFFSET."""
        state = self._state
        group, topic, queue_id = text(request, "consumerGroup"), text(request, "topic"), whole(request, "queueId")
        stored = state.offset_table.query(group, topic, queue_id)
        if stored >= 0:
            return request.reply(offset=stored)
        if not truth(request, "setZeroIfNotFound", True):
            raise Refused(ResponseCode.QUERY_NOT_FOUND, "Not found, do not set to zero, maybe this group boot first")
        if self._starts_at_message_zero(topic, queue_id):
            return request.reply(offset=0)
        raise Refused(ResponseCode.QUERY_NOT_FOUND, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")

    def _starts_at_message_zero(self, topic: str, queue_id: int) -> bool:
        """True if a new group gets the answer 0, as if it were stored: message 0 is there and in memory."""
        store = self._state.store
        if store.min_offset(topic, queue_id) > 0:
            return False
        unit = store.consume_queue_unit(topic, queue_id, 0)
        return unit is not None and store.is_resident(unit.physical_offset)

    def update_consumer_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UPDATE_CONSUMER_OFFSET."""
        state = self._state
        group, topic = text_or_null(request, "consumerGroup"), text(request, "topic")
        if group not in state.groups:
            raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} not exist!")
        if topic not in state.topics:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} not exist!")
        queue_id, offset = whole_or(request, "queueId", None), whole_long_or(request, "commitOffset", None)
        if queue_id is None or offset is None:
            name = "QueueId" if queue_id is None else "Offset"
            raise Refused(ResponseCode.INVALID_PARAMETER, f"{name} is null, topic is {topic}")
        if state.config.use_server_side_reset_offset and state.offset_table.has_reset(group, topic, queue_id):
            return request.reply(ResponseCode.SUCCESS, RESET_REMARK)
        if state.store.failures.reasons:
            state.store.failures.must_work(OFFSETS_FILE)
        if offset >= 0:  # some clients commit -1 for queues they have not read yet
            state.offset_table.commit(group, topic, queue_id, offset)
        return request.reply()

    def get_max_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_MAX_OFFSET."""
        return request.reply(offset=self._state.store.max_offset(text(request, "topic"), whole(request, "queueId")))

    def get_min_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_MIN_OFFSET."""
        offset = self._state.store.min_offset(text(request, "topic"), whole(request, "queueId"))
        return request.reply(ResponseCode.SUCCESS, "", offset=offset)

    def search_offset_by_timestamp(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """SEARCH_OFFSET_BY_TIMESTAMP."""
        boundary = request.ext_fields.get("boundaryType", "LOWER").lower()
        queue_offset = self._state.store.search_offset(
            text(request, "topic"),
            whole(request, "queueId"),
            whole_long(request, "timestamp"),
            boundary="upper" if boundary == "upper" else "lower",
        )
        return request.reply(offset=queue_offset)

    def get_earliest_msg_storetime(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_EARLIEST_MSG_STORETIME."""
        topic, queue_id = text(request, "topic"), whole(request, "queueId")
        store = self._state.store
        stored_ms = store.store_time_at(topic, queue_id, store.min_offset(topic, queue_id))
        return request.reply(timestamp=-1 if stored_ms is None else stored_ms)

    def get_all_consumer_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ALL_CONSUMER_OFFSET."""
        return request.reply(body=self._state.offset_table.to_json())

    def get_all_delay_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ALL_DELAY_OFFSET."""
        return request.reply(body=self._state.delay_offset_table.to_json())

    def query_correction_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """QUERY_CORRECTION_OFFSET: the offsets of the slowest group of a topic, compared with one group.

        Offsets before the first message of a queue do not count, and neither do the groups in ``filterGroups``.
        """
        topic, compared = text(request, "topic"), text(request, "compareGroup")
        left_out = (request.ext_fields.get("filterGroups") or "").split(",")
        table, smallest = self._state.offset_table, dict[int, int]()
        # 1. The smallest offset that any other group has on each queue.
        for group in table.groups_of(topic):
            for queue_id, queue_offset in (table.queues_of(group, topic) or {}).items():
                if group not in left_out and queue_offset >= self._state.store.min_offset(topic, queue_id):
                    smallest[queue_id] = min(smallest.get(queue_id, LONG_MAX), queue_offset)
        # 2. A queue on which the compared group is even further behind needs no correction.
        for queue_id, queue_offset in (table.queues_of(compared, topic) or {}).items():
            if smallest.get(queue_id, -1) > queue_offset:
                smallest[queue_id] = LONG_MAX
        return request.reply(body=to_json({"correctionOffsets": smallest}))
