"""How a request handler reads typed header fields, and how it refuses: an exception becomes the answer.

Mirrors: RemotingCommand.decodeCommandCustomHeader and the early returns of RocketMQ's processors.

    def query_consumer_offset(channel, request, reply) -> Answer:
        queue_id = whole(request, "queueId")                      missing or not a number: Refused(INVALID_PARAMETER)
        if offset is None: raise Refused(ResponseCode.QUERY_NOT_FOUND, "…")
        return request.reply(offset=7)                            None: answered now or later through ``reply``

Left out: one header class per request code; the names of the fields are in the handlers, as on the wire.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mqlab.errors import PartFailed
from mqlab.rocketmq.remoting.endpoint import Channel, Handler, Reply
from mqlab.rocketmq.wire.codes import ResponseCode, request_name
from mqlab.rocketmq.wire.command import RemotingCommand, java_text
from mqlab.rocketmq.wire.java_numbers import parse_int, parse_long

Answer = RemotingCommand | None
Answering = Callable[[Channel, RemotingCommand, Reply], Answer]
Default = TypeVar("Default", int, None)


class Refused(Exception):
    """A handler's refusal: a response code, a remark, and header fields if that answer has any."""

    def __init__(self, code: int, remark: str | None = None, **fields: str | int | bool | None) -> None:
        super().__init__(f"{code}: {remark}")
        self.code = code
        self.remark = remark
        self.fields = fields

    def answer_to(self, request: RemotingCommand) -> RemotingCommand:
        """The refusal as an answer to the request."""
        answer = request.reply(self.code, self.remark)
        answer.ext_fields.update({name: java_text(value) for name, value in self.fields.items() if value is not None})
        return answer


def answering(handle: Answering) -> Handler:
    """Make a handler for Remoting: what ``handle`` returns or refuses is the answer, None means later or never."""

    def handler(channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        try:
            answer = handle(channel, request, reply)
        except Refused as refusal:
            answer = refusal.answer_to(request)
        except PartFailed as failure:
            answer = request.reply(ResponseCode.SYSTEM_ERROR, failure.text)
        if answer is not None:
            reply(answer)

    return handler


def text(request: RemotingCommand, name: str) -> str:
    """A header field that is required."""
    fields = request.ext_fields  # no .get here and below: a message has thirty such look-ups
    if name not in fields:
        raise Refused(ResponseCode.INVALID_PARAMETER, f"{request_name(request.code)} needs the field {name}")
    return fields[name]


def text_or_null(request: RemotingCommand, name: str) -> str:
    """A header field that RocketMQ lets be missing, as its remarks show it then: "null"."""
    return request.ext_fields.get(name, "null")


def whole(request: RemotingCommand, name: str) -> int:
    """A header field that is a required Integer."""
    try:
        return parse_int(request.ext_fields[name])
    except (KeyError, ValueError):
        raise _no_number(request, name) from None


def whole_long(request: RemotingCommand, name: str) -> int:
    """A header field that is a required Long: offsets and times."""
    try:
        return parse_long(request.ext_fields[name])
    except (KeyError, ValueError):
        raise _no_number(request, name) from None


def _no_number(request: RemotingCommand, name: str) -> Refused:
    value = request.ext_fields.get(name)
    text = f"{request_name(request.code)} needs a whole number in the field {name}, found {value!r}"
    return Refused(ResponseCode.INVALID_PARAMETER, text)


def whole_or(request: RemotingCommand, name: str, default: Default) -> int | Default:
    """An Integer, or the default when it is missing or not one (RocketMQ reads such text as null)."""
    try:
        return parse_int(request.ext_fields[name])
    except (KeyError, ValueError):
        return default


def whole_long_or(request: RemotingCommand, name: str, default: Default) -> int | Default:
    """A Long, or the default when it is missing or not one."""
    try:
        return parse_long(request.ext_fields[name])
    except (KeyError, ValueError):
        return default


def whole_if_there(request: RemotingCommand, name: str, default: Default) -> int | Default:
    """An Integer, or the default when it is missing: how RocketMQ reads its frequent headers (FastCodesHeader)."""
    return whole(request, name) if name in request.ext_fields else default


def whole_long_if_there(request: RemotingCommand, name: str, default: Default) -> int | Default:
    """A Long, or the default when it is missing."""
    return whole_long(request, name) if name in request.ext_fields else default


def truth(request: RemotingCommand, name: str, default: bool = False) -> bool:
    """A Boolean as Java reads it: "true" in any case; anything else is false, missing is the default."""
    if name not in request.ext_fields:
        return default
    value = request.ext_fields[name]
    return value == "true" or (value != "false" and value.lower() == "true")


def body(request: RemotingCommand) -> bytes:
    """The body, which is required."""
    if not request.body:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"{request_name(request.code)} needs a body")
    return request.body
