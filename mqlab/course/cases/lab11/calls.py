"""lab11.calls: the two halves of each call, joined.

SubBefore  request 7, A, 12:00:00.000   ┐
SubAfter   request 7, A, 12:00:00.020   ┘   billing  7  A  0  12:00:00.000  12:00:00.020  SUCCESS
SubBefore  request 9, A, 12:00:10.000   ─   billing  9  A  1  12:00:10.000                NO_RESULT
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab11.days import calls_of, day, entries_of
from mqlab.course.given.lab11 import trace_tables as trace
from mqlab.course.given.lab11.trace_tables import Row
from mqlab.course.kit import Rows, Slip
from mqlab.course.kit.rows import WrongRow
from mqlab.course.teach.exercises import Call
from mqlab.course.words import refutation

COLUMNS = ("group_name", "request_id", "msg_id", "keys", "retry_times", "started_ms", "ended_ms", "status")
END_LOST = (
    "This call has a SubAfter entry, and your table lost it. A trace message has several entries: trace_msg_id and "
    "position together name one. An old client writes no group into its SubAfter: join by request_id and msg_id"
)
END_WITHOUT_TIME = "An old client writes no time_ms into its SubAfter entry, and its call did return: look at success"
BELIEFS_OF_TWICE = ("lab11.id_names_a_call", "lab11.request_is_message", "lab11.stored_once")


def asked(seed: int) -> list[Call]:
    """One day."""
    stores = day(seed)
    return [Call(entries=stores, right=calls_of(stores), about=stores.about)]


def joined(entries: Iterable[Row], by: Sequence[str] = ("request_id", "msg_id"), *, once: bool = True) -> list[Row]:
    """Each first half with every second half that has the same columns ``by``, as a left join in SQL gives them.

    ``once``: a trace message that was stored twice counts once.
    """
    kept = {(row["trace_msg_id"], row["position"]): row for row in entries}.values() if once else list(entries)
    halves: dict[tuple[Any, ...], list[Row]] = {}
    for row in kept:
        if row["kind"] == "SubAfter":
            halves.setdefault(tuple(row[name] for name in by), []).append(row)
    return [
        trace.call_row(row, after)
        for row in kept
        if row["kind"] == "SubBefore"
        for after in halves.get(tuple(row[name] for name in by), [None])
    ]


def _wrongly(change: Callable[[Row], Row | None]) -> Callable[[Call], list[Row]]:
    """The right rows after a change; None takes a row away."""
    return lambda call: [new for row in calls_of(call["entries"]) if (new := change(row)) is not None]


def _by_cost(call: Call) -> list[Row]:
    cost = {
        (row["request_id"], row["msg_id"]): row["cost_ms"]
        for row in entries_of(call["entries"])
        if row["kind"] == "SubAfter"
    }
    rows = calls_of(call["entries"])
    return [
        row
        if row["ended_ms"] is None
        else row | {"ended_ms": row["started_ms"] + cost[row["request_id"], row["msg_id"]]}
        for row in rows
    ]


def _without_old_ends(call: Call) -> list[Row]:
    ends = (row for row in entries_of(call["entries"]) if row["kind"] == "SubAfter")
    old = {(row["request_id"], row["msg_id"]) for row in ends if row["time_ms"] is None}
    rows = calls_of(call["entries"])
    return [row | {"ended_ms": None} if (row["request_id"], row["msg_id"]) in old else row for row in rows]


def _explain(call: Call, rows: Sequence[Mapping[str, Any]], wrong: WrongRow) -> str:
    """Where an end was lost: how? Where a key has several rows: which of the joins has made them?"""
    if wrong.part == "status" and wrong.found is not None and wrong.found["status"] == trace.NO_RESULT:
        return END_LOST if wrong.found["ended_ms"] is None else END_WITHOUT_TIME
    if wrong.part != "twice":
        return ""
    entries = entries_of(call["entries"])
    times = _times(rows)
    joins = (joined(entries, ["msg_id"]), joined(entries, ["request_id"]), joined(entries, once=False))
    likely = zip(BELIEFS_OF_TWICE, joins, strict=True)
    return next((refutation(belief) for belief, table in likely if _times(table) == times), "")


def _times(rows: Iterable[Mapping[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter((row["request_id"], row["msg_id"]) for row in rows)


CALLS = Rows(
    "lab11.calls",
    "calls(entries)",
    points=4,
    about="a day",
    through="rows_of_calls",
    forbids=FORBIDS["lab11.calls"],
    calls=asked,
    columns=COLUMNS,
    by=("request_id", "msg_id"),
    seeds=(1,),
    explain=_explain,
    slips=[
        Slip(
            "inner join",
            _wrongly(lambda row: None if row["status"] == trace.NO_RESULT else row),
            belief="lab11.every_call_ends",
        ),
        Slip(
            "no end is a failure",
            _wrongly(lambda row: row | {"status": trace.FAILED} if row["status"] == trace.NO_RESULT else row),
            belief="lab11.no_end_is_failure",
        ),
        Slip("by cost", _by_cost, belief="lab11.cost_is_length"),
        Slip("null of an old client", _without_old_ends, belief="lab11.old_tells_when"),
    ],
    rules={
        "missing": "Each SubBefore entry has a row, with or without an end: a left join. Only an entry with the same "
        "trace_msg_id and position is the same entry",
        "extra": "A row is a call that has begun: it has a SubBefore entry",
        "twice": "One row per request_id and msg_id: a call, and a message in it",
        "status": "status is SUCCESS or FAILED by success of the SubAfter entry, and NO_RESULT without one",
        "started_ms": "started_ms is time_ms of the SubBefore entry",
        "ended_ms": "ended_ms is time_ms of the SubAfter entry; an old client has none: started_ms + cost_ms",
        "": "The group, the keys and retry_times are those of the SubBefore entry",
    },
)
