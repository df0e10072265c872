"""Work in the background, and calls into a learner's code: their errors go into the journal.

Mirrors: the catch-all log lines of RocketMQ's scheduled tasks. Seen in the journal as background.failed.

    background(ports, membership.heartbeat_all(), "heartbeat")   an mqlab error becomes a note, others are raised
    call_back(ports, "queue listener", call)                     a learner's callback: any error becomes a note
    call_hooks(ports, "send hook", hooks, "send_message_before", context)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mqlab.errors import MqlabError
from mqlab.rocketmq.client.consuming.learners_traceback import learners_traceback
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Promise


def background(ports: Ports, promise: Promise[Any], what: str) -> None:
    """Let a promise settle on its own. An error that is not one of mqlab's is a defect and is raised at once."""

    def failed(error: BaseException) -> None:
        if not isinstance(error, MqlabError):
            raise error
        ports.note("background.failed", what=what, error=error.text)

    promise.then(None, failed)


def call_hooks(ports: Ports, what: str, hooks: Iterable[Any], method: str, context: object) -> None:
    """Call ``hook.method(context)`` of each hook, in order; an error in one does not stop the others."""
    for hook in hooks:
        try:
            getattr(hook, method)(context)
        except Exception as error:  # hooks are a learner's code
            ports.note("callback.failed", what=what, error=learners_traceback(error))


def call_back(ports: Ports, what: str, call: Callable[[], object]) -> None:
    """Call a learner's code, which must not break the client."""
    try:
        call()
    except Exception as error:
        ports.note("callback.failed", what=what, error=learners_traceback(error))
