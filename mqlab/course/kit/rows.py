"""Rows exercises: the answer is a table, such as a Spark DataFrame; its rows are compared by their key, in any order.

    busiest = Rows(
        "lab10.busiest", "busiest(messages, most)", points=3, about="a day", through="rows_of",
        calls=lambda seed: [Call(messages=Store(day(seed), "the day"), most=3, right=[{"customer": "C7", …}, …])],
        columns=("customer", "messages"), by=("customer",),
        rules={"missing": "List the customers …", "messages": "Every message of …"},
        slips=[Slip("every topic", lambda call: most_of(all_topics(call)), "A copy in a retry topic …")],
    )

``through`` names the function of the lab that reads a store, calls the answer with its DataFrame, and collects the
rows; without it the answer is called with the arguments themselves and returns a list of rows. A wrong table is met
with the first of these that is true: it has other columns, or two rows for one key; the first wrong value is of another
kind, such as a string for a number; its rows are a slip's, or its first wrong column is; the rule that ``explain``
chooses; the rule of what is wrong at the first wrong row: "missing", "extra", "twice", or the name of a column.

Where no single table is right, the right rows have the key's columns only, or there are none (``right=...``), and
``promises`` say what must be true of the rows (row_promises).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mqlab.course.kit import slips as general
from mqlab.course.kit.calls import hearing, marked
from mqlab.course.kit.form import exercise_of, first
from mqlab.course.kit.slips import Slip
from mqlab.course.teach.exercises import Answers, Call, Exercise, Finding
from mqlab.course.words import ExerciseWords
from mqlab.scales import SECOND, time_text

Row = Mapping[str, Any]
Key = tuple[Any, ...]
Table = dict[Key, Row]
Explain = Callable[[Call, Sequence[Row], "WrongRow"], str]  # a call, all rows, the first wrong one -> a rule, or ""
Promise = Callable[[Call, Sequence[Row]], Finding | None]

MISSING, EXTRA, TWICE = "missing", "extra", "twice"
ANOTHER_ROW = "{name} returned another row than the right one"
ANOTHER_KIND = "{column} is {kind}, and here it is {other}"
KINDS = {bool: "True or False", numbers.Number: "a number", str: "a string", datetime: "a timestamp"}
SAME_RATIO = 1e-12  # floats are added in another order on another number of cores
FIRST_MOMENT_MS = 10**12  # what is larger is not a duration: it is a time after September 2001


class Store(str):
    """The directory of a store, as an argument of a call. ``about`` is what a report shows in its place."""

    about: str

    def __new__(cls, directory: str, about: str) -> Store:
        store = super().__new__(cls, directory)
        store.about = about
        return store

    def __repr__(self) -> str:
        return f"<{self.about}>"


class TimeOfDay(int):
    """A time in ms since 1970 of a row, shown with the time of day (UTC) next to it.

    >>> TimeOfDay(1_731_319_265_020)
    1731319265020 (10:01:05)
    """

    def __repr__(self) -> str:
        return f"{int(self)} ({time_text(self, SECOND)})"


@dataclass(frozen=True, slots=True)
class WrongRow:
    """The first row that is wrong. ``part``: "missing", "extra", "twice", or the first column that differs."""

    key: Key
    part: str
    right: Row | None
    found: Row | None


@dataclass(frozen=True)
class Tables:
    """The form of Rows exercises."""

    id: str
    name: str
    signature: str
    about: str
    calls: Callable[[int], Iterable[Call]]
    columns: Sequence[str]
    by: Sequence[str]
    through: str
    rules: Mapping[str, str]
    slips: Sequence[Slip]
    explain: Explain | None
    promises: Sequence[Promise]
    again: str
    close: Mapping[str, float]
    weights: Mapping[str, float]

    def make(self, seed: int) -> list[Call]:
        """The calls of a seed."""
        return list(self.calls(seed))

    def judge(self, answers: Answers, trial: Iterable[Call]) -> Finding | None:
        """Call by call, up to the first wrong row."""
        return first(self._judged(answers, call) for call in trial)

    def ask(self, answers: Answers, call: Call) -> tuple[Any, str]:
        """What the answer's table is for a call, and what was printed meanwhile."""
        arguments = [str(value) if isinstance(value, Store) else value for value in call.arguments.values()]
        answer = answers[call.to or self.name]
        with hearing() as heard, marked(call):
            returned = answers[self.through](answer, *arguments) if self.through else answer(*arguments)
        return returned, heard.text

    def _judged(self, answers: Answers, call: Call) -> Finding | None:
        return self._told(answers, call, *self.ask(answers, call))

    def _told(self, answers: Answers, call: Call, returned: Any, printed: str) -> Finding | None:
        # 1. The form: rows that have the columns, one for each key.
        rows = self._rows(returned)
        if isinstance(rows, str):
            return self._misfit(call, returned, printed, rows)
        table: Table = {}
        for row in rows:
            key = self._key(row)
            if key in table:
                return self._finding(call, rows, WrongRow(key, TWICE, table[key], row))
            table[key] = row
        # 2. The right rows, and what must be true of all of them.
        wrong = self._first_wrong(call, table)
        if wrong is not None:
            return self._finding(call, rows, wrong)
        if call.right is not ...:
            rows = [table[self._key(row)] for row in call.right]
        finding = first(promise(call, rows) for promise in self.promises)
        return finding or self._unlike_before(answers, call, table)

    def _rows(self, returned: Any) -> list[Row] | str:
        """The rows as dictionaries; for a value of another form, what it lacks."""
        if not isinstance(returned, list | tuple):
            return "rows"
        rows: list[Row] = []
        for row in returned:
            if isinstance(row, list | tuple) and not hasattr(row, "asDict"):
                if len(row) != len(self.columns):
                    return "columns"
                row = dict(zip(self.columns, row, strict=True))
            row = row.asDict() if hasattr(row, "asDict") else row
            if not isinstance(row, Mapping):
                return "rows"
            if not row.keys() >= set(self.columns):
                return "columns"
            rows.append(row)
        return rows

    def _misfit(self, call: Call, returned: Any, printed: str, lacking: str) -> Finding:
        columns = list(self.columns)
        if returned is None:
            rule = (general.PRINTED if printed.strip() else general.NOTHING).format(name=self.name)
        elif lacking == "rows":
            rule = f"{self.name} returns {'a DataFrame' if self.through else 'a list of rows'}"
        else:
            rule = f"{self.name} returns the columns {', '.join(columns)}"
            odd = next(row for row in returned if isinstance(self._rows([row]), str))
            returned = list(odd) if isinstance(odd, Mapping) else odd
        return Finding(rule, f"{call.about}: its rows" if call.about else "its rows", columns, returned, call=call)

    def _key(self, row: Row) -> Key:
        return tuple(_hashable(row[column]) for column in self.by)

    def _first_wrong(self, call: Call, table: Table) -> WrongRow | None:
        if call.right is ...:
            return None
        left = dict(table)
        for row in call.right:
            mine = left.pop(self._key(row), None)
            part = MISSING if mine is None else next(self._differing(row, mine), "")
            if part:
                return WrongRow(self._key(row), part, row, mine)
        return next((WrongRow(key, EXTRA, None, row) for key, row in left.items()), None)

    def _differing(self, right: Row, actual: Row) -> Iterator[str]:
        """The columns in which two rows differ, of those that the right row has."""
        first_looked_at = [column for column in self.rules if column in self.columns]
        named = (column for column in dict.fromkeys([*first_looked_at, *self.columns]) if column in right)
        return (column for column in named if not self._same(column, right[column], actual[column]))

    def _same(self, column: str, right: Any, actual: Any) -> bool:
        if right == actual:
            return True
        ratio = SAME_RATIO if isinstance(right, float) or isinstance(actual, float) else 0.0
        if column in self.close and isinstance(right, int) and isinstance(actual, float) and not actual.is_integer():
            return False  # it may be another whole number, and nothing between two
        try:
            return math.isclose(right, actual, rel_tol=ratio, abs_tol=self.close.get(column, 0.0))
        except TypeError:
            return False

    def _finding(self, call: Call, rows: Sequence[Row], wrong: WrongRow) -> Finding:
        of_kind = self._another_kind(rows, wrong)
        fitting = [] if of_kind else self._fitting(call, rows, wrong)
        chosen = of_kind or (fitting[0].says if fitting else "")
        explained = self.explain(call, rows, wrong) if self.explain is not None and not chosen else ""
        rule = chosen or explained or self.rules.get(wrong.part) or self._usual_rule(wrong.part)
        expected, actual = self._side_by_side(wrong)
        # Where several misunderstandings give the same rows, it is not known which one it was.
        beliefs = {slip.belief for slip in fitting}
        belief = beliefs.pop() if len(beliefs) == 1 else ""
        return Finding(rule, self._place(call, wrong), expected, actual, call=call, belief=belief)

    def _another_kind(self, rows: Sequence[Row], wrong: WrongRow) -> str:
        """The rule where a value cannot be right, whatever it is; where a row is missing, for its key."""
        actual = wrong.found if wrong.part != MISSING else next(iter(rows), None)
        for column in self.by if wrong.part == MISSING else [wrong.part]:
            if wrong.right is not None and actual is not None and column in wrong.right:
                kind, other = _kind(wrong.right[column]), _kind(actual[column])
                if kind and other and kind != other:
                    return ANOTHER_KIND.format(column=column, kind=kind, other=other)
        return ""

    def _usual_rule(self, part: str) -> str:
        if part == TWICE:
            return f"One row for each {', '.join(self.by)}"
        return self.rules.get("") or ANOTHER_ROW.format(name=self.name)

    def _fitting(self, call: Call, rows: Sequence[Row], wrong: WrongRow) -> list[Slip]:
        """The misunderstandings that give all of these rows; else those that give what is wrong in the first."""
        if call.right is ... or wrong.part == TWICE:
            return []
        by_key = {self._key(row): row for row in rows}
        tables = [(slip, {self._key(row): row for row in would}) for slip in self.slips for would in slip.values(call)]
        whole = [slip for slip, table in tables if self._same_tables(table, by_key)]
        right = {self._key(row): row for row in call.right}
        return whole or [slip for slip, table in tables if self._same_mistake(table, by_key, right, wrong)]

    def _same_tables(self, table: Table, other: Table) -> bool:
        return table.keys() == other.keys() and not any(any(self._differing(table[key], other[key])) for key in table)

    def _same_mistake(self, table: Table, other: Table, right: Table, wrong: WrongRow) -> bool:
        """Where rows are missing or too many, the keys must be the slip's; otherwise the wrong values of the column,
        and no column of the first wrong row may be right that the slip gets wrong.
        """
        if wrong.part in (MISSING, EXTRA):
            return table.keys() == other.keys()
        assert wrong.right is not None and wrong.found is not None
        mistakes = set(self._differing(wrong.right, table.get(wrong.key, wrong.right)))
        if wrong.part not in mistakes or not mistakes <= set(self._differing(wrong.right, wrong.found)):
            return False
        values = [
            [rows[key][wrong.part] for rows in (table, other, right)] for key in right if key in table.keys() & other
        ]
        return all(
            self._same(wrong.part, its, mine) for slip, mine, its in values if not self._same(wrong.part, slip, mine)
        )

    def _side_by_side(self, wrong: WrongRow) -> tuple[object, object]:
        """The right row and the one that was found; numbers are rounded unless that hides what is different."""
        if wrong.part == TWICE:
            return "one row", "two rows"
        columns = self.columns
        if wrong.right is not None and wrong.found is not None:  # what differs comes first: a row may be long
            columns = tuple(dict.fromkeys([*self._differing(wrong.right, wrong.found), *columns]))
        plain = (self._plain(wrong.right, columns), self._plain(wrong.found, columns))
        rounded = (self._plain(wrong.right, columns, rounded=True), self._plain(wrong.found, columns, rounded=True))
        return rounded if rounded[0] != rounded[1] else plain

    def _plain(self, row: Row | None, columns: Sequence[str], *, rounded: bool = False) -> object:
        if row is None:
            return "no such row"
        return {column: _shown(column, row[column], rounded) for column in columns if column in row}

    def _place(self, call: Call, wrong: WrongRow) -> str:
        row = wrong.right or wrong.found
        assert row is not None
        where = ", ".join(f"{column} {_shown(column, row[column])!r}" for column in self.by)
        return f"{call.about}: {where}" if call.about else where

    def _unlike_before(self, answers: Answers, call: Call, table: Table) -> Finding | None:
        """The first row that differs when the answer is asked a second time."""
        if not self.again:
            return None
        rows = self._rows(self.ask(answers, call)[0])
        second = {self._key(row): row for row in rows} if not isinstance(rows, str) else {}
        for key, row in table.items():
            other = second.get(key)
            if other is None or any(self._differing(row, other)):
                wrong = WrongRow(key, "", row, other)
                before, now = self._plain(row, self.columns), self._plain(other, self.columns)
                return Finding(self.again, self._place(call, wrong), before, now, call=call)
        return None


