"""SQL92 filters against the answers of RocketMQ's own parser, and its quirks one by one.

Mirrors: org.apache.rocketmq.filter.parser.SelectorParser.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import FilterError
from mqlab.rocketmq.filter import sql

FIXTURES = Path(__file__).parent.parent / "conformance" / "fixtures"
REFUSED, NOT_EVALUATED = "compile error", "evaluate error"


def outcome(expression: str, properties: dict[str, str]) -> object:
    try:
        compiled = sql.compile(expression)
    except FilterError:
        return REFUSED
    try:
        return compiled.evaluate(properties)
    except FilterError:
        return NOT_EVALUATED


def test_every_answer_of_the_java_classes() -> None:
    cases = json.loads(gzip.decompress((FIXTURES / "sql92.json.gz").read_bytes()))
    assert len(cases) == 901
    for case in cases:
        result = None if case["result"] == "null" else case["result"]
        assert outcome(case["expression"], case["properties"]) == result, case


@pytest.mark.parametrize(
    ("expression", "properties", "result"),
    [
        ("a > 5", {"a": "7"}, True),
        ("a > 5", {}, None),
        ("a > 5", {"a": "abc"}, NOT_EVALUATED),
        ("a > 5", {"a": "3000000000"}, NOT_EVALUATED),
        ("a >= 3000000000", {"a": "3000000001"}, True),
        ("a = 5", {"a": "05"}, True),
        ("a = 5", {"a": "5.0"}, NOT_EVALUATED),
        ("a <> 5", {}, None),
        ("5 = a", {}, False),
        ("5 <> a", {}, True),
        ("a = 'it''s'", {"a": "it's"}, True),
        ("a = b", {}, True),
        ("a = b", {"b": "1"}, None),
        ("a = b", {"a": "1"}, False),
        ("NOT a = 5", {"a": "5"}, False),
        ("a = 007", {"a": "0"}, True),
        ("(a = 007)", {}, REFUSED),
        ("a > b", {"a": "10", "b": "9"}, True),
        ("a NOT BETWEEN 1 AND 5", {"a": "6"}, True),
        ("a BETWEEN 5 AND 1", {}, REFUSED),
        ("a BETWEEN 5 AND -5", {"a": "0"}, False),
        ("a IN ('x','订单')", {"a": "订单"}, True),
        ("a NOT IN ('x')", {}, None),
        ("a", {"a": "true"}, False),
        ("NOT a", {"a": "true"}, True),
        ("a = TRUE", {"a": "TRUE"}, True),
        ("TRUE = a", {"a": "true"}, NOT_EVALUATED),
        ("a = 1 AND b = 2", {"b": "3"}, False),
        ("a = 1 OR b = 2", {"a": "1"}, True),
        ("a not contains 'ell'", {}, False),
        ("a contains 'каз'", {"a": "заказ"}, True),
        ("a startswith '😀'", {"a": "😀!"}, True),
        ("a > 5 garbage", {"a": "7"}, True),
        ("a > 5 x !", {"a": "7"}, True),
        ("a > 5 !", {"a": "7"}, REFUSED),
        ("a > 5 NOT", {"a": "7"}, REFUSED),
        ("a like 'h%'", {"a": "hello"}, False),
        ("a > 0.0", {}, REFUSED),
        ("a > 99999999999999999999", {}, REFUSED),
        ("a > 1 -- a comment\n AND b > 1", {"a": "2", "b": "2"}, True),
        ("a /* 注 */ > 1", {"a": "2"}, True),
        ("a = 5", {"a": "٥"}, True),  # Integer.valueOf takes any script's digits
        ("a > 1.7976931348623157e308", {"a": "Infinity"}, True),
        ("a > 1e309", {}, REFUSED),
        ("a > 4.9e-324", {"a": "1e-300"}, True),
        ("a > 1e-400", {}, REFUSED),
        ("a = a", {"a": "NaN"}, True),
        ("a > 1e300", {"a": "NaN"}, True),
        ("-(5) < a", {"a": "5"}, True),
        ("-a < 5", {"a": "5"}, None),
        ("a < 1 < 2", {}, REFUSED),
        ("a BETWEEN +5 AND 1", {}, REFUSED),
        ("a BETWEEN 1 AND a = 5", {"a": "5"}, False),
        ("a = 5 <> FALSE", {"a": "5"}, True),
        ("'x' = TRUE", {}, False),
        ("5 CONTAINS '5'", {}, False),
        ("a > 5 contains 'x'", {"a": "6"}, False),
        ("NULL OR a = 5", {"a": "5"}, True),
        ("a = 5 /* x", {"a": "5"}, REFUSED),
        ("a = 5 -- x", {"a": "5"}, True),
        ("", {}, REFUSED),
    ],
)
def test_quirks(expression: str, properties: dict[str, str], result: object) -> None:
    assert outcome(expression, properties) == result


def test_an_error_says_where() -> None:
    with pytest.raises(FilterError, match="position 2") as caught:
        sql.compile("a ! 5")
    assert caught.value.position == 2


@pytest.mark.parametrize(
    ("expression", "position"),
    [
        ("a > 99999999999999999999", 4),
        ("a = 1 AND 5", 10),
        ("5", 0),
        ("a = 1 OR (b > 0.0)", 14),
        ("a IN (5)", 6),
        ("a >", 3),
    ],
)
def test_an_error_points_at_what_is_wrong(expression: str, position: int) -> None:
    with pytest.raises(FilterError) as caught:
        sql.compile(expression)
    assert caught.value.position == position


@pytest.mark.parametrize(
    "expression",
    ["(" * 50_000 + "a = 1" + ")" * 50_000, "NOT " * 5000 + "a", "- " * 5000 + "5 < a", "a" + " IS NULL" * 5000],
)
def test_nesting_beyond_reason_is_an_error(expression: str) -> None:
    assert outcome(expression, {}) == REFUSED


def test_any_number_of_conditions_can_be_joined() -> None:
    assert outcome(" AND ".join(["a = 5"] * 5000), {"a": "5"}) is True
    assert outcome(" OR ".join(["a = 6"] * 5000), {}) is None
    assert outcome("(" * 90 + "a = 5" + ")" * 90, {"a": "5"}) is True


def test_three_values() -> None:
    values = {"TRUE": True, "FALSE": False, "NULL": None}
    for one, left in values.items():
        assert outcome(f"NOT {one}", {}) is {True: False, False: True, None: None}[left]
        for other, right in values.items():
            unknown = None if None in (left, right) else True
            both = False if False in (left, right) else unknown
            either = True if True in (left, right) else (None if None in (left, right) else False)
            assert outcome(f"{one} AND {other}", {}) is both
            assert outcome(f"{one} OR {other}", {}) is either


def test_the_right_side_is_not_looked_at_when_the_left_decides() -> None:
    assert outcome("FALSE AND a > 5", {"a": "x"}) is False
    assert outcome("TRUE OR a > 5", {"a": "x"}) is True
    assert outcome("NULL AND a > 5", {"a": "x"}) == NOT_EVALUATED


def test_parsed_texts_are_kept() -> None:
    assert sql.compile("kept = 1") is sql.compile("kept = 1")


WORDS = "a b 5 -5 5.5 0 'x' '' NOT AND OR IS NULL IN BETWEEN TRUE FALSE CONTAINS = <> < > ( ) , + - ! /* */ --"
words = st.sampled_from(WORDS.split())


@given(st.lists(words, max_size=12).map(" ".join), st.dictionaries(st.sampled_from("ab"), st.text(max_size=4)))
def test_any_words_in_any_order_give_an_answer_or_a_filter_error(text: str, properties: dict[str, str]) -> None:
    assert outcome(text, properties) in (True, False, None, REFUSED, NOT_EVALUATED)


@given(st.text(max_size=30))
def test_any_text_gives_an_answer_or_a_filter_error(text: str) -> None:
    assert outcome(text, {"a": text}) in (True, False, None, REFUSED, NOT_EVALUATED)


def test_what_is_no_text_is_told_so() -> None:
    nothing: Any = None
    with pytest.raises(FilterError, match="None is not an expression"):
        sql.compile(nothing)
    numbers: Any = {"amount": 12}
    with pytest.raises(FilterError, match="the property amount is 12, no text"):
        sql.compile("amount > 10").evaluate(numbers)
