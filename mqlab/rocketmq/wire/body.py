"""How a dataclass becomes one of RocketMQ's JSON bodies and comes back.

Mirrors: RemotingSerializable with fastjson's bean rules. Used by every class in mqlab.rocketmq.wire.bodies.

    queue_id: int               "queueId"            snake_case becomes camelCase, or metadata {"json": …}
    tags_set: list[str]         "tagsSet"
    broker_datas: list[BrokerData]                   bodies inside bodies, lists and dicts of them

Names are written in alphabetical order, None is left out, unknown names are ignored, missing ones keep their default.
Left out: polymorphism.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Self

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.command import java_text
from mqlab.rocketmq.wire.message import MessageQueue

Convert = Callable[[Any], Any]


class Body:
    """The base of all JSON bodies. Subclasses are dataclasses; their annotations say what each field is."""

    __slots__ = ()

    def to_value(self) -> dict[str, Any]:
        """A dict with RocketMQ's names in alphabetical order."""
        return {
            json_name: write(value)
            for json_name, name, write, _ in _plan_of(type(self))
            if (value := getattr(self, name)) is not None
        }

    def to_json(self) -> bytes:
        """Compact standard JSON."""
        return java_json.to_json(self.to_value())

    @classmethod
    def from_value(cls, value: Any) -> Self:
        """Read a decoded object. Raises CorruptionError for anything else, and for a field of another kind."""
        if not isinstance(value, dict):
            raise CorruptionError(f"{cls.__name__} must be an object", expected="an object", found=type(value).__name__)
        fields = {}
        for json_name, name, _, read in _plan_of(cls):
            raw = value.get(json_name)
            # A missing field, a null and an empty text for a number keep the default, as fastjson's beans do.
            if raw is not None and not (raw == "" and read is java_json.to_long):
                try:
                    fields[name] = read(raw)
                except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
                    raise CorruptionError(
                        f"{json_name} of {cls.__name__} cannot be read", expected="its type", found=raw
                    ) from error
        try:
            return cls(**fields)
        except TypeError as error:
            lacking = [json_name for json_name, name in _required_of(cls) if name not in fields]
            raise CorruptionError(
                f"{cls.__name__} lacks a field", expected=", ".join(lacking), found=sorted(value)
            ) from error

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Read a body; treat it as immutable. Raises CorruptionError when it is not JSON or not this body."""
        kind: Any = cls
        body: Self = _read(kind, bytes(data))
        return body


@lru_cache(maxsize=512)
def _read(kind: Any, data: bytes) -> Any:
    """Heartbeats, registrations and routes are repeated unchanged: equal bytes are decoded once."""
    return kind.from_value(decoded_json(data, kind.__name__))


def decoded_json(data: bytes, what: str) -> Any:
    """The decoded value of a body. Raises CorruptionError, which names ``what`` was expected.

    >>> decoded_json(b'{"consumerIdList":["a"]}', "list of client ids")
    {'consumerIdList': ['a']}
    """
    try:
        return java_json.loads(data)
    except ValueError as error:
        raise CorruptionError(f"a body is no {what}", expected="JSON", found=str(error)) from error


def camel_case(name: str) -> str:
    """RocketMQ's spelling of a name.

    >>> camel_case("read_queue_nums"), camel_case("check_crc_on_recover")
    ('readQueueNums', 'checkCRCOnRecover')
    """
    first, *rest = name.split("_")
    return first + "".join("CRC" if word == "crc" else word.capitalize() for word in rest)


def _required_of(kind: Any) -> list[tuple[str, str]]:
    """Fields without a default: the name in JSON and the name here."""
    needed = {
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    return [(json_name, name) for json_name, name, _, _ in _plan_of(kind) if name in needed]


def _plan_of(kind: Any) -> list[tuple[str, str, Convert, Convert]]:
    return _plan(kind)


@cache
def _plan(cls: Any) -> list[tuple[str, str, Convert, Convert]]:
    """Per field: its name in JSON, its name here, how to write it and read it; sorted by the first."""
    hints = typing.get_type_hints(cls)
    plan = []
    for field in dataclasses.fields(cls):
        write, read = _converters(hints[field.name])
        plan.append((field.metadata.get("json", camel_case(field.name)), field.name, write, read))
    return sorted(plan)


def _same(value: Any) -> Any:
    return value


def _converters(hint: Any) -> tuple[Convert, Convert]:
    """How a value of a type is written and read."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    # 1. Optional: None is handled by the callers, so only the other type counts.
    if origin is not None and type(None) in args:
        return _converters(next(arg for arg in args if arg is not type(None)))
    # 2. Containers convert their items; the keys of a dict are numbers or strings.
    if origin in (list, tuple) or origin is typing.get_origin(typing.Sequence[int]):
        write, read = _converters(args[0])
        return (lambda items: [write(item) for item in items]), (lambda items: [read(item) for item in _list(items)])
    if origin is dict or origin is typing.get_origin(typing.Mapping[int, int]):
        write, read = _converters(args[1])
        key = java_json.to_long if args[0] is int else str
        return (
            (lambda items: {k: write(v) for k, v in items.items()}),
            (lambda items: {key(k): read(v) for k, v in items.items()}),
        )
    # 3. Single values.
    if hint is MessageQueue:
        return queue_to_value, queue_from_value
    if isinstance(hint, type) and issubclass(hint, Body):
        return (lambda body: body.to_value()), hint.from_value
    if hint is bool:
        return _same, _boolean
    if hint is int:
        return _same, java_json.to_long
    if hint is str:
        return _same, lambda value: value if isinstance(value, str) else java_text(value)
    return _same, _same


def _list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise TypeError("no list")


def _boolean(value: Any) -> bool:
    return value.lower() == "true" if isinstance(value, str) else bool(value)


def queue_to_value(queue: MessageQueue) -> dict[str, Any]:
    """A queue as an object."""
    return {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}


def queue_from_value(value: dict[str, Any]) -> MessageQueue:
    """The queue in an object."""
    return MessageQueue(value["topic"], value["brokerName"], java_json.to_int(value["queueId"]))


def queue_key(queue: MessageQueue) -> str:
    """A queue as a JSON key: the text of the object, which Java reads as well as its own form without quotes."""
    return java_json.to_json(queue_to_value(queue)).decode("utf-8")


def queue_from_key(key: str) -> MessageQueue:
    """The queue in such a key."""
    return queue_from_value(java_json.loads(key))
