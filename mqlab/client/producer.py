"""The producer of a group: what a program sends messages with.

Mirrors: DefaultMQProducer and DefaultMQProducerImpl. Every lab uses one, lab 02 opens it.

    producer.send(message)                             waits; SendResult, or ClientError / BrokerError / RemotingError
    producer.send(message, selector=..., arg=...)      a queue by the message: "HASH", "RANDOM", or a function
    producer.send_async(message).result()              does not wait until asked
    producer.send_oneway(message)                      does not learn what became of it
    producer.send_batch([m1, m2])                      one request

Starting sends nothing: the first frame goes out with the first message (unless ``topics`` names some to look up). Until
then no broker knows of the producer; one of transactions that was started again is not asked what became of them.
Left out: request-reply, recall, and the mqadmin calls Java hangs on its producer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mqlab.client.instance.client_id import client_of
from mqlab.client.instance.mq_client import MQClient
from mqlab.client.instance.pending import Pending, begin
from mqlab.client.sending.queue_selection import QueueSelector
from mqlab.client.sending.send_request import Outgoing, check_group
from mqlab.client.sending.sender import ASYNC, ONEWAY, SYNC, Sender, SendHook
from mqlab.client.sending.trace import ProducerTraceHook, TraceDispatcher
from mqlab.client.settings import ProducerConfig, make_config
from mqlab.durations import milliseconds
from mqlab.errors import ClientError, MqlabError, UsageError
from mqlab.ports import Ports
from mqlab.promises import Flow, Promise, flow
from mqlab.wire.message import Message, MessageQueue, SendResult

CREATED, RUNNING, SHUT_DOWN = "created", "running", "shut down"
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
        self.client = client or client_of(ports, name_servers, self.config)
        self.sender = self.make_sender()
        self.state = CREATED
        self._trace: TraceDispatcher | None = None
        if self.config.enable_trace:
            self._trace = TraceDispatcher(self.client, f"{group}-PRODUCE", self.config.trace_topic)

    def make_sender(self) -> Sender:
        """The part that sends."""
        return Sender(self.client, self.group, self.config)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.ports.node

    @property
    def client_id(self) -> str:
        """``ip@instance_name``."""
        return self.client.client_id

    def start(self) -> None:
        """Begin to live: timers are armed, nothing is sent yet. ClientError when started before."""
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
        if self.state != CREATED:
            raise ClientError(f"The producer service state not OK, maybe started once, {self.state}")
        self.client.register_producer(self.sender)
        if self._trace is not None:
            self.sender.hooks.append(ProducerTraceHook(self._trace))  # sees what the hooks before it changed
            self._trace.start()
        self.client.start()
        if self.sender.detector is not None:
            self.sender.detector.start()
        self.state = RUNNING

    def shutdown(self) -> None:
        """Tell the brokers and close the connections. Harmless when not running."""
        if self.state == RUNNING:
            self.client.call(self.shutdown_async)

    @flow
    def shutdown_async(self) -> Flow[None]:
        """The same, as a Promise."""
        if self.state != RUNNING:
            return
        self.state = SHUT_DOWN
        if self.sender.detector is not None:
            self.sender.detector.stop()
        if self._trace is not None:
            yield self._trace.shutdown()
        yield self.client.unregister_producer(self.group)
        yield self.client.shutdown()

    def register_send_message_hook(self, hook: SendHook) -> None:
        """Call an object before and after each send; before it, the object may change the message. See SendHook."""
        self.sender.hooks.append(hook)

    # sending -----------------------------------------------------------------------------------------------------

    def send(
        self,
        message: Message,
        message_queue: MessageQueue | None = None,
        *,
        selector: QueueSelector | str | None = None,
        arg: object = None,
        timeout: str | int | None = None,
    ) -> SendResult:
        """Send and wait for the broker's word: any queue in turn, a given one, or the one a selector picks.

        A selector is "HASH" (of ``arg``), "RANDOM", or a function ``(queues, message, arg)`` that returns a queue.
        Raises ClientError (no route, refused here, all attempts failed), BrokerError (a refusal not worth a retry),
        RemotingError (with a queue or a selector: the one attempt failed).
        """
        return self.client.call(lambda: self._send(message, message_queue, selector, arg, timeout, SYNC))

    def send_async(
        self,
        message: Message,
        message_queue: MessageQueue | None = None,
        *,
        selector: QueueSelector | str | None = None,
        arg: object = None,
        timeout: str | int | None = None,
    ) -> Pending[SendResult]:
        """Send without waiting; ``.result()`` waits, ``.then(on_value, on_error)`` is told."""
        return begin(self.ports.workers, lambda: self._send(message, message_queue, selector, arg, timeout, ASYNC))

    def send_oneway(
        self,
        message: Message,
        message_queue: MessageQueue | None = None,
        *,
        selector: QueueSelector | str | None = None,
        arg: object = None,
    ) -> None:
        """Send once without an answer. Waits only for a route that is not known yet."""
        self.client.call(lambda: self._send_oneway(message, message_queue, selector, arg))

    def send_batch(
        self,
        messages: Sequence[Message],
        message_queue: MessageQueue | None = None,
        *,
        timeout: str | int | None = None,
    ) -> SendResult:
        """Send messages of one topic in one request to one queue; ``msg_id`` holds all ids, joined by commas."""
        return self.client.call(lambda: self._send(list(messages), message_queue, None, None, timeout, SYNC))

    def send_batch_async(
        self,
        messages: Sequence[Message],
        message_queue: MessageQueue | None = None,
        *,
        timeout: str | int | None = None,
    ) -> Pending[SendResult]:
        """The same without waiting."""
        return begin(self.ports.workers, lambda: self._send(list(messages), message_queue, None, None, timeout, ASYNC))

    def fetch_publish_message_queues(self, topic: str) -> list[MessageQueue]:
        """The queues a message to this topic may go to."""
        self.must_run()
        return list(self.client.call(lambda: self.sender.find_publish_info(topic)).queues)

    def _send(
        self,
        messages: Message | list[Message],
        queue: MessageQueue | None,
        selector: QueueSelector | str | None,
        arg: object,
        timeout: str | int | None,
        mode: str,
    ) -> Promise[SendResult]:
        self.must_run()
        if queue is not None and selector is not None:
            raise UsageError("a message goes to a given queue or to one that a selector picks, not both")
        timeout_ms = self.config.send_msg_timeout if timeout is None else milliseconds(timeout)
        outgoing = self.sender.outgoing(messages)
        pressure = self.sender.back_pressure
        if mode == ASYNC and pressure is not None:
            return pressure.run(
                len(outgoing.message.body), timeout_ms,
                lambda left_ms: self._send_outgoing(outgoing, queue, selector, arg, left_ms, mode),
            )  # fmt: skip
        return self._send_outgoing(outgoing, queue, selector, arg, timeout_ms, mode)

    def _send_outgoing(
        self,
        outgoing: Outgoing,
        queue: MessageQueue | None,
        selector: QueueSelector | str | None,
        arg: object,
        timeout_ms: int,
        mode: str,
    ) -> Promise[SendResult]:
        if queue is not None:
            return self.sender.send_to_queue(outgoing, queue, timeout_ms, mode)
        if selector is not None:
            return self.sender.send_by_selector(outgoing, selector, arg, timeout_ms, mode)
        return (self.sender.send_sync if mode == SYNC else self.sender.send_async)(outgoing, timeout_ms)

    def _send_oneway(
        self, message: Message, queue: MessageQueue | None, selector: QueueSelector | str | None, arg: object
    ) -> Promise[Any]:
        if queue is not None or selector is not None:
            return self._send(message, queue, selector, arg, None, ONEWAY)
        self.must_run()
        return self.sender.send_oneway(self.sender.outgoing(message))

    def must_run(self) -> None:
        """ClientError when it is not running."""
        if self.state != RUNNING:
            raise ClientError(
                f"The producer service state not OK, {self.state}", hint="start it first; a shut down one stays so"
            )

    def __repr__(self) -> str:
        return f"<Producer {self.group} {self.client_id} {self.state}, {len(self.sender.topic_publish_info)} topics>"
