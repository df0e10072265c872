"""The learner's side of a consumer: the listener that is called, and the context it is called with.

Mirrors: MessageListenerConcurrently, MessageListenerOrderly and their contexts.

    def listener(messages, context):            a function, an object with consume_message, or a class of such objects
        context.sleep("200ms")                  waits, as for I/O: a thread is taken, no core
        context.compute("5ms")                  works: one of the client's simulated cores is taken
        work = context.start(look_up, order)    work next to this call, in the same process; work.result() waits for it
        return CONSUME_SUCCESS
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.rocketmq.client.consuming.started_work import WorkStarter
from mqlab.rocketmq.client.instance.pending import Pending
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

ACK_ALL = 2**31 - 1

ListenerCall = Callable[[Sequence[MessageExt], Any], Any]


class ListenerContext:
    """What both kinds of listener may do while they run. ``message_queue``: where the messages came from."""

    def __init__(self, starter: WorkStarter, message_queue: MessageQueue) -> None:
        self._starter = starter
        self._workers = starter.ports.workers
        self.message_queue = message_queue

    def sleep(self, duration: str | int) -> None:
        """Wait without using a core: "200ms", "1s" or ms."""
        self._workers.sleep(milliseconds(duration))

    def compute(self, duration: str | int) -> None:
        """Use a core of the client for so long; waits when all are taken."""
        self._workers.compute(milliseconds(duration))

    def start(self, function: Callable[..., Any], *args: Any) -> Pending[Any]:
        """Run ``function(*args)`` next to this call, in a thread of its own that dies with the process.

        Its ``result()`` waits and raises what the function raised; nobody waits for it unasked, and what a work that
        nobody waits for raises is in the journal only (``work.ended``). The work may sleep, compute and start more.
        """
        return self._starter.start(function, args)


class ConsumeConcurrentlyContext(ListenerContext):
    """Mirrors ConsumeConcurrentlyContext. ``ack_index``: index of the last good message of the batch (read on success).

    ``delay_level_when_next_consume``: 0 the broker decides, -1 straight to the dead letters, above 0 that level.
    """

    def __init__(self, starter: WorkStarter, message_queue: MessageQueue) -> None:
        super().__init__(starter, message_queue)
        self.ack_index = ACK_ALL
        self.delay_level_when_next_consume = 0


class ConsumeOrderlyContext(ListenerContext):
    """Mirrors ConsumeOrderlyContext. ``suspend_current_queue_time_millis`` -1: the consumer's setting."""

    def __init__(self, starter: WorkStarter, message_queue: MessageQueue) -> None:
        super().__init__(starter, message_queue)
        self.auto_commit = True
        self.suspend_current_queue_time_millis: int | str = -1

    def suspend_ms(self, default_ms: int) -> int:
        """How long the queue rests after a failure, between 10 ms and 30 s."""
        setting = self.suspend_current_queue_time_millis
        duration_ms = default_ms if setting == -1 else milliseconds(setting)
        return min(max(duration_ms, 10), 30_000)


def as_call(listener: Any) -> ListenerCall:
    """A listener as something to call. A class is instantiated here, once per start. UsageError for anything else."""
    if inspect.isclass(listener):
        listener = listener()
    method = getattr(listener, "consume_message", None)
    if callable(method):
        return method  # type: ignore[no-any-return]
    if not callable(listener):
        raise UsageError(
            f"{listener!r} is not a listener", hint="a function (messages, context), or an object with consume_message"
        )
    return listener  # type: ignore[no-any-return]
