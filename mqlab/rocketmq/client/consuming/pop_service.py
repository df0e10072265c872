"""Concurrent consumption of popped messages: each is acknowledged by itself, or stays invisible for longer.

Mirrors: ConsumeMessagePopConcurrentlyService.

    the lease is over before the listener is called     skipped, nothing is said: it comes again elsewhere
    CONSUME_SUCCESS                                      ack, one per message, without waiting
    RECONSUME_LATER, None, an exception                  invisible for 10 30 60 120 … s, by reconsumeTimes
    the lease is over after the listener                 neither: it was successful, and comes again
    reconsumeTimes >= the limit                          the step above its age; dropped when it is older than 4 h

There is no consume_timeout here: a listener that hangs loses its messages to others when their lease ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mqlab.rocketmq.client.consuming.consume_service import (
    ListenerCallUnderWay,
    ListenerRunner,
    restore_original_topic,
    thread_is_free,
)
from mqlab.rocketmq.client.consuming.listener import ConsumeConcurrentlyContext, as_call
from mqlab.rocketmq.client.consuming.member_state import PushState
from mqlab.rocketmq.client.consuming.pop_loop import PopQueue
from mqlab.rocketmq.client.consuming.popped import PopApi, PopResult
from mqlab.rocketmq.client.consuming.started_work import WorkStarter
from mqlab.rocketmq.client.instance.background import background
from mqlab.rocketmq.client.instance.statistics import CONSUME_FAILED_TPS, CONSUME_OK_TPS, CONSUME_RT
from mqlab.rocketmq.client.statuses import CONCURRENT_STATUSES, CONSUME_SUCCESS, RECONSUME_LATER
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

POP_DELAY_S = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
OLD_MS = POP_DELAY_S[-1] * 1_000 * 2


class ConsumePop:
    """Runs the listener of one popping push consumer."""

    def __init__(self, state: PushState, listener: Any, api: PopApi) -> None:
        self.state = state
        self.ports = state.ports
        self.workers = state.ports.workers
        self.works = WorkStarter(state.ports, state.group)
        self.runner = ListenerRunner(state, as_call(listener), CONCURRENT_STATUSES, RECONSUME_LATER)
        self.pool = self.workers.pool("ConsumeMessageThread_" + state.group, state.config.consume_thread_min)
        self._api = api

    def shutdown(self) -> None:
        """Take no further batches."""
        self.pool.shutdown()

    def submit(self, messages: Sequence[MessageExt], pop_queue: PopQueue, result: PopResult) -> None:
        """Cut popped messages into batches, each a task of the pool."""
        size = self.state.config.consume_message_batch_max_size
        for start in range(0, len(messages), size):
            batch = PopBatch(self, list(messages[start : start + size]), pop_queue, result)
            self.pool.submit(batch.call, thread_is_free)

    def ack(self, message: MessageExt) -> None:
        """Acknowledge a message; a failure is only noted, as in RocketMQ."""
        background(self.ports, self._api.ack(message), "ack")

    def later(self, message: MessageExt, delay_level: int) -> None:
        """Let a failed message stay invisible for longer. Mirrors changePopInvisibleTime."""
        if message.reconsume_times >= self.state.max_reconsume_times:
            age_ms = self.ports.clock.now_ms() - message.born_timestamp
            if age_ms > OLD_MS:
                self.ports.note("message.given_up", group=self.state.group, msg_id=message.msg_id, why="too old")
                self.ack(message)
                return
            delay_level = sum(1 for step_s in POP_DELAY_S if age_ms >= step_s * 1_000)
        level = delay_level or message.reconsume_times
        wait_s = POP_DELAY_S[min(level, len(POP_DELAY_S) - 1)]
        change = self._api.change_invisible_time(message, wait_s * 1_000)
        background(self.ports, change, "change of invisible time")

    def __repr__(self) -> str:
        return f"<ConsumePop {self.pool!r}>"


class PopBatch:
    """One task of the pool. Mirrors ConsumeRequest of the popping service."""

    def __init__(self, service: ConsumePop, messages: list[MessageExt], pop_queue: PopQueue, result: PopResult) -> None:
        self._service = service
        self.messages = messages
        self.pop_queue = pop_queue
        self._result = result
        first = messages[0]
        self.queue = MessageQueue(first.topic, pop_queue.queue.broker_name, first.queue_id)

    @property
    def is_late(self) -> bool:
        """Whether the lease is over. Mirrors isPopTimeout."""
        result = self._result
        if result.pop_time <= 0 or result.invisible_ms <= 0:
            return True
        return self._service.ports.clock.now_ms() - result.pop_time >= result.invisible_ms

    def call(self) -> None:
        """In a thread of the pool."""
        context = ConsumeConcurrentlyContext(self._service.works, self.queue)
        self._service.runner.run(self._begin, context, self._end)

    def _begin(self) -> ListenerCallUnderWay | None:
        if self.pop_queue.dropped:
            return None
        if self.is_late:
            self.pop_queue.waits_for_ack -= len(self.messages)
            return None
        restore_original_topic(self.messages, self._service.state.group)
        return self._service.runner.begin(self.messages, self.queue)

    @flow
    def _end(
        self, call: ListenerCallUnderWay, context: ConsumeConcurrentlyContext, answer: Any, error: str | None
    ) -> Flow[None]:
        """On the node: acknowledge what is good, let the rest stay invisible for longer."""
        service, group, topic = self._service, self._service.state.group, self.queue.topic
        count = service.state.statistics.count
        outcome = service.runner.end(call, answer, error)
        now_ms = call.started_ms + outcome.took_ms
        count(CONSUME_RT, group, topic, outcome.took_ms, now_ms)
        if self.pop_queue.dropped or self.is_late:
            self.pop_queue.waits_for_ack -= len(self.messages)
            service.runner.discarded(call)
            service.runner.finished()
            return
        good = min(context.ack_index, len(self.messages) - 1) if outcome.status == CONSUME_SUCCESS else -1
        for message in self.messages[: good + 1]:
            service.ack(message)
        for message in self.messages[good + 1 :]:
            service.later(message, context.delay_level_when_next_consume)
        self.pop_queue.waits_for_ack -= len(self.messages)
        if good >= 0:
            count(CONSUME_OK_TPS, group, topic, good + 1, now_ms)
        if good + 1 < len(self.messages):
            count(CONSUME_FAILED_TPS, group, topic, len(self.messages) - good - 1, now_ms)
        service.runner.finished()
        yield Promise.of(None)
