"""lab06.three_valued: a parsed filter is evaluated with properties that may be missing: True, False or None (unknown).

What is right is what mqlab's SQL92, which mirrors RocketMQ's, makes of the same expression as text.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import Pure, Slip
from mqlab.course.teach.exercises import Call
from mqlab.rocketmq.filter import sql

Tree = tuple[Any, ...]
Properties = Mapping[str, str]
Truth = bool | None

MISSING_RULE = "A comparison with a property that is missing is unknown: None. That goes for <> and NOT IN as well"
AND_RULE = "AND: False as soon as one side is False; otherwise None if a side is unknown; otherwise True"
OR_RULE = "OR: True as soon as one side is True; otherwise None if a side is unknown; otherwise False"
NOT_RULE = (
    "NOT of unknown is unknown: if it is not known whether something is true, it is not known whether it is false"
)
NULL_RULE = "IS NULL asks whether the property is missing, IS NOT NULL whether it is there: neither is ever unknown"
NUMBER_RULE = (
    "A property is a text. Compared with a number it is taken for a number, so that 10 is greater than 9; compared "
    "with a text it stays one"
)
ENDS_RULE = "<= and >= are True of the number itself, < and > are not"
BETWEEN_RULE = "BETWEEN includes both ends"
TEXT_RULE = (
    "Two texts are equal when every character is: upper case and lower case differ, a part is not the whole, and '7' "
    "compared with a text stays a text"
)
VALUE_RULE = "The expression has another value: work it out from the inside"

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
NAMES, REGIONS = ("amount", "weight", "region", "coupon"), ("eu", "us", "cn")


@dataclass(frozen=True, slots=True)
class LogicReading:
    """How a reader evaluates: SQL92's way by default; each field is a misunderstanding."""

    missing: Truth = None  # what a comparison with a missing property is
    missing_unequal: Truth = None  # what <> and NOT IN are then
    unknown_spreads: bool = False  # AND and OR of an unknown are unknown, whatever the other side
    not_unknown: Truth = None
    as_texts: bool = False


def written(tree: Tree) -> str:
    """The expression as a subscriber writes it.

    >>> written(("AND", (">", "amount", 10), ("IN", "region", ["eu", "us"])))
    "(amount > 10) AND (region IN ('eu', 'us'))"
    """
    operator, *parts = tree
    if operator in ("AND", "OR"):
        return f"({written(parts[0])}) {operator} ({written(parts[1])})"
    if operator == "NOT":
        return f"NOT ({written(parts[0])})"
    if operator in ("IS NULL", "IS NOT NULL"):
        return f"{parts[0]} {operator}"
    if operator == "BETWEEN":
        return f"{parts[0]} BETWEEN {parts[1]} AND {parts[2]}"
    if operator in ("IN", "NOT IN"):
        return f"{parts[0]} {operator} ({', '.join(map(repr, parts[1]))})"
    return f"{parts[0]} {operator} {parts[1]!r}"


def evaluated(tree: Tree, properties: Properties, reading: LogicReading) -> Truth:
    """The value of an expression to a reader with these misunderstandings."""
    operator, *parts = tree
    if operator in ("AND", "OR"):
        left, right = (evaluated(part, properties, reading) for part in parts)
        decisive = operator == "OR"
        if None in (left, right) and reading.unknown_spreads:
            return None
        if decisive in (left, right):
            return bool(decisive)
        return None if None in (left, right) else not decisive
    if operator == "NOT":
        inner = evaluated(parts[0], properties, reading)
        return reading.not_unknown if inner is None else not inner
    value = properties.get(parts[0])
    if operator in ("IS NULL", "IS NOT NULL"):
        return bool((value is None) == (operator == "IS NULL"))
    if value is None:
        return reading.missing_unequal if operator in ("<>", "NOT IN") else reading.missing
    if operator in ("IN", "NOT IN"):
        return bool((value in parts[1]) == (operator == "IN"))
    return _compared(operator, value, parts[1:], reading)


def _compared(operator: str, value: str, bounds: list[Any], reading: LogicReading) -> bool:
    left: Any = value
    if isinstance(bounds[0], int):
        left, bounds = (value, [str(bound) for bound in bounds]) if reading.as_texts else (int(value), bounds)
    if operator == "BETWEEN":
        return bool(bounds[0] <= left <= bounds[1])
    right = bounds[0]
    return bool(
        {
            "=": left == right,
            "<>": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }[operator]
    )


def _tree(rng: random.Random, depth: int) -> Tree:
    if depth and rng.random() < 0.8:
        operator = rng.choice(("AND", "OR", "AND", "OR", "NOT"))
        inner = [_tree(rng, depth - 1) for _ in range(1 if operator == "NOT" else 2)]
        return (operator, *inner)
    return _leaf(rng)


def _leaf(rng: random.Random) -> Tree:
    kind = rng.choice(("number", "number", "text", "in", "null", "between"))
    if kind == "number":
        return rng.choice(COMPARISONS), rng.choice(NAMES[:2]), rng.choice((5, 9, 10, 100))
    if kind == "text":
        return rng.choice(("=", "<>")), "region", rng.choice(REGIONS)
    if kind == "in":
        return rng.choice(("IN", "NOT IN")), "region", rng.sample(REGIONS, 2)
    if kind == "null":
        return rng.choice(("IS NULL", "IS NOT NULL")), rng.choice(NAMES)
    low = rng.choice((1, 5, 9))
    return "BETWEEN", rng.choice(NAMES[:2]), low, low + rng.choice((1, 4, 91))


