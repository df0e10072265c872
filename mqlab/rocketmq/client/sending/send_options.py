"""The options of a send, and what hooks around a send see.

Mirrors: CommunicationMode, SendMessageHook, SendMessageContext.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from mqlab.errors import MqlabError
from mqlab.rocketmq.client.sending.queue_selection import QueueSelector
from mqlab.rocketmq.wire.message import Message, MessageQueue, SendResult

SYNC, ASYNC, ONEWAY = "SYNC", "ASYNC", "ONEWAY"


@dataclass(frozen=True, slots=True)
class SendOptions:
    """How a message is to be sent. ``mode``: SYNC, ASYNC or ONEWAY; ``timeout_ms``: for the whole call.

    ``queue``: this one; ``selector``: the one that ``selector(queues, message, arg)`` returns; neither: any, in turn.
    """

    mode: str
    timeout_ms: int
    queue: MessageQueue | None = None
    selector: QueueSelector | str | None = None
    arg: object = None


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
