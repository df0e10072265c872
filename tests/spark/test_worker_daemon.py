"""Python workers are forked from a process that has the kernel already, and no threads, which a fork would lose."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
import pytest

from mqlab.spark.session import IN_THIS_JVM, settings_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="a process is looked at in /proc")
def test_workers_of_a_session_come_from_it(spark: SparkSession) -> None:
    def parents(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for _ in batches:
            process = Path(f"/proc/{os.getppid()}")
            threads = [(one / "comm").read_text().strip() for one in (process / "task").iterdir()]
            told = (process / "cmdline").read_bytes().decode(), threads
            yield pyarrow.RecordBatch.from_pylist([{"line": told[0], "threads": told[1]}])

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(parents, "line string, threads array<string>").collect()
    assert "mqlab.spark.worker_daemon" in row["line"].split("\0")
    assert len(row["threads"]) == 1, row["threads"]


def test_it_imports_what_a_worker_needs() -> None:
    import mqlab.spark.worker_daemon  # noqa: F401  here it only imports

    assert {"pandas", "pyspark.worker", "mqlab.arrow.columns", "pyarrow.parquet"} <= sys.modules.keys()


def test_executors_of_a_cluster_do_not_need_it() -> None:
    name = "spark.python.daemon.module"
    assert name in IN_THIS_JVM and name in settings_for("local[2]", "a", False, {})
    assert name not in settings_for("spark://127.0.0.1:7077", "a", False, {})
    assert name not in settings_for("local-cluster[2,1,1024]", "a", False, {})
