"""The biography board: type a key, and see what happened to its message in the log and in each group, event by event.

    board = biography_board(units, calls, lives, offsets, key="k-3")     rows of the pipeline's tables
    board = biography_of_run("out", keys=["order-1047"])                 what `mqlab spark run` wrote
    board.show("order-12"); board.biography(), board.state["event"]

    log      ● stored ──────── ▭ parked ······ ● for a retry            what of the message stands in the log
    billing            ▲ called ✕ failed                 ▲ called ✓     one line per group, one column per event
    audit              ▲ called ✓

Events stand in their order, with the time that passed between them written in: a second and two hours both show.
The table of each message is made by mqlab.data.spark.pipeline.biography; the tables are read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from markupsafe import Markup

from mqlab.course.widgets.frame.board import Board
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table

MOST_MESSAGES = 2_000  # in one page
COLUMNS = ("time_ms", "what", "group", "topic", "broker", "queue", "offset", "told")
Pair = tuple[str, str]
Tables = Iterable[Mapping[str, Any]]


class BiographyBoard(Board):
    """The explorer; ``biography_board`` makes one. ``state``: key, and the number of the event looked at."""

    module, label = "biography", "Biography board"
    state_defaults: ClassVar[Mapping[str, Any]] = {"key": "", "event": 0}

    def __init__(self, biographies: Mapping[str, Table], **state: Any) -> None:
        if not biographies:
            raise UsageError("a biography board needs a message with a key")
        if len(biographies) > MOST_MESSAGES:
            raise UsageError(
                f"{len(biographies):,} messages are too many for one page", hint="give the tables of fewer, or keys=[…]"
            )
        self._biographies = dict(biographies)
        super().__init__(**{"key": next(iter(biographies)), **state})
        self.biography(self.state["key"])

    @property
    def keys(self) -> list[str]:
        """All keys that the board knows."""
        return list(self._biographies)

    def show(self, key: str) -> BiographyBoard:
        """Look at another message."""
        self.biography(key)
        self.set("key", key)
        self.set("event", 0)
        return self

    def biography(self, key: str | None = None) -> Table:
        """The events of a message, by default of the one looked at. Raises UsageError for an unknown key."""
        key = self.state["key"] if key is None else key
        if key not in self._biographies:
            some = ", ".join(self.keys[:5])
            raise UsageError(f"no message has the key {key!r}", hint=f"a key is compared whole; there are {some} …")
        return self._biographies[key]

    def data(self) -> dict[str, Any]:
        """Each message's events as lists; the names of groups, topics and brokers are told once."""
        names: dict[str, int] = {}

        def number(name: str | None) -> int | None:
            return None if name is None else names.setdefault(name, len(names))

        messages = {
            key: [
                [
                    row.time_ms,
                    row.what,
                    number(row.group),
                    number(row.topic),
                    number(row.broker),
                    row.queue,
                    row.offset,
                    row.told,
                ]
                for row in table
            ]
            for key, table in self._biographies.items()
        }
        return {"messages": messages, "names": list(names)}

    def table(self) -> Table:
        """The biography of the message looked at."""
        return Table([row.as_dict() for row in self.biography()], columns=COLUMNS, title=self.state["key"])

    def readable(self) -> Markup:
        """The table: a biography is one."""
        return self.table().html()


def biography_board(
    units: Tables, calls: Tables, lives: Tables = (), offsets: Tables = (), *, key: str = "", keys: Sequence[str] = ()
) -> BiographyBoard:
    """A board of rows of MESSAGES, DELIVERIES, LIFE and OFFSETS, for all messages with a key or those with these keys.

    A message with several keys is found by each of them. Without ``lives`` nothing is said of what became of it.
    Raises UsageError for an unknown key, no key at all, or more than two thousand messages.
    """
    from mqlab.data.spark.pipeline.biographies import biography_of

    # 1. Rows of the same message are found by its id and keys.
    of_pair: dict[Pair, tuple[list[Any], list[Any], list[Any]]] = {}
    pairs: dict[str, dict[Pair, None]] = {}
    wanted = set(keys)
    for unit in units:
        if unit["kind"] == "trace" or not unit["keys"]:
            continue
        pair = unit["msg_id"], unit["keys"]
        of_pair.setdefault(pair, ([], [], []))[0].append(unit)
        for word in unit["keys"].split():
            if not wanted or word in wanted:
                pairs.setdefault(word, {})[pair] = None
    for index, rows in ((1, calls), (2, lives)):
        for row in rows:
            if (of_message := of_pair.get((row["msg_id"], row["keys"]))) is not None:
                of_message[index].append(row)
    # 2. A biography for each key.
    committed = list(offsets)

    def of_all(of_key: Iterable[Pair], part: int) -> list[Any]:
        return [row for pair in of_key for row in of_pair[pair][part]]

    biographies = {
        word: biography_of(of_all(of_key, 0), of_all(of_key, 1), of_all(of_key, 2), committed, title=word)
        for word, of_key in pairs.items()
    }
    return BiographyBoard(biographies, **({"key": key} if key else {}))


def biography_of_run(out: str, keys: Sequence[str]) -> BiographyBoard:
    """A board of these keys' messages in the output of ``mqlab spark run``. Raises UsageError as ``biography`` does."""
    from mqlab.data.spark.pipeline import biography

    return BiographyBoard({key: biography(out, key) for key in keys})
