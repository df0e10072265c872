"""What both ways of consuming share: making one call of the listener, and recording it in the journal and for hooks.

Mirrors: ConsumeMessageService.

    listener.started    client group batch messages message_queue        a thread took the batch
    listener.returned   … status error                                   the listener returned, or raised
    result.discarded    … batch messages                                 it returned too late: the queue was dropped
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from mqlab.rocketmq.client.consuming.consume_hooks import (
    EXCEPTION,
    FAILED,
    RETURN_SUCCESS,
    RETURNNULL,
    TIME_OUT,
    ConsumeHookContext,
)
from mqlab.rocketmq.client.consuming.learners_traceback import learners_traceback
from mqlab.rocketmq.client.consuming.listener import ListenerCall, ListenerContext
from mqlab.rocketmq.client.consuming.member_state import PushState
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue
from mqlab.rocketmq.client.consuming.pull_api import message_note
from mqlab.rocketmq.client.instance.background import call_hooks
from mqlab.rocketmq.client.instance.members import ListenerAnswer
from mqlab.rocketmq.ports import Deadline, Pool
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire import property_names
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue
from mqlab.rocketmq.wire.names import RETRY_PREFIX, retry_topic

Context = TypeVar("Context", bound=ListenerContext)


class ConsumeService(Protocol):
    """How a push consumer's messages reach its listener: concurrently or in order.

    ``submit`` takes pulled messages; ``lock`` asks for a queue that is about to be added; ``release`` lets a dropped
    queue go (False: not yet, its listener is still out); ``unlock_all`` gives the locks back at shutdown.
    """

    def start(self) -> None: ...

    def shutdown(self) -> None: ...

    def submit(
        self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue, dispatch: bool = True
    ) -> None: ...

    def consume_directly(self, message: MessageExt, queue: MessageQueue) -> Promise[ListenerAnswer]: ...

    def wait_idle(self, timeout_ms: int) -> Promise[bool]: ...

    def lock(self, queue: MessageQueue) -> Promise[bool]: ...

    def release(self, queue: MessageQueue, process_queue: ProcessQueue) -> Promise[bool]: ...

    def unlock_all(self) -> Promise[None]: ...


@dataclass(slots=True)
class ListenerCallUnderWay:
    """One call that began. ``batch`` numbers the calls of a consumer from 1; ``noted`` is what its notes share."""

    batch: int
    messages: Sequence[MessageExt]
    queue: MessageQueue
    started_ms: int
    noted: dict[str, Any]
    hook_context: ConsumeHookContext | None


@dataclass(slots=True)
class ListenerOutcome:
    """How a call ended: the status as RocketMQ takes it (None and exceptions have become the failing one)."""

    status: str
    took_ms: int


class ListenerRunner:
    """Calls the listener of one push consumer in three parts: begin and end on the node, listen in a thread between."""

    def __init__(self, state: PushState, listener: ListenerCall, statuses: Sequence[str], on_error: str) -> None:
        self._state = state
        self._ports = state.ports
        self._listener = listener
        self._statuses = statuses
        self._on_error = on_error
        self._batches = 0
        self.running = 0
        self._waiters: list[tuple[Callable[[], bool], Promise[bool], Deadline]] = []

    def begin(self, messages: Sequence[MessageExt], queue: MessageQueue) -> ListenerCallUnderWay:
        """On the node: number the call, stamp the messages, call the hooks, record the start."""
        self._batches += 1
        self.running += 1
        now_ms = self._ports.clock.now_ms()
        hook_context = None
        if self._state.consume_hooks:
            hook_context = ConsumeHookContext(self._state.group, messages, queue, now_ms)
            self._call_hooks("consume_message_before", hook_context)
        for message in messages:
            message.properties[property_names.CONSUME_START_TIME] = str(now_ms)
        noted = {
            "client": self._ports.node,
            "group": self._state.group,
            "batch": self._batches,
            "message_queue": queue,
            "messages": [message_note(message, queue, self._state.group) for message in messages],
        }
        self._ports.note("listener.started", **noted)
        return ListenerCallUnderWay(self._batches, messages, queue, now_ms, noted, hook_context)

    def listen(self, call: ListenerCallUnderWay, context: ListenerContext) -> tuple[Any, str | None]:
        """In a thread: the listener's answer, or the traceback of what it raised (NodeDown passes)."""
        try:
            return self._listener(tuple(call.messages), context), None
        except Exception as failure:
            return None, learners_traceback(failure)

    def run(
        self,
        begin: Callable[[], ListenerCallUnderWay | None],
        context: Context,
        end: Callable[[ListenerCallUnderWay, Context, Any, str | None], Promise[None]],
    ) -> None:
        """In a thread: one call with its beginning and end on the node; ``begin`` answers None where there is none.

        The thread stays taken until ``end`` is over, such as while failed messages are sent back.
        """
        workers = self._ports.workers
        call = workers.call(lambda: Promise.of(begin()))
        if call is not None:
            answer, error = self.listen(call, context)
            workers.call(partial(end, call, context, answer, error))

    def end(self, call: ListenerCallUnderWay, answer: Any, error: str | None) -> ListenerOutcome:
        """On the node: what the answer counts as; record it and call the hooks."""
        # 1. None, an exception and an unknown word count as the failing status.
        raised = error is not None
        if not raised and answer is not None and answer not in self._statuses:
            error = f"the listener returned {answer!r}, which is not one of {', '.join(self._statuses)}"
        status = self._on_error if error is not None or answer is None else str(answer)
        # 2. Record it.
        self._ports.note("listener.returned", **call.noted, status=status, error=error)
        took_ms = self._ports.clock.now_ms() - call.started_ms
        # 3. Hooks also see how the status came about: trace entries hold that as a code.
        if call.hook_context is not None:
            kind = EXCEPTION if raised else RETURNNULL if answer is None else self._return_type(status, took_ms)
            call.hook_context.return_type = call.hook_context.props["ConsumeContextType"] = kind
            call.hook_context.status = status
            call.hook_context.success = status != self._on_error
            self._call_hooks("consume_message_after", call.hook_context)
        return ListenerOutcome(status, took_ms)

    @flow
    def directly(
        self, pool: Pool, message: MessageExt, queue: MessageQueue, context: ListenerContext
    ) -> Flow[ListenerAnswer]:
        """Have the listener consume one message now, outside all queues: nothing is kept, sent back or committed."""
        restore_original_topic([message], self._state.group)
        call = self.begin([message], queue)
        listened: Promise[tuple[Any, str | None]] = Promise()

        def done(value: tuple[Any, str | None] | None, error: BaseException | None) -> None:
            listened.resolve((None, repr(error)) if value is None else value)

        pool.submit(lambda: self.listen(call, context), done)
        answer, error = yield listened
        outcome = self.end(call, answer, error)
        self.finished()
        return ListenerAnswer(outcome.took_ms, answer, error, self._state.is_orderly)

    def wait_idle(self, timeout_ms: int) -> Promise[bool]:
        """True once no listener runs; False after the time."""
        return self.wait_until(lambda: self.running == 0, timeout_ms)

    def wait_until(self, holds: Callable[[], bool], timeout_ms: int) -> Promise[bool]:
        """True as soon as it holds after a call's end, False after the time."""
        if holds() or timeout_ms <= 0:
            return Promise.of(holds())
        waited: Promise[bool] = Promise()
        deadline = self._ports.clock.call_later(timeout_ms, lambda: waited.resolve(False), "consume.wait")
        self._waiters.append((holds, waited, deadline))
        return waited

    def finished(self) -> None:
        """On the node: a call is over, and so is the work on its result."""
        self.running -= 1
        if self._waiters:
            self.check_waiters()

    def check_waiters(self) -> None:
        """Something ended: settle those who waited for that."""
        waiters, self._waiters = self._waiters, []
        for holds, waited, deadline in waiters:
            if holds():
                deadline.cancel()
                waited.resolve(True)
            elif not waited.done:
                self._waiters.append((holds, waited, deadline))

    def discarded(self, call: ListenerCallUnderWay) -> None:
        """The queue was dropped while the listener ran: its answer has no effect."""
        self._ports.note("result.discarded", **call.noted)

    def _call_hooks(self, method: str, context: ConsumeHookContext) -> None:
        call_hooks(self._ports, "consume message hook", self._state.consume_hooks, method, context)

    def _return_type(self, status: str, took_ms: int) -> str:
        if took_ms >= self._state.config.consume_timeout:
            return TIME_OUT
        return FAILED if status == self._on_error else RETURN_SUCCESS


def thread_is_free(_: None, error: BaseException | None) -> None:
    """A task of the pool is over. Errors of the learner were caught before: one that comes here is mqlab's own."""
    if error is not None:
        raise error


def restore_original_topic(messages: Sequence[MessageExt], group: str) -> None:
    """A retried message gets back the topic it came from (resetRetryAndNamespace)."""
    for message in messages:
        if message.topic.startswith(RETRY_PREFIX) and message.topic == retry_topic(group):
            message.topic = message.properties.get(property_names.RETRY_TOPIC, message.topic)
