"""Two days through the pipeline to their pages: fact tables, numbers and chart data come out as recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mqlab.course.teach.datasets import small_day
from mqlab.data.spark import pipeline
from tests.data.spark.pipeline.day import Day
from tests.unchanged.recordings import PLAYED_REPORT, REPORT, recorded
from tests.unchanged.report_lines import lines_of_report
from tests.unchanged.test_recorded_behaviour import first_difference
from tests.unchanged.traces import digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_facts_and_page_of_the_played_day_say_what_was_recorded(day: Day, tmp_path: Path) -> None:
    """Of the run that the other tests look at: everything that can happen to a message is in it."""
    assert first_difference(recorded()[PLAYED_REPORT], digest(lines_of_report(day.out, tmp_path))) == ""


@pytest.mark.long
def test_facts_and_page_of_the_small_day_say_what_was_recorded(spark: SparkSession, tmp_path: Path) -> None:
    """A whole day of 3,000 messages, by a run of its own."""
    pipeline.run(small_day(), tmp_path / "out", spark=spark)
    assert first_difference(recorded()[REPORT], digest(lines_of_report(tmp_path / "out", tmp_path))) == ""
