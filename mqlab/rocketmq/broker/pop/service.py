"""The parts of POP in one broker, put together, and their life.

held pops, held notifications ◀── a message arrives
buffer ──▶ revive log ──▶ timer wheel ──▶ revive topic ──▶ reviving
orders ──▶ when a block ends, held pops look again
"""

from __future__ import annotations

from collections.abc import Mapping

from mqlab.rocketmq.broker.pop.acking import Acking
from mqlab.rocketmq.broker.pop.buffer import PopBuffer
from mqlab.rocketmq.broker.pop.held_pops import HeldPops
from mqlab.rocketmq.broker.pop.looking import PopLooking
from mqlab.rocketmq.broker.pop.popping import Popping
from mqlab.rocketmq.broker.pop.revive_log import ReviveLog
from mqlab.rocketmq.broker.pop.reviving import Reviving
from mqlab.rocketmq.broker.putting import Putter
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.remoting.endpoint import Channel
from mqlab.rocketmq.remoting.requests import Answering
from mqlab.rocketmq.wire.codes import RequestCode

UNBLOCK_TICK_MS = 100


class PopService:
    """POP of one broker. ``handlers`` answer its requests."""

    def __init__(self, state: BrokerState, putter: Putter) -> None:
        self._state = state
        self.held = HeldPops(state)
        self.notifications = HeldPops(state, youngest_first=True, kind="pop.notification_hold")
        self.revive_log = ReviveLog(state, putter)
        self.buffer = PopBuffer(state, self.revive_log)
        self.reviving = Reviving(state, putter, self.revive_log)
        self._popping = Popping(state, self.buffer, state.order_infos, self.held)
        self._acking = Acking(state, self.buffer, self.revive_log, state.order_infos, self.held)
        self._looking = PopLooking(state, self.buffer, state.order_infos, self.held, self.notifications)
        self._unblocks: dict[tuple[str, str, int], Deadline] = {}
        self._origin_ms = state.now_ms()
        if state.config.enable_notify_after_pop_order_lock_release:
            state.order_infos.unblocks_at.subscribe(self._unblock_at)

    def handlers(self) -> Mapping[RequestCode, Answering]:
        """The handlers of POP's requests."""
        code = RequestCode
        return {
            code.POP_MESSAGE: self._popping.pop_message,
            code.ACK_MESSAGE: self._acking.ack_message,
            code.BATCH_ACK_MESSAGE: self._acking.batch_ack_message,
            code.CHANGE_MESSAGE_INVISIBLETIME: self._acking.change_invisible_time,
            code.PEEK_MESSAGE: self._looking.peek_message,
            code.NOTIFICATION: self._looking.notification,
            code.POLLING_INFO: self._looking.polling_info,
            code.POP_ROLLBACK: self._looking.pop_rollback,
        }

    def start(self) -> None:
        """Begin to revive and to commit."""
        self.buffer.start()
        if not self._state.identity.is_slave:
            self.reviving.start()

    def stop(self) -> None:
        """The broker stops: held requests are dropped, what is in memory is stored."""
        self.held.clear()
        self.notifications.clear()
        self.reviving.stop()
        self.buffer.stop()
        for deadline in self._unblocks.values():
            deadline.cancel()
        self._unblocks.clear()

    def arrived(
        self, topic: str, queue_id: int, next_queue_offset: int, tags_code: int, properties: Mapping[str, str]
    ) -> None:
        """A message can be read."""
        if topic == self.revive_log.topic and not self._state.identity.is_slave:
            self.reviving.arrived(queue_id)
        self.held.arrived(topic, queue_id, next_queue_offset, tags_code, properties)
        self.notifications.arrived(topic, queue_id, next_queue_offset, tags_code, properties)

    def channel_closed(self, channel: Channel) -> None:
        """A client is gone, and its held requests with it."""
        self.held.drop(channel)
        self.notifications.drop(channel)

    def _unblock_at(self, topic: str, group: str, queue_id: int, until_ms: int) -> None:
        """Held pops look again when an orderly queue is no longer blocked."""
        key = (topic, group, queue_id)
        before = self._unblocks.pop(key, None)
        if before is not None:
            before.cancel()

        def unblocked() -> None:
            self._unblocks.pop(key, None)
            self._acking.unblocked(topic, group, queue_id)

        due_ms = next_on_grid(until_ms, UNBLOCK_TICK_MS, self._origin_ms)
        self._unblocks[key] = self._state.ports.clock.call_at(due_ms, unblocked, "pop.unblock")
