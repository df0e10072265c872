"""The answer of ``StoreInspector.messages``: messages read one by one in a loop, and a table for a notebook.

Mirrors: what mqadmin's printMsg shows. Labs 00 and 01 loop over it.

    for message in store.messages("orders"):   one MessageExt at a time, nothing is kept
    store.messages("orders")                   at the end of a cell: the first rows as a table
    store.messages("orders").to_pandas()       all of them

Left out: a length (it would read the whole log); ``sum(1 for _ in listing)`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from mqlab.rocketmq.store.reading.log_reader import Piece
from mqlab.rocketmq.wire.message import MessageExt

if TYPE_CHECKING:
    import pandas

    from mqlab.lab.views.table import Table

ROWS_SHOWN = 20


class MessageListing:
    """Messages of a store in the order of its log. Each loop reads the store again. ``search`` returns the units."""

    def __init__(self, search: Callable[[], Iterator[Piece]], question: str) -> None:
        self._search = search
        self._question = question

    def __iter__(self) -> Iterator[MessageExt]:
        return (piece.message() for piece in self._search())

    def table(self, count: int | None = None) -> Table:
        """The first ``count`` messages (default: all) as rows: places, times, tags, keys, body."""
        from mqlab.lab.views.table import Table

        rows = [
            {
                "physical_offset": message.physical_offset,
                "topic": message.topic,
                "queue_id": message.queue_id,
                "queue_offset": message.queue_offset,
                "store_timestamp": message.store_timestamp,
                "tags": message.tags,
                "keys": message.keys,
                "body": message.body,
            }
            for message in islice(self, count)
        ]
        return Table(rows, title=f"messages{self._question}", empty="none")

    def to_pandas(self) -> pandas.DataFrame:
        """All of them as a DataFrame; times stay ms since the epoch."""
        return self.table().to_pandas()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.table(ROWS_SHOWN)._repr_mimebundle_(include, exclude)

    def __repr__(self) -> str:
        return f"<MessageListing{self._question}, read when looped over>"
