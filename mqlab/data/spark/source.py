"""The Spark data source named rocketmq: store directories as rows, one per message in the commit log.

RocketMQ's own connectors ask a broker, as this one does with a nameServer (mqlab.data.spark.live); with a path it reads
the files that a broker wrote. Used by lab 10.

    driver   schema ── columns of mqlab.data.arrow, or those asked for
             plan ──── ranges of the logs, each from unit to unit ──> one task per group of about splitMB
    task     range ──> RecordBatches of 10,000 rows ──> the JVM, no tuples in between
    stream   the same from offset to offset: mqlab.data.spark.stream

Reads are planned for as many tasks as the session runs at once (its default parallelism), but a task reads at least
SMALLEST_SPLIT. A read is a snapshot: it ends where the logs ended when it was planned. A damaged unit is an error with
file and offset, not a silent end; so is a body that does not fit its check sum, or a log that ends before its queues.
Rows are written by mqlab.data.spark.store_sink, or sent to a cluster by mqlab.data.spark.live.sink.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence

import pyarrow
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from mqlab.data.arrow.columns import COLUMNS
from mqlab.data.arrow.growing import log_end
from mqlab.data.arrow.known_topics import check_topics
from mqlab.data.arrow.ranges import LogRange, plan
from mqlab.data.arrow.stores import LOG, StoreFolder, find_stores
from mqlab.data.spark.live.options import is_live, parse_live
from mqlab.data.spark.log_places import Offsets, check_not_deleted
from mqlab.data.spark.options import Options, parse
from mqlab.data.spark.reading_only import ReadingOnly
from mqlab.data.spark.stream import RocketMQStreamReader
from mqlab.data.spark.tasks import read_task, split_bytes, tasks
from mqlab.errors import UsageError
from mqlab.rocketmq.store.reading.store_reader import StoreReader

TASKS_PER_CORE, SMALLEST_SPLIT = 4, 16 << 20


def spark_schema(names: Sequence[str]) -> StructType:
    """The columns as Spark types, each with its meaning as its comment."""
    return StructType(
        [
            StructField(name, from_arrow_type(COLUMNS[name].type), True, {"comment": COLUMNS[name].meaning})
            for name in names
        ]
    )


class RocketMQSource(ReadingOnly):
    """``spark.read.format("rocketmq")``; options are listed in mqlab.data.spark.options, those with a nameServer in
    mqlab.data.spark.live.options."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> StructType:
        """The columns of the option ``columns``, else all. Raises UsageError for wrong options."""
        if is_live(self.options):
            return spark_schema(parse_live(self.options).columns)
        return spark_schema(parse(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of this schema: some of the columns, in any order.

        Raises UsageError for others, for options without a meaning in a batch, and for a store that executors lack.
        """
        if is_live(self.options):
            from mqlab.data.spark.live.reader import LiveReader  # a client of the cluster: workers on stores do without

            return LiveReader(parse_live(self.options), _names_of(schema), self.parallelism)
        options = parse(self.options)
        options.check_batch()
        self.check_seen(options.paths)
        return RocketMQReader(options, _names_of(schema), self.parallelism)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The same for ``spark.readStream.format("rocketmq")``."""
        if is_live(self.options):
            from mqlab.data.spark.live.stream import LiveStreamReader

            return LiveStreamReader(parse_live(self.options), _names_of(schema), self.parallelism)
        options = parse(self.options)
        self.check_seen(options.paths)
        return RocketMQStreamReader(options, _names_of(schema), self.parallelism)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer to a cluster (mqlab.data.spark.live.sink) or into a store (mqlab.data.spark.store_sink)."""
        if is_live(self.options):
            from mqlab.data.spark.live.sink import LiveWriter, parse_sink

            return LiveWriter(parse_sink(self.options), schema, overwrite)
        from mqlab.data.spark.store_sink import StoreWriter, parse_store_sink

        return StoreWriter(parse_store_sink(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """The same for ``frame.writeStream.format("rocketmq")``."""
        if is_live(self.options):
            from mqlab.data.spark.live.sink import LiveStreamWriter, parse_sink

            return LiveStreamWriter(parse_sink(self.options), schema, overwrite)
        from mqlab.data.spark.store_sink import StoreStreamWriter, parse_store_sink

        return StoreStreamWriter(parse_store_sink(self.options), schema, overwrite)


def _names_of(schema: StructType) -> list[str]:
    """The columns of a schema that the user gave. Raises UsageError for unknown columns and other types."""
    columns = spark_schema(list(COLUMNS))
    for field in schema.fields:
        if field.name not in COLUMNS:
            raise UsageError(f"there is no column {field.name!r}", hint=f"columns are {', '.join(COLUMNS)}")
        if field.dataType != columns[field.name].dataType:
            expected = columns[field.name].dataType.simpleString()
            raise UsageError(f"column {field.name} is {expected}, not {field.dataType.simpleString()}")
    return list(schema.fieldNames())


class RocketMQReader(DataSourceReader):
    """Plans on the driver, reads in the tasks; picklable, without state."""

    def __init__(self, options: Options, names: Sequence[str], parallelism: int | None = None) -> None:
        self.options = options
        self.names = list(names)
        self.parallelism = parallelism

    def partitions(self) -> list[InputPartition]:
        """Groups of ranges, decided now: later appends do not belong to this read.

        Raises UsageError for an unknown topic, CorruptionError for a log that ends before its queues do.
        """
        options = self.options
        stores = find_stores(options.paths, options.broker_names)
        options.check_bounds(len(stores))
        check_topics(stores, options.selection.topics)
        size = options.split_bytes or split_bytes(log_bytes(stores), self.parallelism, TASKS_PER_CORE, SMALLEST_SPLIT)
        begins, ends = self._bounds(stores)
        ranges: list[LogRange] = []
        for store in stores:
            name = store.broker_name
            ranges += plan(
                store, size, start=begins.get(name), end=ends.get(name), fail_on_data_loss=options.fail_on_data_loss
            )
        return tasks(ranges, size)

    def _bounds(self, stores: Sequence[StoreFolder]) -> tuple[Offsets, Offsets]:
        """Where each log's part begins and ends, for those that the options bound."""
        inspectors = {store.broker_name: StoreReader(store.directory) for store in stores}

        @functools.cache
        def end_of(name: str) -> int:
            return log_end(inspectors[name]).offset

        starting, ending = self.options.starting, self.options.ending
        begins = starting.offsets(inspectors, end_of) if starting.option else {}
        for name in starting.named:
            check_not_deleted(name, inspectors[name], begins[name], self.options.fail_on_data_loss)
        ends = ending.offsets(inspectors, end_of) if ending.option else {}
        # A read up to the very end of a log checks that the log holds all that its queues know: it has no bound.
        return begins, {name: end for name, end in ends.items() if end < end_of(name)}

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The batches of one task. Raises CorruptionError with file and physical offset."""
        return read_task(partition, self.names, self.options.selection)


def log_bytes(stores: Sequence[StoreFolder]) -> int:
    """Bytes of all files of the stores' logs."""
    folders = (os.path.join(store.directory, LOG) for store in stores)
    return sum(entry.stat().st_size for folder in folders if os.path.isdir(folder) for entry in os.scandir(folder))
