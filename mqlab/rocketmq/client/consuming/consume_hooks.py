"""What hooks around a listener call see, and how such a call may end.

Mirrors: ConsumeMessageHook, ConsumeMessageContext, ConsumeReturnType.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

TIME_OUT, EXCEPTION, RETURNNULL, FAILED, RETURN_SUCCESS = "TIME_OUT", "EXCEPTION", "RETURNNULL", "FAILED", "SUCCESS"


@dataclass(slots=True)
class ConsumeHookContext:
    """One call of a listener, before and after. Mirrors ConsumeMessageContext."""

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
