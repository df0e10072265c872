"""One part of a console's page: a table, or the text of an error, with the verb of ``lab.admin`` that answered it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mqlab.counts import counted
from mqlab.errors import MqlabError
from mqlab.lab.views.table import Table, shown_value
from mqlab.lab.views.text_width import cut
from mqlab.rocketmq.answers import Shown

if TYPE_CHECKING:
    from mqlab.rocketmq.wire.message import MessageExt

MAX_ROWS = 200
MAX_TEXT = 300
OPENS = {"topic": "topic", "group": "group", "offset_msg_id": "message"}  # column -> the page that its values open


@dataclass(frozen=True, slots=True)
class PageSection:
    """One part of a page: a table or the text of an error, and the verb that was asked.

    ``choose`` names a column whose values the reader can choose among, ``first`` the one that is chosen at first.
    ``resend`` is a group whose dead letters these are.
    """

    title: str
    verb: str
    table: Table = field(default_factory=lambda: Table([]))
    error: str = ""
    notes: tuple[str, ...] = ()
    choose: str = ""
    first: str = ""
    resend: str = ""

    def as_json(self) -> dict[str, Any]:
        """The section as the page gets it: every value as the text that a table shows."""
        columns = self.table.columns
        rows = [[cut(shown_value(name, row[name]), MAX_TEXT) for name in columns] for row in self.table[:MAX_ROWS]]
        more = len(self.table) - MAX_ROWS
        notes = [
            *self.notes,
            *([f"{counted(more, 'more rows are not shown', 'more row is not shown')} here."] if more > 0 else []),
        ]
        numbers = [all(_is_number(row[name]) for row in self.table) for name in columns]
        opens = [OPENS.get(name, "") for name in columns]
        return {
            "title": self.title,
            "verb": self.verb,
            "columns": list(columns),
            "rows": rows,
            "numbers": numbers,
            "opens": opens,
            "error": self.error,
            "notes": notes,
            "empty": self.table.empty,
            "choose": self.choose,
            "first": self.first,
            "resend": self.resend,
        }


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def section(title: str, verb: str, ask: Callable[[], Any], empty: str = "none", **more: Any) -> PageSection:
    """What ``ask`` answers, rows or an answer of ``lab.admin``, as a section; an MqlabError as its text."""
    try:
        answer = ask()
    except MqlabError as error:
        return PageSection(title, verb, error=str(error))
    if isinstance(answer, PageSection):
        return answer
    notes = tuple(answer.shown_notes()) if isinstance(answer, Shown) else ()
    table = answer.table() if isinstance(answer, Shown) else Table(answer)
    return PageSection(title, verb, Table(table.rows, columns=table.columns, empty=empty), notes=notes, **more)


def found_row(message: MessageExt) -> dict[str, Any]:
    """A message as a row of a list; its offset id opens its page."""
    return {
        "offset_msg_id": message.offset_msg_id,
        "topic": message.topic,
        "keys": message.keys,
        "tags": message.tags,
        "queue": f"{message.broker_name} {message.queue_id}",
        "queue_offset": message.queue_offset,
        "store_timestamp": message.store_timestamp,
        "reconsume_times": message.reconsume_times,
        "body": message.body,
    }
