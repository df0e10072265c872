"""How a message gets to a broker: choose a queue, ask, choose another when that failed; three ways to wait.

Mirrors: DefaultMQProducerImpl (sendDefaultImpl, sendSelectImpl, onExceptionImpl).

    way                 attempts   again after                                             not again after
    sync                1 + 2      transport errors, broker codes 17 14 1 2 16 204 205     other codes; time used up
    async               1 + 2      transport errors (another broker, same queue id)        any answer of a broker
    one-way             1
    queue or selector   1 (sync)   async: 1 + 2 on the same broker

The time limit is for the whole call. FLUSH_DISK_TIMEOUT and its like mean "stored" and end the call.
Only sends that choose their broker freely, and all asynchronous ones, update the latency table.

Left out: automatic batches (off in RocketMQ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.counts import counted
from mqlab.errors import BrokerError, ClientError, MqlabError, RemotingError
from mqlab.rocketmq.client import statuses
from mqlab.rocketmq.client.instance.background import call_hooks
from mqlab.rocketmq.client.instance.broker_calls import send_result_of
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.client.sending.back_pressure import BackPressure
from mqlab.rocketmq.client.sending.fault_detector import FaultDetector
from mqlab.rocketmq.client.sending.fault_strategy import FaultStrategy, LatencyFaultStrategy, checked_strategy
from mqlab.rocketmq.client.sending.queue_selection import PublishInfo, QueueSelector, select_queue, selector_of
from mqlab.rocketmq.client.sending.send_options import ASYNC, ONEWAY, SYNC, SendHook, SendHookContext, SendOptions
from mqlab.rocketmq.client.sending.send_request import Outgoing, batched, body_and_flag, request_for, single
from mqlab.rocketmq.client.settings import ProducerConfig
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.message import Message, MessageQueue, SendResult
from mqlab.rocketmq.wire.property_names import UNIQ_KEY


@dataclass(slots=True)
class PreparedSend:
    """A request and the context that the hooks saw. ``topic`` and ``msg_id`` are those that the hooks left."""

    request: RemotingCommand
    context: SendHookContext
    topic: str
    msg_id: str


class Sender:
    """Sends for one producer group. ``topic_publish_info``: the queues offered, per topic."""

    def __init__(self, cluster: ClusterAccess, group: str, config: ProducerConfig) -> None:
        self.cluster = cluster
        self.group = group
        self.config = config
        self.topic_publish_info: dict[str, PublishInfo] = {}
        self.hooks: list[SendHook] = []
        self.faults: FaultStrategy | None = None
        self.detector: FaultDetector | None = None
        self._ports = cluster.ports
        self._clock = cluster.ports.clock
        if config.mq_fault_strategy is not None:
            self.faults = checked_strategy(config.mq_fault_strategy)
        elif config.send_latency_fault_enable:
            self.faults = table = LatencyFaultStrategy(config.latency_max, config.not_available_duration)
            if config.start_detector_enable:
                self.detector = FaultDetector(
                    cluster,
                    table,
                    self.publish_topics,
                    interval_ms=config.detect_interval,
                    timeout_ms=config.detect_timeout,
                )
        self.back_pressure: BackPressure | None = None
        if config.enable_backpressure_for_async_mode:
            self.back_pressure = BackPressure(
                self._clock, config.back_pressure_for_async_send_num, config.back_pressure_for_async_send_size
            )

    def publish_topics(self) -> list[str]:
        """The topics whose routes are polled: those something was sent to."""
        return list(self.topic_publish_info)

    def update_publish_info(self, topic: str, queues: list[MessageQueue]) -> None:
        """Take the queues of a new route."""
        self.topic_publish_info[topic] = PublishInfo(queues, has_route=True)

    def needs_queues_of(self, topic: str) -> bool:
        """True while a topic is used and no queue of it is known."""
        info = self.topic_publish_info.get(topic)
        return info is not None and not info.queues

    def outgoing(self, messages: Message | Sequence[Message] | None) -> Outgoing:
        """Check a message, or a list as a batch, and give it its unique key."""
        now_ms = self._clock.now_ms()
        if isinstance(messages, Message):
            return single(messages, self.config, self.cluster.unique_ids, now_ms)
        if messages is None:
            raise ClientError("the message is null")
        return batched(messages, self.config, self.cluster.unique_ids, now_ms)

    def send(self, outgoing: Outgoing, options: SendOptions) -> Promise[SendResult]:
        """Send as the options say. The promise gets the SendResult; None for a one-way send, which has none."""
        if options.queue is not None:
            return self._send_to_queue(outgoing, options.queue, options)
        if options.selector is not None:
            return self._send_by_selector(outgoing, options.selector, options)
        if options.mode == SYNC:
            return self.send_sync(outgoing, options.timeout_ms)
        return (self.send_async if options.mode == ASYNC else self._send_oneway)(outgoing, options.timeout_ms)

    @flow
    def send_sync(self, outgoing: Outgoing, timeout_ms: int) -> Flow[SendResult]:
        """Send, trying other queues after failures, and wait for the broker's answer."""
        clock, config = self._clock, self.config
        began_ms = clock.now_ms()
        info = self.topic_publish_info.get(outgoing.message.topic)
        if info is None or not info.queues:
            info = yield self.find_publish_info(outgoing.message.topic)
        last_broker: str | None = None
        brokers_sent: list[str] = []
        result: SendResult | None = None
        error: MqlabError | None = None
        attempts = 1 + config.retry_times_when_send_failed
        for attempt in range(attempts):
            # 1. Choose a queue, away from the broker that failed last.
            queue = self.select_queue(info, last_broker, is_retry=attempt > 0)
            last_broker = queue.broker_name
            # 2. What is left of the caller's time is the limit of this attempt.
            left_ms = timeout_ms - (clock.now_ms() - began_ms)
            if left_ms <= 0:  # RocketMQ asks for < 0; in virtual time a time-out ends in the very ms it was set for
                raise RemotingError(
                    f"sendDefaultImpl call timeout: {timeout_ms} ms were used up after {counted(attempt, 'attempts')}",
                    code="too_much_request",
                )
            brokers_sent.append(queue.broker_name)
            if config.send_msg_max_timeout_per_request > 0:
                left_ms = min(left_ms, config.send_msg_max_timeout_per_request)
            # 3. Send. Some failures are worth another attempt, a broker's refusal only with one of the listed codes.
            try:
                result = yield from self._attempt(outgoing, queue, left_ms, SYNC)
            except (RemotingError, ClientError) as failure:
                error = failure
                continue
            except BrokerError as refusal:
                if refusal.response_code not in config.retry_response_codes:
                    raise
                error = refusal
                continue
            assert result is not None  # only a one-way send has none
            if result.send_status == statuses.SEND_OK or not config.retry_another_broker_when_not_store_ok:
                return result
        # 4. No attempt left: a message that was stored but not flushed or copied counts as sent.
        if result is not None:
            return result
        raise self._gave_up(attempts, clock.now_ms() - began_ms, outgoing.message.topic, brokers_sent, error)

    def _gave_up(
        self, attempts: int, cost_ms: int, topic: str, brokers_sent: list[str], error: MqlabError | None
    ) -> MqlabError:
        text = (
            f"Send [{attempts}] times, still failed, cost [{cost_ms}]ms, Topic: {topic}, "
            f"BrokersSent: [{', '.join(brokers_sent)}]"
        )
        gave_up = ClientError(f"{text}: {error.text if error else ''}", hint=error.hint if error else "")
        gave_up.not_done = False  # one of the attempts may have been stored, its answer lost
        gave_up.retry_helps = True
        gave_up.__cause__ = error
        return gave_up

    @flow
    def send_async(self, outgoing: Outgoing, timeout_ms: int) -> Flow[SendResult]:
        """Send; after a transport error the same request goes to another broker, with the same queue id."""
        began_ms = self._clock.now_ms()
        info: PublishInfo = yield self.find_publish_info(outgoing.message.topic)
        queue = self.select_queue(info, None, is_retry=False)
        return (yield from self._send_async_to(outgoing, queue, timeout_ms, began_ms, info))

    @flow
    def _send_oneway(self, outgoing: Outgoing, timeout_ms: int) -> Flow[Any]:
        """Send once and do not wait; what happens to it is not known."""
        info: PublishInfo = yield self.find_publish_info(outgoing.message.topic)
        yield from self._attempt(outgoing, self.select_queue(info, None, is_retry=False), timeout_ms, ONEWAY)

    @flow
    def _send_to_queue(self, outgoing: Outgoing, queue: MessageQueue, options: SendOptions) -> Flow[Any]:
        return (yield from self._send_to(outgoing, queue, options.timeout_ms, options.mode))

    def _send_to(self, outgoing: Outgoing, queue: MessageQueue, timeout_ms: int, mode: str) -> Flow[SendResult | None]:
        """Send to a queue that the caller chose: sync once; async up to three times, always to its broker."""
        if queue.topic != outgoing.message.topic:
            raise ClientError(
                "message's topic not equal mq's topic",
                hint=f"the message has the topic {outgoing.message.topic}, the queue {queue.topic}",
            )
        if mode == ASYNC:
            return (yield from self._send_async_to(outgoing, queue, timeout_ms, self._clock.now_ms(), None))
        return (yield from self._attempt(outgoing, queue, timeout_ms, mode, judged=False))

    @flow
    def _send_by_selector(self, outgoing: Outgoing, selector: QueueSelector | str, options: SendOptions) -> Flow[Any]:
        choose = selector_of(selector, self._ports.rng)
        began_ms = self._clock.now_ms()
        info: PublishInfo = yield self.find_publish_info(outgoing.message.topic)
        try:
            queue = choose(list(info.queues), outgoing.message, options.arg)
        except Exception as error:
            raise ClientError(f"select message queue threw exception: {error!r}") from error
        if queue is None:
            raise ClientError("select message queue return null.", hint="the selector must return one of the queues")
        if not isinstance(queue, MessageQueue):
            raise ClientError(
                f"the selector returned {queue!r}, which is not a MessageQueue",
                hint="return one of the queues it was given, for example queues[arg % len(queues)]",
            )
        left_ms = options.timeout_ms - (self._clock.now_ms() - began_ms)
        if left_ms <= 0:
            raise RemotingError("sendSelectImpl call timeout", code="too_much_request")
        return (yield from self._send_to(outgoing, queue, left_ms, options.mode))

    def _send_async_to(
        self, outgoing: Outgoing, queue: MessageQueue, timeout_ms: int, began_ms: int, info: PublishInfo | None
    ) -> Flow[SendResult]:
        """Up to three attempts with one request. ``info`` None: every attempt goes to the queue's own broker."""
        clock = self._clock
        tries_left = self.config.retry_times_when_send_async_failed
        address: str = yield self.cluster.find_master(queue)
        prepared = self._prepare(outgoing, queue, address)
        context = prepared.context
        left_ms = timeout_ms - (clock.now_ms() - began_ms)
        while True:
            yield from self._exchange(prepared, queue, address, max(left_ms, 0), ASYNC)
            # 1. Only a transport error is worth another attempt, while there are attempts and time left.
            error = context.error
            left_ms = timeout_ms - (clock.now_ms() - began_ms)
            retry_helps = isinstance(error, RemotingError) and error.code != "too_much_request"
            if not retry_helps or tries_left == 0 or left_ms <= 0:
                break
            tries_left -= 1
            # 2. The request names its queue's number, so another broker gets it for the queue of the same number.
            if info is not None:
                other = self.select_queue(info, queue.broker_name, is_retry=False)
                queue = MessageQueue(queue.topic, other.broker_name, queue.queue_id)
            try:
                address = yield self.cluster.find_master(queue)
            except MqlabError as failure:
                context.error = failure
                break
        result = self._finish(context)
        assert result is not None  # only a one-way send has none
        return result

    def _attempt(
        self, outgoing: Outgoing, queue: MessageQueue, timeout_ms: int, mode: str, *, judged: bool = True
    ) -> Flow[SendResult | None]:
        """One request to one broker; None for one-way. Hooks hear of it, and (``judged``) the latency table does."""
        address = self.cluster.routes.master_address(queue.broker_name)
        if address is None:
            address = yield self.cluster.find_master(queue)
        prepared = self._prepare(outgoing, queue, address)
        yield from self._exchange(prepared, queue, address, timeout_ms, mode, judged=judged)
        return self._finish(prepared.context)

    def _prepare(self, outgoing: Outgoing, queue: MessageQueue, address: str) -> PreparedSend:
        """Call the hooks, then build the request from the message as they left it."""
        message, now_ms = outgoing.message, self._clock.now_ms()
        context = SendHookContext(self.group, message, queue, address, now_ms, outgoing.is_batch)
        whole_body = message.body
        message.body, flag = body_and_flag(outgoing, self.config)
        try:
            if self.hooks:
                call_hooks(self._ports, "send message hook", self.hooks, "send_message_before", context)
            request = request_for(outgoing, flag, queue, self.group, self.config, now_ms)
        finally:
            message.body = whole_body
        msg_id = outgoing.msg_id if outgoing.is_batch else message.properties.get(UNIQ_KEY, outgoing.msg_id)
        return PreparedSend(request, context, message.topic, msg_id)

    def _exchange(
        self,
        prepared: PreparedSend,
        queue: MessageQueue,
        address: str,
        timeout_ms: int,
        mode: str,
        *,
        judged: bool = True,
    ) -> Flow[None]:
        """Send a prepared request to one broker; its context then has the result or the error."""
        context, calls = prepared.context, self.cluster.calls
        context.error = None
        faults = self.faults if judged else None
        started_ms = 0 if faults is None else self._clock.now_ms()
        # 1. Ask, and read the answer.
        try:
            if mode == ONEWAY:
                calls.send_oneway(address, prepared.request)
            else:
                answer: RemotingCommand = yield calls.send(address, prepared.request, timeout_ms)
                context.send_result = send_result_of(answer, queue, prepared.topic, prepared.msg_id, address)
        except MqlabError as error:
            context.error = error
        # 2. Remember how long this broker took.
        if faults is not None:
            now_ms = self._clock.now_ms()
            faults.update(
                queue.broker_name,
                now_ms - started_ms,
                now_ms,
                isolation=context.error is not None,
                reachable=mode == ASYNC or self._is_reachable_after(context.error),
            )
        # 3. Record it in the journal.
        self._note(prepared, queue, mode)

    def _finish(self, context: SendHookContext) -> SendResult | None:
        """Call the hooks after the send; return its result, or raise its error."""
        if self.hooks:
            call_hooks(self._ports, "send message hook", self.hooks, "send_message_after", context)
        if context.error is not None:
            raise context.error
        return context.send_result

    def _is_reachable_after(self, error: MqlabError | None) -> bool:
        """Error answers make a broker unreachable; transport errors only when a detector looks for it again."""
        return not isinstance(error, BrokerError) and (error is None or self.detector is None)

    def _note(self, prepared: PreparedSend, queue: MessageQueue, mode: str) -> None:
        context = prepared.context
        result = context.send_result
        self._ports.note(
            "message.sent",
            client=self._ports.node,
            group=self.group,
            mode=mode,
            msg_id=prepared.msg_id,
            topic=prepared.topic,
            message_queue=result.message_queue if result else queue,
            queue_offset=result.queue_offset if result else None,
            offset_msg_id=result.offset_msg_id if result else None,
            send_status=result.send_status if result else None,
            error=context.error.text if context.error else None,
        )

    @flow
    def find_publish_info(self, topic: str) -> Flow[PublishInfo]:
        """The queues of a topic. ClientError when there is none."""
        # 1. What is known, else what the name server knows of the topic.
        info = self.topic_publish_info.get(topic)
        if info is None or not info.queues:
            self.topic_publish_info.setdefault(topic, PublishInfo())
            yield self.cluster.update_route(topic)
            info = self.topic_publish_info[topic]
        # 2. A topic without a route: send to where the template topic is, whose brokers create the topic.
        if not info.has_route and not info.queues:
            yield self.cluster.update_route(
                topic, template=self.config.create_topic_key, template_queues=self.config.default_topic_queue_nums
            )
            info = self.topic_publish_info[topic]
        if not info.queues:
            raise ClientError(
                f"No route info of this topic: {topic}",
                hint="the name server knows no writable queue of it: create the topic, or see that its broker is up",
            )
        return info

    def select_queue(self, info: PublishInfo, last_broker: str | None, *, is_retry: bool) -> MessageQueue:
        """The next queue in turn, away from the broker of the last attempt and from brokers in penalty."""
        return select_queue(
            info,
            self._ports.rng,
            last_broker=last_broker,
            is_retry=is_retry,
            faults=self.faults,
            now_ms=0 if self.faults is None else self._clock.now_ms(),
        )

    def __repr__(self) -> str:
        return f"<Sender of {self.group}: {len(self.topic_publish_info)} topics>"
