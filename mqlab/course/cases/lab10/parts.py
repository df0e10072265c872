"""lab10.parts: a part for each message of the topic orders, in which whole orders are together and no part is too full.

Many tables are right, so the rows are judged by what must be true of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab10.days import day, mixed_keys
from mqlab.course.cases.lab10.questions import customers_in, messages, order_in, place_of
from mqlab.course.kit import Rows, Store
from mqlab.course.kit.row_promises import believed, between, evenly, together
from mqlab.course.kit.rows import Row
from mqlab.course.teach.exercises import Call

PARTS = 16
FULLEST_PART = 1.5
ALL_RULE = "Every message of the topic orders must be in exactly one part"
RANGE_RULE = "A part is a whole number from 0 to parts - 1; a hash may be negative, and % keeps its sign"
ORDER_RULE = "All messages of one order must be in one part: otherwise following an order needs a shuffle"
EVEN_RULE = f"The fullest part may hold at most {FULLEST_PART} times the mean: one hot customer must not fill it"
SAME_RULE = "The same question must have the same answer: a repeated task must not move messages"


def parts_of(store: Store, parts: int) -> list[Call]:
    """One question: so many parts of a store's orders. ``given``: each message, by its place, with its customer."""
    orders = {
        place_of(row): row | {"customer": customers_in(row)} for row in messages(store) if row["topic"] == "orders"
    }
    right = [{"broker_name": broker_name, "physical_offset": offset} for broker_name, offset in sorted(orders)]
    return [Call(messages=store, parts=parts, right=right, given=orders)]


def _order(call: Call, row: Row) -> str | None:
    order = order_in(call.given[place_of(row)])
    return None if order is None else f"order {order}"


def _by(*columns: str) -> Callable[[Call, Sequence[Row]], bool]:
    """Whether messages that are alike in these columns are in one part, and others in another part."""

    def follows(call: Call, rows: Sequence[Row]) -> bool:
        values = [(str([call.given[place_of(row)][name] for name in columns]), row["part"]) for row in rows]
        return len(set(dict(values).values())) > 1 and len(set(values)) == len(dict(values)) < len(values)

    return follows


def _place(row: Row) -> str:
    return f"the message at physical_offset {row['physical_offset']} of {row['broker_name']}"


IN_PARTS = Rows(
    "lab10.parts",
    "in_parts(messages, parts)",
    points=4,
    about="a day",
    through="rows_of",
    calls=lambda seed: [*parts_of(day(seed), PARTS), *parts_of(mixed_keys(), 3)],
    columns=("broker_name", "physical_offset", "part"),
    by=("broker_name", "physical_offset"),
    rules={"": ALL_RULE, "twice": ALL_RULE},
    promises=[
        between("part", lambda call: range(call["parts"]), RANGE_RULE, _place),
        believed(together("part", _order, ORDER_RULE, _place), {"lab10.same_keys": _by("keys")}),
        believed(
            evenly("part", lambda call: call["parts"], FULLEST_PART, EVEN_RULE),
            {"lab10.queues_are_even": _by("broker_name", "queue_id"), "lab10.spread": _by("customer")},
        ),
    ],
    again=SAME_RULE,
    weights={"": 1, "five parts": 1, "keys in any order": 2},
    forbids=FORBIDS["lab10.parts"],
)
