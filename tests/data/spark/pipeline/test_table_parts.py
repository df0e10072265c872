"""Tables that Arrow writes in Spark's tasks: a file for each part, with the usual types, and none of failed tasks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from mqlab.data.spark.pipeline.schemas import table
from mqlab.data.spark.pipeline.table_parts import remove_drafts, write_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CALLS = table("string keys: in any script\nlong cost_ms\ntime ended: null when no result was recorded\nboolean success")
AT = datetime(2026, 1, 1, 12, 0, 0, 7_000, UTC)
ROWS = [("order-1", 7, AT, True), ("заказ-2", None, None, None), ("订单-3", 0, AT, False)]


def test_the_same_rows_in_a_file_for_each_part(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(ROWS, CALLS).repartition(2, "keys")
    write_table(frame, CALLS, tmp_path / "calls")
    assert sorted(path.name for path in (tmp_path / "calls").iterdir()) == ["part-00000.parquet", "part-00001.parquet"]
    back = spark.read.schema(CALLS).parquet(str(tmp_path / "calls"))
    assertDataFrameEqual(back, frame)
    frame.write.parquet(str(tmp_path / "by-spark"))
    (theirs, *_), (ours, *_) = (sorted((tmp_path / name).glob("*.parquet")) for name in ("by-spark", "calls"))
    assert pyarrow.parquet.ParquetFile(ours).schema.equals(pyarrow.parquet.ParquetFile(theirs).schema)
    columns = pyarrow.parquet.read_metadata(ours).row_group(0).to_dict()["columns"]
    assert [column["path_in_schema"] for column in columns if not column["has_dictionary_page"]] == ["ended", "success"]


def test_a_task_that_fails_leaves_no_file(spark: SparkSession, tmp_path: Path) -> None:
    fails = F.when(F.col("cost_ms") == 0, F.raise_error(F.lit("no rate of exchange"))).otherwise(F.lit("k"))
    frame = spark.createDataFrame(ROWS, CALLS).coalesce(1).withColumn("keys", fails.cast("string"))
    with pytest.raises(PySparkException, match="no rate of exchange"):
        write_table(frame, CALLS, tmp_path / "calls")
    assert list((tmp_path / "calls").iterdir()) == []


def test_what_a_killed_task_left_is_removed(tmp_path: Path) -> None:
    for name in ("part-00000.parquet", "part-00000.parquet.4711"):
        (tmp_path / name).touch()
    remove_drafts([tmp_path])
    assert [path.name for path in tmp_path.iterdir()] == ["part-00000.parquet"]
