"""The producer of a group: a program sends messages with it.

Mirrors: DefaultMQProducer and DefaultMQProducerImpl.

    producer.send(message)                             waits; SendResult, or ClientError / BrokerError / RemotingError
    producer.send(message, selector=..., arg=...)      a queue by the message: "HASH", "RANDOM", or a function
    producer.send_async(message).result()              does not wait until asked
    producer.send_oneway(message)                      gets no answer
    producer.send_batch([m1, m2])                      one request
    producer.recall("orders", result.recall_handle)    asks to drop a timed message

Starting sends nothing: the first frame goes out with the first message (unless ``topics`` names some to look up). Until
then no broker knows the producer, and one that was started again is not asked about its open transactions.

Left out: request-reply, and the mqadmin calls Java hangs on its producer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mqlab.durations import milliseconds
from mqlab.errors import ClientError, CorruptionError, MqlabError, UsageError
from mqlab.rocketmq.client.instance.mq_client import MQClient
from mqlab.rocketmq.client.instance.pending import Pending, begin
from mqlab.rocketmq.client.instance.service_state import ServiceState
from mqlab.rocketmq.client.sending.queue_selection import QueueSelector
from mqlab.rocketmq.client.sending.send_options import ASYNC, ONEWAY, SYNC, SendHook, SendOptions
from mqlab.rocketmq.client.sending.send_request import check_group, check_topic
from mqlab.rocketmq.client.sending.sender import Sender
from mqlab.rocketmq.client.sending.trace import ProducerTraceHook, TraceDispatcher
from mqlab.rocketmq.client.settings import ProducerConfig, make_config
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire.message import Message, MessageQueue, SendResult
from mqlab.rocketmq.wire.recall_handle import decode_recall_handle

DEFAULT_PRODUCER_GROUP = "DEFAULT_PRODUCER"


class Producer:
    """A producer of ``group``; settings are those of DefaultMQProducer in snake_case (see ProducerConfig)."""

    def __init__(
        self, ports: Ports, group: str, name_servers: Sequence[str], *, client: MQClient | None = None, **settings: Any
    ) -> None:
        check_group(group, DEFAULT_PRODUCER_GROUP)
        self.ports = ports
        self.group = group
        self.config = make_config(ProducerConfig, settings, "producer")
        self.client = client or MQClient(ports, name_servers, self.config)
        self.sender = self.make_sender()
        self.service = ServiceState("producer")
        self._trace: TraceDispatcher | None = None
        if self.config.enable_trace:
            self._trace = TraceDispatcher(
                self.client.cluster, self.client.membership, f"{group}-PRODUCE", self.config.trace_topic
            )

    def make_sender(self) -> Sender:
        """The part that sends."""
        return Sender(self.client.cluster, self.group, self.config)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.ports.node

    @property
    def client_id(self) -> str:
        """``ip@instance_name``."""
        return self.client.client_id

    def start(self) -> None:
        """Start: timers are armed, nothing is sent yet. ClientError when started before."""
        self.client.call(self.start_async)

    @flow
    def start_async(self) -> Flow[None]:
        """The same, as a Promise. Routes of the setting ``topics`` are fetched, so that brokers are known at once."""
        self.start_now()
        for topic in self.config.topics:
            try:
                yield self.sender.find_publish_info(topic)
            except MqlabError as error:  # a topic may come later
                self.ports.note("route_poll.failed", error=error.text)

    def start_now(self) -> None:
        """The same, from a step of its own node."""
        with self.service.starting():
            self.client.register_producer(self.sender)
            if self._trace is not None:
                self.sender.hooks.append(ProducerTraceHook(self._trace))  # sees what the hooks before it changed
                self._trace.start()
            self.client.start()
            if self.sender.detector is not None:
                self.sender.detector.start()

    def shutdown(self) -> None:
        """Leave the brokers and close the connections. Harmless when not running."""
        if self.service.is_running:
            self.client.call(self.shutdown_async)

    @flow
    def shutdown_async(self) -> Flow[None]:
        """The same, as a Promise."""
        if not self.service.is_running:
            return
        self.service.move("shut down")
        if self.sender.detector is not None:
            self.sender.detector.stop()
        if self._trace is not None:
            yield self._trace.shutdown()
        # After the trace, which is sent over the same connections.
        yield self.client.membership.unregister_producer(self.group)
        yield self.client.shutdown()

    def register_send_message_hook(self, hook: SendHook) -> None:
        """Call an object before and after each send; before it, the object may change the message. See SendHook."""
        self.sender.hooks.append(hook)

    def send(
        self,
        message: Message,
        message_queue: MessageQueue | None = None,
        *,
        selector: QueueSelector | str | None = None,
        arg: object = None,
        timeout: str | int | None = None,
    ) -> SendResult:
        """Send and wait for the broker's answer: to any queue in turn, a given one, or the one that a selector picks.

        A selector is "HASH" (of ``arg``), "RANDOM", or a function ``(queues, message, arg)`` that returns a queue.
        Raises ClientError (no route, refused here, all attempts failed), BrokerError (a refusal not worth a retry),
        RemotingError (with a queue or a selector: the one attempt failed).
        """
        return self.client.call(lambda: self._send(message, self._options(SYNC, timeout, message_queue, selector, arg)))

    def send_async(
        self,
        message: Message,
        message_queue: MessageQueue | None = None,
        *,
        selector: QueueSelector | str | None = None,
        arg: object = None,
        timeout: str | int | None = None,
    ) -> Pending[SendResult]:
        """Send without waiting; ``.result()`` waits, ``.then(on_value, on_error)`` calls when the answer is there."""
        return begin(
            self.ports.workers, lambda: self._send(message, self._options(ASYNC, timeout, message_queue, selector, arg))
        )

    def send_oneway(
        self,
        message: Message,
        message_queue: MessageQueue | None = None,
        *,
        selector: QueueSelector | str | None = None,
        arg: object = None,
    ) -> None:
        """Send once without an answer. Waits only for a route that is not known yet."""
        self.client.call(lambda: self._send(message, self._options(ONEWAY, None, message_queue, selector, arg)))

    def send_batch(
        self,
        messages: Sequence[Message],
        message_queue: MessageQueue | None = None,
        *,
        timeout: str | int | None = None,
    ) -> SendResult:
        """Send messages of one topic in one request to one queue; ``msg_id`` holds all ids, joined by commas."""
        return self.client.call(lambda: self._send(list(messages), self._options(SYNC, timeout, message_queue)))

    def send_batch_async(
        self,
        messages: Sequence[Message],
        message_queue: MessageQueue | None = None,
        *,
        timeout: str | int | None = None,
    ) -> Pending[SendResult]:
        """The same without waiting."""
        return begin(
            self.ports.workers, lambda: self._send(list(messages), self._options(ASYNC, timeout, message_queue))
        )

    def recall(self, topic: str, recall_handle: str) -> str:
        """Ask the broker to drop a timed message before it is delivered; returns the message's unique key.

        The answer says only that a marker was stored: RocketMQ also gives it for a message that was delivered already.
        Raises ClientError for a handle that cannot be read or an unknown broker, BrokerError for a refusal.
        """
        return str(self.client.call(lambda: self.recall_async(topic, recall_handle)))

    @flow
    def recall_async(self, topic: str, recall_handle: str) -> Flow[str]:
        """The same, as a Promise. Mirrors DefaultMQProducerImpl.recallMessage."""
        self.must_run()
        check_topic(topic)
        if names.group_of(topic) is not None:
            raise ClientError("topic is not supported")
        try:
            handle = decode_recall_handle(recall_handle)
        except CorruptionError as error:
            raise ClientError(error.text) from error
        cluster = self.client.cluster
        yield self.sender.find_publish_info(topic)
        address = cluster.routes.master_address(handle.broker_name)
        if address is None:
            raise ClientError("The broker service address not found")
        message_id: str = yield cluster.calls.recall(
            address, self.group, topic, recall_handle, handle.broker_name, self.config.send_msg_timeout
        )
        return message_id

    def fetch_publish_message_queues(self, topic: str) -> list[MessageQueue]:
        """The queues a message to this topic may go to."""
        self.must_run()
        return list(self.client.call(lambda: self.sender.find_publish_info(topic)).queues)

    def _options(
        self,
        mode: str,
        timeout: str | int | None,
        queue: MessageQueue | None,
        selector: QueueSelector | str | None = None,
        arg: object = None,
    ) -> SendOptions:
        self.must_run()
        if queue is not None and selector is not None:
            raise UsageError("a message goes to a given queue or to one that a selector picks, not both")
        timeout_ms = self.config.send_msg_timeout if timeout is None else milliseconds(timeout)
        return SendOptions(mode, timeout_ms, queue, selector, arg)

    def _send(self, messages: Message | list[Message], options: SendOptions) -> Promise[SendResult]:
        outgoing = self.sender.outgoing(messages)
        pressure = self.sender.back_pressure
        if options.mode == ASYNC and pressure is not None:
            return pressure.run(
                len(outgoing.message.body),
                options.timeout_ms,
                lambda left_ms: self.sender.send(outgoing, replace(options, timeout_ms=left_ms)),
            )
        return self.sender.send(outgoing, options)

    def must_run(self) -> None:
        """ClientError when it is not running."""
        self.service.must_run()

    def __repr__(self) -> str:
        topics = len(self.sender.topic_publish_info)
        return f"<Producer {self.group} {self.client_id} {self.service.state}, {topics} topics>"
