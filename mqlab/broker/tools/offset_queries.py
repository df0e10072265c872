"""Questions about offsets: how far a group is, where a queue begins and ends, which message stood where at a time.

Mirrors: ConsumerManageProcessor (14, 15), AdminBrokerProcessor (29 30 31 32 43 45 308).

    14 QUERY_CONSUMER_OFFSET     stored offset; none: 0 if message 0 is still there and in memory, else 22
    15 UPDATE_CONSUMER_OFFSET    26 no group · 17 no topic · 29 no number · a waiting reset: ignored, answered 0
    30 / 31 / 29                 max, min, first offset at or after a time; 0 for an unknown topic
    32                           store time of the queue's first message, -1 without one
    43 / 45                      all consumer offsets, all delay offsets, as in their files
    308                          per queue the smallest offset of a topic's groups, 2^63-1 where a group is behind it

Left out: static topics.
"""

from __future__ import annotations

from mqlab.broker.state import BrokerState
from mqlab.remoting.endpoint import Channel, Reply
from mqlab.remoting.requests import Answer, Refused, text, truth, whole
from mqlab.wire.codes import ResponseCode
from mqlab.wire.command import RemotingCommand
from mqlab.wire.java_json import to_json

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
        raise Refused(ResponseCode.QUERY_NOT_FOUND, "Not found, maybe this group consumer boot first")

    def _starts_at_message_zero(self, topic: str, queue_id: int) -> bool:
        """True when a new group may be told "0" as if it were stored: message 0 is there and in memory."""
        store = self._state.store
        if store.min_offset(topic, queue_id) > 0:
            return False
        unit = store.consume_queue_unit(topic, queue_id, 0)
        return unit is not None and store.is_resident(unit.physical_offset)

    def update_consumer_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UPDATE_CONSUMER_OFFSET."""
        state = self._state
        group, topic = text(request, "consumerGroup"), text(request, "topic")
        if group not in state.groups:
            raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} not exist!")
        if topic not in state.topics:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} not exist!")
        queue_id, offset = whole(request, "queueId"), whole(request, "commitOffset")
        if state.config.use_server_side_reset_offset and state.offset_table.has_reset(group, topic, queue_id):
            return request.reply(ResponseCode.SUCCESS, RESET_REMARK)
        if offset >= 0:  # some clients commit -1 for queues they have not read yet
            state.offset_table.commit(group, topic, queue_id, offset)
        return request.reply()

    def get_max_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_MAX_OFFSET."""
        return request.reply(offset=self._state.store.max_offset(text(request, "topic"), whole(request, "queueId")))

    def get_min_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_MIN_OFFSET."""
        return request.reply(offset=self._state.store.min_offset(text(request, "topic"), whole(request, "queueId")))

    def search_offset_by_timestamp(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """SEARCH_OFFSET_BY_TIMESTAMP."""
        boundary = request.ext_fields.get("boundaryType", "LOWER").lower()
        found = self._state.store.search_offset(
            text(request, "topic"),
            whole(request, "queueId"),
            whole(request, "timestamp"),
            boundary="upper" if boundary == "upper" else "lower",
        )
        return request.reply(offset=found)

    def get_earliest_msg_storetime(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_EARLIEST_MSG_STORETIME."""
        topic, queue_id = text(request, "topic"), whole(request, "queueId")
        store = self._state.store
        found = store.store_time_at(topic, queue_id, store.min_offset(topic, queue_id))
        return request.reply(timestamp=-1 if found is None else found)

    def get_all_consumer_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ALL_CONSUMER_OFFSET."""
        return request.reply(body=self._state.offset_table.to_json())

    def get_all_delay_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ALL_DELAY_OFFSET."""
        return request.reply(body=self._state.delay_offset_table.to_json())

    def query_correction_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """QUERY_CORRECTION_OFFSET: where the slowest group of a topic is, compared with one group.

        Offsets before a queue's beginning do not count, nor do the groups in ``filterGroups`` (comma-separated).
        """
        topic, compared = text(request, "topic"), text(request, "compareGroup")
        left_out = (request.ext_fields.get("filterGroups") or "").split(",")
        table, smallest = self._state.offset_table, dict[int, int]()
        for group in table.groups_of(topic):
            for queue_id, queue_offset in (table.queues_of(group, topic) or {}).items():
                if group not in left_out and queue_offset >= self._state.store.min_offset(topic, queue_id):
                    smallest[queue_id] = min(smallest.get(queue_id, LONG_MAX), queue_offset)
        for queue_id, queue_offset in (table.queues_of(compared, topic) or {}).items():
            if smallest.get(queue_id, -1) > queue_offset:
                smallest[queue_id] = LONG_MAX
        return request.reply(body=to_json({"correctionOffsets": smallest}))
