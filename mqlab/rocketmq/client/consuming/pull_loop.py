"""One pull request goes round for ever per owned queue: checks, asks, hands over, asks again.

Mirrors: PullMessageService and DefaultMQPushConsumerImpl.pullMessage.

    check                                         else
    queue not dropped                             the loop ends
    consumer running, not suspended               again in 1 s
    cached count <= 1000, size <= 100 MiB         again in 50 ms
    span <= 2000 (concurrent only)                again in 50 ms
    locked (orderly only)                         again in 1 s
    subscribed                                    again in 1 s

RocketMQ asks again and again while a check fails. Here the request is parked and comes back at the first of those
moments at which the check holds: the same times, without the empty rounds (see ``retry_parked``).

Left out: the thread that RocketMQ gives this loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mqlab.errors import BrokerError, MqlabError
from mqlab.rocketmq.client import statuses
from mqlab.rocketmq.client.consuming.member_state import PushState
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue, move
from mqlab.rocketmq.client.consuming.pull_api import PullApi, PullResult, note_pulled
from mqlab.rocketmq.client.instance.background import background
from mqlab.rocketmq.client.instance.broker_calls import PullCall
from mqlab.rocketmq.client.instance.statistics import PULL_RT, PULL_TPS
from mqlab.rocketmq.ports import next_on_grid
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire import sys_flag
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue
from mqlab.rocketmq.wire.names import RETRY_PREFIX

FIRST_PULL_DELAY_MS = 500
FLOW_CONTROL_DELAY_MS = 50
BROKER_FLOW_CONTROL_DELAY_MS = 20
SUSPENDED_DELAY_MS = 1_000
BROKER_SUSPEND_MAX_TIME_MS = 15_000
PULL_TIMEOUT_MS = 30_000


class Consume(Protocol):
    """The taker of pulled messages: ``submit`` of a consume service."""

    def __call__(
        self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue, dispatch: bool
    ) -> None: ...


@dataclass(slots=True, eq=False)
class PullRequest:
    """What circulates. ``next_offset``: the queue offset to ask for; ``consume`` takes the messages.

    Mirrors PullRequest.
    """

    queue: MessageQueue
    process_queue: ProcessQueue
    next_offset: int
    consume: Consume
    previously_locked: bool = False


@dataclass(frozen=True, slots=True)
class ParkedPull:
    """A request that failed a check: since when, which check, and on what grid it would be asked again."""

    request: PullRequest
    since_ms: int
    grid_ms: int
    holds: Callable[[PullRequest], bool]
    reason: str


class PullLoop:
    """All pull requests of one push consumer. ``remove_queue`` gives a queue up until the next rebalance."""

    def __init__(self, state: PushState, pull_api: PullApi, remove_queue: Callable[[MessageQueue], None]) -> None:
        self._state = state
        self._ports = state.ports
        self._clock = state.ports.clock
        self._pull_api = pull_api
        self._remove_queue = remove_queue
        self.parked: dict[MessageQueue, ParkedPull] = {}
        self.flow_control_times: dict[str, int] = {}

    def add(self, queue: MessageQueue, process_queue: ProcessQueue, next_offset: int, consume: Consume) -> None:
        """Begin to pull a queue, half a second from now."""
        self._later(PullRequest(queue, process_queue, next_offset, consume), FIRST_PULL_DELAY_MS)

    def _later(self, request: PullRequest, delay_ms: int) -> None:
        self._clock.call_later(delay_ms, lambda: self.pull(request), "pull.later")

    def pull(self, request: PullRequest) -> None:
        """Go through the checks and ask the broker."""
        state, process_queue = self._state, request.process_queue
        # 1. A dropped queue, or a consumer that was shut down, ends the loop.
        if process_queue.dropped or not state.service.is_running:
            return
        process_queue.last_pull_timestamp = self._clock.now_ms()
        exception_delay_ms = state.config.pull_time_delay_mills_when_exception
        # 2. A check that fails parks the request until it holds.
        if state.is_suspended:
            return self._park(request, SUSPENDED_DELAY_MS, lambda _: not state.is_suspended, "suspended")
        reason = state.over_limit(process_queue)
        if reason:
            self._count_flow_control(reason, request)
            return self._park(request, FLOW_CONTROL_DELAY_MS, lambda r: not state.over_limit(r.process_queue), reason)
        if state.is_orderly and not process_queue.locked:
            return self._park(request, exception_delay_ms, lambda r: r.process_queue.locked, "not locked")
        topic = request.queue.topic
        subscription = state.subscriptions.get(topic)
        if subscription is None:
            return self._park(request, exception_delay_ms, lambda _: topic in state.subscriptions, "not subscribed")
        # 3. Ask.
        background(self._ports, self._ask(request, subscription), "pull")
        return None

    def _count_flow_control(self, reason: str, request: PullRequest) -> None:
        self.flow_control_times[reason] = self.flow_control_times.get(reason, 0) + 1
        process_queue = request.process_queue
        self._ports.note(
            "pull.flow_control",
            client=self._ports.node,
            group=self._state.group,
            queue=request.queue,
            reason=reason,
            count=process_queue.msg_count,
            size_mib=process_queue.msg_size_mib,
            span=process_queue.max_span(),
        )

    def _park(self, request: PullRequest, grid_ms: int, holds: Callable[[PullRequest], bool], reason: str) -> None:
        self.parked[request.queue] = ParkedPull(request, self._clock.now_ms(), grid_ms, holds, reason)

    def retry_parked(self, queue: MessageQueue | None = None) -> None:
        """A reason to wait may be over (messages finished, resumed, locked, subscribed): go on where the check holds.

        A request goes on at the next moment of its own grid, as if it had asked again all the time.
        """
        if not self.parked:
            return
        for parked in [self.parked.get(queue)] if queue is not None else list(self.parked.values()):
            if parked is None:
                continue
            request = parked.request
            if request.process_queue.dropped:
                del self.parked[request.queue]
            elif parked.holds(request):
                del self.parked[request.queue]
                now_ms = self._clock.now_ms()
                again_ms = next_on_grid(now_ms, parked.grid_ms, parked.since_ms)
                self._later(request, max(again_ms - now_ms, 1))

    @flow
    def _ask(self, request: PullRequest, subscription: SubscriptionData) -> Flow[None]:
        # 1. The first pull of a queue in order begins at the stored offset of now: its former owner has moved it.
        if self._state.is_orderly and not request.previously_locked:
            try:
                request.next_offset = yield self._state.first_offset_of(request.queue)
            except MqlabError as error:
                return self._failed(request, error)
            request.previously_locked = True
        # 2. Ask, and decode the answer.
        asked_ms = self._clock.now_ms()
        try:
            answer = yield from self._pull_api.pull(self._call(request, subscription), PULL_TIMEOUT_MS)
            result = self._pull_api.result(answer, request.queue, subscription)
        except MqlabError as error:
            return self._failed(request, error)
        # 3. Hand the messages over and go on at the offset in the answer.
        if result.pull_status == statuses.FOUND:
            self._found(request, result, asked_ms)
        elif result.pull_status == statuses.OFFSET_ILLEGAL:
            self._moved(request, result)
        else:
            request.next_offset = result.next_begin_offset
            self._correct_offset(request)
            self.pull(request)
        return None

    def _call(self, request: PullRequest, subscription: SubscriptionData) -> PullCall:
        state, config = self._state, self._state.config
        commit_offset = 0 if state.is_broadcasting else state.offset_store.read_memory(request.queue)
        text = subscription.sub_string if config.post_subscription_when_pull else None
        return PullCall(
            group=self._state.group,
            queue=request.queue,
            queue_offset=request.next_offset,
            max_nums=config.pull_batch_size,
            sys_flag=sys_flag.pull_sys_flag(
                commit_offset=commit_offset > 0, suspend=True, subscription=text is not None
            ),
            commit_offset=commit_offset,
            suspend_ms=BROKER_SUSPEND_MAX_TIME_MS,
            sub_version=subscription.sub_version,
            subscription=text,
            expression_type=subscription.expression_type,
            max_bytes=config.pull_batch_size_in_bytes,
        )

    def _failed(self, request: PullRequest, error: MqlabError) -> None:
        if not request.queue.topic.startswith(RETRY_PREFIX):
            self._ports.note(
                "pull.failed",
                client=self._ports.node,
                group=self._state.group,
                queue=request.queue,
                error=error.text,
            )
        throttled = isinstance(error, BrokerError) and error.response_code == ResponseCode.FLOW_CONTROL
        config = self._state.config
        self._later(request, BROKER_FLOW_CONTROL_DELAY_MS if throttled else config.pull_time_delay_mills_when_exception)

    def _found(self, request: PullRequest, result: PullResult, asked_ms: int) -> None:
        state, queue, messages = self._state, request.queue, result.msg_found_list
        now_ms, count = self._clock.now_ms(), state.statistics.count
        count(PULL_RT, state.group, queue.topic, now_ms - asked_ms, now_ms)
        note_pulled(self._ports, state.group, queue, request.next_offset, result)
        request.next_offset = result.next_begin_offset
        if messages:  # all may have been filtered out by their tags
            count(PULL_TPS, state.group, queue.topic, len(messages), now_ms)
            dispatch = request.process_queue.put_message(messages)
            request.consume(messages, request.process_queue, queue, dispatch)
            if state.config.pull_interval > 0:
                return self._later(request, state.config.pull_interval)
        self.pull(request)
        return None

    def _correct_offset(self, request: PullRequest) -> None:
        """Nothing cached: everything before the next offset is finished or filtered out (correctTagsOffset)."""
        if request.process_queue.msg_count == 0:
            self._state.offset_store.update_offset(request.queue, request.next_offset, increase_only=True)

    def _moved(self, request: PullRequest, result: PullResult) -> None:
        """The broker names another offset: drop the queue and commit that offset; the rebalance adds it again."""
        state, queue = self._state, request.queue
        request.next_offset = result.next_begin_offset
        move(request.process_queue, "drop")
        self._ports.note(
            "pull.offset_moved",
            client=self._ports.node,
            group=state.group,
            queue=queue,
            next_offset=result.next_begin_offset,
            remark=result.remark,
        )
        # Frozen: a listener that is still out must not move the offset back to where it was.
        state.offset_store.update_and_freeze_offset(queue, request.next_offset)
        state.offset_store.persist(queue)
        self._remove_queue(queue)

    def __repr__(self) -> str:
        return f"<PullLoop of {self._state.group}: {len(self.parked)} parked>"
