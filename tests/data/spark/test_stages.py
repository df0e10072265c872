"""What Spark did for a query, as rows: known tasks, and the rows that moved between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mqlab.data.spark import stages_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_count_by_key_moves_one_row_of_each_key_and_task(spark: SparkSession) -> None:
    spark.range(7).count()  # a query before it is not among the stages
    counts = spark.range(1000, numPartitions=4).selectExpr("id % 10 AS key").groupBy("key").count()
    stages = stages_of(counts.collect)
    first, second = stages.to_dict("records")
    assert (first["tasks"], first["rows_in"], first["rows_out"]) == (4, 0, 40)
    assert (second["rows_in"], second["rows_out"]) == (40, 0)
    assert second["stage"] > first["stage"]


def test_the_fullest_task_is_told_from_the_middle_one(spark: SparkSession) -> None:
    keys = spark.range(1000, numPartitions=2).selectExpr("CASE WHEN id < 900 THEN 0 ELSE id END AS key")
    moved = stages_of(lambda: keys.repartition(8, "key").selectExpr("spark_partition_id()").distinct().collect())
    (full,) = (row for row in moved.to_dict("records") if row["tasks"] == 8)
    assert full["rows_in"] == 1000 and full["most_rows"] >= 900 > 100 > full["median_rows"]


def test_nothing_that_ran_is_no_rows(spark: SparkSession) -> None:
    stages = stages_of(lambda: None)
    assert len(stages) == 0 and list(stages.columns)[:2] == ["stage", "tasks"]
