"""lab11.life: what became of each order in each group.

group     order   copies in the log   calls            offset    outcome
billing   A       orders              SUCCESS          past it   consumed
billing   B       orders, %RETRY%…    FAILED, SUCCESS  past it   consumed
billing   C       orders, %DLQ%…      FAILED           past it   dead
billing   D       orders              NO_RESULT        at it     pending
mail      E       orders, created     none             past it   filtered: mail never gets a message with this tag
mail      F       orders, paid        none             past it   lost: at other times it does
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab11.days import DAYS_KEPT, calls_of, day
from mqlab.course.given.lab11 import trace_tables as trace
from mqlab.course.given.lab11.lag_board import offsets_in
from mqlab.course.given.lab11.trace_tables import Row
from mqlab.course.kit import OneOf, Rows, Slip
from mqlab.course.kit.rows import WrongRow
from mqlab.course.teach.exercises import Call
from mqlab.course.words import refutation
from mqlab.rocketmq.wire import names

ORDERS = "orders"
COLUMNS = ("group_name", "msg_id", "keys", "calls", "outcome")
TIMES = {"stored_ms": "store_timestamp", "born_ms": "born_timestamp"}
Same = tuple[str, str]  # id and keys of a message


@dataclass(frozen=True)
class StoreFacts:
    """What is in some stores: units that are not trace, calls, committed offsets."""

    units: Sequence[Row]
    calls: Sequence[Row]
    committed: Mapping[tuple[str, str, int, str], int]  # broker, topic, queue id, group

    @functools.cached_property
    def groups(self) -> list[str]:
        """The groups that have a trace and read orders."""
        read = {group for (_, topic, _, group) in self.committed if topic == ORDERS}
        return sorted(read & {call["group_name"] for call in self.calls})

    def orders(self) -> dict[Same, Row]:
        """The unit of each order that was stored first."""
        first: dict[Same, Row] = {}
        for unit in sorted(self.units, key=lambda unit: (unit["stored_ms"], _place(unit))):
            if unit["topic"] == ORDERS:
                first.setdefault(same_message(unit), unit)
        return first


def same_message(row: Row) -> Same:
    """Id and keys of a row."""
    return row["msg_id"], row["keys"]


def _place(unit: Row) -> tuple[str, str, int, int]:
    return unit["broker_name"], unit["topic"], unit["queue_id"], unit["queue_offset"]


def _ms(moment: Any) -> int:
    milliseconds: int = round(moment.timestamp() * 1000)
    return milliseconds


@functools.lru_cache(maxsize=DAYS_KEPT)
def facts(stores: str) -> StoreFacts:
    """What is in the stores of a day, which does not change: read once for all that misunderstandings make of it."""
    from mqlab.data.arrow import read_table

    columns = (
        "broker_name",
        "topic",
        "queue_id",
        "queue_offset",
        "store_timestamp",
        "born_timestamp",
        "msg_id",
        "keys",
        "tags",
    )
    units = []
    for unit in read_table(stores, columns).to_pylist():
        if unit["topic"] != names.TRACE_TOPIC:
            times = {name: _ms(unit.pop(column)) for name, column in TIMES.items()}
            units.append(unit | times | {"keys": unit["keys"] or ""})
    committed = {
        (row["broker_name"], row["topic"], row["queue_id"], row["group_name"]): row["committed"]
        for row in offsets_in(stores)
    }
    return StoreFacts(units, calls_of(stores), committed)


Judge = Callable[[Sequence[Row], bool], str]


def any_success(calls: Sequence[Row], dead: bool) -> str:
    """What is known of a message that was called with, or is a dead letter; "" where only its offset can tell."""
    if any(call["status"] == trace.SUCCESS for call in calls):
        return "consumed"
    return "dead" if dead else "pending" if calls else ""


def any_call(calls: Sequence[Row], dead: bool) -> str:
    """As if whatever was called were done."""
    return "consumed" if calls else any_success(calls, dead)


def no_success(calls: Sequence[Row], dead: bool) -> str:
    """As if no call told of a success."""
    return "dead" if dead else "pending" if calls else ""


def last_call(calls: Sequence[Row], dead: bool) -> str:
    """As if the last call decided."""
    if not calls or dead:
        return any_success(calls, dead)
    return "consumed" if calls[-1]["status"] == trace.SUCCESS else "pending"


def life(
    known: StoreFacts,
    *,
    judge: Judge = any_success,
    passed: Callable[[bool], str] = lambda reads: "lost" if reads else "filtered",
    of_group: bool = True,
    orders: Iterable[tuple[Same, Row]] | None = None,
) -> list[Row]:
    """The rows; the arguments are where an answer may err."""
    first = known.orders()
    calls: dict[tuple[str, Same], list[Row]] = {}
    for call in known.calls:
        calls.setdefault((call["group_name"] if of_group else "", same_message(call)), []).append(call)
    dead = {
        (names.group_of(unit["topic"]), same_message(unit))
        for unit in known.units
        if unit["topic"].startswith(names.DLQ_PREFIX)
    }
    reads = {
        (call["group_name"], first[same_message(call)]["tags"]) for call in known.calls if same_message(call) in first
    }
    rows: list[Row] = []
    for same, unit in first.items() if orders is None else orders:
        for group in known.groups:
            mine = calls.get((group if of_group else "", same), [])
            outcome = judge(mine, (group, same) in dead)
            if not outcome:
                far = known.committed.get((*_place(unit)[:3], group), 0)
                outcome = passed((group, unit["tags"]) in reads) if unit["queue_offset"] < far else "pending"
            rows.append(
                {"group_name": group, "msg_id": same[0], "keys": same[1], "calls": len(mine), "outcome": outcome}
            )
    return rows


def _wrongly(**how: Any) -> Callable[[Call], list[Row]]:
    return lambda call: life(facts(call["messages"]), **how)


def _called_only(call: Call) -> list[Row]:
    return [row for row in life(facts(call["messages"])) if row["calls"]]


def _by_offset(call: Call) -> OneOf:
    """As if whatever the offset has passed were done. Of the others calls tell, or that they failed, or nothing."""
    known = facts(call["messages"])
    past = {
        (group, same)
        for same, unit in known.orders().items()
        for group in known.groups
        if unit["queue_offset"] < known.committed.get((*_place(unit)[:3], group), 0)
    }
    return OneOf(
        [
            row | {"outcome": "consumed"} if (row["group_name"], same_message(row)) in past else row
            for row in life(known, judge=judge)
        ]
        for judge in (any_success, no_success, lambda calls, dead: "pending")
    )


def asked(seed: int) -> list[Call]:
    """One day."""
    stores = day(seed)
    right = life(facts(stores))
    return [Call(messages=stores, calls=stores, committed=stores, right=right, about=stores.about)]


def _explain(call: Call, rows: Sequence[Mapping[str, Any]], wrong: WrongRow) -> str:
    """A message with several rows: of its copies, or of a send that was repeated?"""
    if wrong.part not in ("twice", "extra") or wrong.found is None:
        return ""
    same = wrong.found["msg_id"], wrong.found["keys"]
    topics = {unit["topic"] for unit in facts(call["messages"]).units if same_message(unit) == same}
    if wrong.part == "extra" and topics - {ORDERS}:
        return refutation("lab11.copies_are_messages")
    retried = any(topic.startswith((names.RETRY_PREFIX, names.DLQ_PREFIX, names.SCHEDULE_TOPIC)) for topic in topics)
    return refutation("lab11.copies_are_messages" if retried else "lab11.unit_is_message")


LIFE = Rows(
    "lab11.life",
    "life(messages, calls, committed)",
    points=5,
    about="a day",
    through="rows_of_life",
    forbids=FORBIDS["lab11.life"],
    calls=asked,
    columns=COLUMNS,
    by=("group_name", "msg_id", "keys"),
    seeds=(1,),
    explain=_explain,
    slips=[
        Slip("called only", _called_only, belief="lab11.only_called"),
        Slip("last call", _wrongly(judge=last_call), belief="lab11.last_call_counts"),
        Slip("any call", _wrongly(judge=any_call), belief="lab11.called_is_done"),
        Slip("by the offset", _by_offset, belief="lab11.passed_is_done"),
        Slip("any group", _wrongly(of_group=False), belief="lab11.one_fate"),
        Slip("never lost", _wrongly(passed=lambda reads: "filtered"), belief="lab11.passed_is_filtered"),
        Slip("always lost", _wrongly(passed=lambda reads: "lost"), belief="lab11.passed_is_lost"),
    ],
    rules={
        "missing": "Each order has a row per group that has calls and has committed an offset for its queue",
        "extra": "A row is an order and a group that reads orders and has a trace",
        "twice": refutation("lab11.copies_are_messages"),
        "outcome": "The first that is true: consumed if one call succeeded, dead if a copy is in %DLQ% and the group's "
        "name, pending if there was a call or the offset is not past it, lost if the group gets this tag at "
        "other times, filtered",
        "calls": "calls is the number of calls of this group with this message: msg_id and keys",
    },
)
