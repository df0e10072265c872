"""One pop request goes round for ever per assigned queue (-1: all of a broker): checks, pops, hands over, again.

Mirrors: PopMessageService, PopProcessQueue and DefaultMQPushConsumerImpl.popMessage.

    not acknowledged yet > pop_threshold_for_queue (96)    again in 50 ms
    suspended                                              again in 1 s
    found                                                  to the consume service, and at once again
    nothing for 15 s                                       at once again
    the broker holds too many pops, an error               again in 3 s
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mqlab.errors import BrokerError, MqlabError
from mqlab.rocketmq.client.consuming.member_state import PushState
from mqlab.rocketmq.client.consuming.popped import FOUND, POLLING_FULL, PopApi, PopCall, PopResult
from mqlab.rocketmq.client.consuming.pull_api import message_note
from mqlab.rocketmq.client.instance.background import background
from mqlab.rocketmq.client.settings import CONSUME_FROM_FIRST_OFFSET
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

FIRST_POP_DELAY_MS = 500
FLOW_CONTROL_DELAY_MS = 50
BROKER_FLOW_CONTROL_DELAY_MS = 20
SUSPENDED_DELAY_MS = 1_000
POLL_MS = 15_000
INIT_MIN, INIT_MAX = 0, 1


@dataclass(slots=True, eq=False)
class PopQueue:
    """One assigned queue; ``waits_for_ack`` counts what its listener has not finished. Mirrors PopProcessQueue."""

    queue: MessageQueue
    last_pop_timestamp: int
    waits_for_ack: int = 0
    dropped: bool = False

    def to_value(self) -> dict[str, Any]:
        """What an operator sees of it. Mirrors PopProcessQueueInfo, with its spelling."""
        return {
            "droped": self.dropped,
            "lastPopTimestamp": self.last_pop_timestamp,
            "waitAckCount": self.waits_for_ack,
        }


class ConsumePopped(Protocol):
    """The taker of popped messages."""

    def __call__(self, messages: Sequence[MessageExt], pop_queue: PopQueue, result: PopResult) -> None: ...


class PopLoop:
    """All pop requests of one push consumer."""

    def __init__(self, state: PushState, api: PopApi, consume: ConsumePopped) -> None:
        self._state = state
        self._ports = state.ports
        self._clock = state.ports.clock
        self._api = api
        self._consume = consume
        self.queues: dict[MessageQueue, PopQueue] = {}

    def assign(self, topic: str, queues: Sequence[MessageQueue]) -> bool:
        """Pop these queues of a topic and no others; True when that changes anything."""
        changed = False
        for queue in [queue for queue in self.queues if queue.topic == topic and queue not in queues]:
            self.queues.pop(queue).dropped = True
            self._note("queue.dropped", queue, reason="not mine")
            changed = True
        for queue in queues:
            if queue not in self.queues:
                self.queues[queue] = PopQueue(queue, self._clock.now_ms())
                self._note("queue.added", queue, next_offset=None)
                self._later(self.queues[queue], FIRST_POP_DELAY_MS)
                changed = True
        return changed

    def drop_all(self) -> None:
        """End every loop."""
        for pop_queue in self.queues.values():
            pop_queue.dropped = True
        self.queues.clear()

    def _note(self, kind: str, queue: MessageQueue, **values: object) -> None:
        self._ports.note(kind, group=self._state.group, client=self._ports.node, queue=queue, **values)

    def _later(self, pop_queue: PopQueue, delay_ms: int) -> None:
        self._clock.call_later(delay_ms, lambda: self.pop(pop_queue), "pull.later")

    def pop(self, pop_queue: PopQueue) -> None:
        """Go through the checks and ask the broker."""
        state = self._state
        if pop_queue.dropped or not state.service.is_running:
            return
        pop_queue.last_pop_timestamp = self._clock.now_ms()  # also when a check below holds it back
        if state.is_suspended:
            self._later(pop_queue, SUSPENDED_DELAY_MS)
        elif pop_queue.waits_for_ack > state.config.pop_threshold_for_queue:
            self._later(pop_queue, FLOW_CONTROL_DELAY_MS)
        elif pop_queue.queue.topic not in state.subscriptions:
            self._later(pop_queue, state.config.pull_time_delay_mills_when_exception)
        else:
            background(self._ports, self._ask(pop_queue), "pop")

    @flow
    def _ask(self, pop_queue: PopQueue) -> Flow[None]:
        state, config, queue = self._state, self._state.config, pop_queue.queue
        from_first = config.consume_from_where == CONSUME_FROM_FIRST_OFFSET
        call = PopCall(
            state.group,
            queue,
            config.pop_batch_nums,
            config.pop_invisible_time,
            POLL_MS,
            INIT_MIN if from_first else INIT_MAX,
            state.subscriptions[queue.topic],
        )
        try:
            result: PopResult = yield self._api.pop(call)
        except MqlabError as error:
            self._note("pull.failed", queue, error=error.text)
            throttled = isinstance(error, BrokerError) and error.response_code == ResponseCode.FLOW_CONTROL
            wait_ms = config.pull_time_delay_mills_when_exception
            self._later(pop_queue, BROKER_FLOW_CONTROL_DELAY_MS if throttled else wait_ms)
            return
        if result.status == FOUND:
            self._found(pop_queue, result)
        if result.status == POLLING_FULL:
            self._later(pop_queue, config.pull_time_delay_mills_when_exception)
        else:
            self.pop(pop_queue)

    def _found(self, pop_queue: PopQueue, result: PopResult) -> None:
        state, dropped = self._state, list(result.filtered)
        if result.filtered:
            self._note(
                "message.filtered",
                pop_queue.queue,
                messages=[message_note(message, pop_queue.queue, state.group) for message in result.filtered],
            )
        # A message that came too often is acknowledged, and gone: POP has no dead letters here.
        limit = state.max_reconsume_times
        for message in result.messages:
            if message.reconsume_times > limit:
                dropped.append(message)
                self._note("message.given_up", pop_queue.queue, msg_id=message.msg_id, why="too many deliveries")
        for message in dropped:
            background(self._ports, self._api.ack(message), "ack")
        kept = [message for message in result.messages if message.reconsume_times <= limit]
        pop_queue.waits_for_ack += len(kept)
        if kept:
            self._consume(kept, pop_queue, result)
