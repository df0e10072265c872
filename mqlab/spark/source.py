"""The Spark data source named rocketmq: store directories as rows, one per message in the commit log.

Mirrors: nothing in RocketMQ; its connectors ask a broker, this reads the files a broker wrote. Lab 10.

    driver   schema ── columns of mqlab.arrow, or those asked for
             plan ──── ranges of the logs, each from unit to unit ──> one task per group of about splitMB
    task     range ──> RecordBatches of 10,000 rows ──> the JVM, no tuples in between

A read is a snapshot: it ends where the logs ended when it was planned. A unit that does not read is an error with file
and offset, never a silent end. Left out: the stream, and the consume queues and config files as sources of their own.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from mqlab.arrow.columns import COLUMNS
from mqlab.arrow.ranges import LogRange, plan, together
from mqlab.arrow.reading import read_range
from mqlab.arrow.stores import LOG, Store, find_stores
from mqlab.errors import UsageError
from mqlab.spark.options import Options, parse

MEGABYTE = 1 << 20
SMALLEST_SPLIT, LARGEST_SPLIT = 64 * MEGABYTE, 128 * MEGABYTE


def spark_schema(names: Sequence[str]) -> StructType:
    """The columns as Spark types, each with its meaning as its comment."""
    return StructType(
        [
            StructField(name, from_arrow_type(COLUMNS[name].type), True, {"comment": COLUMNS[name].meaning})
            for name in names
        ]
    )


class RocketMQSource(DataSource):
    """``spark.read.format("rocketmq")``; options are listed in mqlab.spark.options."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.wanted: Options = parse(options)

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> StructType:
        """The columns of the option ``columns``, else all."""
        return spark_schema(self.wanted.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of this schema: some of the columns, in any order. Raises UsageError for others."""
        known = spark_schema(list(COLUMNS))
        for field in schema.fields:
            if field.name not in COLUMNS:
                raise UsageError(f"there is no column {field.name!r}", hint=f"columns are {', '.join(COLUMNS)}")
            if field.dataType != known[field.name].dataType:
                expected = known[field.name].dataType.simpleString()
                raise UsageError(f"column {field.name} is {expected}, not {field.dataType.simpleString()}")
        return RocketMQReader(self.wanted, schema.fieldNames())


class Ranges(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: list[LogRange]) -> None:
        super().__init__(ranges)


class RocketMQReader(DataSourceReader):
    """Plans on the driver, reads in the tasks; picklable, without state."""

    def __init__(self, wanted: Options, names: Sequence[str]) -> None:
        self.wanted = wanted
        self.names = list(names)

    def partitions(self) -> list[InputPartition]:
        """Groups of ranges, decided now: later appends do not belong to this read."""
        stores = find_stores(self.wanted.paths, self.wanted.broker_names)
        self.wanted.check_bounds(len(stores))
        size = self.wanted.split_bytes or split_bytes(stores)
        start, end = self.wanted.start_physical_offset, self.wanted.end_physical_offset
        ranges = [where for store in stores for where in plan(store, size, start=start, end=end)]
        return [Ranges(group) for group in together(ranges, size)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The batches of one task. Raises CorruptionError with file and physical offset."""
        freeze_once()
        for where in partition.value or []:  # Spark makes one of its own, with None, where there is nothing to read
            yield from read_range(where, self.names, self.wanted.selection)


def split_bytes(stores: Sequence[Store]) -> int:
    """How much one task should read: a quarter of a core's share of the files, within bounds."""
    total = sum(entry.stat().st_size for store in stores for entry in os.scandir(os.path.join(store.directory, LOG)))
    return min(max(total // (4 * (os.cpu_count() or 1)), SMALLEST_SPLIT), LARGEST_SPLIT)


_frozen = False


def freeze_once() -> None:
    """Take what a worker has imported out of the garbage collector: Spark's worker collects after every task."""
    global _frozen
    if not _frozen:
        gc.freeze()
        _frozen = True
