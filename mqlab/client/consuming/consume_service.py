"""What both ways of consuming share: making one call of the listener, and telling the journal and the hooks about it.

Mirrors: ConsumeMessageService, ConsumeMessageHook, ConsumeReturnType; lab 00 sees its notes as deliveries.

    listener.started    client group batch messages message_queue        a thread took the batch up
    listener.returned   … status error                                   it came back, or raised
    result.discarded    … batch messages                                 it came back too late: the queue was dropped

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from mqlab.client.consuming.listener import ListenerCall, ListenerContext, learners_traceback
from mqlab.client.consuming.pull_api import message_note
from mqlab.client.instance.background import told_each
from mqlab.ports import Deadline, Pool
from mqlab.promises import Flow, Promise, flow
from mqlab.wire import property_names
from mqlab.wire.message import MessageExt, MessageQueue
from mqlab.wire.names import retry_topic

if TYPE_CHECKING:
    from mqlab.client.push_consumer import PushConsumer

TIME_OUT, EXCEPTION, RETURNNULL, FAILED, RETURN_SUCCESS = "TIME_OUT", "EXCEPTION", "RETURNNULL", "FAILED", "SUCCESS"


@dataclass(slots=True)
class ConsumeHookContext:
    """What hooks around a listener call see. Mirrors ConsumeMessageContext."""

    consumer_group: str
    messages: Sequence[MessageExt]
    message_queue: MessageQueue
    started_ms: int
    status: str = ""
    success: bool = False
    return_type: str = ""
    props: dict[str, Any] = field(default_factory=dict)


class ConsumeHook(Protocol):
    """Called before and after each listener call, in the order of registration. Mirrors ConsumeMessageHook."""

    def consume_message_before(self, context: ConsumeHookContext) -> None: ...

    def consume_message_after(self, context: ConsumeHookContext) -> None: ...


@dataclass(frozen=True, slots=True)
class ListenerCallUnderWay:
    """One call that began. ``batch`` numbers the calls of a consumer from 1; ``told`` is what its notes say."""

    batch: int
    messages: Sequence[MessageExt]
    queue: MessageQueue
    started_ms: int
    told: dict[str, Any]
    hook_context: ConsumeHookContext | None


@dataclass(frozen=True, slots=True)
class ListenerOutcome:
    """How a call ended: the status as RocketMQ takes it (None and exceptions have become the failing one)."""

    status: str
    took_ms: int


@dataclass(frozen=True, slots=True)
class DirectResult:
    """What a listener said to a message that an operator had it consume. Mirrors ConsumeMessageDirectlyResult."""

    took_ms: int
    answer: Any
    error: str | None


class ListenerRunner:
    """Calls the listener of one push consumer in three parts: begin and end on the node, listen in a thread between."""

    def __init__(self, consumer: PushConsumer, listener: ListenerCall, statuses: Sequence[str], on_error: str) -> None:
        self._consumer = consumer
        self._ports = consumer.ports
        self._listener = listener
        self._statuses = statuses
        self._on_error = on_error
        self._batches = 0
        self.running = 0
        self._waiters: list[tuple[Callable[[], bool], Promise[bool], Deadline]] = []

    def begin(self, messages: Sequence[MessageExt], queue: MessageQueue) -> ListenerCallUnderWay:
        """On the node: number the call, stamp the messages, tell journal and hooks."""
        self._batches += 1
        self.running += 1
        now_ms = self._ports.clock.now_ms()
        hook_context = None
        if self._consumer.consume_hooks:
            hook_context = ConsumeHookContext(self._consumer.group, messages, queue, now_ms)
            self._tell_hooks("consume_message_before", hook_context)
        for message in messages:
            message.properties[property_names.CONSUME_START_TIME] = str(now_ms)
        told = {
            "client": self._ports.node, "group": self._consumer.group, "batch": self._batches, "message_queue": queue,
            "messages": [message_note(message, queue) for message in messages],
        }  # fmt: skip
        self._ports.note("listener.started", **told)
        return ListenerCallUnderWay(self._batches, messages, queue, now_ms, told, hook_context)

    def listen(self, call: ListenerCallUnderWay, context: ListenerContext) -> tuple[Any, str | None]:
        """In a thread: the listener's answer, or the traceback of what it raised (NodeDown passes)."""
        try:
            return self._listener(tuple(call.messages), context), None
        except Exception as failure:
            return None, learners_traceback(failure)

    def end(self, call: ListenerCallUnderWay, answer: Any, error: str | None) -> ListenerOutcome:
        """On the node: what the answer counts as; tell journal and hooks."""
        raised = error is not None
        if not raised and answer is not None and answer not in self._statuses:
            error = f"the listener returned {answer!r}, which is none of {', '.join(self._statuses)}"
        status = self._on_error if error is not None or answer is None else str(answer)
        self._ports.note("listener.returned", **call.told, status=status, error=error)
        took_ms = self._ports.clock.now_ms() - call.started_ms
        if call.hook_context is not None:
            kind = EXCEPTION if raised else RETURNNULL if answer is None else self._return_type(status, took_ms)
            call.hook_context.return_type = call.hook_context.props["ConsumeContextType"] = kind
            call.hook_context.status = status
            call.hook_context.success = status != self._on_error
            self._tell_hooks("consume_message_after", call.hook_context)
        return ListenerOutcome(status, took_ms)

    @flow
    def directly(
        self, pool: Pool, message: MessageExt, queue: MessageQueue, context: ListenerContext
    ) -> Flow[DirectResult]:
        """Have the listener consume one message now, outside all queues: nothing is kept, sent back or committed."""
        restore_original_topic([message], self._consumer.group)
        call = self.begin([message], queue)
        listened: Promise[tuple[Any, str | None]] = Promise()

        def done(value: tuple[Any, str | None] | None, error: BaseException | None) -> None:
            listened.resolve((None, repr(error)) if value is None else value)

        pool.submit(lambda: self.listen(call, context), done, label=f"directly {queue}")
        answer, error = yield listened
        outcome = self.end(call, answer, error)
        self.finished()
        return DirectResult(outcome.took_ms, answer, error)

    def wait_until(self, holds: Callable[[], bool], timeout_ms: int) -> Promise[bool]:
        """True as soon as it holds after a call's end, False after the time."""
        if holds() or timeout_ms <= 0:
            return Promise.of(holds())
        waited: Promise[bool] = Promise()
        deadline = self._ports.clock.call_later(timeout_ms, lambda: waited.resolve(False), "consume.wait")
        self._waiters.append((holds, waited, deadline))
        return waited

    def finished(self) -> None:
        """On the node: a call is over, its result booked."""
        self.running -= 1
        self.look_at_waiters()

    def look_at_waiters(self) -> None:
        """Something ended: settle those who waited for that."""
        waiters, self._waiters = self._waiters, []
        for holds, waited, deadline in waiters:
            if holds():
                deadline.cancel()
                waited.resolve(True)
            elif not waited.done:
                self._waiters.append((holds, waited, deadline))

    def discarded(self, call: ListenerCallUnderWay) -> None:
        """The queue was dropped while the listener ran: what it said counts for nothing."""
        self._ports.note("result.discarded", **call.told)

    def _tell_hooks(self, verb: str, context: ConsumeHookContext) -> None:
        told_each(self._ports, "consume message hook", self._consumer.consume_hooks, verb, context)

    def _return_type(self, status: str, took_ms: int) -> str:
        if took_ms >= self._consumer.config.consume_timeout:
            return TIME_OUT
        return FAILED if status == self._on_error else RETURN_SUCCESS


def restore_original_topic(messages: Sequence[MessageExt], group: str) -> None:
    """A retried message is shown under the topic it came from (resetRetryAndNamespace)."""
    retry = retry_topic(group)
    for message in messages:
        original = message.properties.get(property_names.RETRY_TOPIC)
        if original is not None and message.topic == retry:
            message.topic = original
