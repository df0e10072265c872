"""What is said to a table that is wrong, whatever the exercise; no Spark is needed for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mqlab.course.kit import Call, Rows, Slip, Store
from mqlab.course.kit.row_promises import believed, between, evenly, together
from mqlab.course.teach.exercises import Finding

RIGHT = [
    {"broker": "a", "queue": 0, "messages": 5, "mean": 0.3},
    {"broker": "a", "queue": 1, "messages": 7, "mean": 0.5},
    {"broker": "b", "queue": 0, "messages": 2, "mean": 0.1},
]


def changed(number: int, **values: Any) -> list[dict[str, Any]]:
    return [row | (values if place == number else {}) for place, row in enumerate(RIGHT)]


def twice() -> list[dict[str, Any]]:
    return [row | {"messages": 2 * int(str(row["messages"]))} for row in RIGHT]


COUNTS = Rows(
    "labxx.counts",
    "counts(messages, topic)",
    points=1,
    about="stores",
    through="rows_of",
    calls=lambda seed: [Call(messages=Store("/somewhere", "a store"), topic="orders", right=RIGHT)],
    columns=("broker", "queue", "messages", "mean"),
    by=("broker", "queue"),
    close={"mean": 0.01},
    rules={"missing": "a row for each queue", "messages": "count them", "": "another rule"},
    slips=[
        Slip("twice", lambda call: twice(), "copies count once", "b.x"),
        Slip("one more", lambda call: changed(1, messages=8), "the first counts", "b.y"),
        Slip("first broker", lambda call: RIGHT[:2], "two brokers", "b.z"),
        Slip("first broker again", lambda call: RIGHT[:2], "never said", "b.w"),
    ],
    explain=lambda call, rows, wrong: "a gift" if wrong.found and wrong.found["messages"] == 77 else "",
)


AGES = Rows(
    "labxx.ages",
    "ages()",
    points=1,
    about="messages",
    calls=lambda seed: [Call(right=[{"key": "a", "age": 12}])],
    columns=("key", "age"),
    by=("key",),
    close={"age": 1},
    rules={"age": "in whole seconds"},
)


@pytest.mark.parametrize(("age", "is_taken"), [(12, True), (13, True), (12.0, True), (11.0, True), (12.4, False)])
def test_a_whole_number_may_be_near_and_has_no_fraction(age: float, is_taken: bool) -> None:
    finding = AGES.case(1).run({"ages": lambda: [{"key": "a", "age": age}]})
    assert (finding is None) is is_taken and (finding is None or finding.rule == "in whole seconds")


def told(asked: Any, rows: object) -> Finding | None:
    given = {"rows_of": lambda function, *given: function(*given), asked.form.name: lambda *given: rows}
    return asked.case(1).run(given)  # type: ignore[no-any-return]


class SparkRow(tuple[Any, ...]):
    def asDict(self) -> dict[str, Any]:
        return dict(zip(("broker", "queue", "messages", "mean"), self, strict=True))


@pytest.mark.parametrize(
    "rows",
    [
        RIGHT,
        RIGHT[::-1],
        [tuple(row.values()) for row in RIGHT],
        [SparkRow(row.values()) for row in RIGHT],
        [row | {"more": 1} for row in RIGHT],
        changed(0, messages=5.0),
        changed(0, mean=0.309),
    ],
)
def test_any_order_harmless_forms_and_other_columns_are_taken(rows: object) -> None:
    assert told(COUNTS, rows) is None


@pytest.mark.parametrize(
    ("rows", "rule", "where", "expected"),
    [
        (changed(0, messages=6), "count them", "broker 'a', queue 0", RIGHT[0]),
        (changed(0, messages=77), "a gift", "broker 'a', queue 0", RIGHT[0]),
        (changed(0, mean=0.32), "another rule", "broker 'a', queue 0", RIGHT[0]),
        (RIGHT[1:], "a row for each queue", "broker 'a', queue 0", RIGHT[0]),
        (changed(0, messages="5"), "messages is a number, and here it is a string", "broker 'a', queue 0", RIGHT[0]),
        (
            [row | {"queue": str(row["queue"])} for row in RIGHT],
            "queue is a number, and here it is a string",
            "broker 'a', queue 0",
            RIGHT[0],
        ),
        ([*RIGHT, RIGHT[0] | {"queue": 9}], "another rule", "broker 'a', queue 9", "no such row"),
        ([*RIGHT, RIGHT[0]], "One row for each broker, queue", "broker 'a', queue 0", "one row"),
        ([{"broker": "a"}], "counts returns the columns broker, queue, messages, mean", "its rows", None),
        ([(1, 2)], "counts returns the columns broker, queue, messages, mean", "its rows", None),
        (5, "counts returns a DataFrame", "its rows", None),
        (None, "counts returned nothing: a function gives its result with return", "its rows", None),
    ],
)
def test_the_first_wrong_row_is_shown_with_its_rule(rows: object, rule: str, where: str, expected: object) -> None:
    finding = told(COUNTS, rows)
    assert finding is not None and (finding.rule, finding.first_wrong) == (rule, where)
    assert expected is None or finding.expected == expected
    assert finding.call is not None and repr(finding.call) == "call(messages=<a store>, topic='orders')"


BY_MINUTE = Rows(
    "labxx.by_minute",
    "by_minute(messages)",
    points=1,
    about="stores",
    columns=("minute_ms", "p99_ms"),
    by=("minute_ms",),
    calls=lambda seed: [Call(messages=0, right=[{"minute_ms": 1_731_319_260_000, "p99_ms": 60}])],
)


def test_a_time_of_a_row_is_shown_with_the_time_of_day_and_a_duration_is_not() -> None:
    finding = told(BY_MINUTE, [{"minute_ms": 1_731_319_260_000, "p99_ms": 61}])
    assert finding is not None and finding.first_wrong == "minute_ms 1731319260000 (10:01:00)"
    assert repr(finding.expected) == "{'p99_ms': 60, 'minute_ms': 1731319260000 (10:01:00)}"  # what differs comes first
    assert finding.found == {"minute_ms": 1_731_319_260_000, "p99_ms": 61}


@pytest.mark.parametrize(("found", "shown"), [(0.5, 0.5), (60.123456789, 60.123), (60.0000001, 60.0000001)])
def test_a_number_is_rounded_unless_that_hides_what_is_different(found: float, shown: float) -> None:
    finding = told(BY_MINUTE, [{"minute_ms": 1_731_319_260_000, "p99_ms": found}])
    assert finding is not None and finding.found == {"minute_ms": 1_731_319_260_000, "p99_ms": shown}


@pytest.mark.parametrize(
    ("rows", "rule", "belief"),
    [
        (twice(), "copies count once", "b.x"),
        (changed(1, messages=8), "the first counts", "b.y"),
        (changed(1, messages=14), "copies count once", "b.x"),  # only here: every wrong value is the slip's
        ([*changed(1, messages=14)[:2], RIGHT[2] | {"messages": 9}], "count them", ""),  # by chance: another one is not
        ([RIGHT[0], twice()[1], RIGHT[2] | {"mean": 0.7}], "copies count once", "b.x"),
        (RIGHT[:2], "two brokers", ""),  # two misunderstandings give these rows: none of them is blamed
    ],
)
def test_a_slip_is_named_when_its_rows_are_found(rows: object, rule: str, belief: str) -> None:
    finding = told(COUNTS, rows)
    assert finding is not None and (finding.rule, finding.belief) == (rule, belief)


def test_a_slip_that_errs_where_the_answer_is_right_is_not_named() -> None:
    """The fullest queue in place of the emptiest: one less is its number by chance, and its name is not."""
    emptiest = {"topic": "t", "queue": 1, "messages": 48}
    fullest = Rows(
        "labxx.fullest",
        "fullest()",
        points=1,
        about="stores",
        calls=lambda seed: [Call(right=[{"topic": "t", "queue": 0, "messages": 49}])],
        columns=("topic", "queue", "messages"),
        by=("topic",),
        rules={"messages": "count them", "queue": "the fullest one"},
        slips=[Slip("upwards", lambda call: [emptiest], "sort downwards", "b.x")],
    )
    said = [told(fullest, [emptiest | {"queue": queue}]) for queue in (0, 1)]
    assert [finding and finding.rule for finding in said] == ["count them", "sort downwards"]


def test_a_fraction_near_a_right_number_is_no_right_value_of_a_slip() -> None:
    """Where it is compared with the values that a slip gets wrong, too."""
    rows = [{"key": key, "age": age} for key, age in (("a", 12), ("b", 30))]
    ages = Rows(
        "labxx.ages",
        "ages()",
        points=1,
        about="messages",
        calls=lambda seed: [Call(right=rows)],
        columns=("key", "age"),
        by=("key",),
        close={"age": 1},
        rules={"age": "in whole seconds"},
        slips=[Slip("none", lambda call: [row | {"age": 0} for row in rows], "not done")],
    )
    finding = told(ages, [{"key": "a", "age": 0}, {"key": "b", "age": 30.4}])
    assert finding is not None and finding.rule == "in whole seconds"


def test_an_answer_without_a_store_gets_its_arguments_and_returns_rows() -> None:
    entries = Rows(
        "labxx.entries",
        "entries(body)",
        points=1,
        about="bodies",
        columns=("kind",),
        by=("kind",),
        calls=lambda seed: [Call(body=b"Pub", right=[{"kind": "Pub"}], about="one entry")],
    )
    assert entries.defines == ("entries",)
    assert entries.case(1).run({"entries": lambda body: [{"kind": body.decode()}]}) is None
    finding = entries.case(1).run({"entries": lambda body: []})
    assert finding is not None and finding.first_wrong == "one entry: kind 'Pub'"
    told_nothing = entries.case(1).run({"entries": lambda body: print(body)})
    assert told_nothing is not None and "printed its result" in told_nothing.rule


MESSAGES = [{"number": number} for number in range(8)]


def at(row: Any) -> str:
    return f"message {row['number']}"


def even_parts(call: Call, rows: Sequence[Any]) -> bool:
    return all(row["part"] == row["number"] // 4 for row in rows)


PARTS = Rows(
    "labxx.parts",
    "parts(count)",
    points=1,
    about="parts",
    columns=("number", "part"),
    by=("number",),
    calls=lambda seed: [Call(count=4, right=MESSAGES)],
    rules="each message once",
    again="the same again",
    promises=[
        between("part", lambda call: range(call["count"]), "in range", at),
        together("part", lambda call, row: f"pair {row['number'] // 2}", "pairs together", at),
        believed(evenly("part", lambda call: call["count"], 1.5, "even"), {"b.halves": even_parts}),
    ],
)


def in_parts(numbers: Sequence[int]) -> list[dict[str, int]]:
    return [{"number": number, "part": part} for number, part in enumerate(numbers)]


@pytest.mark.parametrize(
    ("numbers", "rule", "where", "belief"),
    [
        ([0, 0, 1, 1, 2, 2], "each message once", "number 6", ""),
        ([0, 0, 1, 1, 2, 2, 4, 4], "in range", "message 6", ""),
        ([0, 0, 1, 1, 2, 2, 3, 0], "pairs together", "pair 3, message 7", ""),
        ([0, 0, 0, 0, 2, 2, 3, 3], "even", "part 0 of 4", ""),
        ([0, 0, 0, 0, 1, 1, 1, 1], "even", "part 0 of 4", "b.halves"),
    ],
)
def test_promises_of_rows(numbers: list[int], rule: str, where: str, belief: str) -> None:
    finding = PARTS.case(1).run({"parts": lambda count: in_parts(numbers)[::-1]})
    assert finding is not None and (finding.rule, finding.first_wrong, finding.belief) == (rule, where, belief)
    assert PARTS.case(1).run({"parts": lambda count: in_parts([0, 0, 1, 1, 2, 2, 3, 3])}) is None


def test_another_answer_to_the_same_question_is_found() -> None:
    asked: list[int] = []

    def parts(count: int) -> list[dict[str, int]]:
        asked.append(count)
        return in_parts([0, 0, 1, 1, 2, 2, 3, 3] if len(asked) == 1 else [1, 1, 0, 0, 2, 2, 3, 3])

    finding = PARTS.case(1).run({"parts": parts})
    assert finding is not None and (finding.rule, finding.first_wrong) == ("the same again", "number 0")
    assert (finding.expected, finding.found) == ({"number": 0, "part": 0}, {"number": 0, "part": 1})
