"""One pull request goes round for ever per owned queue: checks, asks, hands over, asks again.

Mirrors: PullMessageService and DefaultMQPushConsumerImpl.pullMessage. Labs 04 and 06 open it.

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mqlab.client import statuses
from mqlab.client.consuming.process_queue import ProcessQueue
from mqlab.client.consuming.pull_api import PullResult, note_pulled
from mqlab.client.instance.background import background
from mqlab.client.instance.broker_calls import PullAnswer, PullCall
from mqlab.client.instance.statistics import PULL_RT, PULL_TPS
from mqlab.client.settings import CLUSTERING
from mqlab.errors import BrokerError, MqlabError
from mqlab.ports import next_on_grid
from mqlab.promises import Flow, flow
from mqlab.wire import sys_flag
from mqlab.wire.bodies import SubscriptionData
from mqlab.wire.codes import ResponseCode
from mqlab.wire.message import MessageQueue
from mqlab.wire.names import RETRY_PREFIX

if TYPE_CHECKING:
    from mqlab.client.push_consumer import PushConsumer

FIRST_PULL_DELAY_MS = 500
FLOW_CONTROL_DELAY_MS = 50
BROKER_FLOW_CONTROL_DELAY_MS = 20
SUSPENDED_DELAY_MS = 1_000
BROKER_SUSPEND_MAX_TIME_MS = 15_000
PULL_TIMEOUT_MS = 30_000


@dataclass(slots=True, eq=False)
class PullRequest:
    """What circulates. ``next_offset``: the queue offset to ask for. Mirrors PullRequest."""

    queue: MessageQueue
    process_queue: ProcessQueue
    next_offset: int
    previously_locked: bool = False


@dataclass(frozen=True, slots=True)
class Parked:
    """A request that failed a check: since when, which check, and on what grid it would be asked again."""

    request: PullRequest
    since_ms: int
    grid_ms: int
    holds: Callable[[PullRequest], bool]
    reason: str


class PullLoop:
    """All pull requests of one push consumer."""

    def __init__(self, consumer: PushConsumer) -> None:
        self._consumer = consumer
        self._ports = consumer.ports
        self.parked: dict[MessageQueue, Parked] = {}
        self.flow_control_times: dict[str, int] = {}

    def add(self, queue: MessageQueue, process_queue: ProcessQueue, next_offset: int) -> None:
        """Begin to pull a queue, half a second from now."""
        self._later(PullRequest(queue, process_queue, next_offset), FIRST_PULL_DELAY_MS)

    def _later(self, request: PullRequest, delay_ms: int) -> None:
        self._ports.clock.call_later(delay_ms, lambda: self.pull(request), "pull.later")

    # checks ------------------------------------------------------------------------------------------------------

    def pull(self, request: PullRequest) -> None:
        """Go through the checks and ask the broker."""
        consumer, process_queue = self._consumer, request.process_queue
        if process_queue.dropped or not consumer.is_running:
            return
        process_queue.last_pull_timestamp = self._ports.clock.now_ms()
        exception_delay_ms = consumer.config.pull_time_delay_mills_when_exception
        if consumer.is_suspended:
            return self._park(request, SUSPENDED_DELAY_MS, lambda _: not consumer.is_suspended, "suspended")
        reason = self._over_limit(process_queue)
        if reason:
            self._count_flow_control(reason, request)
            return self._park(request, FLOW_CONTROL_DELAY_MS, lambda r: not self._over_limit(r.process_queue), reason)
        if consumer.is_orderly and not process_queue.locked:
            return self._park(request, exception_delay_ms, lambda r: r.process_queue.locked, "not locked")
        subscription = consumer.rebalance.subscriptions.get(request.queue.topic)
        if subscription is None:
            topic = request.queue.topic
            return self._park(
                request, exception_delay_ms, lambda _: topic in consumer.rebalance.subscriptions, "not subscribed"
            )
        background(self._ports, self._ask(request, subscription), "pull")
        return None

    def _over_limit(self, process_queue: ProcessQueue) -> str:
        """Which limit the cache of a queue is over, "" when none. All tests are strict."""
        consumer = self._consumer
        if process_queue.msg_count > consumer.pull_threshold_for_queue:
            return "count"
        if process_queue.msg_size_mib > consumer.pull_threshold_size_for_queue:
            return "size"
        if not consumer.is_orderly and process_queue.max_span() > consumer.config.consume_concurrently_max_span:
            return "span"
        return ""

    def _count_flow_control(self, reason: str, request: PullRequest) -> None:
        self.flow_control_times[reason] = self.flow_control_times.get(reason, 0) + 1
        process_queue = request.process_queue
        self._ports.note(
            "pull.flow_control", client=self._ports.node, group=self._consumer.group, queue=request.queue,
            reason=reason, count=process_queue.msg_count, size_mib=process_queue.msg_size_mib,
            span=process_queue.max_span(),
        )  # fmt: skip

    def _park(self, request: PullRequest, grid_ms: int, holds: Callable[[PullRequest], bool], reason: str) -> None:
        self.parked[request.queue] = Parked(request, self._ports.clock.now_ms(), grid_ms, holds, reason)

    def retry_parked(self, queue: MessageQueue | None = None) -> None:
        """Something changed (messages done, resumed, locked, subscribed): let go what may go on, on its grid."""
        for parked in [self.parked.get(queue)] if queue is not None else list(self.parked.values()):
            if parked is None:
                continue
            request = parked.request
            if request.process_queue.dropped:
                del self.parked[request.queue]
            elif parked.holds(request):
                del self.parked[request.queue]
                now_ms = self._ports.clock.now_ms()
                again_ms = next_on_grid(now_ms, parked.grid_ms, parked.since_ms)
                self._later(request, max(again_ms - now_ms, 1))

    # asking ------------------------------------------------------------------------------------------------------

    @flow
    def _ask(self, request: PullRequest, subscription: SubscriptionData) -> Flow[None]:
        consumer = self._consumer
        if consumer.is_orderly and not request.previously_locked:
            try:
                request.next_offset = yield consumer.compute_pull_from(request.queue)
            except MqlabError as error:
                return self._failed(request, error)
            request.previously_locked = True
        asked_ms = self._ports.clock.now_ms()
        try:
            answer: PullAnswer = yield consumer.pull_api.pull(self._call(request, subscription), PULL_TIMEOUT_MS)
            result = consumer.pull_api.result(answer, request.queue, subscription)
        except MqlabError as error:
            return self._failed(request, error)
        if result.pull_status == statuses.FOUND:
            self._found(request, result, self._ports.clock.now_ms() - asked_ms)
        elif result.pull_status == statuses.OFFSET_ILLEGAL:
            self._moved(request, result)
        else:
            request.next_offset = result.next_begin_offset
            self._correct_offset(request)
            self.pull(request)
        return None

    def _call(self, request: PullRequest, subscription: SubscriptionData) -> PullCall:
        config = self._consumer.config
        commit_offset = 0
        if config.message_model == CLUSTERING:
            commit_offset = self._consumer.offset_store.read_memory(request.queue)
        text = subscription.sub_string if config.post_subscription_when_pull else None
        return PullCall(
            group=self._consumer.group,
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
                group=self._consumer.group,
                queue=request.queue,
                error=error.text,
            )
        throttled = isinstance(error, BrokerError) and error.response_code == ResponseCode.FLOW_CONTROL
        config = self._consumer.config
        self._later(request, BROKER_FLOW_CONTROL_DELAY_MS if throttled else config.pull_time_delay_mills_when_exception)

    # answers -----------------------------------------------------------------------------------------------------

    def _found(self, request: PullRequest, result: PullResult, took_ms: int) -> None:
        consumer, queue, messages = self._consumer, request.queue, result.msg_found_list
        statistics = consumer.client.statistics
        statistics.count(PULL_RT, consumer.group, queue.topic, took_ms)
        note_pulled(self._ports, consumer.group, queue, request.next_offset, result)
        request.next_offset = result.next_begin_offset
        if messages:
            statistics.count(PULL_TPS, consumer.group, queue.topic, len(messages))
            dispatch = request.process_queue.put_message(messages)
            consumer.consume_service.submit(messages, request.process_queue, queue, dispatch)
            if consumer.config.pull_interval > 0:
                return self._later(request, consumer.config.pull_interval)
        self.pull(request)
        return None

    def _correct_offset(self, request: PullRequest) -> None:
        """Nothing cached: everything before the next offset is done or filtered out (correctTagsOffset)."""
        if request.process_queue.msg_count == 0:
            self._consumer.offset_store.update_offset(request.queue, request.next_offset, increase_only=True)

    def _moved(self, request: PullRequest, result: PullResult) -> None:
        """The broker names another offset: drop the queue, freeze and tell it; the rebalance adds it again."""
        consumer, queue = self._consumer, request.queue
        request.next_offset = result.next_begin_offset
        request.process_queue.dropped = True
        self._ports.note(
            "pull.offset_moved", client=self._ports.node, group=consumer.group, queue=queue,
            next_offset=result.next_begin_offset, remark=result.remark,
        )  # fmt: skip
        consumer.offset_store.update_and_freeze_offset(queue, request.next_offset)
        consumer.offset_store.persist(queue)
        background(self._ports, consumer.rebalance.remove_process_queue(queue), "queue removal")
        consumer.client.rebalance_timer.wake()

    def __repr__(self) -> str:
        return f"<PullLoop of {self._consumer.group}: {len(self.parked)} parked>"