def _shown(column: str, value: Any, rounded: bool = False) -> Any:
    """A value as a report shows it: a learner reads a time of day, and compares the ms.

    >>> _shown("share", 4 / 117, rounded=True)
    0.034188
    """
    if rounded and isinstance(value, float):
        return float(f"{value:.5g}")
    is_moment = column.endswith("_ms") and type(value) is int and value >= FIRST_MOMENT_MS
    return TimeOfDay(value) if is_moment else value


def _kind(value: Any) -> str:
    """What a value is, in words; "" for None.

    >>> _kind("3"), _kind(3.5), _kind(True), _kind([3])
    ('a string', 'a number', 'True or False', 'a list')
    """
    words = (words for kind, words in KINDS.items() if isinstance(value, kind))
    return "" if value is None else next(words, f"a {type(value).__name__}")


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def Rows(
    id: str,
    signature: str,
    *,
    points: int,
    about: str,
    calls: Callable[[int], Iterable[Call]],
    columns: Sequence[str],
    by: Sequence[str],
    through: str = "",
    rules: Mapping[str, str] | str = "",
    slips: Sequence[Slip] = (),
    explain: Explain | None = None,
    promises: Sequence[Promise] = (),
    again: str = "",
    close: Mapping[str, float] | None = None,
    seeds: Sequence[int] = (1, 2),
    weights: Mapping[str, float] | None = None,
    words: ExerciseWords | None = None,
    limits: Mapping[str, float] | None = None,
    forbids: Sequence[str] = (),
) -> Exercise:
    """An exercise whose answer is a table; the head of this file has an example.

    ``by``: the columns that together name a row. Columns that have rules are compared first, in the order of the rules.
    ``close``: column -> how far a number may be from the right one; a whole number stays one. ``again``: the rule for
    an answer that gives other rows when it is asked a second time; empty: it is asked once. The other arguments are
    those of Pure.
    """
    name = signature.partition("(")[0]
    by_part = {"": rules} if isinstance(rules, str) and rules else dict(rules or {})
    asked = (id, name, signature, about, calls, tuple(columns), tuple(by), through)
    form = Tables(*asked, by_part, slips, explain, promises, again, close or {}, weights or {})
    beside = (through,) if through else ()
    return exercise_of(form, points=points, seeds=seeds, beside=beside, words=words, limits=limits, forbids=forbids)
