"""A pull consumer with a schedule: a callback per topic, called again and again for each queue this member owns.

Mirrors: MQPullConsumerScheduleService, PullTaskCallback, PullTaskContext.

    service = lab.pull_consumer_schedule_service("audit")
    service.register_pull_task_callback("orders", task)       task(queue, context), in one of 20 threads
    service.start()

    def task(queue, context):
        consumer = context.pull_consumer                       fetch_consume_offset, pull, update_consume_offset
        context.pull_next_delay_time_millis = 0                again at once; default 200 ms, 1 s after an exception

Queues come and go with the group's rebalance; the task of a queue that was lost is not called again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.rocketmq.client.consuming.learners_traceback import learners_traceback
from mqlab.rocketmq.client.consuming.listener import ListenerContext
from mqlab.rocketmq.client.consuming.started_work import WorkStarter
from mqlab.rocketmq.client.pull_consumer import PullConsumer
from mqlab.rocketmq.ports import Deadline, Pool, Ports
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire.message import MessageQueue

PULL_THREADS = 20
NEXT_DELAY_MS = 200
DELAY_AFTER_EXCEPTION_MS = 1_000

PullTaskCallback = Callable[[MessageQueue, "PullTaskContext"], object]


class PullTaskContext(ListenerContext):
    """What a task may use. ``pull_next_delay_time_millis``: when to be called again, a duration."""

    def __init__(self, starter: WorkStarter, message_queue: MessageQueue, pull_consumer: PullConsumer) -> None:
        super().__init__(starter, message_queue)
        self.pull_consumer = pull_consumer
        self.pull_next_delay_time_millis: int | str = NEXT_DELAY_MS


class PullConsumerScheduleService(PullConsumer):
    """Settings are those of the pull consumer it is, and ``pull_thread_nums``. Mirrors MQPullConsumerScheduleService.

    ``tasks``: the queues that are called back for; ``pool``: the threads that call, once started.
    """

    def __init__(
        self,
        ports: Ports,
        group: str,
        name_servers: Sequence[str],
        *,
        pull_thread_nums: int = PULL_THREADS,
        **settings: Any,
    ) -> None:
        if isinstance(pull_thread_nums, bool) or not isinstance(pull_thread_nums, int) or pull_thread_nums < 1:
            raise UsageError(f"pull_thread_nums={pull_thread_nums!r} is not possible", hint="a whole number above 0")
        super().__init__(ports, group, name_servers, **settings)
        self.tasks: dict[MessageQueue, ScheduledPull] = {}
        self.callbacks: dict[str, PullTaskCallback] = {}
        self.pool: Pool | None = None
        self.works = WorkStarter(ports, group)
        self._threads = pull_thread_nums

    def register_pull_task_callback(self, topic: str, callback: PullTaskCallback) -> None:
        """Have ``callback(queue, context)`` (or its ``do_pull_task``) called for each owned queue (before start)."""
        method = getattr(callback, "do_pull_task", callback)
        if not callable(method) or isinstance(callback, type):
            raise UsageError(
                f"{callback!r} is not a pull task", hint="a function (queue, context), or an object with do_pull_task"
            )
        self.register_message_queue_listener(topic, self._changed)
        self.callbacks[topic] = method

    @flow
    def start_async(self) -> Flow[None]:
        """Join the group, as a Promise."""
        self.service.must_be_new()
        self.pool = self.ports.workers.pool(f"PullMsgThread-{self.group}", self._threads)
        yield super().start_async()

    @flow
    def shutdown_async(self) -> Flow[None]:
        """Stop calling back and leave the group. Harmless when not running."""
        for task in self.tasks.values():
            task.cancel()
        self.tasks.clear()
        if self.pool is not None:
            self.pool.shutdown()
        yield super().shutdown_async()

    def _changed(self, topic: str, queues: list[MessageQueue], mine: list[MessageQueue]) -> None:
        # Broadcasting members own every queue.
        assigned = queues if self.state.is_broadcasting else mine
        for queue in [queue for queue in self.tasks if queue.topic == topic and queue not in assigned]:
            self.tasks.pop(queue).cancel()
        for queue in assigned:
            if queue not in self.tasks and self.pool is not None:
                self.tasks[queue] = ScheduledPull(self, queue, self.pool)
                self.tasks[queue].run()

    def __repr__(self) -> str:
        tasks = len(self.tasks)
        return f"<PullConsumerScheduleService {self.group} {self.client_id} {self.service.state}: {tasks} tasks>"


class ScheduledPull:
    """The calls for one queue, one after the other. Mirrors PullTaskImpl."""

    def __init__(self, service: PullConsumerScheduleService, queue: MessageQueue, pool: Pool) -> None:
        self._service = service
        self._queue = queue
        self._pool = pool
        self._cancelled = False
        self._next: Deadline | None = None

    def run(self) -> None:
        """Call back as soon as a thread is free."""
        self._pool.submit(self._call, self._done)

    def cancel(self) -> None:
        """Do not call again; a call that is running continues to its end."""
        self._cancelled = True
        if self._next is not None:
            self._next.cancel()

    def _call(self) -> tuple[int, str | None]:
        """In a thread of the pool: the delay until the next call, and what the callback raised."""
        service = self._service
        context = PullTaskContext(service.works, self._queue, service)
        # The queue may have gone to another member while this call waited for a thread.
        if self._cancelled:
            return 0, None
        try:
            service.callbacks[self._queue.topic](self._queue, context)
            return milliseconds(context.pull_next_delay_time_millis), None
        except Exception as error:  # the task is a learner's code
            return DELAY_AFTER_EXCEPTION_MS, learners_traceback(error)

    def _done(self, outcome: tuple[int, str | None] | None, error: BaseException | None) -> None:
        if error is not None:
            raise error
        assert outcome is not None
        delay_ms, problem = outcome
        if problem is not None:
            self._service.ports.note("callback.failed", what=f"pull task of {self._queue}", error=problem)
        if not self._cancelled:
            self._next = self._service.ports.clock.call_later(delay_ms, self.run, "pull_task.due")
