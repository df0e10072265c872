"""A consumer whose program polls: pulling goes on in the background, the program takes batches and commits.

Mirrors: DefaultLitePullConsumer and DefaultLitePullConsumerImpl.

    subscribe("orders", "paid")      queues come from the group's rebalance       (one of the two, for good)
    assign(queues)                   these queues, without the group's rebalance
    poll()                           one pull's messages of one queue, or [] after 5 s
    commit()                         what was polled so far is finished; auto_commit does it inside poll, every 5 s
    seek, pause, resume              per queue

The committed offset moves only with polled messages: a filter that matches nothing leaves it where it is.

Left out: the object's one lock (a waiting poll blocks seek and commit in RocketMQ; a node has no second thread here).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from mqlab.durations import milliseconds
from mqlab.errors import ClientError, UsageError
from mqlab.rocketmq.client.consuming.consume_hooks import ConsumeHook
from mqlab.rocketmq.client.consuming.first_offset import max_offset, min_offset, search_offset
from mqlab.rocketmq.client.consuming.group_member import GroupMember, QueueListener, client_for
from mqlab.rocketmq.client.consuming.lite_pull_queue import (
    ASSIGN,
    SUBSCRIBE,
    AssignedQueue,
    LiteState,
    PolledBatch,
    PullTask,
    call_hooks_polled,
)
from mqlab.rocketmq.client.consuming.offset_store import READ_FAILED
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue, move, new_process_queue
from mqlab.rocketmq.client.consuming.pull_api import note_polled
from mqlab.rocketmq.client.consuming.subscriptions import subscription, tag_subscription
from mqlab.rocketmq.client.instance.background import call_back
from mqlab.rocketmq.client.instance.mq_client import MQClient
from mqlab.rocketmq.client.instance.service_state import ServiceState
from mqlab.rocketmq.client.instance.topic_watch import TopicListener, TopicWatch
from mqlab.rocketmq.client.sending.trace import ConsumerTraceHook, TraceDispatcher
from mqlab.rocketmq.client.settings import LitePullConsumerConfig, make_config
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue


class LitePullConsumer(GroupMember[LiteState]):
    """Settings are those of DefaultLitePullConsumer in snake_case (see LitePullConsumerConfig)."""

    kind = "LitePullConsumer"

    def __init__(
        self, ports: Ports, group: str, name_servers: Sequence[str], *, client: MQClient | None = None, **settings: Any
    ) -> None:
        config = make_config(LitePullConsumerConfig, settings, "lite pull consumer")
        client = client_for(ports, group, name_servers, config, client, stream=True)
        super().__init__(client, LiteState(client.cluster, client.statistics, group, config, ServiceState(self.kind)))
        self.assigned = self.state.assigned
        self.cache = self.state.cache
        self.consume_hooks: list[ConsumeHook] = []
        self._queue_listener: QueueListener | None = None
        self._trace: TraceDispatcher | None = None
        if config.enable_trace:
            self._trace = TraceDispatcher(client.cluster, client.membership, f"{group}-CONSUME", config.trace_topic)
            self.consume_hooks.append(ConsumerTraceHook(self._trace))
        self._next_auto_commit_ms = -1
        self._watch = TopicWatch(ports, config.topic_metadata_check_interval_millis, self._fetch)

    def _use(self, mode: str) -> None:
        before = self.state.mode
        # The rebalance would take assigned queues away again.
        if before not in (None, mode):
            raise ClientError("Subscribe and assign are mutually exclusive.", hint=f"this consumer uses {before}")
        self.state.mode = mode

    def subscribe(
        self, topic: str, expression: str | None = "*", *, sql: str | None = None, listener: QueueListener | None = None
    ) -> None:
        """Subscribe to a topic; the rebalance assigns queues, ``listener(topic, all, mine)`` is called on changes."""
        self._use(SUBSCRIBE)
        self.state.subscriptions[topic] = subscription(topic, expression, sql, self.ports.clock.now_ms())
        if listener is not None:
            self._queue_listener = listener
        if self.is_running:
            self.client.call(lambda: self._announce(topic))

    @flow
    def _announce(self, topic: str) -> Flow[None]:
        yield self.client.membership.heartbeat_all()
        yield self.client.cluster.update_route(topic)

    def set_message_queue_listener(self, listener: QueueListener) -> None:
        """Call ``listener(topic, all, mine)`` when the queues change; one given to ``subscribe`` takes its place."""
        self._queue_listener = listener

    def unsubscribe(self, topic: str) -> None:
        """End the subscription to a topic."""
        self.state.subscriptions.pop(topic, None)
        for queue in [queue for queue in self.assigned if queue.topic == topic]:
            self._unassign(queue, drop=False)

    def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Read exactly these queues. Raises UsageError for an empty list."""
        chosen = list(dict.fromkeys([queues] if isinstance(queues, MessageQueue) else queues))
        if not chosen:
            raise UsageError(
                "assign needs at least one queue", hint="fetch_message_queues(topic) lists them, once it is started"
            )
        self._use(ASSIGN)
        self.on_node(lambda: self._set_assigned([queue for queue in self.assigned if queue not in chosen], chosen))

    def set_sub_expression_for_assign(self, topic: str, expression: str) -> None:
        """The tags to read of an assigned topic (before start); all by default."""
        if self.is_running:
            raise ClientError("setAssignTag only can be called before start.")
        self._use(ASSIGN)
        self.state.expressions[topic] = tag_subscription(topic, expression, self.ports.clock.now_ms())

    def assignment(self) -> list[MessageQueue]:
        """The queues that are read now, sorted."""
        return sorted(self.assigned)

    def fetch_message_queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic. ClientError when it is not running, and for an unknown topic."""
        self.service.must_run()
        return self.client.call(lambda: self._fetch(topic))

    @flow
    def _fetch(self, topic: str) -> Flow[list[MessageQueue]]:
        yield self.client.cluster.update_route(topic)
        route = self.client.cluster.routes.topic_route_table.get(topic)
        if route is None:
            raise ClientError(f"Can not find Message Queue for this topic, {topic}")
        return route.readable_queues(topic)

    def register_topic_message_queue_change_listener(self, topic: str, listener: TopicListener) -> None:
        """Have ``listener(topic, queues)`` called when a topic's queues change; looked at every 30 s."""
        self._watch.add(topic, listener)

    def _set_assigned(self, leaving: Sequence[MessageQueue], chosen: Sequence[MessageQueue]) -> None:
        for queue in leaving:
            self._unassign(queue, drop=True)
        for queue in chosen:
            if queue not in self.assigned:
                process_queue = self.process_queues.get(queue) or new_process_queue(
                    self.config.process_queue, self.ports.clock.now_ms()
                )
                self.assigned[queue] = AssignedQueue(queue, process_queue)
                if self.is_running:
                    self._start_task(self.assigned[queue])

    def _unassign(self, queue: MessageQueue, *, drop: bool) -> None:
        assigned = self.assigned.pop(queue)
        if drop:
            move(assigned.process_queue, "drop")
        if assigned.task is not None:
            assigned.task.cancel()

    def _start_task(self, assigned: AssignedQueue) -> None:
        assigned.task = PullTask(self.state, self.pull_api, assigned)
        assigned.task.start()

    def start(self) -> None:
        """Join the group. ClientError when started before."""
        self.client.call(self.start_async)

    @flow
    def start_async(self) -> Flow[None]:
        """The same, as a Promise."""
        self.service.must_be_new()
        self.offset_store.load()
        if self._trace is not None:
            self._trace.start()
        joined = self.join()  # runs until its first request; from then on the tasks may pull
        for assigned in list(self.assigned.values()):
            self._start_task(assigned)
        yield self._watch.start()
        yield joined

    @flow
    def leave(self) -> Flow[None]:
        """Stop pulling, persist what was committed (what was only polled is not), and leave the group."""
        self._watch.stop()
        for assigned in self.assigned.values():
            if assigned.task is not None:
                assigned.task.cancel()
        if self._trace is not None:
            yield self._trace.shutdown()
        yield super().leave()

    def poll(self, timeout: str | int | None = None) -> list[MessageExt]:
        """The next batch: one pull's messages of one queue, or []. Commits first when auto commit is due."""
        return self.client.call(lambda: self.poll_async(timeout))

    @flow
    def poll_async(self, timeout: str | int | None = None) -> Flow[list[MessageExt]]:
        """The same, as a Promise."""
        self.service.must_run()
        clock = self.ports.clock
        limit_ms = self.config.poll_timeout_millis if timeout is None else milliseconds(timeout)
        if self.config.auto_commit and clock.now_ms() >= self._next_auto_commit_ms:
            self._commit()
            self._next_auto_commit_ms = clock.now_ms() + self.config.auto_commit_interval_millis
        # The polled batch is finished with the next commit, not before: see consume_offset.
        batch: PolledBatch | None = yield self.cache.next_batch(limit_ms)
        if batch is None:
            return []
        batch.assigned.consume_offset = batch.process_queue.remove_message(batch.messages)
        if self.consume_hooks:
            call_hooks_polled(self.ports, self.consume_hooks, self.group, batch)
        batch.process_queue.last_consume_timestamp = clock.now_ms()
        note_polled(self.ports, self.group, batch.assigned.queue, batch.messages)
        self._retry_parked()
        return batch.messages

    def register_consume_message_hook(self, hook: ConsumeHook) -> None:
        """Call an object for each batch that is polled, before and after; a polled batch counts as consumed."""
        self.consume_hooks.append(hook)

    def _retry_parked(self) -> None:
        for assigned in list(self.assigned.values()):
            if assigned.task is not None:
                assigned.task.retry_parked()

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Stop pulling these queues; cached messages can still be polled. Unknown queues are ignored."""
        self.on_node(lambda: self._set_paused(queues, paused=True))

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Pull these queues again, within a second."""
        self.on_node(lambda: self._set_paused(queues, paused=False))

    def _set_paused(self, queues: Iterable[MessageQueue], *, paused: bool) -> None:
        for queue in queues:
            if queue in self.assigned:
                self.assigned[queue].paused = paused
        self._retry_parked()

    def commit(
        self,
        queues: Iterable[MessageQueue] | Mapping[MessageQueue, int] | None = None,
        persist: bool = False,
        *,
        offsets: Mapping[MessageQueue, int] | None = None,
    ) -> None:
        """Commit what was polled of all queues (or of these); a mapping names other offsets. Sent every 5 s.

        ``persist`` sends at once; as in RocketMQ, the unsent commits of all other queues are then dropped.
        """
        if isinstance(queues, Mapping):
            queues, offsets = None, queues
        self.on_node(lambda: self._commit(queues, offsets, persist=persist))

    def _commit(
        self,
        queues: Iterable[MessageQueue] | None = None,
        offsets: Mapping[MessageQueue, int] | None = None,
        *,
        persist: bool = False,
    ) -> None:
        if offsets is not None:
            chosen = dict(offsets)
        else:
            chosen = {queue: self.assigned[queue].consume_offset for queue in self._of(queues)}
        for queue, offset in chosen.items():
            assigned = self.assigned.get(queue)
            # A queue that went to another member must not be committed here: its new owner may be further.
            if assigned is not None and offset != -1 and not assigned.process_queue.dropped:
                self.offset_store.update_offset(queue, offset)
        if persist:
            self.offset_store.persist_all(list(chosen))

    def _of(self, queues: Iterable[MessageQueue] | None) -> list[MessageQueue]:
        return [queue for queue in (self.assigned if queues is None else queues) if queue in self.assigned]

    commit_sync = commit  # RocketMQ's deprecated name

    def committed(self, queue: MessageQueue) -> int:
        """The committed offset, in memory, else in the store; -1 none. ClientError when it cannot be read."""
        return self.client.call(lambda: self._committed(queue))

    @flow
    def _committed(self, queue: MessageQueue) -> Flow[int]:
        self.service.must_run()
        offset: int = yield self.state.stored_offset(queue)
        if offset == READ_FAILED:
            raise ClientError("Fetch consume offset from broker exception")
        return offset

    def compute_pull_from(self, queue: MessageQueue) -> Promise[int]:
        """Always 0: the pull task determines its offset itself, when it pulls."""
        return Promise.of(0)

    def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The first queue offset stored at or after a time, to seek to. ClientError when it is not running."""
        self.service.must_run()
        return self.client.call(lambda: search_offset(self.state.cluster, queue, timestamp_ms))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at an offset; cached messages are dropped. ClientError out of min..max or if not assigned."""
        self.client.call(lambda: self._seek(queue, lambda smallest, largest: offset))

    def seek_to_begin(self, queue: MessageQueue) -> None:
        """Continue at the oldest message."""
        self.client.call(lambda: self._seek(queue, lambda smallest, largest: smallest))

    def seek_to_end(self, queue: MessageQueue) -> None:
        """Continue after the newest message."""
        self.client.call(lambda: self._seek(queue, lambda smallest, largest: largest))

    @flow
    def _seek(self, queue: MessageQueue, chosen: Callable[[int, int], int]) -> Flow[None]:
        if queue not in self.assigned:
            maybe = ", may be rebalancing" if self.state.mode == SUBSCRIBE else ""
            raise ClientError(f"The message queue is not in assigned list{maybe}, message queue: {queue}")
        self.service.must_run()
        # 1. The offset must be one that the queue has.
        smallest = yield min_offset(self.state.cluster, queue)
        largest = yield max_offset(self.state.cluster, queue)
        offset = chosen(smallest, largest)
        if not smallest <= offset <= largest:
            raise ClientError(
                f"Seek offset illegal, seek offset = {offset}, min offset = {smallest}, max offset = {largest}"
            )
        # The queue may have been lost while the two answers were under way.
        assigned = self.assigned.get(queue)
        if assigned is None:
            raise ClientError(
                f"The message queue is not in assigned list, message queue: {queue}", hint="it moved away"
            )
        # 2. What was pulled for the old place is removed, and a pull under way is cancelled: its answer has no effect.
        assigned.process_queue.clear()
        self.cache.remove_batches_of(assigned)
        if assigned.task is not None:
            assigned.task.cancel()
        # 3. A new task continues at the new place.
        assigned.seek_offset = offset
        self._start_task(assigned)

    def heartbeat_subscriptions(self) -> list[SubscriptionData]:
        """The subscriptions that a heartbeat carries: none when queues are assigned."""
        return super().heartbeat_subscriptions() if self.state.mode == SUBSCRIBE else []

    def reported_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues that an operator sees: those it reads."""
        return {queue: assigned.process_queue for queue, assigned in self.assigned.items()}

    def persist_offsets(self) -> None:
        """Send the offsets of the queues it reads."""
        self.offset_store.persist_all(self.process_queues if self.state.mode == SUBSCRIBE else self.assigned)

    def reported_offsets(self, topic: str) -> dict[MessageQueue, int]:
        """Empty: a lite pull consumer does not report its offsets, as in RocketMQ."""
        return {}

    @flow
    def message_queue_changed(self, topic: str, queues: list[MessageQueue], mine: list[MessageQueue]) -> Flow[None]:
        """The allocation changed: assign accordingly, then call the program's listener."""
        chosen = queues if self.state.is_broadcasting else mine
        leaving = [queue for queue in self.assigned if queue.topic == topic and queue not in chosen]
        self._set_assigned(leaving, chosen)
        if self._queue_listener is not None:
            call_back(self.ports, "message queue listener", partial(self._queue_listener, topic, queues, mine))
        yield Promise.of(None)

    def __repr__(self) -> str:
        return (
            f"<LitePullConsumer {self.group} {self.client_id} {self.service.state}: {len(self.assigned)} queues, "
            f"{self.cache.message_count} messages cached>"
        )
