"""Work that nobody waits for: its errors are told, never lost.

Mirrors: the catch-all log lines of RocketMQ's scheduled tasks. Seen in the journal as background.failed.

    background(ports, client.heartbeat_all(), "heartbeat")       an mqlab error becomes a note, others are raised
    told(ports, "queue listener", call)                          a learner's callback: any error becomes a note
    told_each(ports, "send hook", hooks, "send_message_before", context)

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mqlab.client.consuming.listener import learners_traceback
from mqlab.errors import MqlabError
from mqlab.ports import Ports
from mqlab.promises import Promise


def background(ports: Ports, promise: Promise[Any], what: str) -> None:
    """Let a promise settle on its own. An error that is none of mqlab's is a defect and is raised at once."""

    def failed(error: BaseException) -> None:
        if not isinstance(error, MqlabError):
            raise error
        ports.note("background.failed", what=what, error=error.text)

    promise.then(None, failed)


def told_each(ports: Ports, what: str, hooks: Iterable[Any], verb: str, context: object) -> None:
    """Call ``hook.verb(context)`` of each hook, in order; what one raises keeps none of the others from being told."""
    for hook in hooks:
        told(ports, what, lambda hook=hook: getattr(hook, verb)(context))  # type: ignore[misc]


def told(ports: Ports, what: str, call: Callable[[], object]) -> None:
    """Call back into a learner's code, which must not break the client."""
    try:
        call()
    except Exception as error:
        ports.note("callback.failed", what=what, error=learners_traceback(error))
