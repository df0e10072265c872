"""Rows of a DataFrame as messages: which columns count, what they hold, and the unique key of each row.

    topic            string; without the column, the option topic
    body             binary or string, the one column that must be there
    tags             string
    keys             string, or array<string>
    properties       map<string,string>; those that RocketMQ sets itself are left out, so that a copy is a new message
    delay_time_level, flag     whole numbers
    sharding_key     string: rows of a task with an equal key go to one queue, in their order

A unique key is made of the write, its batch, its partition and the place in it. A task that is done again sends the
same keys again, so who receives a message twice can tell. Left out: a queue of the writer's own choice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegralType,
    MapType,
    StringType,
    StructType,
)

from mqlab.errors import UsageError, did_you_mean
from mqlab.rocketmq.wire import property_names
from mqlab.rocketmq.wire.message import Message
from mqlab.rocketmq.wire.properties import check_sendable

TEXT = ("string", lambda kind: isinstance(kind, StringType))
NUMBER = ("a whole number", lambda kind: isinstance(kind, IntegralType))
COLUMNS: dict[str, tuple[str, Callable[[DataType], bool]]] = {
    "topic": TEXT,
    "body": ("binary or string", lambda kind: isinstance(kind, BinaryType | StringType)),
    "tags": TEXT,
    "keys": (
        "string or array<string>",
        lambda kind: isinstance(kind.elementType if isinstance(kind, ArrayType) else kind, StringType),
    ),
    "properties": (
        "map<string,string>",
        lambda kind: (
            isinstance(kind, MapType)
            and isinstance(kind.keyType, StringType)
            and isinstance(kind.valueType, StringType)
        ),
    ),
    "delay_time_level": NUMBER,
    "flag": NUMBER,
    "sharding_key": TEXT,
}
OF_ROCKETMQ = frozenset(
    value for name, value in vars(property_names).items() if name.isupper() and isinstance(value, str)
)


def check_columns(schema: StructType, *, topic_is_given: bool) -> None:
    """Raise UsageError for a column that is missing, has another type, or would not be sent."""
    names = schema.fieldNames()
    for needed in ("body",) if topic_is_given else ("topic", "body"):
        if needed not in names:
            more = ', or option("topic", "orders")' if needed == "topic" else ""
            raise UsageError(
                f"there is no column {needed!r} to send: the frame has {', '.join(names)}",
                hint=f'select it: .selectExpr("… AS {needed}"){more}',
            )
    for column in schema.fields:
        if column.name not in COLUMNS:
            raise UsageError(
                f"column {column.name!r} would not be sent: a message is made of {', '.join(COLUMNS)}",
                hint=did_you_mean(
                    column.name, COLUMNS, "leave it out with .select(…), or put it into properties or body"
                ),
            )
        expected, fits = COLUMNS[column.name]
        if not fits(column.dataType):
            raise UsageError(f"column {column.name} is {column.dataType.simpleString()}, not {expected}")


class MessageMaker:
    """Makes the messages of one task. ``write`` names what is written and its batch, the same when it is done again."""

    def __init__(self, names: Sequence[str], topic: str | None, write: str, partition: int) -> None:
        self._places = {name: column for column, name in enumerate(names)}
        self._topic = topic
        self._partition = partition
        self._unique = hashlib.sha1(f"{write} {partition}".encode()).hexdigest()[:20].upper()
        self._made = 0

    def make(self, row: Sequence[Any]) -> tuple[Message, str | None]:
        """The message of the next row, and its sharding key. Raises UsageError for a row without topic or body."""
        number, self._made = self._made, self._made + 1

        def get(name: str) -> Any:
            return row[self._places[name]] if name in self._places else None

        topic, body = get("topic") or self._topic, get("body")
        if topic is None or body is None:
            missing = "topic" if topic is None else "body"
            raise UsageError(f"row {number} of partition {self._partition} has no {missing}: it is null")
        properties = get("properties") or {}
        own = {name: value for name, value in properties.items() if name not in OF_ROCKETMQ and value is not None}
        try:
            message = Message(
                topic,
                body.encode() if isinstance(body, str) else bytes(body),
                tags=get("tags"),
                keys=get("keys"),
                properties=own,
                delay_time_level=get("delay_time_level") or 0,
                flag=get("flag") or 0,
            )
            sharding_key = get("sharding_key")
            if sharding_key is not None:
                message.properties[property_names.SHARDING_KEY] = sharding_key
            check_sendable(message.properties)
        except UsageError as error:
            raise UsageError(f"row {number} of partition {self._partition}: {error.text}", hint=error.hint) from None
        message.properties[property_names.UNIQ_KEY] = self.unique_key(number)
        return message, sharding_key

    def unique_key(self, number: int) -> str:
        """Laid out as a client's: ten bytes that name the task stand for address, process and loader.

        Then come the place of the row in the task, over time and counter. Tools that read a time from the key find the
        first day of the month, which is before the message was stored.
        """
        return f"{self._unique}{number >> 16:08X}{number & 0xFFFF:04X}"
