"""The tables MESSAGES and TRACE, written in one walk over the logs: the tasks of Spark that read a log write them, too.

    a task's part of a log ── units ──┬── their kinds ──────────────────────────▶ messages/part-00012.parquet
                                      └── of the trace topic: bodies, entries ──▶ trace/part-00012.parquet

Rows never become rows of the JVM, which would cost more than all the rest: Arrow makes the columns, and its Parquet
writer compresses them (mqlab.data.spark.pipeline.table_parts). Left out: streams (mqlab.data.spark.pipeline.following).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow
from pyspark.sql import SparkSession

from mqlab.data.arrow.columns import UnitColumns
from mqlab.data.arrow.losses import DataLossWarning
from mqlab.data.arrow.ranges import LogRange, plan, together
from mqlab.data.arrow.reading import EVERYTHING, Selection, read_units
from mqlab.data.spark.pipeline.log_units import PLAIN, TRACE_COLUMNS, Extent
from mqlab.data.spark.pipeline.message_kinds import messages_in
from mqlab.data.spark.pipeline.schemas import MESSAGES, TRACE
from mqlab.data.spark.pipeline.table_parts import ROWS, PartOfTable, numbers_of_rows, remove_drafts
from mqlab.data.spark.pipeline.trace_entries import entries_in
from mqlab.data.spark.session import parallelism_of
from mqlab.data.spark.small_tables import parquet_schema
from mqlab.data.spark.source import SMALLEST_SPLIT, TASKS_PER_CORE
from mqlab.data.spark.tasks import freeze_once, split_bytes
from mqlab.rocketmq.wire import names

OF_THE_TRACE = Selection(topics=(names.TRACE_TOPIC,))
Part = Sequence[LogRange]


def walk(spark: SparkSession, extents: Sequence[Extent], folders: Mapping[str, Path]) -> None:
    """Write the tables named ``messages``, ``trace`` or both to new folders, which executors must reach, too.

    Raises Spark's PythonException with what a task raised: CorruptionError at a damaged unit or body.
    """
    # 1. Parts of the logs as a read of them has, up to where they ended when the run began.
    total = sum(extent.end - extent.start for extent in extents)
    size = split_bytes(total, parallelism_of(spark), TASKS_PER_CORE, SMALLEST_SPLIT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataLossWarning)  # of losses that the snapshot has told
        ranges = [
            log_range
            for extent in extents
            for log_range in plan(extent.store, size, end=extent.end, fail_on_data_loss=not extent.losses)
        ]
    parts = together(ranges, size) or [[]]
    # 2. A task for each; what comes back are numbers of rows alone.
    schemas = {name: parquet_schema({"messages": MESSAGES, "trace": TRACE}[name]) for name in folders}
    paths = {name: str(folder) for name, folder in folders.items()}
    for folder in folders.values():
        folder.mkdir(parents=True)

    def write(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            yield part_written(number, parts[number], paths, schemas)

    spark.range(0, len(parts), 1, len(parts)).mapInArrow(write, ROWS).collect()
    remove_drafts(folders.values())


def part_written(
    number: int, part: Part, paths: Mapping[str, str], schemas: Mapping[str, pyarrow.Schema]
) -> pyarrow.RecordBatch:
    """Write one part of the tables, and return its numbers of rows."""
    freeze_once()
    with ExitStack() as files:
        tables = {name: PartOfTable(files, path, number, schemas[name]) for name, path in paths.items()}
        makers = {name: MAKERS[name] for name in tables}
        for units in _units_of(part, EVERYTHING if "messages" in tables else OF_THE_TRACE):
            for name, made_of in makers.items():
                tables[name].add(made_of(units, schemas[name]))
        rows = [table.end() for table in tables.values()]
    return numbers_of_rows(rows)


def _units_of(part: Part, selection: Selection) -> Iterable[UnitColumns]:
    return (units for where in part for units in read_units(where, selection))


def _messages_of(units: UnitColumns, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    return messages_in({name: units.column(name) for name in PLAIN}, units.property_column, schema)


def _entries_of(units: UnitColumns, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    chosen = OF_THE_TRACE.rows(units)
    return entries_in((units if chosen is None else units.at(chosen)).batch(TRACE_COLUMNS), schema)


MAKERS: Mapping[str, Callable[[UnitColumns, pyarrow.Schema], pyarrow.RecordBatch]] = {
    "messages": _messages_of,
    "trace": _entries_of,
}
