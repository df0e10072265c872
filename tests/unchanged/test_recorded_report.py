"""The small day through the pipeline to its page: fact tables, numbers and chart data come out as recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unchanged.recordings import REPORT, recorded
from tests.unchanged.report_lines import lines_of_report
from tests.unchanged.test_recorded_behaviour import first_difference
from tests.unchanged.traces import digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_facts_and_page_say_what_was_recorded(spark: SparkSession, tmp_path: Path) -> None:
    assert first_difference(recorded()[REPORT], digest(lines_of_report(spark, tmp_path))) == ""
