"""The files of a big table, written by Arrow in the Python workers of Spark's tasks: one file for each of its parts.

    rows of a partition ── Arrow batches ──▶ part-00012.parquet.4711 ── renamed when it is whole ──▶ part-00012.parquet

Arrow's writer takes half the time of Spark's, the way of the rows from the JVM to it included. A task that Spark runs
again writes a file of the same name with the same rows. Left out: a table that is not new; streams, whose batches Spark
commits itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow
import pyarrow.parquet
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from mqlab.data.spark.small_tables import PARQUET, parquet_schema
from mqlab.data.spark.tasks import freeze_once
from mqlab.whole_files import whole_file

GROUP_ROWS = 100_000  # rows that are compressed together
ROWS = "rows bigint"  # what a task returns: how many rows it has written


class PartOfTable:
    """One Parquet file of a table, which gets its name when ``files`` is left without an error."""

    def __init__(self, files: ExitStack, folder: str, number: int, schema: pyarrow.Schema) -> None:
        draft = files.enter_context(whole_file(Path(folder) / f"part-{number:05}.parquet"))
        # Times hardly repeat: a dictionary of them costs a quarter of the writing, and makes the file larger.
        shared = [column.name for column in schema if not pyarrow.types.is_timestamp(column.type)]
        writer = pyarrow.parquet.ParquetWriter(draft, schema, use_dictionary=shared, **PARQUET)
        self._writer = files.enter_context(writer)
        self._waiting: list[pyarrow.RecordBatch] = []
        self._waiting_rows = self.rows = 0

    def add(self, rows: pyarrow.RecordBatch) -> None:
        """Add rows, which are written when enough are there to be compressed together."""
        self._waiting.append(rows)
        self._waiting_rows += len(rows)
        if self._waiting_rows >= GROUP_ROWS:
            self.end()

    def end(self) -> int:
        """Write what is left; how many rows there are in all."""
        if self._waiting:
            self._writer.write_table(pyarrow.Table.from_batches(self._waiting).cast(self._writer.schema))
        self.rows += self._waiting_rows
        self._waiting, self._waiting_rows = [], 0
        return self.rows


def write_table(frame: DataFrame, schema: StructType, folder: Path) -> None:
    """Write a table to a new folder, which executors must reach, too."""
    as_arrow, path = parquet_schema(schema), str(folder)

    def write(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        freeze_once()
        task = TaskContext.get()
        with ExitStack() as files:
            part = PartOfTable(files, path, 0 if task is None else task.partitionId(), as_arrow)
            for batch in batches:
                part.add(batch)
            rows = part.end()
        yield numbers_of_rows([rows])

    folder.mkdir(parents=True)
    frame.mapInArrow(write, ROWS).collect()
    remove_drafts([folder])


def numbers_of_rows(rows: list[int]) -> pyarrow.RecordBatch:
    """What a task returns."""
    return pyarrow.RecordBatch.from_arrays([pyarrow.array(rows, pyarrow.int64())], names=["rows"])


def remove_drafts(folders: Iterable[Path]) -> None:
    """Remove what a task has left that was killed in the middle, and ran again."""
    for folder in folders:
        for path in folder.iterdir():
            if path.suffix != ".parquet":
                path.unlink()
