"""A member of a consumer group whose listener is called for each message: it pulls, keeps, consumes, commits.

Mirrors: DefaultMQPushConsumer and DefaultMQPushConsumerImpl.

    start   routes of its topics ─▶ heartbeat to all brokers ─▶ rebalance (within a second)
            ─▶ per queue: first offset, half a second, then the pull loop
    pulled  ─▶ process queue ─▶ concurrently or orderly ─▶ listener ─▶ offset in memory ─▶ broker, every 5 s
    failed  ─▶ send back to the broker, else a new message to %RETRY%group, else once more here in 5 s

"Push" means that the client asks again and again, and the broker holds each request for up to 15 s.

    state     what it knows                         consume_service   made at start: concurrently or in order
    pull_loop pulls every owned queue               rebalance         adds and drops queues (QueueKeeper, below)

    client_rebalance=False: the broker divides the queues; those that it says to pop go to pop_loop and a service of
    their own (consuming/pop_service). Orderly and broadcasting consumers pull all the same.

Left out: namespaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mqlab.errors import ClientError, UsageError
from mqlab.rocketmq.client.consuming.broker_rebalance import BrokerRebalance
from mqlab.rocketmq.client.consuming.concurrently import ConsumeConcurrently
from mqlab.rocketmq.client.consuming.consume_hooks import ConsumeHook
from mqlab.rocketmq.client.consuming.consume_service import ConsumeService
from mqlab.rocketmq.client.consuming.group_member import GroupMember, QueueListener, client_for
from mqlab.rocketmq.client.consuming.member_state import PushState
from mqlab.rocketmq.client.consuming.orderly import ConsumeOrderly
from mqlab.rocketmq.client.consuming.pop_loop import PopLoop
from mqlab.rocketmq.client.consuming.pop_service import ConsumePop
from mqlab.rocketmq.client.consuming.popped import PopApi
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue, is_pull_expired
from mqlab.rocketmq.client.consuming.pull_loop import PullLoop
from mqlab.rocketmq.client.consuming.reset import OffsetReset
from mqlab.rocketmq.client.consuming.send_back import SendBack
from mqlab.rocketmq.client.consuming.subscriptions import subscription, tag_subscription
from mqlab.rocketmq.client.instance.background import background, call_back
from mqlab.rocketmq.client.instance.members import ListenerAnswer
from mqlab.rocketmq.client.instance.mq_client import MQClient
from mqlab.rocketmq.client.instance.service_state import ServiceState
from mqlab.rocketmq.client.sending.trace import ConsumerTraceHook, TraceDispatcher
from mqlab.rocketmq.client.settings import PushConsumerConfig, changed, make_config
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue
from mqlab.rocketmq.wire.names import retry_topic


class PushConsumer(GroupMember[PushState]):
    """A member of ``group``; settings are those of DefaultMQPushConsumer in snake_case (see PushConsumerConfig).

    ``process_queues``: what it owns and holds; ``offset_store``: how far it is; ``consume_service``: calls the
    listener, made by ``start``.
    """

    kind = "PushConsumer"
    consume_type = "CONSUME_PASSIVELY"
    repairs_expired_pulls = True

    def __init__(
        self, ports: Ports, group: str, name_servers: Sequence[str], *, client: MQClient | None = None, **settings: Any
    ) -> None:
        config = make_config(PushConsumerConfig, settings, "push consumer")
        client = client_for(ports, group, name_servers, config, client)
        super().__init__(client, PushState(client.cluster, client.statistics, group, config, ServiceState(self.kind)))
        self.pull_loop = PullLoop(self.state, self.pull_api, self._give_up)
        self.send_back = SendBack(client.cluster, client.inner_sender, group)
        self.consume_service: ConsumeService | None = None
        self.pop_api = PopApi(client.cluster, group)
        self.pop_service: ConsumePop | None = None
        self.pop_loop: PopLoop | None = None
        self._reset = OffsetReset(self.state, self.suspend_now, self.rebalance.remove_process_queue, self.resume_async)
        self._listener: Any = None
        self._queue_listener: QueueListener | None = None
        self._trace: TraceDispatcher | None = None
        if config.enable_trace:
            self._trace = TraceDispatcher(client.cluster, client.membership, f"{group}-CONSUME", config.trace_topic)
            self.state.consume_hooks.append(ConsumerTraceHook(self._trace))

    def subscribe(self, topic: str, expression: str | None = "*", *, sql: str | None = None) -> None:
        """Subscribe to a topic: all messages, those with some tags ("paid || shipped"), or those an SQL92 text selects.

        On a running consumer queues follow with the next route poll and rebalance. FilterError for tags without a tag;
        SQL is judged by the brokers, when the consumer starts (ClientError).
        """
        data = subscription(topic, expression, sql, self.ports.clock.now_ms())
        if not self.is_running:
            self.state.subscriptions[topic] = data
        else:
            self.client.call(lambda: self._subscribe_running(topic, data))

    @flow
    def _subscribe_running(self, topic: str, data: SubscriptionData) -> Flow[None]:
        self.state.subscriptions[topic] = data
        self.pull_loop.retry_parked()
        yield self.client.membership.heartbeat_all()

    def unsubscribe(self, topic: str) -> None:
        """End the subscription to a topic; its queues go with the next rebalance."""
        self.state.subscriptions.pop(topic, None)

    def on_messages(self, listener: Any) -> None:
        """Call ``listener(messages, context)`` for each batch, many at a time. A class: a new object per start."""
        self._listener, self.state.is_orderly = listener, False

    register_message_listener = on_messages

    def on_messages_orderly(self, listener: Any) -> None:
        """Call ``listener(messages, context)`` queue by queue, in order, one thread per queue at a time."""
        self._listener, self.state.is_orderly = listener, True

    def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a subscribed topic. ClientError when its route is not known."""
        self.service.must_run()
        return self.client.call(lambda: self._fetch_queues(topic))

    @flow
    def _fetch_queues(self, topic: str) -> Flow[list[MessageQueue]]:
        if topic not in self.state.topic_subscribe_info:
            yield self.client.cluster.update_route(topic)
        queues = self.state.topic_subscribe_info.get(topic)
        if queues is None:
            raise ClientError(f"The topic[{topic}] not exist", hint="is it subscribed, and does it exist?")
        return list(queues)

    def set_message_queue_listener(self, listener: QueueListener) -> None:
        """Have ``listener(topic, all_queues, my_queues)`` called when the allocation of a topic changed."""
        self._queue_listener = listener

    def register_consume_message_hook(self, hook: ConsumeHook) -> None:
        """Call an object before and after each listener call. See ConsumeHook."""
        self.state.consume_hooks.append(hook)

    def configure(self, **settings: Any) -> None:
        """Change settings of a running consumer; what is read live takes effect (limits, batches, consume_timeout)."""
        self.on_node(lambda: self._configure(settings))

    def _configure(self, settings: dict[str, Any]) -> None:
        self.use_config(changed(self.config, settings, "push consumer"))
        for limit in ("pull_threshold_for_queue", "pull_threshold_size_for_queue"):
            if limit in settings:  # otherwise it stays as the last rebalance scaled it
                setattr(self.state, limit, getattr(self.config, limit))
        self.pull_loop.retry_parked()

    def start(self) -> None:
        """Join the group. ClientError without a listener, when started before, or when a broker refuses."""
        self.client.call(self.start_async)

    @flow
    def start_async(self) -> Flow[None]:
        """The same, as a Promise."""
        self.service.must_be_new()
        if self._listener is None:
            raise ClientError("messageListener is null", hint="call on_messages(listener) before start()")
        state = self.state
        if state.is_orderly and state.config.message_timeout:
            raise UsageError(
                "message_timeout is for concurrent consumption: in order a stuck message cannot be passed over",
                hint="leave it out, or use on_messages(listener)",
            )
        # 1. Failed messages come back through the group's retry topic.
        if not state.is_broadcasting:
            topic = retry_topic(self.group)
            state.subscriptions[topic] = tag_subscription(topic, "*", self.ports.clock.now_ms())
        self.offset_store.load()
        # 2. The consume service must be there before the first queue is: the pull loop hands messages to it.
        kind = ConsumeOrderly if state.is_orderly else ConsumeConcurrently
        service: ConsumeService = kind(state, self._listener, self.send_back, self.pull_loop.retry_parked)
        self.consume_service = service
        service.start()
        if not (state.config.client_rebalance or state.is_orderly or state.is_broadcasting):
            self._let_the_broker_divide()
        if self._trace is not None:
            self._trace.start()
        # 3. Join the group.
        yield self.join()

    def _let_the_broker_divide(self) -> None:
        """Queues come by QUERY_ASSIGNMENT; those of the mode POP are popped."""
        state, chosen = self.state, self.state.config.allocate_message_queue_strategy
        self.pop_service = ConsumePop(state, self._listener, self.pop_api)
        self.pop_loop = PopLoop(state, self.pop_api, self.pop_service.submit)
        self.rebalance.by_broker = BrokerRebalance(
            state,
            chosen if isinstance(chosen, str) else self.rebalance.strategy.name,
            self.pop_loop.assign,
            self._subscribe_retry,
        )

    def _subscribe_retry(self, topic: str) -> None:
        self.state.subscriptions.setdefault(topic, tag_subscription(topic, "*", self.ports.clock.now_ms()))

    @flow
    def shutdown_async(self) -> Flow[None]:
        """Leave the group: commit offsets, unlock queues, inform the brokers. Harmless when not running."""
        if not self.is_running:
            return
        service = self._started_service()
        # 1. No new batches; running listeners have some time to end.
        service.shutdown()
        if self.pop_loop is not None and self.pop_service is not None:
            self.pop_loop.drop_all()
            self.pop_service.shutdown()
            yield self.pop_service.runner.wait_idle(self.config.await_termination_millis_when_shutdown)
        yield service.wait_idle(self.config.await_termination_millis_when_shutdown)
        # 2. Release what other members wait for, then leave.
        yield service.unlock_all()
        if self._trace is not None:
            yield self._trace.shutdown()
        yield self.leave()

    def _started_service(self) -> ConsumeService:
        assert self.consume_service is not None, "start makes it, and nothing asks for it before"
        return self.consume_service

    def suspend(self) -> None:
        """Stop asking for messages; what is cached is still consumed, and this member takes part in no rebalance."""
        self.on_node(self.suspend_now)

    def suspend_now(self) -> None:
        """The same, from a step of its own node."""
        self.state.is_suspended = True
        self.ports.note("consumer.suspended", client=self.ports.node, group=self.group)

    def resume(self) -> None:
        """Go on after suspend."""
        self.client.call(self.resume_async)

    @flow
    def resume_async(self) -> Flow[None]:
        """The same, as a Promise."""
        self.state.is_suspended = False
        self.ports.note("consumer.resumed", client=self.ports.node, group=self.group)
        self.pull_loop.retry_parked()
        yield self.rebalance.do_rebalance(orderly=self.state.is_orderly)

    def reset_offset_by_timestamp(self, timestamp_ms: int) -> None:
        """Reset every subscribed topic, the retry topic too, to a time; takes ten seconds per topic."""
        self.client.call(lambda: self._reset.to_timestamp(timestamp_ms))

    @property
    def is_suspended(self) -> bool:
        return self.state.is_suspended

    @property
    def pull_threshold_for_queue(self) -> int:
        """The limit in force, in messages per queue: the setting, or the share of the limit per topic."""
        return self.state.pull_threshold_for_queue

    @property
    def pull_threshold_size_for_queue(self) -> int:
        """The same in MiB."""
        return self.state.pull_threshold_size_for_queue

    def reported_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues that an operator sees: those it owns."""
        return self.process_queues

    def reported_pops(self) -> dict[MessageQueue, dict[str, Any]]:
        """What an operator sees of the queues that the broker has it pop."""
        return {queue: popped.to_value() for queue, popped in (self.pop_loop.queues if self.pop_loop else {}).items()}

    def parked_queues(self) -> list[MessageQueue]:
        """Queues whose next pull is parked until a check succeeds."""
        return list(self.pull_loop.parked)

    def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> Promise[None]:
        """Reset a topic's queues to other offsets; takes ten seconds."""
        return self._reset.to_offsets(topic, offsets)

    def consume_directly(self, message: MessageExt, queue: MessageQueue) -> Promise[ListenerAnswer]:
        """Have the listener consume one message now, outside all queues."""
        return self._started_service().consume_directly(message, queue)

    def try_rebalance(self) -> Promise[bool]:
        """A round of rebalance; a suspended consumer does nothing and counts as "not balanced"."""
        if self.state.is_suspended or not self.is_running:
            return Promise.of(False)
        return self.rebalance.do_rebalance(orderly=self.state.is_orderly)

    def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> Promise[bool]:
        """Commit and release a dropped queue; False when its orderly listener is still running."""
        self.pull_loop.parked.pop(queue, None)
        self.offset_store.persist(queue)
        return self._started_service().release(queue, process_queue)

    def _give_up(self, queue: MessageQueue) -> None:
        """The pull loop cannot continue with this queue: drop it and rebalance at once."""
        background(self.ports, self.rebalance.remove_process_queue(queue), "queue removal")
        self.client.rebalance_timer.wake()

    def lock_queue(self, queue: MessageQueue) -> Promise[bool]:
        """Lock a queue at its broker before it is added (orderly consumers)."""
        return self._started_service().lock(queue)

    def is_pull_expired(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """True when its pull loop has stopped; a queue whose next pull is parked counts as alive."""
        return queue not in self.pull_loop.parked and is_pull_expired(process_queue, self.ports.clock.now_ms())

    def queue_added(self, queue: MessageQueue, process_queue: ProcessQueue, next_offset: int) -> None:
        """Begin to pull."""
        self.pull_loop.add(queue, process_queue, next_offset, self._started_service().submit)

    @flow
    def message_queue_changed(self, topic: str, queues: list[MessageQueue], mine: list[MessageQueue]) -> Flow[None]:
        """The allocation of a topic changed: raise its version, rescale limits, inform brokers, call the listener."""
        # A newer version makes brokers take this member's subscription over an older one of another member.
        data = self.state.subscriptions.get(topic)
        if data is not None:
            self.state.subscriptions[topic] = replace(data, sub_version=self.ports.clock.now_ms())
        self.state.rescale_limits()
        yield self.client.membership.heartbeat_all()
        if self._queue_listener is not None:
            call_back(self.ports, "message queue listener", partial(self._queue_listener, topic, queues, mine))

    def send_message_back(self, message: MessageExt, delay_level: int = 0) -> bool:
        """Send a message back, to be delivered again even if its listener reports success; True when it is stored.

        ``delay_level``: 0 the broker decides, -1 straight to the dead letters, above 0 that level.
        """
        self.service.must_run()
        queue, limit = message.message_queue, self.state.max_reconsume_times
        return self.client.call(lambda: self.send_back.send(message, delay_level, queue, max_reconsume_times=limit))

    def __repr__(self) -> str:
        suspended = ", suspended" if self.state.is_suspended else ""
        cached = sum(process_queue.msg_count for process_queue in self.process_queues.values())
        return (
            f"<PushConsumer {self.group} {self.client_id} {self.service.state}{suspended}: "
            f"{len(self.process_queues)} queues, {cached} messages cached>"
        )
