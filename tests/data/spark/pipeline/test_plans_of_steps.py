"""What the plans of the big tables leave out: sorting for joins, and a second pass over the units of one id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mqlab.data.spark import plan_of
from mqlab.data.spark.pipeline import schemas as s
from mqlab.data.spark.pipeline.listener_calls import deliveries
from mqlab.data.spark.pipeline.message_life import first_copies, life

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_joins_sort_nothing(spark: SparkSession) -> None:
    tables = [spark.createDataFrame([], schema) for schema in (s.MESSAGES, s.DELIVERIES, s.READERS, s.OFFSETS)]
    for plan in (plan_of(life(*tables)), plan_of(deliveries(spark.createDataFrame([], s.TRACE)))):
        assert "ShuffledHashJoin" in plan
        assert "SortMergeJoin" not in plan


def test_units_of_one_id_are_passed_twice(spark: SparkSession) -> None:
    """Once in their order, and once for the numbers of the whole."""
    assert plan_of(first_copies(spark.createDataFrame([], s.MESSAGES))).count("Window [") == 2
