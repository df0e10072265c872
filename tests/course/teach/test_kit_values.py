"""What an answer may return instead without harm, and that a slip is said only when it is really so."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy
import pytest

from mqlab.course.kit import Call, Fields, Pure, slips, tuple_of
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Finding

PLAN = Pure(
    "labxx.plan",
    "plan(count)",
    points=1,
    about="plans",
    rules={"level": "levels begin at 3", "number": "count them"},
    calls=lambda seed: [Call(count=n, right=[(3 + i, 10 * i) for i in range(n)]) for n in (2, 3)],
    returns=[tuple_of("retry", level=int, second=int)],
    slips=[slips.off_by_one, slips.milliseconds],
)
UNIT = Fields(
    "labxx.unit",
    "unit(data)",
    points=1,
    about="units",
    fields={"size": (int, "The first four bytes are the size"), "topic": (str, "The topic follows its length")},
    calls=lambda seed: [Call(data=b"", right={"size": 258, "topic": "orders"})],
    slips=[slips.little_endian],
)


def told(asked: Any, answer: Any) -> Finding | None:
    return asked.case(1).run({asked.defines[0]: answer})  # type: ignore[no-any-return]


def right(count: int) -> list[tuple[int, int]]:
    return [(3 + i, 10 * i) for i in range(count)]


@pytest.mark.parametrize(
    "answer",
    [
        right,
        lambda count: [list(pair) for pair in right(count)],
        lambda count: tuple(right(count)),
        lambda count: [(numpy.int32(level), float(second)) for level, second in right(count)],
    ],
)
def test_harmless_forms_are_taken(answer: Any) -> None:
    assert told(PLAN, answer) is None


@pytest.mark.parametrize(
    ("answer", "rule", "where"),
    [
        (lambda count: [(4 + i, 10 * i) for i in range(count)], slips.off_by_one.says, "retry 1: level"),
        (lambda count: [(4, 0), *right(count)[1:]], "levels begin at 3", "retry 1: level"),
        (lambda count: [(level, 1000 * second) for level, second in right(count)], slips.milliseconds.says, "second"),
        (lambda count: right(count)[:1], "count them", "number of retries"),
        (lambda count: [(second, level) for level, second in right(count)], "levels begin at 3", "retry 1"),
        (lambda count: [(str(level), second) for level, second in right(count)], "int(…) turns it into one", "retry 1"),
        (lambda count: 7, "plan returns a list of tuples (level, second)", "count 2"),
        (lambda count: print(right(count)), "write return where print is", "count 2"),
        (lambda count: None, "gives its result with return", "count 2"),
    ],
)
def test_a_wrong_value_is_told_what_is_so(answer: Any, rule: str, where: str) -> None:
    finding = told(PLAN, answer)
    assert finding is not None and rule in finding.rule and where in finding.first_wrong
    assert finding.call is not None and finding.call["count"] == 2


def test_a_record_is_compared_name_by_name() -> None:
    assert told(UNIT, lambda data: defaultdict(int, size=258, topic="orders", more=1)) is None
    wrong: list[dict[str, Any]] = [
        {"size": 33619968, "topic": "orders"},
        {"size": 258, "topic": "order"},
        {"size": 1},
        {"size": 5, "topic": ""},
    ]
    rules = [getattr(told(UNIT, lambda data, one=one: one), "rule", "") for one in wrong]
    assert rules[0] == slips.little_endian.says and rules[1] == "The topic follows its length"
    assert rules[2].startswith("unit returns a dictionary with the keys size, topic")
    assert rules[3] == "The first four bytes are the size"


MOMENTS = Pure(
    "labxx.moments",
    "moments(count)",
    points=1,
    about="moments",
    rules="another rule",
    calls=lambda seed: [Call(count=n, right=(1_767_225_600_000 + n, None)) for n in (547, 20)],
    returns=tuple_of(stored_ms=int | None, seen_ms=int | None),
    slips=[slips.seconds],
)


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda count: ((1_767_225_600_000 + count) / 1000, None), slips.seconds.says),
        (lambda count: ((1_767_225_600_000 + count) // 1000, None), slips.seconds.says),
        (lambda count: (1_767_225_600_000 + count + 0.5, None), "stored_ms is a whole number or None"),
        (
            lambda count: ((1_767_225_600_000 + count) / 1000 if count > 99 else 1.5, None),
            "stored_ms is a whole number",
        ),
    ],
)
def test_seconds_are_told_with_a_fraction_and_without(answer: Any, rule: str) -> None:
    finding = told(MOMENTS, answer)
    assert finding is not None and rule in finding.rule


def test_an_exception_keeps_its_call() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        told(PLAN, lambda count: 1 // (count - 3) and right(count))
    assert raised.value.mqlab_call["count"] == 3  # type: ignore[attr-defined]


def test_where_many_values_are_right_none_of_them_is_shown() -> None:
    def at_most_five(call: Call, value: Any) -> Difference | None:
        return None if sum(value) <= 5 else Difference(("sum",), "", "at most 5", sum(value))

    sizes = Pure(
        "labxx.size",
        "size(load)",
        points=1,
        about="sizes",
        rules={"": "the sum is 5 or less"},
        compares=at_most_five,
        calls=lambda seed: [Call(load=1, right=(4, 1))],
        returns=tuple_of("size", instances=int, threads=int),
    )
    assert told(sizes, lambda load: (1, 1)) is None
    for wrong in (4, None, "4", (4,), (1, 2, 3), (9, 9)):
        finding = told(sizes, lambda load, wrong=wrong: wrong)
        assert finding is not None and "(4, 1)" not in str(finding.expected)
