"""Concurrent consumption: many threads, any order; what fails goes back to the broker, the offset follows the smallest.

Mirrors: ConsumeMessageConcurrentlyService.

    pulled 32 ─▶ batches of 1 ─▶ pool of 20 ─▶ listener
        CONSUME_SUCCESS    all up to ack_index are good
        RECONSUME_LATER    all are bad (also: None, an exception)
        bad                send back to the broker; could not be sent: once more here after 5 s, in this cache
        then               good and sent back leave the cache; the smallest offset left is the new offset (never lower)

    stuck longer than 15 min     swept every 15 min: sent back with level 3, at most 16 from the head of each queue
    message_timeout              mqlab's own way: a timer per batch, exact, off by default

Left out: pools that grow (RocketMQ's never does, its queue is unbounded).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mqlab.rocketmq.client.consuming.consume_service import (
    ListenerCallUnderWay,
    ListenerRunner,
    restore_original_topic,
    thread_is_free,
)
from mqlab.rocketmq.client.consuming.listener import ConsumeConcurrentlyContext, as_call
from mqlab.rocketmq.client.consuming.member_state import PushState
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue
from mqlab.rocketmq.client.consuming.send_back import SendBack
from mqlab.rocketmq.client.consuming.started_work import WorkStarter
from mqlab.rocketmq.client.instance.background import background
from mqlab.rocketmq.client.instance.members import ListenerAnswer
from mqlab.rocketmq.client.instance.statistics import CONSUME_FAILED_TPS, CONSUME_OK_TPS, CONSUME_RT
from mqlab.rocketmq.client.instance.timers import Periodic
from mqlab.rocketmq.client.statuses import CONCURRENT_STATUSES, CONSUME_SUCCESS, RECONSUME_LATER
from mqlab.rocketmq.ports import Deadline
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire import property_names
from mqlab.rocketmq.wire.java_numbers import parse_long
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

RESUBMIT_MS = 5_000
EXPIRED_DELAY_LEVEL = 3
EXPIRED_PER_SWEEP = 16


class ConsumeConcurrently:
    """Runs the listener of one push consumer on a pool of ``consume_thread_min`` threads.

    ``room_made(queue)`` is called when messages left the cache of a queue: a parked pull may go on.
    """

    def __init__(
        self, state: PushState, listener: Any, send_back: SendBack, room_made: Callable[[MessageQueue], None]
    ) -> None:
        self.state = state
        self.ports = state.ports
        self.workers = state.ports.workers
        self.works = WorkStarter(state.ports, state.group)
        self.runner = ListenerRunner(state, as_call(listener), CONCURRENT_STATUSES, RECONSUME_LATER)
        self.pool = self.workers.pool("ConsumeMessageThread_" + state.group, state.config.consume_thread_min)
        self._send_back = send_back
        self._room_made = room_made
        period_ms = state.config.consume_timeout
        self._sweep = Periodic(self.ports.clock, "consumer.expire_sweep", period_ms, self._sweep_all)
        self._sweep_first_ms = period_ms

    def start(self) -> None:
        """Arm the sweep; a later change of consume_timeout does not change its period."""
        self._sweep.start(self._sweep_first_ms)

    def shutdown(self) -> None:
        """Take no further batches; running ones end, and their results are dropped with their queues."""
        self._sweep.stop()
        self.pool.shutdown()

    def submit(
        self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue, dispatch: bool = True
    ) -> None:
        """Cut pulled messages into batches, each a task of the pool."""
        size = self.state.config.consume_message_batch_max_size
        for start in range(0, len(messages), size):
            batch = Batch(self, list(messages[start : start + size]), process_queue, queue)
            self.pool.submit(batch.call, thread_is_free)

    def consume_directly(self, message: MessageExt, queue: MessageQueue) -> Promise[ListenerAnswer]:
        """Consume one message that an operator sent, now."""
        return self.runner.directly(self.pool, message, queue, ConsumeConcurrentlyContext(self.works, queue))

    def wait_idle(self, timeout_ms: int) -> Promise[bool]:
        """True once no listener runs; False after the time."""
        return self.runner.wait_idle(timeout_ms)

    def lock(self, queue: MessageQueue) -> Promise[bool]:
        """Nothing to lock: any member may consume any message."""
        return Promise.of(True)

    def release(self, queue: MessageQueue, process_queue: ProcessQueue) -> Promise[bool]:
        """Let a dropped queue go at once; results that come later are discarded."""
        self.state.offset_store.remove_offset(queue)
        return Promise.of(True)

    def unlock_all(self) -> Promise[None]:
        """Nothing is locked."""
        return Promise.of(None)

    def give_back(
        self, failed: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue, delay_level: int
    ) -> Flow[list[MessageExt]]:
        """Send failed messages back, one after another, within a flow; returns those that could not be sent.

        Broadcasting has no retries: its failed messages are given up.
        """
        state = self.state
        if state.is_broadcasting:
            self.ports.note(
                "message.given_up",
                client=self.ports.node,
                group=state.group,
                queue=queue,
                msg_ids=[message.msg_id for message in failed],
            )
            return []
        left: list[MessageExt] = []
        for message in failed:
            if not process_queue.contains_message(message):
                continue  # swept away while the listener ran
            limit = state.max_reconsume_times
            if not (yield self._send_back.send(message, delay_level, queue, max_reconsume_times=limit)):
                message.reconsume_times += 1
                left.append(message)
        return left

    def resubmit_later(self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """Neither way back worked: consume these again here in five seconds."""
        self.ports.clock.call_later(
            RESUBMIT_MS, lambda: self.submit(messages, process_queue, queue), "consume.resubmit"
        )

    def remove(self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """These are finished: out of the cache, and the offset moves to the smallest left."""
        offset = process_queue.remove_message(messages)
        if offset >= 0 and not process_queue.dropped:
            self.state.offset_store.update_offset(queue, offset, increase_only=True)
        self._room_made(queue)

    def _sweep_all(self) -> None:
        for queue, process_queue in list(self.state.process_queues.items()):
            background(self.ports, self.clean_expired(process_queue, queue), "expire sweep")

    @flow
    def clean_expired(self, process_queue: ProcessQueue, queue: MessageQueue) -> Flow[None]:
        """Send back what has been consuming for too long, from the head of the queue (cleanExpiredMsg)."""
        state = self.state
        for _ in range(min(process_queue.msg_count, EXPIRED_PER_SWEEP)):
            # 1. Only the smallest offset holds the queue's offset back, so only the head is looked at.
            message = process_queue.first_message()
            if message is None:
                return
            started = message.properties.get(property_names.CONSUME_START_TIME)
            if started is None or self.ports.clock.now_ms() - parse_long(started) <= state.config.consume_timeout:
                return
            self.ports.note(
                "message.expired",
                client=self.ports.node,
                group=state.group,
                queue=queue,
                msg_id=message.msg_id,
                queue_offset=message.queue_offset,
            )
            # 2. It leaves the cache even if it could not be sent back, as in RocketMQ.
            limit = state.max_reconsume_times
            yield self._send_back.send(message, EXPIRED_DELAY_LEVEL, queue, max_reconsume_times=limit)
            if process_queue.first_message() is message:
                process_queue.remove_message([message])
                self._room_made(queue)

    def arm_timeout(self, batch: Batch) -> Deadline | None:
        """Start the timer of a batch (setting message_timeout), None when it is off."""
        limit_ms = self.state.config.message_timeout
        if limit_ms == 0:
            return None
        return self.ports.clock.call_later(
            limit_ms, lambda: background(self.ports, self._timed_out(batch), "message timeout"), "consume.timeout"
        )

    @flow
    def _timed_out(self, batch: Batch) -> Flow[None]:
        if batch.process_queue.dropped:
            return
        stuck = [message for message in batch.messages if batch.process_queue.contains_message(message)]
        self.ports.note(
            "message.timed_out",
            client=self.ports.node,
            group=self.state.group,
            queue=batch.queue,
            msg_ids=[message.msg_id for message in stuck],
        )
        left = yield from self.give_back(stuck, batch.process_queue, batch.queue, 0)
        self.remove([message for message in stuck if message not in left], batch.process_queue, batch.queue)

    def __repr__(self) -> str:
        return f"<ConsumeConcurrently {self.pool!r}>"


class Batch:
    """One task of the pool: begin on the node, listen in the thread, end on the node. Mirrors ConsumeRequest."""

    def __init__(
        self, service: ConsumeConcurrently, messages: list[MessageExt], process_queue: ProcessQueue, queue: MessageQueue
    ) -> None:
        self._service = service
        self.messages = messages
        self.process_queue = process_queue
        self.queue = queue
        self._timer: Deadline | None = None

    def call(self) -> None:
        """In a thread of the pool; the thread stays taken while failed messages are sent back."""
        context = ConsumeConcurrentlyContext(self._service.works, self.queue)
        self._service.runner.run(self._begin, context, self._end)

    def _begin(self) -> ListenerCallUnderWay | None:
        if self.process_queue.dropped:
            return None
        service = self._service
        restore_original_topic(self.messages, service.state.group)
        self._timer = service.arm_timeout(self)
        return service.runner.begin(self.messages, self.queue)

    @flow
    def _end(
        self, call: ListenerCallUnderWay, context: ConsumeConcurrentlyContext, answer: Any, error: str | None
    ) -> Flow[None]:
        """On the node: move the offset for what is good, send back what is bad."""
        service, group, topic = self._service, self._service.state.group, self.queue.topic
        count = service.state.statistics.count
        if self._timer is not None:
            self._timer.cancel()
        outcome = service.runner.end(call, answer, error)
        now_ms = call.started_ms + outcome.took_ms
        count(CONSUME_RT, group, topic, outcome.took_ms, now_ms)
        # 1. The queue moved to another member meanwhile: that one consumes these messages again.
        if self.process_queue.dropped:
            service.runner.discarded(call)
            service.runner.finished()
            return
        # 2. Which messages are good: on success those up to ack_index, else none.
        ack = min(context.ack_index, len(self.messages) - 1) if outcome.status == CONSUME_SUCCESS else -1
        failed = self.messages[ack + 1 :]
        if ack >= 0:
            count(CONSUME_OK_TPS, group, topic, ack + 1, now_ms)
        # 3. Bad ones go back. What could not be sent stays in the cache, and holds the offset back.
        finished = self.messages
        if failed:
            count(CONSUME_FAILED_TPS, group, topic, len(failed), now_ms)
            left = yield from service.give_back(
                failed, self.process_queue, self.queue, context.delay_level_when_next_consume
            )
            if left:
                finished = [message for message in self.messages if message not in left]
                service.resubmit_later(left, self.process_queue, self.queue)
        service.remove(finished, self.process_queue, self.queue)
        service.runner.finished()
