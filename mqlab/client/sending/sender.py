"""How a message gets to a broker: choose a queue, ask, choose another when that failed; three ways to wait.

Mirrors: DefaultMQProducerImpl (sendDefaultImpl, sendSelectImpl, onExceptionImpl). Lab 02 opens it.

    way                 attempts   again after                                             not again after
    sync                1 + 2      transport errors, broker codes 17 14 1 2 16 204 205     other codes; time used up
    async               1 + 2      transport errors (another broker, same queue id)        any answer of a broker
    one-way             1
    queue or selector   1 (sync)   async: 1 + 2 on the same broker

The time limit is for the whole call. FLUSH_DISK_TIMEOUT and its like mean "stored" and end the call.
Only sends that choose their broker freely, and all asynchronous ones, tell the latency table how it went.
Left out: automatic batches (off in RocketMQ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mqlab.client import statuses
from mqlab.client.instance.background import told_each
from mqlab.client.instance.broker_calls import send_result_of
from mqlab.client.instance.mq_client import MQClient
from mqlab.client.sending.back_pressure import BackPressure
from mqlab.client.sending.fault_detector import FaultDetector
from mqlab.client.sending.fault_strategy import FaultStrategy, LatencyFaultStrategy, checked_strategy
from mqlab.client.sending.queue_selection import PublishInfo, QueueSelector, select_queue, selector_of
from mqlab.client.sending.send_request import Outgoing, batched, body_and_flag, request_for, single
from mqlab.client.settings import ProducerConfig
from mqlab.errors import BrokerError, ClientError, MqlabError, RemotingError
from mqlab.promises import Flow, flow
from mqlab.wire.command import RemotingCommand
from mqlab.wire.message import Message, MessageQueue, SendResult
from mqlab.wire.property_names import UNIQ_KEY

SYNC, ASYNC, ONEWAY = "SYNC", "ASYNC", "ONEWAY"


@dataclass(slots=True)
class SendHookContext:
    """What hooks around a send see. Mirrors SendMessageContext.

    ``message``: the program's own object. What a hook changes in it before the send is what is sent, and stays changed,
    except for its body: that is the body as it travels (compressed if it is long), and the program's comes back.
    """

    producer_group: str
    message: Message
    queue: MessageQueue
    broker_address: str
    started_ms: int
    is_batch: bool
    send_result: SendResult | None = None
    error: MqlabError | None = None
    props: dict[str, Any] = field(default_factory=dict)


class SendHook(Protocol):
    """Called before and after a send: each attempt of a synchronous one, all attempts of an asynchronous one together.

    Mirrors SendMessageHook.
    """

    def send_message_before(self, context: SendHookContext) -> None: ...

    def send_message_after(self, context: SendHookContext) -> None: ...


@dataclass(slots=True)
class PreparedSend:
    """A request and what the hooks were told about it. ``topic`` and ``msg_id`` are those that the hooks left."""

    request: RemotingCommand
    context: SendHookContext
    topic: str
    msg_id: str


class Sender:
    """Sends for one producer group. ``topic_publish_info``: the queues offered, per topic."""

    def __init__(self, client: MQClient, group: str, config: ProducerConfig) -> None:
        self.client = client
        self.group = group
        self.config = config
        self.topic_publish_info: dict[str, PublishInfo] = {}
        self.hooks: list[SendHook] = []
        self.faults: FaultStrategy | None = None
        self.detector: FaultDetector | None = None
        if config.mq_fault_strategy is not None:
            self.faults = checked_strategy(config.mq_fault_strategy)
        elif config.send_latency_fault_enable:
            self.faults = table = LatencyFaultStrategy(config.latency_max, config.not_available_duration)
            if config.start_detector_enable:
                self.detector = FaultDetector(
                    client, table, self.publish_topics, interval_ms=config.detect_interval,
                    timeout_ms=config.detect_timeout,
                )  # fmt: skip
        self.back_pressure: BackPressure | None = None
        if config.enable_backpressure_for_async_mode:
            self.back_pressure = BackPressure(
                client.ports.clock, config.back_pressure_for_async_send_num, config.back_pressure_for_async_send_size
            )

    # what the client instance asks (RegisteredProducer) ------------------------------------------------------------

    def publish_topics(self) -> list[str]:
        """The topics whose routes are polled: those something was sent to."""
        return list(self.topic_publish_info)

    def update_publish_info(self, topic: str, queues: list[MessageQueue]) -> None:
        """A route came."""
        self.topic_publish_info[topic] = PublishInfo(queues, has_route=True)

    def needs_queues_of(self, topic: str) -> bool:
        """True while a topic is used and no queue of it is known."""
        info = self.topic_publish_info.get(topic)
        return info is not None and not info.queues

    # sending -----------------------------------------------------------------------------------------------------

    def outgoing(self, messages: Message | Sequence[Message] | None) -> Outgoing:
        """Check a message, or a list as a batch, and give it its unique key."""
        now_ms = self.client.ports.clock.now_ms()
        if isinstance(messages, Message):
            return single(messages, self.config, self.client.unique_ids, now_ms)
        if messages is None:
            raise ClientError("the message is null")
        return batched(messages, self.config, self.client.unique_ids, now_ms)

    @flow
    def send_sync(self, outgoing: Outgoing, timeout_ms: int) -> Flow[SendResult]:
        """Send, trying other queues after failures, and wait for the broker's word."""
        clock, config = self.client.ports.clock, self.config
        began_ms = clock.now_ms()
        info: PublishInfo = yield self.find_publish_info(outgoing.message.topic)
        last_broker: str | None = None
        brokers_sent: list[str] = []
        result: SendResult | None = None
        error: MqlabError | None = None
        attempts = 1 + config.retry_times_when_send_failed
        for attempt in range(attempts):
            queue = self.select_queue(info, last_broker, is_retry=attempt > 0)
            last_broker = queue.broker_name
            left_ms = timeout_ms - (clock.now_ms() - began_ms)
            if left_ms <= 0:  # RocketMQ asks for < 0; in virtual time a time-out ends in the very ms it was set for
                raise RemotingError(
                    f"sendDefaultImpl call timeout: {timeout_ms} ms were used up after {attempt} attempts",
                    code="too_much_request",
                )
            brokers_sent.append(queue.broker_name)
            if config.send_msg_max_timeout_per_request > 0:
                left_ms = min(left_ms, config.send_msg_max_timeout_per_request)
            try:
                result = yield self.attempt(outgoing, queue, left_ms, SYNC)
            except (RemotingError, ClientError) as failure:
                error = failure
                continue
            except BrokerError as refusal:
                if refusal.response_code not in config.retry_response_codes:
                    raise
                error = refusal
                continue
            if result.send_status == statuses.SEND_OK or not config.retry_another_broker_when_not_store_ok:
                return result
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
        began_ms = self.client.ports.clock.now_ms()
        info: PublishInfo = yield self.find_publish_info(outgoing.message.topic)
        queue = self.select_queue(info, None, is_retry=False)
        result: SendResult = yield self._send_async_to(outgoing, queue, timeout_ms, began_ms, info)
        return result

    @flow
    def send_to_queue(self, outgoing: Outgoing, queue: MessageQueue, timeout_ms: int, mode: str) -> Flow[SendResult]:
        """Send to a queue the caller chose: sync once; async up to three times, always to its broker."""
        if queue.topic != outgoing.message.topic:
            raise ClientError(
                "message's topic not equal mq's topic",
                hint=f"the message says {outgoing.message.topic}, the queue {queue.topic}",
            )
        if mode == ASYNC:
            began_ms = self.client.ports.clock.now_ms()
            result = yield self._send_async_to(outgoing, queue, timeout_ms, began_ms, None)
        else:
            result = yield self.attempt(outgoing, queue, timeout_ms, mode, judged=False)
        return result  # type: ignore[no-any-return]

    @flow
    def send_by_selector(
        self, outgoing: Outgoing, selector: QueueSelector | str, arg: object, timeout_ms: int, mode: str
    ) -> Flow[SendResult]:
        """Send to the queue that ``selector(queues, message, arg)`` returns; "HASH" and "RANDOM" are RocketMQ's."""
        choose = selector_of(selector, self.client.ports.rng)
        began_ms = self.client.ports.clock.now_ms()
        info: PublishInfo = yield self.find_publish_info(outgoing.message.topic)
        try:
            queue = choose(list(info.queues), outgoing.message, arg)
        except Exception as error:
            raise ClientError(f"select message queue threw exception: {error!r}") from error
        if queue is None:
            raise ClientError("select message queue return null.", hint="the selector must return one of the queues")
        if not isinstance(queue, MessageQueue):
            raise ClientError(
                f"the selector returned {queue!r}, which is no MessageQueue",
                hint="return one of the queues it was given, for example queues[arg % len(queues)]",
            )
        left_ms = timeout_ms - (self.client.ports.clock.now_ms() - began_ms)
        if left_ms <= 0:
            raise RemotingError("sendSelectImpl call timeout", code="too_much_request")
        result: SendResult = yield self.send_to_queue(outgoing, queue, left_ms, mode)
        return result

    @flow
    def send_oneway(self, outgoing: Outgoing) -> Flow[None]:
        """Send once and do not wait; what happens to it is not known."""
        info: PublishInfo = yield self.find_publish_info(outgoing.message.topic)
        yield self.attempt(
            outgoing, self.select_queue(info, None, is_retry=False), self.config.send_msg_timeout, ONEWAY
        )

    @flow
    def _send_async_to(
        self, outgoing: Outgoing, queue: MessageQueue, timeout_ms: int, began_ms: int, info: PublishInfo | None
    ) -> Flow[SendResult]:
        """``info`` None: every attempt goes to the queue's own broker."""
        clock = self.client.ports.clock
        tries_left = self.config.retry_times_when_send_async_failed
        address: str = yield self.client.find_master(queue)
        prepared = self._prepare(outgoing, queue, address)
        context = prepared.context
        left_ms = timeout_ms - (clock.now_ms() - began_ms)
        while True:
            yield self._exchange(prepared, queue, address, max(left_ms, 0), ASYNC)
            error = context.error
            left_ms = timeout_ms - (clock.now_ms() - began_ms)
            retry_helps = isinstance(error, RemotingError) and error.code != "too_much_request"
            if not retry_helps or tries_left == 0 or left_ms <= 0:
                break
            tries_left -= 1
            if info is not None:
                other = self.select_queue(info, queue.broker_name, is_retry=False)
                queue = MessageQueue(queue.topic, other.broker_name, queue.queue_id)
            try:
                address = yield self.client.find_master(queue)
            except MqlabError as failure:
                context.error = failure
                break
        result = self._finish(context)
        assert result is not None  # only a one-way send has none
        return result

    # one attempt -------------------------------------------------------------------------------------------------

    @flow
    def attempt(
        self, outgoing: Outgoing, queue: MessageQueue, timeout_ms: int, mode: str, *, judged: bool = True
    ) -> Flow[SendResult | None]:
        """One request to one broker; None for one-way. Tells the hooks and (``judged``) the latency table about it."""
        address: str = yield self.client.find_master(queue)
        prepared = self._prepare(outgoing, queue, address)
        yield self._exchange(prepared, queue, address, timeout_ms, mode, judged=judged)
        return self._finish(prepared.context)

    def _prepare(self, outgoing: Outgoing, queue: MessageQueue, address: str) -> PreparedSend:
        """Call the hooks, then build the request from the message as they left it."""
        message, now_ms = outgoing.message, self.client.ports.clock.now_ms()
        context = SendHookContext(self.group, message, queue, address, now_ms, outgoing.is_batch)
        whole_body = message.body
        message.body, flag = body_and_flag(outgoing, self.config)
        try:
            told_each(self.client.ports, "send message hook", self.hooks, "send_message_before", context)
            request = request_for(outgoing, flag, queue, self.group, self.config, now_ms)
        finally:
            message.body = whole_body
        msg_id = outgoing.msg_id if outgoing.is_batch else message.properties.get(UNIQ_KEY, outgoing.msg_id)
        return PreparedSend(request, context, message.topic, msg_id)

    @flow
    def _exchange(
        self, prepared: PreparedSend, queue: MessageQueue, address: str, timeout_ms: int, mode: str, *,
        judged: bool = True,
    ) -> Flow[None]:  # fmt: skip
        """Send a prepared request to one broker; its context then has the result or the error."""
        clock, context = self.client.ports.clock, prepared.context
        context.error = None
        started_ms = clock.now_ms()
        try:
            if mode == ONEWAY:
                self.client.calls.send_oneway(address, prepared.request)
            else:
                answer: RemotingCommand = yield self.client.calls.send(address, prepared.request, timeout_ms)
                context.send_result = send_result_of(answer, queue, prepared.topic, prepared.msg_id)
        except MqlabError as error:
            context.error = error
        if judged and self.faults is not None:
            now_ms = clock.now_ms()
            self.faults.update(
                queue.broker_name, now_ms - started_ms, now_ms, isolation=context.error is not None,
                reachable=mode == ASYNC or self._is_reachable_after(context.error),
            )  # fmt: skip
        self._note(prepared, queue, mode)

    def _finish(self, context: SendHookContext) -> SendResult | None:
        """Tell the hooks how the send ended; its result, or its error raised."""
        told_each(self.client.ports, "send message hook", self.hooks, "send_message_after", context)
        if context.error is not None:
            raise context.error
        return context.send_result

    def _is_reachable_after(self, error: MqlabError | None) -> bool:
        """Error answers of a broker make it unreachable; transport errors only when somebody looks for it again."""
        return not isinstance(error, BrokerError) and (error is None or self.detector is None)

    def _note(self, prepared: PreparedSend, queue: MessageQueue, mode: str) -> None:
        context = prepared.context
        result = context.send_result
        self.client.ports.note(
            "message.sent", client=self.client.ports.node, group=self.group, mode=mode, msg_id=prepared.msg_id,
            topic=prepared.topic, message_queue=result.message_queue if result else queue,
            queue_offset=result.queue_offset if result else None,
            offset_msg_id=result.offset_msg_id if result else None,
            send_status=result.send_status if result else None,
            error=context.error.text if context.error else None,
        )  # fmt: skip

    # queues ------------------------------------------------------------------------------------------------------

    @flow
    def find_publish_info(self, topic: str) -> Flow[PublishInfo]:
        """The queues of a topic; asks the name server, then takes the template's. ClientError when there is none."""
        info = self.topic_publish_info.get(topic)
        if info is None or not info.queues:
            self.topic_publish_info.setdefault(topic, PublishInfo())
            yield self.client.update_route(topic)
            info = self.topic_publish_info[topic]
        if not info.has_route and not info.queues:
            yield self.client.update_route(
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
        ports = self.client.ports
        return select_queue(
            info, ports.rng, last_broker=last_broker, is_retry=is_retry, faults=self.faults, now_ms=ports.clock.now_ms()
        )

    def __repr__(self) -> str:
        return f"<Sender of {self.group}: {len(self.topic_publish_info)} topics>"
