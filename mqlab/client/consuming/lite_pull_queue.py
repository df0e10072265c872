"""One assigned queue of a lite pull consumer, and the task that keeps pulling it.

Mirrors: AssignedMessageQueue.MessageQueueState and DefaultLitePullConsumerImpl.PullTaskImpl. Lab 06.

    pull_offset      next to pull                 -1: ask where to begin
    consume_offset   next after what was polled   -1: nothing polled; this is what a commit stores
    seek_offset      where to go on               -1: no seek pending

    task   paused: again in 1 s · cache over a limit: again in 50 ms · seek_offset taken over · pull (held up to 20 s)
           answer: keep the messages unless a seek came in between · again at once; an error: again in 1 s

As in the push consumer's pull loop, a task that must come again is parked until its check holds, on the same grid.
Left out: nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mqlab.client import statuses
from mqlab.client.consuming.consume_service import RETURN_SUCCESS, ConsumeHook, ConsumeHookContext
from mqlab.client.consuming.process_queue import ProcessQueue
from mqlab.client.consuming.pull_api import note_pulled
from mqlab.client.instance.background import background, told_each
from mqlab.client.instance.broker_calls import PullAnswer, PullCall
from mqlab.errors import BrokerError, MqlabError
from mqlab.ports import Clock, Ports, next_on_grid
from mqlab.promises import Flow, Promise, flow
from mqlab.wire import sys_flag
from mqlab.wire.codes import ResponseCode
from mqlab.wire.message import MessageExt, MessageQueue

if TYPE_CHECKING:
    from mqlab.client.lite_pull_consumer import LitePullConsumer

PAUSED_DELAY_MS = 1_000
FLOW_CONTROL_DELAY_MS = 50
NO_OFFSET_DELAY_MS = 3_000
BROKER_FLOW_CONTROL_DELAY_MS = 20


@dataclass(slots=True, eq=False)
class AssignedQueue:
    """The state of one assigned queue. Offsets are queue offsets."""

    queue: MessageQueue
    process_queue: ProcessQueue
    pull_offset: int = -1
    consume_offset: int = -1
    seek_offset: int = -1
    paused: bool = False
    task: PullTask | None = None

    def __repr__(self) -> str:
        paused = ", paused" if self.paused else ""
        return f"<AssignedQueue {self.queue!r}: pull {self.pull_offset}, consume {self.consume_offset}{paused}>"


@dataclass(slots=True, eq=False)
class PolledBatch:
    """What one pull brought, waiting to be polled as a whole."""

    assigned: AssignedQueue
    process_queue: ProcessQueue
    messages: list[MessageExt] = field(default_factory=list)


class PulledCache:
    """Batches that wait to be polled, oldest first, and the poll that waits for one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._batches: deque[PolledBatch] = deque()
        self._arrival: Promise[bool] | None = None

    @property
    def message_count(self) -> int:
        return sum(len(batch.messages) for batch in self._batches)

    def arrived(self, batch: PolledBatch) -> None:
        """A pull brought messages."""
        self._batches.append(batch)
        if self._arrival is not None:
            arrival, self._arrival = self._arrival, None
            arrival.resolve(True)

    @flow
    def next_batch(self, limit_ms: int) -> Flow[PolledBatch | None]:
        """The oldest batch whose queue is still assigned, waited for up to ``limit_ms``; None when there is none."""
        batch = self._oldest()
        if batch is None and limit_ms > 0:
            arrival = self._arrival = Promise()
            deadline = self._clock.call_later(limit_ms, lambda: arrival.resolve(False), "lite_pull.poll")
            if (yield arrival):
                deadline.cancel()
                batch = self._oldest()
        return batch

    def _oldest(self) -> PolledBatch | None:
        while self._batches:
            batch = self._batches.popleft()
            if not batch.process_queue.dropped:
                return batch
        return None

    def forget(self, assigned: AssignedQueue) -> None:
        """Drop what is cached of a queue."""
        self._batches = deque(batch for batch in self._batches if batch.assigned is not assigned)

    def __len__(self) -> int:
        return len(self._batches)

    def __repr__(self) -> str:
        return f"<PulledCache {len(self._batches)} batches, {self.message_count} messages>"


def tell_polled(ports: Ports, hooks: Sequence[ConsumeHook], group: str, batch: PolledBatch) -> None:
    """Tell hooks of a batch that a poll hands out: it counts as consumed, in no time."""
    context = ConsumeHookContext(group, batch.messages, batch.assigned.queue, ports.clock.now_ms())
    told_each(ports, "consume message hook", hooks, "consume_message_before", context)
    context.status, context.success, context.return_type = statuses.CONSUME_SUCCESS, True, RETURN_SUCCESS
    told_each(ports, "consume message hook", hooks, "consume_message_after", context)


