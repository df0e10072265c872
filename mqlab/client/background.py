"""Work that nobody waits for: its errors are told, never lost.

Mirrors: the catch-all log lines of RocketMQ's scheduled tasks. Seen in the journal as background.failed.

    background(ports, client.heartbeat_all(), "heartbeat")       an mqlab error becomes a note, others are raised
    told(ports, "queue listener", call)                          a learner's callback: any error becomes a note

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.client.listener import learners_traceback
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


def told(ports: Ports, what: str, call: Callable[[], object]) -> None:
    """Call back into a learner's code, which must not break the client."""
    try:
        call()
    except Exception as error:
        ports.note("callback.failed", what=what, error=learners_traceback(error))
