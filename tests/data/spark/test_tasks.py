"""What a task does before it reads: a worker's imports leave the garbage collector, those of other processes stay."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTSIDE = """
import gc
import duckdb
from mqlab.data.spark.tasks import freeze_once
freeze_once()
print(gc.get_freeze_count())
"""


def test_a_process_that_reads_without_spark_keeps_its_collector_and_ends_quietly() -> None:
    """DuckDB's library prints a list of all its objects that are left at the end."""
    done = subprocess.run([sys.executable, "-c", OUTSIDE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


@pytest.mark.spark
def test_a_worker_of_spark_does_not_collect_its_imports(spark: SparkSession) -> None:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class Reader(DataSourceReader):
        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            import gc

            from mqlab.data.spark.tasks import freeze_once

            freeze_once()
            yield (gc.get_freeze_count(),)

    class Frozen(DataSource):
        @classmethod
        def name(cls) -> str:
            return "frozen_objects"

        def schema(self) -> str:
            return "objects long"

        def reader(self, schema: object) -> Reader:
            return Reader()

    spark.dataSource.register(Frozen)
    (row,) = spark.read.format("frozen_objects").load().collect()
    assert row.objects > 10_000
