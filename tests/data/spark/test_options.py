"""The options of the data source: what they become, and what a wrong one is told."""

from __future__ import annotations

import os

import pytest

from mqlab.data.arrow.columns import COLUMNS
from mqlab.data.spark.options import parse
from mqlab.data.spark.source import SMALLEST_SPLIT, TASKS_PER_CORE
from mqlab.data.spark.tasks import split_bytes
from mqlab.errors import UsageError


def test_names_in_any_case_and_lists_with_spaces() -> None:
    options = parse({"PATH": "a", "Topic": "orders, %RETRY%g", "queues": "0, 1", "splitmb": "2", "brokername": "x"})
    assert options.paths == ("a",)
    assert options.selection.topics == ("orders", "%RETRY%g")
    assert options.selection.queues == (0, 1)
    assert options.split_bytes == 2 << 20
    assert options.columns == tuple(COLUMNS)
    assert options.broker_names == ("x",)


def test_several_stores() -> None:
    assert parse({"paths": '["a", "file:///b", "file:/c"]'}).paths == ("a", "/b", "/c")
    for path in ("s3a://lake/stores", "hdfs://head/stores"):
        with pytest.raises(UsageError, match=r"expected a local path[\s\S]*only local paths are read[\s\S]*copy"):
            parse({"path": path})


def test_options_without_a_meaning_are_refused() -> None:
    """Each by itself, where it is given; what means something in both places stays."""
    for name, value, told in (
        ("startingOffsets", "latest", "startingOffsets latest"),
        ("maxBytesPerTrigger", "1m", ""),
        ("maxOffsetsPerTrigger", "7", ""),
    ):
        wanted = parse({"path": "a", name: value})
        wanted.check_stream()
        with pytest.raises(UsageError, match=rf"{told or name} has no meaning in a batch[\s\S]*startingTimestamp"):
            wanted.check_batch()
    for name, value in (
        ("endTime", "7"),
        ("endPhysicalOffset", "7"),
        ("endingTimestamp", "7"),
        ("endingOffsets", '{"a": 7}'),
    ):
        wanted = parse({"path": "a", name: value})
        wanted.check_batch()
        with pytest.raises(UsageError, match=rf"{name} has no meaning in a stream[\s\S]*availableNow"):
            wanted.check_stream()
    both = parse({"path": "a", "STARTINGOFFSETS": "latest", "maxbytespertrigger": "1m"})
    with pytest.raises(UsageError, match="startingOffsets latest and maxBytesPerTrigger have no meaning in a batch"):
        both.check_batch()
    lenient = parse({"path": "a", "failOnDataLoss": "false", "startTime": "7", "startingOffsets": '{"a": 7}'})
    lenient.check_batch()
    lenient.check_stream()


def test_two_places_to_begin_or_to_end_and_an_end_before_the_begin() -> None:
    for one, other, what in (
        ("startingOffsets", "startPhysicalOffset", "begins"),
        ("startingTimestamp", "startPhysicalOffset", "begins"),
        ("startingOffsets", "startingTimestamp", "begins"),
        ("endingOffsets", "endingTimestamp", "ends"),
        ("endingTimestamp", "endPhysicalOffset", "ends"),
    ):
        values = {name: "latest" if name.endswith("Offsets") else "7" for name in (one, other)}
        with pytest.raises(UsageError, match=rf"{one} and {other} both say where a read {what}[\s\S]*broker-a"):
            parse({"path": "a", **values})
    for first, last, told in (
        (("startingTimestamp", "8"), ("endingTimestamp", "7"), r"endingTimestamp \(7\) is before startingTimestamp"),
        (("startPhysicalOffset", "8"), ("endPhysicalOffset", "7"), r"endPhysicalOffset \(7\) is before"),
        (("startingOffsets", '{"b": 8}'), ("endingOffsets", '{"b": 7, "c": 1}'), r"endingOffsets \(7\) is before"),
    ):
        with pytest.raises(UsageError, match=told):
            parse({"path": "a", first[0]: first[1], last[0]: last[1]})


def test_tasks_are_as_many_as_the_session_can_use() -> None:
    """A day of 150 MB on two cores was read by three tasks; the machine of the driver has no say."""
    day, mib = 150 << 20, 1 << 20
    assert -(-day // split_bytes(day, 2, TASKS_PER_CORE, SMALLEST_SPLIT)) == 8
    assert split_bytes(day, 64, TASKS_PER_CORE, SMALLEST_SPLIT) == 16 * mib
    assert split_bytes(100 << 30, 64, TASKS_PER_CORE, SMALLEST_SPLIT) == 128 * mib
    assert split_bytes(day, None, TASKS_PER_CORE, SMALLEST_SPLIT) == max(day // 4 // (os.cpu_count() or 1), 16 * mib)


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
        ({"path": "a", "startingTimestamp": "soon"}, "'soon'.*ms since the epoch"),
        ({"path": "a", "endingOffsets": "earliest"}, "nothing to read"),
        ({"path": "a", "endingOffsets": "7"}, r"option endingOffsets is '7'[\s\S]*physical_offset"),
        ({"path": "a", "maxOffsetsPerTrigger": "0"}, "1 or more"),
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
