"""What a message must be like before it is sent, in RocketMQ's order, with its codes and texts.

Mirrors: GrpcValidator, SendMessageActivity.validateMessage*, TopicMessageType validation.

    keys, tags, groups   not blank, no control characters; a tag without "|"; a group shorter than 64 bytes
    user properties      at most 128, none of RocketMQ's own names; all together at most 16,384 bytes
    body                 at least a byte, at most 4 MiB
    delivery             at most 24 hours ahead; in the past: at once
"""

from __future__ import annotations

from typing import Any

from mqlab.cluster.grpc.codes import Code, MessageType, ProxyRefusal, StatusError
from mqlab.cluster.grpc.messages import milliseconds_of
from mqlab.cluster.grpc.settings import MAX_BODY
from mqlab.cluster.grpc.state import MIXED
from mqlab.rocketmq.wire import property_names as p

MOST_USER_PROPERTIES = 128
MOST_PROPERTY_BYTES = 16_384
MOST_GROUP_BYTES = 64
MOST_DELAY_MS = 86_400_000
MOST_RECOVERY_MS = 3_600_000


def check_message(message: Any, now_ms: int) -> None:
    """StatusError for a message that must not be sent."""
    _check_body(len(message.body))
    system = message.system_properties
    _check_properties(message.user_properties, system)
    if not system.message_id.strip():
        raise StatusError(Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty")
    # A time that is not given is 0 here, and 0 is in every limit.
    if milliseconds_of(system.orphaned_transaction_recovery_duration) > MOST_RECOVERY_MS:
        raise StatusError(Code.BAD_REQUEST, f"the max transaction recovery time is {MOST_RECOVERY_MS}")
    if milliseconds_of(system.delivery_timestamp) - now_ms > MOST_DELAY_MS:
        text = f"the max delay time of message is too large, max is {MOST_DELAY_MS}"
        raise StatusError(Code.ILLEGAL_DELIVERY_TIME, text)
    if system.HasField("message_group"):
        _check_group(system.message_group)


def check_type(expected: str, actual: MessageType) -> None:
    """ProxyRefusal when a topic takes no messages of a kind."""
    if expected not in (MIXED, actual.name):
        raise ProxyRefusal(
            f"TopicMessageType validate failed, the expected type is {expected}, but actual type is {actual.name}",
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        )


def _check_body(size: int) -> None:
    if not size:
        raise StatusError(Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    if size > MAX_BODY:
        raise StatusError(Code.MESSAGE_BODY_TOO_LARGE, f"message body cannot exceed the max {MAX_BODY}")


def _check_properties(user: Any, system: Any) -> None:
    if len(user) > MOST_USER_PROPERTIES:
        text = f"too many user properties, max is {MOST_USER_PROPERTIES}"
        raise StatusError(Code.MESSAGE_PROPERTIES_TOO_LARGE, text)
    size = 0
    for name, value in user.items():
        if name in p.SYSTEM_NAMES:
            raise StatusError(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, f"property is used by system: {name}")
        for part, what in ((name, "key"), (value, "value")):
            if _has_control(part):
                text = f"the {what} of property cannot contain control character"
                raise StatusError(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, text)
        size += len(name.encode()) + len(value.encode())
    if system.HasField("tag"):
        size += len(system.tag.encode())
        _check_text(system.tag, "tag", Code.ILLEGAL_MESSAGE_TAG)
        if "|" in system.tag:
            raise StatusError(Code.ILLEGAL_MESSAGE_TAG, "tag cannot contain '|'")
    for key in system.keys:
        size += len(key.encode())
        _check_text(key, "key", Code.ILLEGAL_MESSAGE_KEY)
    if size > MOST_PROPERTY_BYTES:
        text = f"the total size of user property is too large, max is {MOST_PROPERTY_BYTES}"
        raise StatusError(Code.MESSAGE_PROPERTIES_TOO_LARGE, text)


def _check_group(group: str) -> None:
    if len(group.encode()) >= MOST_GROUP_BYTES:
        raise StatusError(Code.ILLEGAL_MESSAGE_GROUP, f"message group exceed the max size {MOST_GROUP_BYTES}")
    _check_text(group, "message group", Code.ILLEGAL_MESSAGE_GROUP)


def _check_text(text: str, what: str, code: Code) -> None:
    if not text.strip():
        raise StatusError(code, f"{what} cannot be the char sequence of whitespace")
    if _has_control(text):
        raise StatusError(code, f"{what} cannot contain control character")


def _has_control(text: str) -> bool:
    """Whether a text has one of Java's ISO control characters."""
    return any(character <= "\x1f" or "\x7f" <= character <= "\x9f" for character in text)
