"""Spark's Python processes use the PySpark that is installed, compiled once, and not the packed copy of each JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from mqlab.data.spark import worker_python as module
from mqlab.data.spark.worker_python import worker_python, write_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATH_SEEN = "import os; print(os.environ['PYTHONPATH'], end='')"


class ReadingItsOwnPath(DataSource):
    """A row has the file of PySpark and the zip files on sys.path, of the process that planned it and of its task."""

    @classmethod
    def name(cls) -> str:
        return "its-own-path"

    def schema(self) -> str:
        return "planned array<string>, ran array<string>"

    def reader(self, schema: object) -> DataSourceReader:
        def seen() -> list[str]:
            import pyspark

            return [pyspark.__file__, *(entry for entry in sys.path if entry.endswith((".zip", ".jar")))]

        class Reader(DataSourceReader):
            def partitions(self) -> list[InputPartition]:
                return [InputPartition(seen())]

            def read(self, partition: InputPartition) -> Iterator[tuple[list[str], list[str]]]:
                yield partition.value, seen()

        return Reader()


@pytest.mark.spark
def test_what_plans_a_read_and_what_runs_it_find_the_installed_pyspark(spark: SparkSession) -> None:
    spark.dataSource.register(ReadingItsOwnPath)
    (row,) = spark.read.format("its-own-path").load().collect()
    packed_by_python = f"python{sys.version_info.major}{sys.version_info.minor}.zip"  # named on every sys.path
    for process in (row["planned"], row["ran"]):
        assert [entry for entry in process if not entry.endswith(packed_by_python)] == [pyspark.__file__]


def test_only_what_spark_has_packed_is_left_out(tmp_path: Path) -> None:
    python = tmp_path / "it's a python"
    python.symlink_to(sys.executable)
    script = write_script(str(python), tmp_path / "a folder")
    mine = ["/lib", "/My Files/*/x.zip", "relative"]
    spark = (
        "/spark home/python/lib/pyspark.zip",
        "/s/python/lib/py4j-0.10.9.9-src.zip",
        "/s/jars/spark-core_2.13-4.3.0.jar",
    )
    for entries, kept in [([*spark, *mine], mine), ([mine[0], *spark, *mine[1:]], mine), ([*spark], []), (mine, mine)]:
        environment = {**os.environ, "PYTHONPATH": ":".join(entries)}
        run = subprocess.run(
            [script, "-c", PATH_SEEN], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert run.stdout == ":".join(kept)


def test_arguments_reach_python_as_they_are(tmp_path: Path) -> None:
    script = write_script(sys.executable, tmp_path)
    words = ["a b", "c:d", "*", ""]
    said = subprocess.run(
        [script, "-c", "import sys; print(sys.argv[1:])", *words], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == str(words)


def test_where_it_will_not_do_workers_have_this_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "cache_directory", lambda: tmp_path)
    assert Path(worker_python()).parent.parent == tmp_path
    # A PySpark that only this process finds.
    with monkeypatch.context() as changed:
        changed.setattr(pyspark, "__file__", "/elsewhere/pyspark/__init__.py")
        assert worker_python() == sys.executable
    # A cache that cannot be written.
    (tmp_path / "file").touch()
    monkeypatch.setattr(module, "cache_directory", lambda: tmp_path / "file")
    assert worker_python() == sys.executable
