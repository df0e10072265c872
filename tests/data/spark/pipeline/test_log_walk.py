"""The two tables that a run reads from the logs in one walk: those that the steps of Spark make, whole or absent."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest
from pyspark.errors import PythonException

from mqlab.data.arrow.ranges import plan
from mqlab.data.spark import pipeline
from mqlab.data.spark.pipeline.log_walk import part_written, walk
from mqlab.data.spark.small_tables import parquet_schema
from mqlab.errors import CorruptionError
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.wire import names
from tests.data.spark.pipeline.day import Day

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def rows_in(folder: Path) -> Counter[str]:
    return Counter(str(row) for file in folder.glob("*") for row in pyarrow.parquet.read_table(file).to_pylist())


def rows_of(frame: DataFrame, folder: Path) -> Counter[str]:
    frame.write.parquet(str(folder))
    return Counter(
        str(row) for file in folder.glob("*.parquet") for row in pyarrow.parquet.read_table(file).to_pylist()
    )


def test_the_tables_are_those_of_the_steps(
    spark: SparkSession, real_store: Callable[[str], Path], day: Day, tmp_path: Path
) -> None:
    """Of a real broker's store and of two stores of mqlab, in several parts."""
    extents = pipeline.snapshot([real_store("clean"), day.world.directory])
    assert len(extents) == 3
    walk(spark, extents, {name: tmp_path / name for name in ("messages", "trace")})
    by_spark = {
        "messages": pipeline.messages(pipeline.raw(spark, extents)),
        "trace": pipeline.trace(pipeline.trace_raw(spark, extents)),
    }
    for name, frame in by_spark.items():
        there = rows_in(tmp_path / name)
        assert there == rows_of(frame, tmp_path / "by-spark" / name) != Counter()
        schema = pyarrow.parquet.read_schema(next((tmp_path / name).glob("*")))
        assert schema.metadata == parquet_schema(pipeline.STEPS[name].schema).metadata


def test_a_table_that_is_missing_is_made_alone(day: Day, tmp_path: Path) -> None:
    out = Path(shutil.copytree(day.out, tmp_path / "out"))
    before = {file.name: file.stat().st_mtime_ns for file in (out / "messages").iterdir()}
    told: list[str] = []

    def stop_after_it(step: str, numbers: dict[str, float]) -> None:
        told.append(step)
        if numbers:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pipeline.run(day.world.directory, out, spark=day.spark, start="trace", tell=stop_after_it)
    assert told == ["trace", "trace"]
    assert rows_in(out / "trace") == rows_in(day.out / "trace")
    assert {file.name: file.stat().st_mtime_ns for file in (out / "messages").iterdir()} == before


def test_damage_leaves_no_table(day: Day, tmp_path: Path) -> None:
    """The body of a trace message does not match its check sum: neither table is there, and the place is told."""
    stores = Path(shutil.copytree(day.world.directory, tmp_path / "stores"))
    inspector = StoreInspector(stores / "broker-b")
    units = pipeline.raw(day.spark, pipeline.snapshot(stores / "broker-b")).where(f"topic = '{names.TRACE_TOPIC}'")
    at = min(row[0] for row in units.select("physical_offset").collect())
    record = inspector.message_at(at)
    assert record is not None
    (file,) = (path for path in (stores / "broker-b" / "commitlog").iterdir() if int(path.name) <= at)
    content = bytearray(file.read_bytes())
    place = content.index(record.body, at - int(file.name))
    content[place] ^= 1
    file.write_bytes(content)
    told = f"the body does not match its check sum in {file} at offset {int(file.name) + place}"
    with pytest.raises(PythonException, match=re.escape(told)):
        pipeline.run(stores, tmp_path / "out", spark=day.spark)
    assert not (tmp_path / "out" / "messages").exists() and not list((tmp_path / "out").glob(".unfinished/*"))


def test_a_part_that_fails_leaves_no_file(day: Day, tmp_path: Path) -> None:
    store = pipeline.snapshot(day.world.directory)[0].store
    (whole,) = plan(store, 1 << 30)
    beyond = type(whole)(whole.path, whole.file_start, whole.start, whole.end - 1, whole.broker_name)
    schemas = {name: parquet_schema(pipeline.STEPS[name].schema) for name in ("messages", "trace")}
    folders = {name: str(tmp_path / name) for name in schemas}
    for folder in folders.values():
        Path(folder).mkdir()
    with pytest.raises(CorruptionError):
        part_written(0, [beyond], folders, schemas)
    assert [list(Path(folder).iterdir()) for folder in folders.values()] == [[], []]


def test_many_rows_are_several_groups(day: Day, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlab.data.spark.pipeline.table_parts.GROUP_ROWS", 10)
    store = pipeline.snapshot(day.world.directory)[0].store
    schemas = {"messages": parquet_schema(pipeline.STEPS["messages"].schema)}
    monkeypatch.setattr("mqlab.data.arrow.reading.BATCH_ROWS", 7)
    rows = part_written(0, plan(store, 1 << 30), {"messages": str(tmp_path)}, schemas).column(0).to_pylist()
    told = pyarrow.parquet.read_metadata(tmp_path / "part-00000.parquet")
    assert rows == [told.num_rows] and told.num_row_groups == -(-told.num_rows // 14) > 1
