"""A member of a consumer group that has its listener called for each message: pulls, keeps, consumes, commits.

Mirrors: DefaultMQPushConsumer and DefaultMQPushConsumerImpl. Every lab uses one; labs 04 to 06 take it apart.

    start   routes of its topics ─▶ heartbeat to all brokers ─▶ rebalance (within a second)
            ─▶ per queue: first offset, half a second, then the pull loop
    pulled  ─▶ process queue ─▶ concurrently or orderly ─▶ listener ─▶ offset in memory ─▶ broker, every 5 s
    failed  ─▶ send back to the broker, else a new message to %RETRY%group, else once more here in 5 s

"Push" is the client asking again and again, and the broker holding the question for up to 15 s.
Left out: POP, assignment by the broker (client_rebalance=false), namespaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mqlab.client.consuming.concurrently import ConsumeConcurrently
from mqlab.client.consuming.consume_service import ConsumeHook
from mqlab.client.consuming.group_member import GroupMember, QueueListener
from mqlab.client.consuming.orderly import ConsumeOrderly
from mqlab.client.consuming.process_queue import ProcessQueue
from mqlab.client.consuming.pull_loop import PullLoop
from mqlab.client.consuming.reset import reset_offset_by_timestamp
from mqlab.client.consuming.send_back import SendBack
from mqlab.client.consuming.subscriptions import subscription, tag_subscription
from mqlab.client.instance.background import told
from mqlab.client.instance.mq_client import MQClient
from mqlab.client.sending.trace import ConsumerTraceHook, TraceDispatcher
from mqlab.client.settings import CLUSTERING, PushConsumerConfig, changed, make_config
from mqlab.errors import ClientError, UsageError
from mqlab.ports import Ports
from mqlab.promises import Flow, Promise, flow
from mqlab.wire.bodies import SubscriptionData
from mqlab.wire.message import MessageExt, MessageQueue
from mqlab.wire.names import retry_topic

UNLOCK_DELAY_TIME_MS = 20_000
WRITE_LOCK_WAIT_MS = 500


class PushConsumer(GroupMember[PushConsumerConfig]):
    """A member of ``group``; settings are those of DefaultMQPushConsumer in snake_case (see PushConsumerConfig).

    ``process_queues``: what it owns and holds; ``offset_store``: how far it is; ``pull_threshold_for_queue`` and
    ``_size_for_queue``: the limits in force (rewritten by the limits per topic).
    """

    kind = "PushConsumer"
    consume_type = "CONSUME_PASSIVELY"
    repairs_expired_pulls = True

    def __init__(
        self, ports: Ports, group: str, name_servers: Sequence[str], *, client: MQClient | None = None, **settings: Any
    ) -> None:
        super().__init__(ports, group, name_servers, make_config(PushConsumerConfig, settings, "push consumer"), client)
        self.pull_loop = PullLoop(self)
        self.send_back = SendBack(self.client, group)
        self.consume_hooks: list[ConsumeHook] = []
        self.consume_service: ConsumeConcurrently | ConsumeOrderly
        self.pull_threshold_for_queue = self.config.pull_threshold_for_queue
        self.pull_threshold_size_for_queue = self.config.pull_threshold_size_for_queue
        self.is_suspended = False
        self.is_orderly = False
        self._listener: Any = None
        self._queue_listener: QueueListener | None = None
        self._trace: TraceDispatcher | None = None
        if self.config.enable_trace:
            self._trace = TraceDispatcher(self.client, f"{group}-CONSUME", self.config.trace_topic)
            self.consume_hooks.append(ConsumerTraceHook(self._trace))

    # what a program does with it -------------------------------------------------------------------------------------

    def subscribe(self, topic: str, expression: str | None = "*", *, sql: str | None = None) -> None:
        """Want a topic's messages: all, those with some tags ("paid || shipped"), or those an SQL92 text selects.

        On a running consumer queues follow with the next route poll and rebalance. FilterError for tags without a tag;
        SQL is judged by the brokers, when the consumer starts (ClientError).
        """
        wanted = subscription(topic, expression, sql, self.ports.clock.now_ms())
        if not self.is_running:
            self.rebalance.subscriptions[topic] = wanted
        else:
            self.client.call(lambda: self._subscribe_running(topic, wanted))

    @flow
    def _subscribe_running(self, topic: str, wanted: SubscriptionData) -> Flow[None]:
        self.rebalance.subscriptions[topic] = wanted
        self.pull_loop.retry_parked()
        yield self.client.heartbeat_all()

    def unsubscribe(self, topic: str) -> None:
        """Want a topic no more; its queues go with the next rebalance."""
        self.rebalance.subscriptions.pop(topic, None)

    def on_messages(self, listener: Any) -> None:
        """Have ``listener(messages, context)`` called for each batch, many at a time. A class: a new object a start."""
        self._listener, self.is_orderly = listener, False

    register_message_listener = on_messages

    def on_messages_orderly(self, listener: Any) -> None:
        """Have ``listener(messages, context)`` called queue by queue, in order, one thread per queue at a time."""
        self._listener, self.is_orderly = listener, True

    def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a subscribed topic. ClientError when its route is not known."""
        self.must_run()
        return self.client.call(lambda: self._fetch_queues(topic))

    @flow
    def _fetch_queues(self, topic: str) -> Flow[list[MessageQueue]]:
        if topic not in self.rebalance.topic_subscribe_info:
            yield self.client.update_route(topic)
        queues = self.rebalance.topic_subscribe_info.get(topic)
        if queues is None:
            raise ClientError(f"The topic[{topic}] not exist", hint="is it subscribed, and does it exist?")
        return list(queues)

    def set_message_queue_listener(self, listener: QueueListener) -> None:
        """Have ``listener(topic, all_queues, my_queues)`` called when the allocation of a topic changed."""
        self._queue_listener = listener

    def register_consume_message_hook(self, hook: ConsumeHook) -> None:
        """Have an object told before and after each listener call."""
        self.consume_hooks.append(hook)

    def configure(self, **settings: Any) -> None:
        """Change settings of a running consumer; what is read live takes effect (limits, batches, consume_timeout)."""
        self.on_node(lambda: self._configure(settings))

    def _configure(self, settings: dict[str, Any]) -> None:
        self.use_config(changed(self.config, settings, "push consumer"))
        for limit in ("pull_threshold_for_queue", "pull_threshold_size_for_queue"):
            if limit in settings:  # else it stays as the last rebalance scaled it
                setattr(self, limit, getattr(self.config, limit))
        self.pull_loop.retry_parked()

    # life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Join the group. ClientError without a listener, when started before, or when a broker refuses."""
        self.client.call(self.start_async)

    @flow
    def start_async(self) -> Flow[None]:
        """The same, as a Promise."""
        self.must_be_new()
        if self._listener is None:
            raise ClientError("messageListener is null", hint="call on_messages(listener) before start()")
        if self.is_orderly and self.config.message_timeout:
            raise UsageError(
                "message_timeout is for concurrent consumption: in order a stuck message cannot be passed over",
                hint="leave it out, or use on_messages(listener)",
            )
        if self.config.message_model == CLUSTERING:
            topic = retry_topic(self.group)
            self.rebalance.subscriptions[topic] = tag_subscription(topic, "*", self.ports.clock.now_ms())
        self.offset_store.load()
        self.consume_service = (ConsumeOrderly if self.is_orderly else ConsumeConcurrently)(self, self._listener)
        self.consume_service.start()
        if self._trace is not None:
            self._trace.start()
        yield self.join()

    @flow
    def shutdown_async(self) -> Flow[None]:
        """Leave the group: commit offsets, unlock queues, tell the brokers. Harmless when not running."""
        if not self.is_running:
            return
        self.consume_service.shutdown()
        yield self.consume_service.wait_idle(self.config.await_termination_millis_when_shutdown)
        if isinstance(self.consume_service, ConsumeOrderly) and self.config.message_model == CLUSTERING:
            yield self.consume_service.locks.unlock_all()
        if self._trace is not None:
            yield self._trace.shutdown()
        yield self.leave()

    def suspend(self) -> None:
        """Stop asking for messages; what is cached is still consumed, and this member rebalances no more."""
        self.on_node(self.suspend_now)

    def suspend_now(self) -> None:
        """The same, from a step of its own node."""
        self.is_suspended = True
        self.ports.note("consumer.suspended", client=self.ports.node, group=self.group)

    def resume(self) -> None:
        """Go on after suspend."""
        self.client.call(self.resume_async)

    @flow
    def resume_async(self) -> Flow[None]:
        """The same, as a Promise."""
        self.is_suspended = False
        self.ports.note("consumer.resumed", client=self.ports.node, group=self.group)
        self.pull_loop.retry_parked()
        yield self.rebalance.do_rebalance(orderly=self.is_orderly)

    def reset_offset_by_timestamp(self, timestamp_ms: int) -> None:
        """Move every subscribed topic, the retry topic too, to a time; takes ten seconds a topic."""
        self.client.call(lambda: reset_offset_by_timestamp(self, timestamp_ms))

    # what the client instance and the rebalance ask ------------------------------------------------------------------

    def reported_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues it tells an operator about: those it owns."""
        return self.process_queues

    def try_rebalance(self) -> Promise[bool]:
        """A round of rebalance; a suspended consumer does nothing and says "not balanced"."""
        if self.is_suspended or not self.is_running:
            return Promise.of(False)
        return self.rebalance.do_rebalance(orderly=self.is_orderly)

    @flow
    def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> Flow[bool]:
        """Let a queue go and commit its offset; an orderly one when its listener is back, or after 20 s."""
        self.pull_loop.parked.pop(queue, None)
        self.offset_store.persist(queue)
        if not isinstance(self.consume_service, ConsumeOrderly) or self.config.message_model != CLUSTERING:
            self.offset_store.remove_offset(queue)
            return True
        unlock_from_ms = process_queue.last_lock_timestamp + UNLOCK_DELAY_TIME_MS
        force = process_queue.dropped and self.ports.clock.now_ms() > unlock_from_ms
        if not force and not (yield self.consume_service.wait_listener_back(process_queue, WRITE_LOCK_WAIT_MS)):
            process_queue.try_unlock_times += 1
            return False
        self.offset_store.persist(queue)
        self.offset_store.remove_offset(queue)
        process_queue.locked = False
        self.consume_service.locks.unlock(queue)
        return True

    def lock_queue(self, queue: MessageQueue) -> Promise[bool]:
        """Ask the broker for the queue (orderly)."""
        if isinstance(self.consume_service, ConsumeOrderly):
            return self.consume_service.locks.lock(queue)
        return Promise.of(True)

    def is_pull_expired(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """True when its pull loop is dead; a parked request is alive."""
        return queue not in self.pull_loop.parked and process_queue.is_pull_expired(self.ports.clock.now_ms())

    def queue_added(self, queue: MessageQueue, process_queue: ProcessQueue, next_offset: int) -> None:
        """Begin to pull."""
        self.pull_loop.add(queue, process_queue, next_offset)

    @flow
    def message_queue_changed(self, topic: str, queues: list[MessageQueue], mine: list[MessageQueue]) -> Flow[None]:
        """The allocation of a topic changed: raise its version, rescale limits, tell all brokers, tell the program."""
        wanted = self.rebalance.subscriptions.get(topic)
        if wanted is not None:
            self.rebalance.subscriptions[topic] = replace(wanted, sub_version=self.ports.clock.now_ms())
        self._rescale_limits()
        yield self.client.heartbeat_all()
        if self._queue_listener is not None:
            told(self.ports, "message queue listener", partial(self._queue_listener, topic, queues, mine))

    def _rescale_limits(self) -> None:
        owned = len(self.process_queues)
        if owned and self.config.pull_threshold_for_topic != -1:
            self.pull_threshold_for_queue = max(1, self.config.pull_threshold_for_topic // owned)
        if owned and self.config.pull_threshold_size_for_topic != -1:
            self.pull_threshold_size_for_queue = max(1, self.config.pull_threshold_size_for_topic // owned)

    # failed messages ---------------------------------------------------------------------------------------------

    def send_message_back(self, message: MessageExt, delay_level: int = 0) -> bool:
        """Have a message delivered again later although its listener will say success; True when it is stored.

        ``delay_level``: 0 the broker decides, -1 straight to the dead letters, above 0 that level.
        """
        self.must_run()
        return self.client.call(lambda: self.send_message_back_async(message, delay_level, message.message_queue))

    def send_message_back_async(self, message: MessageExt, delay_level: int, queue: MessageQueue) -> Promise[bool]:
        """Give a failed message to its broker to be delivered later; True when it is stored again."""
        limit = self.config.max_reconsume_times
        return self.send_back.send(message, delay_level, queue, max_reconsume_times=16 if limit == -1 else limit)

    def send_as_new_message(
        self, message: MessageExt, queue: MessageQueue, *, max_reconsume_times: int
    ) -> Promise[bool]:
        """Store a failed message as a new one in %RETRY%group; True when that worked."""
        return self.send_back.send_as_new_message(message, queue, max_reconsume_times=max_reconsume_times)

    def __repr__(self) -> str:
        suspended = ", suspended" if self.is_suspended else ""
        cached = sum(process_queue.msg_count for process_queue in self.process_queues.values())
        return (
            f"<PushConsumer {self.group} {self.client_id} {self.state}{suspended}: {len(self.process_queues)} queues, "
            f"{cached} messages cached>"
        )
