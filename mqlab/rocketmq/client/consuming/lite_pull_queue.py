"""One assigned queue of a lite pull consumer, and the task that keeps pulling it.

Mirrors: AssignedMessageQueue.MessageQueueState and DefaultLitePullConsumerImpl.PullTaskImpl.

    pull_offset      next to pull                 -1: ask where to begin
    consume_offset   next after what was polled   -1: nothing polled; this is what a commit stores
    seek_offset      where to go on               -1: no seek pending

    task   paused: again in 1 s · cache over a limit: again in 50 ms · seek_offset taken over · pull (held up to 20 s)
           answer: keep the messages unless a seek came in between · again at once; an error: again in 1 s

As in the push consumer's pull loop, a task that must come again is parked until its check holds, on the same grid.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mqlab.errors import BrokerError, MqlabError
from mqlab.rocketmq.client import statuses
from mqlab.rocketmq.client.consuming.consume_hooks import RETURN_SUCCESS, ConsumeHook, ConsumeHookContext
from mqlab.rocketmq.client.consuming.first_offset import first_offset
from mqlab.rocketmq.client.consuming.member_state import MemberState
from mqlab.rocketmq.client.consuming.offset_store import NOT_FOUND, READ_FAILED
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue
from mqlab.rocketmq.client.consuming.pull_api import PullApi, note_pulled
from mqlab.rocketmq.client.consuming.subscriptions import tag_subscription
from mqlab.rocketmq.client.instance.background import background, call_hooks
from mqlab.rocketmq.client.instance.broker_calls import PullAnswer, PullCall
from mqlab.rocketmq.client.settings import LitePullConsumerConfig
from mqlab.rocketmq.ports import Clock, Ports, next_on_grid
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire import sys_flag
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

SUBSCRIBE, ASSIGN = "SUBSCRIBE", "ASSIGN"

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

    def remove_batches_of(self, assigned: AssignedQueue) -> None:
        """Drop what is cached of a queue."""
        self._batches = deque(batch for batch in self._batches if batch.assigned is not assigned)

    def __len__(self) -> int:
        return len(self._batches)

    def __repr__(self) -> str:
        return f"<PulledCache {len(self._batches)} batches, {self.message_count} messages>"


def call_hooks_polled(ports: Ports, hooks: Sequence[ConsumeHook], group: str, batch: PolledBatch) -> None:
    """Call the hooks for a batch that a poll hands out: it counts as consumed, in no time."""
    context = ConsumeHookContext(group, batch.messages, batch.assigned.queue, ports.clock.now_ms())
    call_hooks(ports, "consume message hook", hooks, "consume_message_before", context)
    context.status, context.success, context.return_type = statuses.CONSUME_SUCCESS, True, RETURN_SUCCESS
    call_hooks(ports, "consume message hook", hooks, "consume_message_after", context)


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


@dataclass(slots=True, eq=False)
class LiteState(MemberState[LitePullConsumerConfig]):
    """The state of a lite pull consumer. ``mode``: SUBSCRIBE or ASSIGN, None before one of the two was called."""

    mode: str | None = None
    assigned: dict[MessageQueue, AssignedQueue] = field(default_factory=dict)
    expressions: dict[str, SubscriptionData] = field(default_factory=dict)
    cache: PulledCache = field(init=False)
    pull_slots: PullSlots = field(init=False)

    def __post_init__(self) -> None:
        MemberState.__post_init__(self)
        self.cache = PulledCache(self.ports.clock)
        self.pull_slots = PullSlots(self.config.pull_thread_nums)

    def subscription_of(self, topic: str) -> SubscriptionData:
        """What to read of a topic."""
        if self.mode == SUBSCRIBE and topic in self.subscriptions:
            return self.subscriptions[topic]
        return self.expressions.get(topic) or tag_subscription(topic, "*", self.ports.clock.now_ms())

    @flow
    def stored_offset(self, queue: MessageQueue) -> Flow[int]:
        """The committed offset, in memory, else in the store; -1 none, -2 when it cannot be read."""
        offset = self.offset_store.read_memory(queue)
        if offset == NOT_FOUND:
            offset = yield self.offset_store.read_store(queue)
        return offset

    @flow
    def first_pull_offset(self, queue: MessageQueue) -> Flow[int]:
        """Where to begin to pull a queue; -1 when the stored offset could not be read (asked again soon)."""
        stored = yield self.stored_offset(queue)
        if stored == READ_FAILED:
            return -1
        where = self.config.consume_from_where
        offset: int = yield first_offset(self.cluster, queue, stored, where, self.consume_timestamp_ms)
        return offset


class PullTask:
    """Pulls one queue for ever, until cancelled or its queue is dropped."""

    def __init__(self, state: LiteState, pull_api: PullApi, assigned: AssignedQueue) -> None:
        self._state = state
        self._pull_api = pull_api
        self._clock = state.ports.clock
        self._assigned = assigned
        self.cancelled = False
        self._parked_since_ms: int | None = None
        self._grid_ms = 0

    def start(self) -> None:
        """Take a thread of the pull pool, when one is free."""
        self._state.pull_slots.enter(self._run)

    def cancel(self) -> None:
        """Stop; a pull under way is thrown away when its answer comes."""
        self.cancelled = True

    def _is_over(self) -> bool:
        return self.cancelled or self._assigned.process_queue.dropped or not self._state.service.is_running

    def _run(self) -> None:
        pulled = self._pull()
        background(self._state.ports, pulled, "lite pull")
        pulled.then(self._again)

    def _again(self, delay_ms: int | None) -> None:
        self._state.pull_slots.leave()
        if delay_ms is None or self._is_over():
            return
        if delay_ms == 0:
            self.start()
        else:
            self._clock.call_later(delay_ms, self.start, "lite_pull.later")

    def _park(self, grid_ms: int) -> None:
        self._parked_since_ms, self._grid_ms = self._clock.now_ms(), grid_ms

    def retry_parked(self) -> None:
        """Something changed: if the check that failed holds now, go on at the next moment of its grid."""
        if self._parked_since_ms is None or self._is_over() or self._assigned.paused or self._over_limit():
            return
        now_ms = self._clock.now_ms()
        again_ms = next_on_grid(now_ms, self._grid_ms, self._parked_since_ms)
        self._parked_since_ms = None
        self._clock.call_later(max(again_ms - now_ms, 1), self.start, "lite_pull.later")

    def _over_limit(self) -> bool:
        state, process_queue = self._state, self._assigned.process_queue
        config = state.config
        return (
            len(state.cache) * config.pull_batch_size > config.pull_threshold_for_all
            or process_queue.msg_count > config.pull_threshold_for_queue
            or process_queue.msg_size_mib > config.pull_threshold_size_for_queue
            or process_queue.max_span() > config.consume_max_span
        )

    @flow
    def _pull(self) -> Flow[int | None]:
        """One round; the delay until the next one, None when there is none (over, or parked)."""
        state, assigned = self._state, self._assigned
        # 1. Checks: one that fails parks the task until it holds.
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
        # 2. Where to pull: where a seek leads, else where the last pull ended, else where the group begins.
        if assigned.seek_offset != -1:
            offset = assigned.consume_offset = assigned.seek_offset
            assigned.seek_offset = -1
        else:
            offset = assigned.pull_offset
        try:
            if offset == -1:
                offset = yield state.first_pull_offset(assigned.queue)
                if offset < 0:
                    return state.config.pull_time_delay_mills_when_exception
        except MqlabError:
            return NO_OFFSET_DELAY_MS
        if self._is_over():
            return None
        # 3. Pull, and keep the messages.
        try:
            answer = yield from self._pull_api.pull(
                self._call(offset), state.config.consumer_timeout_millis_when_suspend
            )
            if self._is_over():
                return None
            self._take(answer, offset)
        except MqlabError as error:
            return self._delay_after(error)
        return 0

    def _call(self, offset: int) -> PullCall:
        state, queue = self._state, self._assigned.queue
        data = state.subscription_of(queue.topic)
        return PullCall(
            group=state.group,
            queue=queue,
            queue_offset=offset,
            max_nums=state.config.pull_batch_size,
            sys_flag=sys_flag.pull_sys_flag(suspend=True, subscription=True, lite=True),
            commit_offset=0,
            suspend_ms=state.config.broker_suspend_max_time_millis,
            sub_version=0 if data.expression_type == "TAG" else data.sub_version,
            subscription=data.sub_string,
            expression_type=data.expression_type,
            lite=True,
        )

    def _take(self, answer: PullAnswer, offset: int) -> None:
        state, assigned = self._state, self._assigned
        result = self._pull_api.result(answer, assigned.queue, state.subscription_of(assigned.queue.topic))
        if assigned.seek_offset != -1:
            return
        if result.pull_status in (statuses.FOUND, statuses.NO_MATCHED_MSG):
            note_pulled(state.ports, state.group, assigned.queue, offset, result)
        if result.pull_status == statuses.FOUND and result.msg_found_list:
            assigned.process_queue.put_message(result.msg_found_list)
            state.cache.arrived(PolledBatch(assigned, assigned.process_queue, result.msg_found_list))
        assigned.pull_offset = result.next_begin_offset

    def _delay_after(self, error: MqlabError) -> int:
        throttled = isinstance(error, BrokerError) and error.response_code == ResponseCode.FLOW_CONTROL
        if not throttled:
            self._state.ports.note(
                "pull.failed",
                client=self._state.ports.node,
                group=self._state.group,
                queue=self._assigned.queue,
                error=error.text,
            )
        config = self._state.config
        return BROKER_FLOW_CONTROL_DELAY_MS if throttled else config.pull_time_delay_mills_when_exception
