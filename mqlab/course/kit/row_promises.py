"""What a Rows exercise promises where no single table is right: rules over its rows, and the first row that breaks one.

    promises=[
        between("part", lambda call: range(call["parts"]), "A part is a number from 0 to …", place),
        together("part", order_of, "All messages of one order are in one part …", place),
        evenly("part", lambda call: call["parts"], 1.5, "The fullest part holds no more than …"),
    ]

A promise is a function (call, rows) -> Finding or None, so a lab may write its own next to these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mqlab.course.kit.rows import Promise, Row
from mqlab.course.teach.exercises import Call, Finding


def between(column: str, numbers: Callable[[Call], range], rule: str, place_of: Callable[[Row], str]) -> Promise:
    """A column holds whole numbers of a range."""

    def promise(call: Call, rows: Sequence[Row]) -> Finding | None:
        allowed = numbers(call)
        for row in rows:
            value = row[column]
            if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
                return Finding(rule, place_of(row), f"{allowed[0]} to {allowed[-1]}", value, call=call)
        return None

    return promise


def together(column: str, group: Callable[[Call, Row], Any], rule: str, place_of: Callable[[Row], str]) -> Promise:
    """Rows of one group have one value in a column. ``group``: what a row belongs to; None for rows of no group."""

    def promise(call: Call, rows: Sequence[Row]) -> Finding | None:
        seen: dict[Any, Any] = {}
        for row in rows:
            of = group(call, row)
            if of is not None and seen.setdefault(of, row[column]) != row[column]:
                return Finding(rule, f"{of}, {place_of(row)}", seen[of], row[column], call=call)
        return None

    return promise


def evenly(column: str, parts: Callable[[Call], int], times: float, rule: str) -> Promise:
    """No value of a column is in more rows than so many times the mean of ``parts`` values."""

    def promise(call: Call, rows: Sequence[Row]) -> Finding | None:
        if not rows:
            return None
        ((value, size),) = Counter(row[column] for row in rows).most_common(1)
        most = int(times * len(rows) / parts(call))
        if size <= most:
            return None
        return Finding(rule, f"{column} {value} of {parts(call)}", f"at most {most} rows", f"{size} rows", call=call)

    return promise


def believed(promise: Promise, beliefs: Mapping[str, Callable[[Call, Sequence[Row]], bool]]) -> Promise:
    """The same promise; what it finds names the first belief (id) whose test says that these rows come of it."""

    def finding(call: Call, rows: Sequence[Row]) -> Finding | None:
        finding = promise(call, rows)
        if finding is None:
            return None
        return replace(finding, belief=next((name for name, holds in beliefs.items() if holds(call, rows)), ""))

    return finding
