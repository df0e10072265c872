"""The options of the data source: what they become, and what a wrong one is told."""

from __future__ import annotations

import pytest

from mqlab.arrow.columns import COLUMNS
from mqlab.errors import UsageError
from mqlab.spark.options import parse


def test_names_in_any_case_and_lists_with_spaces() -> None:
    options = parse({"PATH": "a", "Topic": "orders, %RETRY%g", "queues": "0, 1", "splitmb": "2", "brokername": "x"})
    assert options.paths == ("a",)
    assert options.selection.topics == ("orders", "%RETRY%g")
    assert options.selection.queues == (0, 1)
    assert options.split_bytes == 2 << 20
    assert options.columns == tuple(COLUMNS)
    assert options.broker_names == ("x",)


def test_several_stores() -> None:
    assert parse({"paths": '["a", "file:///b"]'}).paths == ("a", "/b")


@pytest.mark.parametrize(
    "text", ["1700000000000", "2023-11-14T22:13:20", "2023-11-14T22:13:20Z", "2023-11-15T06:13:20+08:00"]
)
def test_times(text: str) -> None:
    assert parse({"path": "a", "startTime": text}).selection.start_ms == 1_700_000_000_000


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "which"),
        ({"path": "a", "topics": "x"}, r"no option 'topics'[\s\S]*columns, topic"),
        ({"path": "a", "columns": "topic,boddy"}, r"'boddy'[\s\S]*body"),
        ({"path": "a", "queues": "0,x"}, "'0,x'.*'0,1'"),
        ({"path": "a", "splitMB": "big"}, "whole number"),
        ({"path": "a", "splitMB": "0"}, "1 or more"),
        ({"path": "a", "maxBytesPerTrigger": "5 apples"}, r"5 apples.*64m"),
        ({"path": "a", "maxBytesPerTrigger": "0"}, "64m"),
        ({"path": "a", "startingOffsets": '{"b": -1}'}, r"latest[\s\S]*physical_offset"),
        ({"path": "a", "startingOffsets": "soon"}, r"'soon'[\s\S]*earliest"),
        ({"path": "a", "failOnDataLoss": "maybe"}, "true or false"),
        ({"path": "a", "endTime": "yesterday"}, "'yesterday'.*ms since the epoch"),
    ],
)
def test_a_wrong_one_is_told_what_it_may_be(given: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse(given)


def test_physical_offsets_are_for_one_store() -> None:
    bounded = parse({"path": "a", "startPhysicalOffset": "7"})
    bounded.check_bounds(1)
    with pytest.raises(UsageError, match=r"one store, and 2[\s\S]*startTime"):
        bounded.check_bounds(2)


@pytest.mark.parametrize(("text", "most"), [("4096", 4096), ("64m", 64 << 20), ("2 KB", 2048), ("1G", 1 << 30)])
def test_bytes_with_a_unit(text: str, most: int) -> None:
    assert parse({"path": "a", "maxBytesPerTrigger": text}).max_bytes_per_trigger == most
