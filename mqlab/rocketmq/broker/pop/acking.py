"""ACK_MESSAGE, BATCH_ACK_MESSAGE and CHANGE_MESSAGE_INVISIBLETIME: one message is done, or stays out for longer.

Mirrors: AckMessageProcessor, ChangeInvisibleTimeProcessor.

    ack        into the merge buffer if its check point is there, else an ack message; never verified, always 0
    change     a check point of its own for the one message, then an ack of the old one
    orderly    (revive queue 999) the bit in the queue's order info; the first offset without one is committed
"""

from __future__ import annotations

from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.pop.buffer import PopBuffer, queue_key
from mqlab.rocketmq.broker.pop.checks import check_given_out, handle_of, java_error
from mqlab.rocketmq.broker.pop.held_pops import HeldPops
from mqlab.rocketmq.broker.pop.revive_log import ReviveLog
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.order_infos import NOT_POPPED, OrderInfos
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, whole_long
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import NOT_SET, RemotingCommand
from mqlab.rocketmq.wire.pop import ORDERLY_REVIVE_QUEUE, UNKNOWN_OFFSET, Ack, BatchAck, CheckPoint, Handle, real_topic

NOTHING = {"popTime": 0, "invisibleTime": 0, "reviveQid": 0}


class Acking:
    """Handlers of the three requests."""

    def __init__(
        self, state: BrokerState, buffer: PopBuffer, revive_log: ReviveLog, orders: OrderInfos, held: HeldPops
    ) -> None:
        self._state = state
        self._buffer = buffer
        self._revive_log = revive_log
        self._orders = orders
        self._held = held

    def ack_message(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """ACK_MESSAGE."""
        topic, queue_id, offset = check_given_out(self._state, request, channel, may_be_the_end=True)
        handle, group = handle_of(request), request.ext_fields.get("consumerGroup", "")
        if handle.revive_queue == ORDERLY_REVIVE_QUEUE:
            self._ack_orderly(topic, group, queue_id, offset, handle, channel)
        else:
            self._ack(topic, group, queue_id, offset, handle)
        return request.reply()

    def _ack(self, topic: str, group: str, queue_id: int, offset: int, handle: Handle) -> bool:
        ack = Ack(topic, group, queue_id, handle.start_offset, handle.pop_time, handle.broker_name, offset)
        self._note_acked(topic, group, queue_id, offset, handle)
        return self._buffer.acknowledge(ack) or self._revive_log.put_ack(ack, handle.revive_queue, handle.visible_ms)

    def _note_acked(self, topic: str, group: str, queue_id: int, offset: int, handle: Handle) -> None:
        self._state.ports.note(
            "message.acked",
            group=group,
            topic=topic,
            queue_id=queue_id,
            queue_offset=offset,
            pop_time=handle.pop_time,
            late=self._state.now_ms() >= handle.visible_ms,
        )

    def _ack_orderly(
        self, topic: str, group: str, queue_id: int, offset: int, handle: Handle, channel: Channel
    ) -> None:
        table = self._state.offset_table
        committed = table.query(group, topic, queue_id)
        if offset < committed:
            return
        following = self._orders.acked(topic, group, queue_id, offset, handle.pop_time)
        if following == NOT_POPPED:
            key = queue_key(topic, group, queue_id)
            remark = (
                f"offset is illegal, key:{key}, old:{committed}, commit:{offset}, next:{following}, "
                f"/{channel.remote_address}"
            )
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, remark)
        if following >= 0:
            self._note_acked(topic, group, queue_id, offset, handle)
            if not table.has_reset(group, topic, queue_id):
                table.commit(group, topic, queue_id, following)
            if not self._orders.is_blocked(None, topic, group, queue_id, handle.invisible_time):
                self.unblocked(topic, group, queue_id)

    def unblocked(self, topic: str, group: str, queue_id: int) -> None:
        """A queue gives messages again: held pops of it look."""
        for wanted in (-1, queue_id):
            self._held.wake(topic, group, wanted)

    def batch_ack_message(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """BATCH_ACK_MESSAGE: topics and check points are not looked for; offsets outside of the queue are skipped."""
        broker_name, acks = _batch_in(request)
        if not acks:
            raise Refused(ResponseCode.NO_MESSAGE)
        refused: Refused | None = None
        for entry in acks:
            try:
                topic = real_topic(entry.topic, entry.group, entry.kind)
            except ValueError as error:
                raise Refused(ResponseCode.SYSTEM_ERROR, java_error(str(error))) from error
            first, end = (
                self._state.store.min_offset(topic, entry.queue_id),
                self._state.store.max_offset(topic, entry.queue_id),
            )
            offsets = tuple(entry.start_offset + bit for bit in entry.bits if first <= entry.start_offset + bit <= end)
            handle = Handle(
                entry.start_offset,
                entry.pop_time,
                entry.invisible_time,
                entry.revive_queue,
                entry.kind,
                broker_name,
                entry.queue_id,
                entry.start_offset,
            )
            if entry.revive_queue == ORDERLY_REVIVE_QUEUE:
                for offset in offsets:
                    try:
                        self._ack_orderly(topic, entry.group, entry.queue_id, offset, handle, channel)
                    except Refused as refusal:
                        refused = refusal  # the others still count; the last refusal is the answer
            elif offsets:
                self._ack_several(topic, entry, offsets, handle)
        if refused is not None:
            raise refused
        return request.reply()

    def _ack_several(self, topic: str, entry: BatchAck, offsets: tuple[int, ...], handle: Handle) -> None:
        ack = Ack(
            topic,
            entry.group,
            entry.queue_id,
            entry.start_offset,
            entry.pop_time,
            handle.broker_name,
            UNKNOWN_OFFSET,
            offsets,
        )
        for offset in offsets:
            self._state.ports.note(
                "message.acked",
                group=entry.group,
                topic=topic,
                queue_id=entry.queue_id,
                queue_offset=offset,
                pop_time=entry.pop_time,
                late=self._state.now_ms() >= handle.visible_ms,
            )
        if not self._buffer.acknowledge(ack):
            self._revive_log.put_ack(ack, handle.revive_queue, handle.visible_ms)

    def change_invisible_time(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """CHANGE_MESSAGE_INVISIBLETIME."""
        try:
            return self._change(channel, request)
        except Refused as refusal:
            if not (refusal.remark or "").startswith("java."):
                refusal.fields = dict(NOTHING)
            if refusal.code == ResponseCode.NO_MESSAGE:
                refusal.remark = NOT_SET
            raise

    def _change(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        state, now_ms = self._state, self._state.now_ms()
        topic, queue_id, offset = check_given_out(state, request, channel, may_be_the_end=False)
        handle = handle_of(request, revive_queue_first=True)
        group, invisible_time = request.ext_fields.get("consumerGroup", ""), whole_long(request, "invisibleTime")
        if handle.revive_queue == ORDERLY_REVIVE_QUEUE:
            if offset < state.offset_table.query(group, topic, queue_id):
                return request.reply(ResponseCode.SUCCESS, NOT_SET, popTime=0, invisibleTime=0, reviveQid=0)
            visible_ms = now_ms + invisible_time
            self._orders.next_visible(topic, group, queue_id, offset, handle.pop_time, visible_ms)
            pop_time, invisible_time = handle.pop_time, visible_ms - handle.pop_time
        else:
            # The new check point first: if the old ack came alone, the message would be lost.
            check_point = CheckPoint(
                topic, group, queue_id, offset, now_ms, invisible_time, 1, (0,), handle.broker_name
            )
            if not self._revive_log.put_check_point(check_point, handle.revive_queue):
                raise Refused(ResponseCode.SYSTEM_ERROR, NOT_SET)
            ack = Ack(topic, group, queue_id, handle.start_offset, handle.pop_time, handle.broker_name, offset)
            if not self._buffer.acknowledge(ack):
                self._revive_log.put_ack(ack, handle.revive_queue, handle.visible_ms)
            pop_time = now_ms
        state.ports.note(
            "message.invisible_time_changed",
            group=group,
            topic=topic,
            queue_id=queue_id,
            queue_offset=offset,
            pop_time=handle.pop_time,
            new_pop_time=pop_time,
            visible_ms=pop_time + invisible_time,
        )
        return request.reply(
            ResponseCode.SUCCESS,
            NOT_SET,
            popTime=pop_time,
            invisibleTime=invisible_time,
            reviveQid=handle.revive_queue,
        )


def _batch_in(request: RemotingCommand) -> tuple[str, list[BatchAck]]:
    """Broker name and entries of a batch; no entries when there is no body or nothing in it."""
    try:
        value: Any = java_json.loads(request.body.decode("utf-8")) if request.body else {}
        entries = value.get("acks") or [] if isinstance(value, dict) else []
        acks = [BatchAck.from_value(entry) for entry in entries if isinstance(entry, dict)]
    except (ValueError, CorruptionError) as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"the body cannot be read: {error}") from error
    return (str(value.get("brokerName") or ""), acks) if isinstance(value, dict) else ("", [])
