"""Values cross by value, with exact types, and nothing else gets across."""

from __future__ import annotations

import enum
import json
import math
import sqlite3
from collections import Counter, OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.course.grading.sandbox.values import (
    MAX_BYTES,
    AnswerError,
    Codec,
    Malformed,
    NotPlain,
    dump_line,
    load_line,
)
from mqlab.errors import CorruptionError, UsageError
from mqlab.lab.views.table import Table
from mqlab.rocketmq.wire.message import Message, MessageExt, MessageQueue
from mqlab.rocketmq.wire.units import CqUnit
from tests.course.grading.same import same


def across(value: Any) -> Any:
    line = dump_line({"value": Codec().encode(value)})
    return Codec().decode(load_line(line)["value"])


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=4) | st.integers() | st.tuples(st.integers(), st.text(max_size=2)), inner)
        | st.frozensets(st.integers() | st.text(max_size=3), max_size=4)
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_values_come_across_with_their_types(value: Any) -> None:
    assert same(across(value), value)


@pytest.mark.parametrize(
    "value",
    [
        bytearray(b"ab"),
        {1, "a"},
        10**5000,
        -(2**63),
        math.inf,
        -math.inf,
        Path("a/b"),
        "заказ 订单 🙂",
        "\ud800",
        {(1, "x"): b"\x00"},
        MessageQueue("orders", "broker-a", 2),
        CqUnit(5, 20, 77),
        [True, 1, 1.0],
        (),
    ],
    ids=lambda value: type(value).__name__,
)
def test_less_usual_values_too(value: Any) -> None:
    assert same(across(value), value)


def test_nan_and_memoryview() -> None:
    assert math.isnan(across(math.nan))
    view = across(memoryview(b"abcdef")[2:4])
    assert isinstance(view, memoryview) and bytes(view) == b"cd"


class Always(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Colour(enum.IntEnum):
    RED = 3


@pytest.mark.parametrize(
    ("given_value", "arrives"),
    [
        (Always(7), 7),
        (Colour.RED, 3),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(x=1), {"x": 1}),
        (namedtuple("Pair", "a b")(1, 2), (1, 2)),
        (numpy.int64(5), 5),
        (numpy.bool_(True), True),
        (numpy.float64(0.5), 0.5),
    ],
)
def test_subclasses_and_numpy_scalars_become_the_plain_type(given_value: Any, arrives: Any) -> None:
    assert same(across(given_value), arrives)


def test_messages_keep_every_field() -> None:
    message = Message("orders", "книга".encode(), tags="paid", keys=["a", "b"], properties={"p": "值"})
    found = across(message)
    assert (found.topic, found.body, found.properties, found.flag) == (
        message.topic,
        message.body,
        message.properties,
        message.flag,
    )
    stored = MessageExt.__new__(MessageExt)
    for number, name in enumerate((*Message.__slots__, *MessageExt.__slots__)):
        setattr(stored, name, number)
    stored.topic, stored.body, stored.properties = "t", b"x", {"UNIQ_KEY": "ID"}
    again = across(stored)
    assert type(again) is MessageExt and again.msg_id == "ID" and again.queue_offset == stored.queue_offset


def test_tables_come_as_tables() -> None:
    table = across(Table([{"topic": "订单", "lag": 2}], title="Lag"))
    assert isinstance(table, Table) and table.title == "Lag" and table[0].lag == 2 and table[0].topic == "订单"


def test_errors_keep_their_class_when_it_is_known() -> None:
    error = across(CorruptionError("bad unit", where="log", offset=8, expected=1, found=2))
    assert isinstance(error, CorruptionError) and error.offset == 8 and "bad unit" in str(error)
    assert isinstance(across(KeyError("k")), KeyError)
    assert isinstance(across(UsageError("u")), UsageError)
    with pytest.raises(sqlite3.IntegrityError) as raised:
        sqlite3.connect(":memory:").executescript(
            "CREATE TABLE paid (order_key TEXT PRIMARY KEY); INSERT INTO paid VALUES ('a'), ('a')"
        )
    twice = across(raised.value)
    assert isinstance(twice, sqlite3.IntegrityError) and str(twice) == str(raised.value)


def test_errors_of_python_say_the_same_words() -> None:
    for source in ("return (", "x = 1\n  y = 2", "def f(:"):
        with pytest.raises(SyntaxError) as raised:
            compile(source, "<answer>", "exec")
        assert str(across(raised.value)) == str(raised.value)
        assert across(raised.value).lineno == raised.value.lineno
    for error in (OSError(2, "No such file", "заказ"), StopIteration(7), KeyError("订单"), ZeroDivisionError()):
        assert (type(across(error)), str(across(error))) == (type(error), str(error))


def test_errors_of_other_classes_arrive_as_answer_errors() -> None:
    class Own(Exception):
        pass

    error = across(Own("what"))
    assert isinstance(error, AnswerError) and "Own" in str(error) and "what" in str(error)
    assert isinstance(across(SystemExit(3)), AnswerError)
    assert isinstance(across(KeyboardInterrupt()), AnswerError)


@pytest.mark.parametrize("value", [object(), (n for n in ()), len, int, open, Codec()])
def test_what_is_not_plain_is_refused_by_name(value: Any) -> None:
    with pytest.raises(NotPlain) as error:
        Codec().encode([value])
    assert "cannot be handed over" in str(error.value)


def test_cycles_and_size_are_bounded() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(NotPlain, match="deep"):
        Codec().encode(cycle)
    with pytest.raises(NotPlain, match="too large"):
        dump_line({"value": "x" * MAX_BYTES})


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"a": 1, "b": 2},
        {"bytes": 3},
        {"bytes": "%%%"},
        {"pickle": "gASV"},
        {"tuple": 3},
        {"dict": [[1]]},
        {"set": [[1]]},
        {"float": "7"},
        {"int": "x"},
        {"answer": [1]},
        {"world": [1]},
        {"data": ["os", "system", []]},
        {"data": ["mqlab.rocketmq.wire.message", "Message", []]},
        {"data": ["mqlab.rocketmq.wire.message", "MessageQueue", [["topic", "t"]]]},
        {"data": ["mqlab.course.grading.sandbox.walled", "Sandbox", [["level", "process"]]]},
        {"data": ["mqlab.rocketmq.wire.message", "__import__", []]},
        {"error": ["os", "x"]},
        {"message": ["Message", [["topic", "t"]]]},
        {"message": ["Lab", []]},
        {"table": 1},
    ],
)
def test_forged_data_is_malformed(data: Any) -> None:
    with pytest.raises(Malformed):
        Codec().decode(data)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_no_json_does_anything_but_decode_or_be_malformed(data: Any) -> None:
    try:
        Codec().decode(data)
    except Malformed:
        pass


@pytest.mark.parametrize("line", [b"", b"x\n", b"[1]\n", b"NaN\n", b"{", b"\xff\n", b"[" * 100_000])
def test_lines_that_are_no_messages(line: bytes) -> None:
    with pytest.raises(Malformed):
        load_line(line)


def test_same_is_exact() -> None:
    assert not same(True, 1) and not same(1.0, 1) and not same([1], (1,)) and not same({1: 2}, {True: 2})
    assert not same({1}, {True}) and not same(bytearray(b"a"), b"a")
    assert same({"a": [1, (2,)]}, {"a": [1, (2,)]})
    assert json.dumps(Codec().encode({2, 1})) == json.dumps(Codec().encode({1, 2}))
