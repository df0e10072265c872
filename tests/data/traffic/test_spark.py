"""Spark makes the stores, a partition a broker: the same bytes, and its own source reads them."""

from __future__ import annotations

import pytest

from mqlab.data.traffic.writing.runners import on_spark
from tests.data.traffic.test_writing import ASKED, bytes_of

pytestmark = pytest.mark.spark


def test_spark_makes_the_same_day_and_reads_it(spark, small_day) -> None:
    whole = small_day("whole", **ASKED)
    seen: list[int] = []
    made = small_day("made", **ASKED, run=on_spark(spark), progress=seen.append)
    assert made.brokers == whole.brokers
    assert bytes_of(made.directory) == bytes_of(whole.directory)
    assert sum(seen) == 4_000
    rows = spark.read.format("rocketmq").option("path", str(made.directory)).option("columns", "topic").load()
    assert {row.topic: row["count"] for row in rows.groupBy("topic").count().collect()} == made.topics
