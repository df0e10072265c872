"""NOTIFICATION, POLLING_INFO, PEEK_MESSAGE and POP_ROLLBACK: looking at what a pop would find, without a lease.

Mirrors: NotificationProcessor, PollingInfoProcessor, PeekMessageProcessor.

    NOTIFICATION    hasMsg by offsets alone, no filter; held as a pop is, and answered hasMsg false at its end
    POLLING_INFO    how many pops of exactly this topic, group and queue are held
    PEEK_MESSAGE    the messages themselves; nothing is leased and no offset moves
"""

from __future__ import annotations

from collections.abc import Mapping

from mqlab.rocketmq.broker.pop.buffer import PopBuffer, queue_key
from mqlab.rocketmq.broker.pop.checks import PopHeader, check_reading
from mqlab.rocketmq.broker.pop.held_pops import FULL, HELD, HeldPops, HeldRequest
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.order_infos import OrderInfos
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused
from mqlab.rocketmq.wire.bodies import TopicConfig
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import NOT_SET, RemotingCommand
from mqlab.rocketmq.wire.pop import pop_retry_topic

NOTHING = {"popTime": 0, "invisibleTime": 0, "reviveQid": 0, "restNum": 0}


class PopLooking:
    """Handlers of the four requests."""

    def __init__(
        self, state: BrokerState, buffer: PopBuffer, orders: OrderInfos, held_pops: HeldPops, held: HeldPops
    ) -> None:
        self._state = state
        self._buffer = buffer
        self._orders = orders
        self._held_pops = held_pops
        self._held = held

    def notification(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """NOTIFICATION."""
        header = PopHeader.of(request, self._state.now_ms())
        topic = self._readable(header, channel, {"hasMsg": False, "pollingFull": False})
        queues = [header.queue_id] if header.queue_id >= 0 else list(range(topic.read_queue_nums))
        has_message = any(self._has_message(header, header.topic, queue_id) for queue_id in queues)
        if not has_message and not header.is_orderly:
            v2 = self._state.config.enable_retry_topic_v2
            retry = self._state.topics.get(pop_retry_topic(header.topic, header.group, v2=v2))
            has_message = retry is not None and self._has_message(header, retry.topic_name, 0)
        outcome = ""
        if not has_message:
            held = HeldRequest.of(header, channel, request, reply, self.notification)
            outcome = self._held.hold(held, header.poll_time)
            if outcome == HELD:
                return None
        return request.reply(ResponseCode.SUCCESS, NOT_SET, hasMsg=has_message, pollingFull=outcome == FULL)

    def _has_message(self, header: PopHeader, topic: str, queue_id: int) -> bool:
        if header.is_orderly and self._orders.is_blocked(header.attempt_id, topic, header.group, queue_id, 0):
            return False
        return self._state.store.max_offset(topic, queue_id) > self._offset(header.group, topic, queue_id)

    def _offset(self, group: str, topic: str, queue_id: int) -> int:
        committed = self._state.offset_table.query(group, topic, queue_id)
        first = committed if committed >= 0 else self._state.store.min_offset(topic, queue_id)
        return max(first, self._buffer.latest_offset(queue_key(topic, group, queue_id)))

    def polling_info(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """POLLING_INFO."""
        header = PopHeader.of(request, self._state.now_ms())
        self._readable(header, channel, {"pollingNum": 0})
        count = self._held_pops.polling(header.topic, header.group, header.queue_id)
        return request.reply(ResponseCode.SUCCESS, NOT_SET, pollingNum=count)

    def peek_message(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """PEEK_MESSAGE."""
        header = PopHeader.of(request, self._state.now_ms())
        topic = self._readable(header, channel, NOTHING)
        units: list[bytes] = []
        rest = 0
        for queue_id in [header.queue_id] if header.queue_id >= 0 else range(topic.read_queue_nums):
            offset = self._offset(header.group, header.topic, queue_id)
            result = self._state.store.get(header.topic, queue_id, offset, max(header.max_nums - len(units), 0))
            taken = result.units if len(units) < header.max_nums else []
            units += taken
            rest += max(0, result.max_offset - (result.next_begin_offset if taken else offset))
        if not units:
            return request.reply(
                ResponseCode.PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE", popTime=0, invisibleTime=0, reviveQid=0, restNum=0
            )
        return request.reply(
            ResponseCode.SUCCESS, "FOUND", b"".join(units), popTime=0, invisibleTime=0, reviveQid=0, restNum=rest
        )

    def _readable(self, header: PopHeader, channel: Channel, refused: Mapping[str, int | bool]) -> TopicConfig:
        """The topic, if the group may read it; the fields that a refusal has are those of an answer's header class."""
        try:
            return check_reading(self._state, header, channel)
        except Refused as refusal:
            refusal.fields = dict(refused)
            raise

    def pop_rollback(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """POP_ROLLBACK copies the records of the RocksDB implementation; there are none here."""
        return request.reply(ResponseCode.SUCCESS, NOT_SET)
