"""Orderly consumption: one thread per queue at a time, in queue order; a failure stops the queue, not the message.

Mirrors: ConsumeMessageOrderlyService, RebalancePushImpl's locks. Lab 05 opens it.

    lock at the broker     per queue, 60 s, renewed every 20 s for all owned queues; here it counts for 30 s
    take ─▶ listener ─▶    SUCCESS                          commit: the offset moves, go on
                           SUSPEND_CURRENT_QUEUE_A_MOMENT   put back, again after 1 s (10 ms .. 30 s); the count is
                                                            this process's own; after max_reconsume_times
                                                            to %RETRY%, and there to %DLQ%
                           COMMIT, ROLLBACK                 with auto_commit False: commit / put back all taken
    after 60 s on one queue the thread lets others on

Left out: lock_in_strict_mode (a quorum of replicas).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client.consuming.consume_service import (
    DirectResult,
    ListenerCallUnderWay,
    ListenerRunner,
    restore_original_topic,
)
from mqlab.client.consuming.listener import ConsumeOrderlyContext, as_call
from mqlab.client.consuming.process_queue import REBALANCE_LOCK_INTERVAL_MS, ProcessQueue
from mqlab.client.consuming.queue_locks import QueueLocks
from mqlab.client.instance.background import background
from mqlab.client.instance.statistics import CONSUME_FAILED_TPS, CONSUME_OK_TPS, CONSUME_RT
from mqlab.client.instance.timers import Periodic
from mqlab.client.settings import CLUSTERING
from mqlab.client.statuses import COMMIT, ORDERLY_STATUSES, ROLLBACK, SUCCESS, SUSPEND_CURRENT_QUEUE_A_MOMENT
from mqlab.promises import Flow, Promise, flow
from mqlab.wire.message import MessageExt, MessageQueue

if TYPE_CHECKING:
    from mqlab.client.push_consumer import PushConsumer

FIRST_LOCK_MS = 1_000
MAX_TIME_CONSUME_CONTINUOUSLY_MS = 60_000
RELOCK_BEFORE_START_MS = 100
RELOCK_IN_LOOP_MS = 10
RESUBMIT_LOCKED_MS = 10
RESUBMIT_NOT_LOCKED_MS = 3_000
NO_LIMIT = 2**31 - 1


class ConsumeOrderly:
    """Runs the listener of one push consumer queue by queue, each queue on one thread of the pool at a time."""

    def __init__(self, consumer: PushConsumer, listener: Any) -> None:
        self._consumer = consumer
        self._ports = consumer.ports
        self.workers = consumer.ports.workers
        self.now_ms = consumer.ports.clock.now_ms
        self.runner = ListenerRunner(consumer, as_call(listener), ORDERLY_STATUSES, SUSPEND_CURRENT_QUEUE_A_MOMENT)
        self.pool = consumer.ports.workers.pool(
            "ConsumeMessageThread_" + consumer.group, consumer.config.consume_thread_min
        )
        self.locks = QueueLocks(consumer.client, consumer.group, consumer.process_queues)
        self._renewal = Periodic(
            consumer.ports.clock,
            "orderly.lock_renew",
            REBALANCE_LOCK_INTERVAL_MS,
            lambda: background(consumer.ports, self._renew_locks(), "lock renewal"),
        )
        self._busy: dict[MessageQueue, bool] = {}  # queue -> another task came while this one runs

    @property
    def _is_clustering(self) -> bool:
        return self._consumer.config.message_model == CLUSTERING

    def start(self) -> None:
        """Arm the lock renewal."""
        if self._is_clustering:
            self._renewal.start(FIRST_LOCK_MS)

    def shutdown(self) -> None:
        """Take no more tasks."""
        self._renewal.stop()
        self.pool.shutdown()

    @flow
    def _renew_locks(self) -> Flow[None]:
        yield self.locks.lock_all()
        self._consumer.pull_loop.retry_parked()

    def submit(
        self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue, dispatch: bool = True
    ) -> None:
        """One task per queue, only when none is under way (the cache said so by ``dispatch``)."""
        if dispatch:
            task = QueueTask(self, process_queue, queue)
            self.pool.submit(task.call, task.done, label=str(queue))

    def submit_later(self, process_queue: ProcessQueue, queue: MessageQueue, delay_ms: int) -> None:
        """Come back to a queue after a rest, between 10 ms and 30 s."""
        delay_ms = min(max(delay_ms, 10), 30_000)
        self._ports.clock.call_later(delay_ms, lambda: self.submit((), process_queue, queue), "orderly.resume")

    def consume_directly(self, message: MessageExt, queue: MessageQueue) -> Promise[DirectResult]:
        """Consume one message that an operator sent, now."""
        return self.runner.directly(self.pool, message, queue, ConsumeOrderlyContext(self.workers, queue))

    def wait_idle(self, timeout_ms: int) -> Promise[bool]:
        """True once no listener runs; False after the time."""
        return self.runner.wait_until(lambda: self.runner.running == 0, timeout_ms)

    def wait_listener_back(self, process_queue: ProcessQueue, timeout_ms: int) -> Promise[bool]:
        """True once no listener is out with messages of this queue; False after the time."""
        return self.runner.wait_until(lambda: not process_queue.listener_running, timeout_ms)

    # steps of a task, on the node -----------------------------------------------------------------------------------

    def enter(self, queue: MessageQueue) -> bool:
        """True when no other task is on this queue (RocketMQ's monitor per queue)."""
        if queue in self._busy:
            self._busy[queue] = True
            return False
        self._busy[queue] = False
        return True

    def leave(self, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """The task ends; one that came meanwhile has its turn."""
        if self._busy.pop(queue, False):
            self.submit((), process_queue, queue)

    def next_batch(
        self, process_queue: ProcessQueue, queue: MessageQueue, entered_ms: int, first: bool
    ) -> list[MessageExt]:
        """The next messages to consume; none: the task ends (and may have arranged to come back)."""
        now_ms = self._ports.clock.now_ms()
        if process_queue.dropped:
            return []
        if self._is_clustering and (not process_queue.locked or process_queue.is_lock_expired(now_ms)):
            self._relock_later(process_queue, queue, RELOCK_BEFORE_START_MS if first else RELOCK_IN_LOOP_MS)
            return []
        if now_ms - entered_ms > MAX_TIME_CONSUME_CONTINUOUSLY_MS:
            self.submit_later(process_queue, queue, RESUBMIT_LOCKED_MS)
            return []
        messages = process_queue.take_messages(self._consumer.config.consume_message_batch_max_size)
        process_queue.last_consume_timestamp = now_ms
        if messages:
            restore_original_topic(messages, self._consumer.group)
            process_queue.listener_running = True
        return messages

    def _relock_later(self, process_queue: ProcessQueue, queue: MessageQueue, delay_ms: int) -> None:
        def locked(yes: bool) -> None:
            self.submit_later(process_queue, queue, RESUBMIT_LOCKED_MS if yes else RESUBMIT_NOT_LOCKED_MS)

        def relock() -> None:
            granted = self.locks.lock(queue)
            granted.then(locked)
            background(self._ports, granted, "lock")

        self._ports.clock.call_later(delay_ms, relock, "orderly.relock")

    @flow
    def handle_result(
        self,
        status: str,
        messages: Sequence[MessageExt],
        context: ConsumeOrderlyContext,
        process_queue: ProcessQueue,
        queue: MessageQueue,
    ) -> Flow[bool]:
        """What the listener's word does to the queue; True: go on with the next batch."""
        process_queue.listener_running = False
        self.runner.look_at_waiters()
        commit_offset = -1
        go_on = True
        if status == SUSPEND_CURRENT_QUEUE_A_MOMENT:
            self.count(CONSUME_FAILED_TPS, queue, len(messages))
            if (yield self._must_suspend(messages, queue)):
                process_queue.make_message_to_consume_again(messages)
                self._rest(process_queue, queue, context)
                go_on = False
            elif context.auto_commit:
                commit_offset = process_queue.commit()
        elif context.auto_commit:
            self.count(CONSUME_OK_TPS, queue, len(messages))
            commit_offset = process_queue.commit()
        elif status == COMMIT:
            commit_offset = process_queue.commit()
        elif status == ROLLBACK:
            process_queue.rollback()
            self._rest(process_queue, queue, context)
            go_on = False
        elif status == SUCCESS:
            self.count(CONSUME_OK_TPS, queue, len(messages))
        if commit_offset >= 0 and not process_queue.dropped:
            self._consumer.offset_store.update_offset(queue, commit_offset, increase_only=False)
        self._consumer.pull_loop.retry_parked(queue)
        return go_on

    def _rest(self, process_queue: ProcessQueue, queue: MessageQueue, context: ConsumeOrderlyContext) -> None:
        default_ms = self._consumer.config.suspend_current_queue_time_millis
        self.submit_later(process_queue, queue, context.suspend_ms(default_ms))

    @flow
    def _must_suspend(self, messages: Sequence[MessageExt], queue: MessageQueue) -> Flow[bool]:
        """True: put the batch back. Messages that failed too often leave for %RETRY% (checkReconsumeTimes)."""
        configured = self._consumer.config.max_reconsume_times
        limit = NO_LIMIT if configured == -1 else configured
        suspend = False
        for message in messages:
            if message.reconsume_times < limit or not (
                yield self._consumer.send_as_new_message(message, queue, max_reconsume_times=limit)
            ):
                suspend = True
                message.reconsume_times += 1
        return suspend

    def count(self, counter: str, queue: MessageQueue, value: int) -> None:
        """Book messages or ms in the statistics."""
        self._consumer.client.statistics.count(counter, self._consumer.group, queue.topic, value)

    def __repr__(self) -> str:
        return f"<ConsumeOrderly {self.pool!r}, {len(self._busy)} queues busy>"


class QueueTask:
    """One thread on one queue, until there is nothing to do or something makes it stop. Mirrors ConsumeRequest."""

    def __init__(self, service: ConsumeOrderly, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        self._service = service
        self._process_queue = process_queue
        self._queue = queue
        self._entered_ms = -1

    def call(self) -> None:
        """In a thread of the pool: batch after batch."""
        runner, workers = self._service.runner, self._service.workers
        while True:
            call = workers.call(lambda: Promise.of(self._begin()))
            if call is None:
                return
            context = ConsumeOrderlyContext(workers, self._queue)
            answer, error = runner.listen(call, context)
            if not workers.call(self._ending(call, context, answer, error)):
                return

    def _begin(self) -> ListenerCallUnderWay | None:
        """On the node: enter the queue and take the next batch; None ends the task."""
        service = self._service
        first = self._entered_ms < 0
        if first:
            if not service.enter(self._queue):
                return None
            self._entered_ms = service.now_ms()
        messages = service.next_batch(self._process_queue, self._queue, self._entered_ms, first)
        if not messages:
            service.leave(self._process_queue, self._queue)
            return None
        return service.runner.begin(messages, self._queue)

    def _ending(
        self, call: ListenerCallUnderWay, context: ConsumeOrderlyContext, answer: Any, error: str | None
    ) -> Callable[[], Promise[bool]]:
        return lambda: self._end(call, context, answer, error)

    @flow
    def _end(
        self, call: ListenerCallUnderWay, context: ConsumeOrderlyContext, answer: Any, error: str | None
    ) -> Flow[bool]:
        """On the node: do what the answer says; True: go on with the next batch."""
        service = self._service
        outcome = service.runner.end(call, answer, error)
        if self._process_queue.dropped:
            service.runner.discarded(call)
        service.count(CONSUME_RT, self._queue, outcome.took_ms)
        go_on: bool = yield service.handle_result(
            outcome.status, call.messages, context, self._process_queue, self._queue
        )
        service.runner.finished()
        if not go_on:
            service.leave(self._process_queue, self._queue)
        return go_on

    def done(self, _: None, error: BaseException | None) -> None:
        """The thread is free. Errors of the learner were caught before: one that comes here is mqlab's own."""
        if error is not None:
            raise error
