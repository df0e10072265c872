"""The Spark data sources rocketmq-queues and rocketmq-config: the parts of a store next to its log.

mqadmin asks a running broker for these. Lab 10 joins them with the messages.

    format            option table        rows                                 further options
    rocketmq-queues   units (default)     one row per unit of a consume queue  topic, queues, tags ("paid || shipped")
                      bounds              one per queue: min and max offset
                      lag                 one per group and queue: offsets, lag
    rocketmq-config   offsets (default)   consumerOffset.json
                      topics, groups      topics.json, subscriptionGroup.json
                      delays, filters     delayOffset.json, consumerFilter.json

Each has a column broker_name; path and brokerName are those of the source rocketmq. Batch only: a read is a snapshot.
Left out: index files.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import pyarrow
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from mqlab.data.arrow import queues
from mqlab.data.arrow.columns import Column
from mqlab.data.arrow.known_topics import check_topics
from mqlab.data.arrow.queues import QueueSelection, plan_queues, read_queue_range, tags_of
from mqlab.data.arrow.ranges import together
from mqlab.data.arrow.store_tables import table_named
from mqlab.data.arrow.stores import StoreFolder, find_stores
from mqlab.data.spark.option_values import known_options, queue_ids_of, words_of
from mqlab.data.spark.options import paths_of
from mqlab.data.spark.reading_only import ReadingOnly
from mqlab.data.spark.tasks import freeze_once
from mqlab.errors import UsageError

SPLIT_BYTES = 16 << 20  # of queue units in one task: 800,000
UNITS = "units"


class StorePartSource(ReadingOnly):
    """The common part of both sources: a table chosen by name, and a reader of it."""

    tables: tuple[str, ...]  # the first is the default
    own_options: tuple[str, ...]

    @functools.cached_property
    def given(self) -> dict[str, str]:
        """The options by their right names. Raises UsageError."""
        return known_options(self.options, ("path", "paths", "brokerName", "table", *self.own_options))

    @functools.cached_property
    def table(self) -> str:
        """The requested table. Raises UsageError for an unknown one, and for options without a meaning for it."""
        table = self.given.get("table", self.tables[0])
        if table not in self.tables:
            raise UsageError(f"there is no table {table!r}", hint=f"tables are {', '.join(self.tables)}")
        if table != UNITS and any(name in self.given for name in self.own_options):
            raise UsageError(f"{', '.join(self.own_options)} choose units, not rows of the table {table!r}")
        return table

    def columns(self) -> Sequence[Column]:
        return queues.COLUMNS if self.table == UNITS else table_named(self.table).columns

    def schema(self) -> StructType:
        """The columns of the table, each with its meaning as its comment. Raises UsageError for wrong options."""
        paths_of(self.given)
        return StructType(
            [StructField(c.name, from_arrow_type(c.type), True, {"comment": c.meaning}) for c in self.columns()]
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of all columns. Raises UsageError for any other schema."""
        if schema.fieldNames() != self.schema().fieldNames():
            raise UsageError(
                f"the columns of {self.table} are {', '.join(self.schema().fieldNames())}",
                hint="leave .schema(...) out, and .select(...) what you need",
            )
        selection = QueueSelection(
            tuple(words_of(self.given, "topic")), queue_ids_of(self.given), tags_of(self.given.get("tags", "*"))
        )
        self.check_seen(paths_of(self.given))
        return StorePartReader(self.table, paths_of(self.given), words_of(self.given, "brokerName"), selection)


class QueuesSource(StorePartSource):
    """``spark.read.format("rocketmq-queues")``."""

    tables = (UNITS, "bounds", "lag")
    own_options = ("topic", "queues", "tags")

    @classmethod
    def name(cls) -> str:
        return "rocketmq-queues"


class ConfigSource(StorePartSource):
    """``spark.read.format("rocketmq-config")``."""

    tables = ("offsets", "topics", "groups", "delays", "filters")
    own_options = ()

    @classmethod
    def name(cls) -> str:
        return "rocketmq-config"


class StorePartReader(DataSourceReader):
    """Plans on the driver, reads in the tasks; picklable, without state."""

    def __init__(
        self, table: str, paths: Sequence[str], broker_names: Sequence[str], selection: QueueSelection
    ) -> None:
        self.table = table
        self.paths = list(paths)
        self.broker_names = list(broker_names)
        self.selection = selection

    def partitions(self) -> list[InputPartition]:
        """Groups of queue files for units, else one partition per store. Raises UsageError for an unknown topic."""
        stores = find_stores(self.paths, self.broker_names)
        check_topics(stores, self.selection.topics)
        if self.table != UNITS:
            return [InputPartition(store) for store in stores]
        ranges = [where for store in stores for where in plan_queues(store, self.selection)]
        return [InputPartition(group) for group in together(ranges, SPLIT_BYTES)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The batches of one task. Raises CorruptionError with the file's path."""
        freeze_once()
        if isinstance(partition.value, StoreFolder):
            yield table_named(self.table).read(partition.value)
            return
        # When there is nothing to read, Spark makes one partition of its own with None.
        for where in partition.value or []:
            yield from read_queue_range(where, self.selection)
