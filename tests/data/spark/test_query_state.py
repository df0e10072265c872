"""What a stream keeps, drops and waits for, batch by batch, over slices that are the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mqlab.course.given.lab12.streams import first_sentence, make_film, run_of_film
from mqlab.data.spark import state_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE, NINE = 60_000, 1_731_315_600_000
TYPES = {"broker_name": "string", "store_timestamp": "timestamp"}


def rows(*minutes: int) -> list[dict[str, Any]]:
    return [{"broker_name": "broker-a", "store_timestamp": NINE + minute * MINUTE} for minute in minutes]


def counted(frame: Any, delay: str) -> tuple[Any, str]:
    from pyspark.sql import functions

    window = functions.window("store_timestamp", "1 minute")
    return frame.withWatermark("store_timestamp", delay).groupBy(window).count(), "update"


@pytest.mark.spark
def test_each_batch_of_a_film_tells_its_watermark_its_state_and_what_was_dropped(
    spark: SparkSession, tmp_path: Path
) -> None:
    film = make_film(tmp_path / "film", [rows(0, 1), rows(20), rows(30), rows(2, 31)], TYPES)
    run = run_of_film(counted, film, "5 minutes")
    told = [(one["new"], one["rows_in_state"], one["dropped"], one["watermark"]) for one in run["batches"]]
    # Minute 2 is dropped: the batch before had the watermark 09:15.
    assert told == [
        (2, 2, 0, ""),
        (1, 3, 0, "2024-11-11 08:56:00"),
        (1, 2, 0, "2024-11-11 09:15:00"),
        (2, 2, 1, "2024-11-11 09:25:00"),
        (0, 2, 0, "2024-11-11 09:26:00"),
    ]
    minutes = [(row["batch"], row["window"]["start"][11:16], row["count"]) for row in run["rows"]]
    assert minutes == [(0, "09:00", 1), (0, "09:01", 1), (1, "09:20", 1), (2, "09:30", 1), (3, "09:31", 1)]
    assert run["mode"] == "update" and run["refused"] == ""


@pytest.mark.spark
def test_what_spark_refuses_is_said_in_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    film = make_film(tmp_path / "film", [rows(0)], TYPES)
    run = run_of_film(lambda frame: (frame.groupBy("broker_name").count(), "append"), film)
    assert run["refused"].startswith("Invalid streaming output mode: append.") and "SQLSTATE" not in run["refused"]
    assert run["rows"] == run["batches"] == []


def test_reports_without_state_are_rows_as_well() -> None:
    assert state_of([{"batchId": 4, "numInputRows": 3, "eventTime": {}, "stateOperators": []}]) == [
        {"batch": 4, "new": 3, "rows_in_state": 0, "dropped": 0, "watermark": ""}
    ]


def test_the_first_sentence_of_an_error_is_what_is_wrong() -> None:
    assert first_sentence("") == "" and first_sentence("plain words") == "plain words"
    assert first_sentence("[A.B] One. Two. SQLSTATE: 42KDE;\nAggregate") == "One. Two."
