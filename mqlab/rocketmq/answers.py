"""The form of an admin answer: a dataclass, or rows of dataclasses, that can be shown as a table.

Mirrors: the printing half of mqadmin's SubCommands. Every answer of ``lab.admin`` is one of these.

    Rows([QueueStats(...), …])      rows[0].max_offset   for row in rows   rows.to_pandas()   print(rows)
    Detail (a dataclass)            plan.rows, plan.warnings, print(plan)

An answer says which rows it has; mqlab.lab hands ``draw_answers_with`` the function that draws them as a table, and
without it an answer prints one row per line. Sort and select rows in Python.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, Generic, TypeVar, overload

from mqlab.errors import UsageError
from mqlab.rocketmq.wire.message import MessageExt

T = TypeVar("T")

_draw: Callable[[Sequence[Any], str], Any] | None = None


def draw_answers_with(draw: Callable[[Sequence[Any], str], Any]) -> None:
    """Set what draws the table of an answer: a function of its rows and its title. mqlab.lab sets its own."""
    global _draw
    _draw = draw


class Shown:
    """Base of all answers: subclasses define the rows and the title to show."""

    __slots__ = ()

    def shown_rows(self) -> Sequence[Any]:
        """The rows that ``table()`` shows."""
        return [self]

    def shown_title(self) -> str:
        """The line above the table."""
        return ""

    def shown_notes(self) -> Sequence[str]:
        """Lines below the table."""
        return ()

    def table(self) -> Any:
        """The answer as a table (mqlab.lab.views.Table). Raises UsageError while nothing draws tables."""
        if _draw is None:
            raise UsageError("nothing is here to draw a table", hint="import mqlab.lab, or use shown_rows()")
        return _draw([_as_row(row) for row in self.shown_rows()], self.shown_title())

    def to_pandas(self) -> Any:
        """The answer's rows as a DataFrame."""
        return self.table().to_pandas()

    def to_value(self) -> Any:
        """The answer as plain dictionaries and lists, for JSON."""
        return plain(self)

    def __str__(self) -> str:
        if _draw is None:
            lines = [self.shown_title(), *(str(_as_row(row)) for row in self.shown_rows())]
        else:
            lines = [self.table().text()]
        return "\n".join([*lines, *self.shown_notes()])

    def whole_text(self) -> str:
        """The answer as text, with every row: what a command line prints."""
        table = self.table()
        return "\n".join([table.text(len(table.rows)), *self.shown_notes()])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if _draw is None:
            return {"text/plain": str(self)}
        notes = "".join(f"<div>{escape(line)}</div>" for line in self.shown_notes())
        return {"text/plain": str(self), "text/html": f"{self.table().html()}{notes}"}


class Rows(Shown, Sequence[T], Generic[T]):
    """Rows of one kind with a title: a sequence that prints as a table. Equal to another with the same rows."""

    __slots__ = ("_rows", "title")

    def __init__(self, rows: Iterable[T], title: str) -> None:
        self._rows = list(rows)
        self.title = title

    def shown_rows(self) -> Sequence[Any]:
        return self._rows

    def shown_title(self) -> str:
        return self.title

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Rows[T]: ...
    def __getitem__(self, index: int | slice) -> T | Rows[T]:
        return Rows(self._rows[index], self.title) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return self._rows == other._rows if isinstance(other, Rows) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal by content

    def __repr__(self) -> str:
        return f"<Rows {self.title!r}: {len(self._rows)}>"


def message_row(message: MessageExt) -> dict[str, Any]:
    """The columns of a message in a table of messages."""
    return {
        "msg_id": message.msg_id,
        "offset_msg_id": message.offset_msg_id,
        "topic": message.topic,
        "broker": message.broker_name,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "store_timestamp": message.store_timestamp,
        "tags": message.tags,
        "keys": message.keys,
        "reconsume_times": message.reconsume_times,
        "body": message.body,
    }


def _as_row(row: Any) -> Any:
    return message_row(row) if isinstance(row, MessageExt) else row


def plain(value: Any) -> Any:
    """Dictionaries, lists and simple values only; bytes as text where they are UTF-8, else as hexadecimal digits."""
    if isinstance(value, MessageExt):
        return {name: plain(item) for name, item in message_row(value).items()}
    if isinstance(value, Rows):
        return [plain(row) for row in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    # JSON has no bytes.
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    return value