class PullTask:
    """Pulls one queue for ever, until cancelled or its queue is dropped."""

    def __init__(self, consumer: LitePullConsumer, assigned: AssignedQueue) -> None:
        self._consumer = consumer
        self._clock = consumer.ports.clock
        self._assigned = assigned
        self.cancelled = False
        self._parked_since_ms: int | None = None
        self._grid_ms = 0

    def start(self) -> None:
        """Take a thread of the pull pool, when one is free."""
        self._consumer.pull_slots.enter(self._run)

    def cancel(self) -> None:
        """Stop; a pull under way is thrown away when its answer comes."""
        self.cancelled = True

    def _is_over(self) -> bool:
        return self.cancelled or self._assigned.process_queue.dropped or not self._consumer.is_running

    def _run(self) -> None:
        pulled = self._pull()
        background(self._consumer.ports, pulled, "lite pull")
        pulled.then(self._again)

    def _again(self, delay_ms: int | None) -> None:
        self._consumer.pull_slots.leave()
        if delay_ms is None or self._is_over():
            return
        if delay_ms == 0:
            self.start()
        else:
            self._clock.call_later(delay_ms, self.start, "lite_pull.later")

    def _park(self, grid_ms: int) -> None:
        self._parked_since_ms, self._grid_ms = self._clock.now_ms(), grid_ms

    def retry_parked(self) -> None:
        """Something changed: go on, on the grid of the check that failed, if that holds now."""
        if self._parked_since_ms is None or self._is_over() or self._assigned.paused or self._over_limit():
            return
        now_ms = self._clock.now_ms()
        again_ms = next_on_grid(now_ms, self._grid_ms, self._parked_since_ms)
        self._parked_since_ms = None
        self._clock.call_later(max(again_ms - now_ms, 1), self.start, "lite_pull.later")

    def _over_limit(self) -> bool:
        consumer, process_queue = self._consumer, self._assigned.process_queue
        config = consumer.config
        return (
            len(consumer.cache) * config.pull_batch_size > config.pull_threshold_for_all
            or process_queue.msg_count > config.pull_threshold_for_queue
            or process_queue.msg_size_mib > config.pull_threshold_size_for_queue
            or process_queue.max_span() > config.consume_max_span
        )

    @flow
    def _pull(self) -> Flow[int | None]:
        """One round; the delay until the next one, None when there is none (over, or parked)."""
        consumer, assigned = self._consumer, self._assigned
        if self._is_over():
            return None
        if assigned.paused:
            self._park(PAUSED_DELAY_MS)
            return None
        process_queue = assigned.process_queue
        process_queue.last_pull_timestamp = self._clock.now_ms()
        if self._over_limit():
            self._park(FLOW_CONTROL_DELAY_MS)
            return None
        if assigned.seek_offset != -1:
            offset = assigned.consume_offset = assigned.seek_offset
            assigned.seek_offset = -1
        else:
            offset = assigned.pull_offset
        try:
            if offset == -1:
                offset = yield consumer.first_pull_offset(assigned.queue)
                if offset < 0:
                    return consumer.config.pull_time_delay_mills_when_exception
        except MqlabError:
            return NO_OFFSET_DELAY_MS
        if self._is_over():
            return None
        try:
            answer: PullAnswer = yield consumer.pull_api.pull(
                self._call(offset), consumer.config.consumer_timeout_millis_when_suspend
            )
            if self._is_over():
                return None
            self._take(answer, offset)
        except MqlabError as error:
            return self._delay_after(error)
        return 0

    def _call(self, offset: int) -> PullCall:
        consumer, queue = self._consumer, self._assigned.queue
        wanted = consumer.subscription_of(queue.topic)
        return PullCall(
            group=consumer.group, queue=queue, queue_offset=offset, max_nums=consumer.config.pull_batch_size,
            sys_flag=sys_flag.pull_sys_flag(suspend=True, subscription=True, lite=True), commit_offset=0,
            suspend_ms=consumer.config.broker_suspend_max_time_millis,
            sub_version=0 if wanted.expression_type == "TAG" else wanted.sub_version, subscription=wanted.sub_string,
            expression_type=wanted.expression_type, lite=True,
        )  # fmt: skip

    def _take(self, answer: PullAnswer, offset: int) -> None:
        consumer, assigned = self._consumer, self._assigned
        result = consumer.pull_api.result(answer, assigned.queue, consumer.subscription_of(assigned.queue.topic))
        if assigned.seek_offset != -1:
            return
        if result.pull_status in (statuses.FOUND, statuses.NO_MATCHED_MSG):
            note_pulled(consumer.ports, consumer.group, assigned.queue, offset, result)
        if result.pull_status == statuses.FOUND and result.msg_found_list:
            assigned.process_queue.put_message(result.msg_found_list)
            consumer.cache.arrived(PolledBatch(assigned, assigned.process_queue, result.msg_found_list))
        assigned.pull_offset = result.next_begin_offset

    def _delay_after(self, error: MqlabError) -> int:
        throttled = isinstance(error, BrokerError) and error.response_code == ResponseCode.FLOW_CONTROL
        if not throttled:
            self._consumer.ports.note(
                "pull.failed", client=self._consumer.name, group=self._consumer.group, queue=self._assigned.queue,
                error=error.text,
            )  # fmt: skip
        config = self._consumer.config
        return BROKER_FLOW_CONTROL_DELAY_MS if throttled else config.pull_time_delay_mills_when_exception


class PullSlots:
    """The threads of the pull pool: each blocking pull holds one while it lasts."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self._waiting: deque[Callable[[], None]] = deque()

    def enter(self, run: Callable[[], None]) -> None:
        """Run when a thread is free."""
        if self.taken < self.size:
            self.taken += 1
            run()
        else:
            self._waiting.append(run)

    def leave(self) -> None:
        """A thread is free: the next in the queue has it."""
        self.taken -= 1
        if self._waiting:
            self.enter(self._waiting.popleft())

    def __repr__(self) -> str:
        return f"<PullSlots {self.taken}/{self.size}, {len(self._waiting)} waiting>"