def _properties(rng: random.Random) -> dict[str, str]:
    values = {
        "amount": str(rng.choice((5, 9, 10, 100, 1000))),
        "weight": str(rng.choice((1, 5, 9, 13))),
        "region": rng.choice(REGIONS),
        "coupon": "spring",
    }
    return {name: value for name, value in values.items() if rng.random() < 0.6}


def expression_call(tree: Tree, properties: Properties) -> Call:
    """The call for an expression and the properties of a message."""
    text = written(tree)
    right = sql.compile(text).evaluate(properties)
    return Call(tree=tree, properties=dict(properties), right=right, about=f"{text}, with {dict(properties)}")


SIMPLE: tuple[tuple[Tree, Properties], ...] = (
    ((">", "amount", 9), {"amount": "10"}),
    (("=", "region", "eu"), {"region": "eu"}),
    (("BETWEEN", "amount", 5, 10), {"amount": "10"}),
    (("BETWEEN", "amount", 5, 10), {"amount": "5"}),
    (("IS NULL", "coupon"), {}),
    (("IS NULL", "coupon"), {"coupon": ""}),
    (("=", "region", "eu"), {"region": ""}),
    (("IS NOT NULL", "coupon"), {}),
    (("<>", "amount", 0), {"amount": "-5"}),
    (("<", "amount", 9), {"amount": "-5"}),
    (("=", "region", "7"), {"region": "7"}),
    (("=", "region", "eu"), {"region": "EU"}),
    (("IN", "region", ["eu", "us"]), {"region": "u"}),
    (("NOT IN", "region", ["eu", "us"]), {"region": "US"}),
    (("<", "amount", 9), {"amount": "9"}),
    (("<=", "amount", 9), {"amount": "9"}),
    ((">", "amount", 9), {"amount": "9"}),
    ((">=", "amount", 9), {"amount": "9"}),
    ((">", "amount", 9), {}),
    (("<>", "region", "eu"), {}),
    (("IN", "region", ["eu", "us"]), {}),
    (("NOT IN", "region", ["eu", "us"]), {}),
    (("BETWEEN", "amount", 5, 10), {}),
    (("NOT", ("=", "region", "eu")), {}),
    (("AND", (">", "amount", 9), ("=", "region", "eu")), {"region": "us"}),
    (("AND", (">", "amount", 9), ("=", "region", "eu")), {"region": "eu"}),
    (("OR", (">", "amount", 9), ("=", "region", "eu")), {"region": "eu"}),
    (("OR", (">", "amount", 9), ("=", "region", "eu")), {"region": "us"}),
)
"""One of each kind, so that a misunderstanding is met by the shortest expression that shows it."""


def expressions(seed: int) -> list[Call]:
    """The simple ones, then some by lot."""
    rng = random.Random(f"lab06.three_valued {seed}")
    by_lot = [(_tree(rng, 3), _properties(rng)) for _ in range(24)]
    return [expression_call(tree, properties) for tree, properties in (*SIMPLE, *by_lot)]


def of_kind(seed: int, *, with_unknown: bool) -> list[Call]:
    """Expressions by lot whose properties are all there, or of which some is missing."""
    rng = random.Random(f"lab06.three_valued {seed} {with_unknown}")
    calls: list[Call] = []
    while len(calls) < 20:
        tree, properties = _tree(rng, 3), _properties(rng)
        if (len(properties) < len(NAMES)) == with_unknown:
            calls.append(expression_call(tree, properties))
    return calls


def _as(reading: LogicReading) -> Any:
    return lambda call: evaluated(call["tree"], call["properties"], reading)


def _explain(call: Call, answer: Any, seen: Any) -> str:
    operator = call["tree"][0]
    if operator in ("AND", "OR", "NOT"):
        return {"AND": AND_RULE, "OR": OR_RULE, "NOT": NOT_RULE}[operator]
    if operator in ("IS NULL", "IS NOT NULL"):
        return NULL_RULE
    if call["tree"][1] not in call["properties"]:
        return MISSING_RULE
    if operator in ("<", "<=", ">", ">=") and call["properties"][call["tree"][1]] == str(call["tree"][2]):
        return ENDS_RULE
    if operator == "BETWEEN" and call["properties"][call["tree"][1]] in map(str, call["tree"][2:]):
        return BETWEEN_RULE
    return NUMBER_RULE if isinstance(call["tree"][2], int) else TEXT_RULE


THREE_VALUED = Pure(
    "lab06.three_valued",
    "evaluate(tree, properties)",
    points=3,
    about="filters and messages",
    calls=expressions,
    returns=bool | None,
    explain=_explain,
    rules=VALUE_RULE,
    slips=[
        Slip("missing is False", _as(LogicReading(missing=False, missing_unequal=False)), MISSING_RULE),
        Slip(
            "missing is unequal",
            _as(LogicReading(missing=False, missing_unequal=True)),
            MISSING_RULE,
            "lab06.missing_is_unequal",
        ),
        Slip("unknown spreads", _as(LogicReading(unknown_spreads=True)), AND_RULE),
        Slip("not unknown is true", _as(LogicReading(not_unknown=True)), NOT_RULE),
        Slip("numbers as texts", _as(LogicReading(as_texts=True)), NUMBER_RULE, "lab06.properties_are_numbers"),
    ],
    weights={"": 1, "nothing is missing": 1, "something is missing": 2},
    forbids=FORBIDS["lab06.three_valued"],
)
