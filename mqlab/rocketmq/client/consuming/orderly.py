"""Orderly consumption: one thread per queue at a time, in queue order; a failure stops the queue, not the message.

Mirrors: ConsumeMessageOrderlyService, RebalancePushImpl's locks.

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
from typing import Any

from mqlab.rocketmq.client.consuming.consume_service import (
    ListenerCallUnderWay,
    ListenerRunner,
    restore_original_topic,
    thread_is_free,
)
from mqlab.rocketmq.client.consuming.listener import ConsumeOrderlyContext, as_call
from mqlab.rocketmq.client.consuming.member_state import PushState
from mqlab.rocketmq.client.consuming.process_queue import REBALANCE_LOCK_INTERVAL_MS, ProcessQueue, move
from mqlab.rocketmq.client.consuming.queue_locks import HeldQueueLocks
from mqlab.rocketmq.client.consuming.send_back import SendBack
from mqlab.rocketmq.client.consuming.started_work import WorkStarter
from mqlab.rocketmq.client.instance.background import background
from mqlab.rocketmq.client.instance.members import ListenerAnswer
from mqlab.rocketmq.client.instance.statistics import CONSUME_FAILED_TPS, CONSUME_OK_TPS, CONSUME_RT
from mqlab.rocketmq.client.instance.timers import Periodic
from mqlab.rocketmq.client.statuses import COMMIT, ORDERLY_STATUSES, ROLLBACK, SUCCESS, SUSPEND_CURRENT_QUEUE_A_MOMENT
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.state_table import StateTable
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

FIRST_LOCK_MS = 1_000
MAX_TIME_CONSUME_CONTINUOUSLY_MS = 60_000
RELOCK_BEFORE_START_MS = 100
RELOCK_IN_LOOP_MS = 10
RESUBMIT_LOCKED_MS = 10
RESUBMIT_NOT_LOCKED_MS = 3_000
UNLOCK_DELAY_TIME_MS = 20_000
WRITE_LOCK_WAIT_MS = 500

IDLE, BUSY, BUSY_AGAIN = "IDLE", "BUSY", "BUSY_AGAIN"
QUEUE_TASKS = StateTable(
    "the tasks of a queue that is consumed in order",
    IDLE,
    [
        (IDLE, "enter", BUSY),
        (BUSY, "enter", BUSY_AGAIN),  # the second task ends at once; the first one is followed by another
        (BUSY_AGAIN, "enter", BUSY_AGAIN),
        (BUSY, "leave", IDLE),
        (BUSY_AGAIN, "leave", IDLE),
    ],
)


class ConsumeOrderly:
    """Runs the listener of one push consumer queue by queue, each queue on one thread of the pool at a time.

    ``may_pull(queue)`` is called when a parked pull may go on: messages left a cache, or (None) locks came.
    """

    def __init__(
        self, state: PushState, listener: Any, send_back: SendBack, may_pull: Callable[[MessageQueue | None], None]
    ) -> None:
        self._state = state
        self._ports = state.ports
        self.workers = state.ports.workers
        self.works = WorkStarter(state.ports, state.group)
        self.now_ms = state.ports.clock.now_ms
        self.runner = ListenerRunner(state, as_call(listener), ORDERLY_STATUSES, SUSPEND_CURRENT_QUEUE_A_MOMENT)
        self.pool = self.workers.pool("ConsumeMessageThread_" + state.group, state.config.consume_thread_min)
        self.locks = HeldQueueLocks(state.cluster, state.group, state.process_queues)
        self._send_back = send_back
        self._may_pull = may_pull
        self._renewal = Periodic(
            state.ports.clock, "orderly.lock_renew", REBALANCE_LOCK_INTERVAL_MS, self._renewal_tick
        )
        self._tasks: dict[MessageQueue, str] = {}  # queue -> its state in QUEUE_TASKS, unless that is IDLE

    def start(self) -> None:
        """Arm the lock renewal."""
        if not self._state.is_broadcasting:
            self._renewal.start(FIRST_LOCK_MS)

    def shutdown(self) -> None:
        """Take no further tasks."""
        self._renewal.stop()
        self.pool.shutdown()

    def _renewal_tick(self) -> None:
        background(self._ports, self._renew_locks(), "lock renewal")

    @flow
    def _renew_locks(self) -> Flow[None]:
        yield self.locks.lock_all()
        self._may_pull(None)

    def submit(
        self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue, dispatch: bool = True
    ) -> None:
        """Start a task for the queue. ``dispatch`` False: one is under way, which takes these messages, too."""
        if dispatch:
            task = QueueTask(self, process_queue, queue)
            self.pool.submit(task.call, thread_is_free)

    def submit_later(self, process_queue: ProcessQueue, queue: MessageQueue, delay_ms: int) -> None:
        """Start a task for a queue after a rest, between 10 ms and 30 s."""
        delay_ms = min(max(delay_ms, 10), 30_000)
        self._ports.clock.call_later(delay_ms, lambda: self.submit((), process_queue, queue), "orderly.resume")

    def consume_directly(self, message: MessageExt, queue: MessageQueue) -> Promise[ListenerAnswer]:
        """Consume one message that an operator sent, now."""
        return self.runner.directly(self.pool, message, queue, ConsumeOrderlyContext(self.works, queue))

    def wait_idle(self, timeout_ms: int) -> Promise[bool]:
        """True once no listener runs; False after the time."""
        return self.runner.wait_idle(timeout_ms)

    def lock(self, queue: MessageQueue) -> Promise[bool]:
        """Ask the broker for a queue that is about to be added. False: another member has it."""
        return self.locks.lock(queue)

    @flow
    def release(self, queue: MessageQueue, process_queue: ProcessQueue) -> Flow[bool]:
        """Commit a dropped queue and unlock it once its listener is back, or after 20 s; False: not yet."""
        state = self._state
        if state.is_broadcasting:  # each member reads all queues: there is nothing to hand over
            state.offset_store.remove_offset(queue)
            return True
        forced = process_queue.dropped and self.now_ms() > process_queue.last_lock_timestamp + UNLOCK_DELAY_TIME_MS
        if not forced:
            is_back = yield self.runner.wait_until(lambda: not process_queue.listener_running, WRITE_LOCK_WAIT_MS)
            if not is_back:
                process_queue.try_unlock_times += 1
                return False
        state.offset_store.persist(queue)
        state.offset_store.remove_offset(queue)
        move(process_queue, "unlock")
        self.locks.unlock(queue)
        return True

    @flow
    def unlock_all(self) -> Flow[None]:
        """Give every lock back and wait for the answers."""
        if not self._state.is_broadcasting:
            yield self.locks.unlock_all()

    def enter(self, queue: MessageQueue) -> bool:
        """True when no other task is on this queue (RocketMQ's monitor per queue)."""
        before = self._tasks.get(queue, IDLE)
        self._tasks[queue] = QUEUE_TASKS[before, "enter"]
        return before == IDLE

    def leave(self, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """The task ends; if another one came meanwhile, the queue gets a new task."""
        before = self._tasks.pop(queue, BUSY)
        if QUEUE_TASKS[before, "leave"] == IDLE and before == BUSY_AGAIN:
            self.submit((), process_queue, queue)

    def next_batch(
        self, process_queue: ProcessQueue, queue: MessageQueue, entered_ms: int, first: bool
    ) -> list[MessageExt]:
        """The next messages to consume; none: the task ends (and may have arranged to come back)."""
        now_ms = self.now_ms()
        # 1. Reasons to stop: the queue moved away, its lock is not sure, or others should have the thread.
        if process_queue.dropped:
            return []
        if not self._state.is_broadcasting and (not process_queue.locked or process_queue.is_lock_expired(now_ms)):
            self._relock_later(process_queue, queue, RELOCK_BEFORE_START_MS if first else RELOCK_IN_LOOP_MS)
            return []
        if now_ms - entered_ms > MAX_TIME_CONSUME_CONTINUOUSLY_MS:
            self.submit_later(process_queue, queue, RESUBMIT_LOCKED_MS)
            return []
        # 2. Take the smallest messages out of the cache.
        messages = process_queue.take_messages(self._state.config.consume_message_batch_max_size)
        process_queue.last_consume_timestamp = now_ms
        if messages:
            restore_original_topic(messages, self._state.group)
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
        """What the listener's status does to the queue; True: go on with the next batch."""
        process_queue.listener_running = False
        self.runner.check_waiters()
        commit_offset = -1
        go_on = True
        # 1. A failure puts the batch back and lets the queue rest; a success commits what was taken.
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
        # 2. Move the offset. It may also go back: a queue in order has no gaps that would forbid it.
        if commit_offset >= 0 and not process_queue.dropped:
            self._state.offset_store.update_offset(queue, commit_offset, increase_only=False)
        self._may_pull(queue)
        return go_on

    def _rest(self, process_queue: ProcessQueue, queue: MessageQueue, context: ConsumeOrderlyContext) -> None:
        default_ms = self._state.config.suspend_current_queue_time_millis
        self.submit_later(process_queue, queue, context.suspend_ms(default_ms))

    @flow
    def _must_suspend(self, messages: Sequence[MessageExt], queue: MessageQueue) -> Flow[bool]:
        """True: put the batch back. Messages that failed too often leave for %RETRY% (checkReconsumeTimes)."""
        limit = self._state.max_reconsume_times_in_order
        suspend = False
        for message in messages:
            if message.reconsume_times < limit or not (
                yield self._send_back.send_as_new_message(message, queue, max_reconsume_times=limit)
            ):
                suspend = True
                message.reconsume_times += 1
        return suspend

    def count(self, counter: str, queue: MessageQueue, value: int) -> None:
        """Count messages or ms in the statistics."""
        self._state.statistics.count(counter, self._state.group, queue.topic, value, self.now_ms())

    def __repr__(self) -> str:
        return f"<ConsumeOrderly {self.pool!r}, {len(self._tasks)} queues busy>"


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
            context = ConsumeOrderlyContext(self._service.works, self._queue)
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
        """On the node: carry out the answer; True: go on with the next batch."""
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
