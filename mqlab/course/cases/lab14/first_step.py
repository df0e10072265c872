"""lab14.first_wrong_step: the first step of a history at which one of four rules is broken, and which rule it is.

    rows of a day ─▶ first_wrong_step(rows) ─▶ ("committed", 353), or (None, None) where nothing is

The days are those of clusters with other defects than the three that the learner examines, and of sound ones. What is
right is what the book says (mqlab.course.cases.lab14.book); ``first`` is the same in the words of the exercise, and
each of its keywords is a misunderstanding of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mqlab.course.cases.lab14.book import MOST_RETRIES, Row, broker_of
from mqlab.course.cases.lab14.short_histories import short_histories
from mqlab.course.cases.lab14.worlds import rows_of
from mqlab.course.kit import Pure, Slip, tuple_of
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Call

ASKED = ("acknowledged", "committed", "tried", "pulled")
PUBLIC = {1: (("Wuhan", 0, ""), ("Rome", 0, "client")), 2: (("Hamburg", 0, ""), ("Genoa", 0, ""), ("Riga", 0, ""))}
Found = tuple[str, int]
NOTHING = (None, None)


def broken(
    rows: Sequence[Row],
    *,
    any_status: bool = False,
    written_is_safe: bool = False,
    names_the_last: bool = False,
    most_retries: int = MOST_RETRIES,
    again_is_wrong: bool = False,
    remembers: bool = False,
    one_disk: bool = False,
    one_group: bool = False,
    all_forget: bool = False,
) -> list[Found]:
    """Every place where one of the four rules is broken, in order of the steps."""
    end: dict[Any, int] = {}
    on_disk: dict[str, int] = {}
    had: dict[Any, int] = {}
    pulled: dict[Any, int] = {}
    wrongs: list[Found] = []
    for row in rows:
        what, node, queue = row["what"], row["node"], row.get("queue", "")
        of_group, of_member = ("" if one_group else row.get("group"), queue), (node, row.get("group"), queue)
        wrong = ""
        if what == "store.flushed":
            on_disk[node] = row["end"]
            on_disk["any"] = max(on_disk.get("any", 0), row["end"])
        elif what == "message.stored":
            end[queue, row["offset"]] = row["end"]
        elif what == "message.sent" and (any_status or row["status"] == "SEND_OK") and not written_is_safe:
            safe = end.get((queue, row["offset"]), 0) <= on_disk.get("any" if one_disk else broker_of(row), 0)
            wrong = "" if safe else "acknowledged"
        elif what == "offset.updated":
            had[of_group] = max(had.get(of_group, 0), row["offset"])
        elif what == "offset.committed" and row["offset"] + names_the_last > had.get(of_group, 0):
            wrong = "committed"
        elif what in ("message.dead", "message.sent_back"):
            wrong = "tried" if (what == "message.dead") != (row["retries"] > most_retries) else ""
        elif what in ("queue.added", "queue.dropped") and not remembers:
            pulled.pop(of_member, None)
        elif what in ("fault.killed", "fault.powered_off") and not remembers:
            pulled = {reader: end for reader, end in pulled.items() if reader[0] != node and not all_forget}
        elif what == "message.pulled":
            before = pulled.get(of_member, row["first"])
            whole = row["offsets"] == list(range(row["first"], row["next"]))
            goes_on = row["first"] == before if again_is_wrong else row["first"] <= before
            wrong = "" if whole and goes_on else "pulled"
            pulled[of_member] = max(row["next"], pulled.get(of_member, 0))
        if wrong:
            wrongs.append((wrong, row["step"]))
    return wrongs


def first(rows: Sequence[Row], **misunderstood: Any) -> Found | tuple[None, None]:
    """The first of them, or NOTHING."""
    return next(iter(broken(rows, **misunderstood)), NOTHING)


def call_of(name: str, day: int, sound_room: str = "", about: str = "") -> Call:
    """A day of a cluster."""
    rows = rows_of(name, day, sound_room)
    return Call(rows=rows, right=first(rows), about=about or f"day {day} of {name}")


def calls(seed: int) -> list[Call]:
    """Short histories, some of them sound. Public: days of other clusters than the three as well."""
    short = [Call(rows=rows, right=first(rows), about=about) for about, rows in short_histories(seed)]
    days = [call_of(*day, about="a day of a sound cluster" if day[2] else "") for day in PUBLIC.get(seed, ())]
    return [*short, *days]


def _last(call: Call) -> Found | tuple[None, None]:
    wrongs = broken(call["rows"])
    return wrongs[-1] if wrongs else NOTHING


def _without(**misunderstood: Any) -> Any:
    return lambda call: first(call["rows"], **misunderstood)


RULES = {
    "rule": (
        "Another of the four rules is broken first on this day: go through the rows once, from front to back, and look "
        "at all four rules at each of them"
    ),
    "step": (
        "This rule is broken, and first at another step: compare the rows before that step with the words of the rule"
    ),
    "nothing": "first_wrong_step returns (None, None) only where none of the four rules is broken in any row",
    "something": (
        "Here no rule is broken. A repeated message, a late answer, or a pull from further back is allowed: see the "
        "last column of the table"
    ),
}


def _explained(call: Call, value: Any, _seen: object) -> str:
    if value == NOTHING:
        return RULES["nothing"]
    if call.right == NOTHING:
        return RULES["something"]
    return RULES["rule"] if value[0] != call.right[0] else RULES["step"]


def _difference(call: Call, value: Any) -> Difference | None:
    """Rule and step belong together, so both are shown."""
    return None if value == call.right else Difference((), "", call.right, value)


def _place(call: Call, seen: Difference | None) -> str:
    """The row at which the right answer sees it; on a sound day, the one that the answer has named."""
    named = seen.found if seen is not None and call.right == NOTHING else call.right
    step = named[1] if isinstance(named, tuple) else None
    row = next((row for row in call["rows"] if row["step"] == step), None)
    if row is None:
        return f"{call.about}, {len(call['rows'])} rows"
    return f"{call.about}: step {step}, {row['what']} of {row['node']}, at {row['ms']:,} ms"


FIRST_WRONG_STEP = Pure(
    "lab14.first_wrong_step",
    "first_wrong_step(rows)",
    points=5,
    about="histories",
    calls=calls,
    returns=tuple_of("place", rule=str | None, step=int | None),
    rules=RULES,
    explain=_explained,
    compares=_difference,
    place_of=_place,
    slips=[
        Slip("the last one", _last, belief="lab14.last_is_cause"),
        Slip("any answer", _without(any_status=True), belief="lab14.every_answer_promises"),
        Slip("written", _without(written_is_safe=True), belief="lab14.written_is_safe"),
        Slip("names the last", _without(names_the_last=True), belief="lab14.offset_is_done"),
        Slip("two deliveries", _without(most_retries=MOST_RETRIES - 1), belief="lab14.retries_are_calls"),
        Slip("never again", _without(again_is_wrong=True), belief="lab14.again_is_wrong"),
        Slip("for ever", _without(remembers=True), belief="lab14.owner_for_ever"),
        Slip("one disk", _without(one_disk=True), belief="lab14.one_disk"),
        Slip("one group", _without(one_group=True), belief="lab14.one_group"),
        Slip("all forget", _without(all_forget=True), belief="lab14.all_forget"),
    ],
    weights={
        "": 1,
        "a broken rule of the store": 1,
        "a broken rule of the broker": 2,
        "a broken rule of the client": 1,
        "a sound cluster": 1,
    },
)
