"""The input of the steps: units of the log as they are stored, and the offsets of the groups.

The offsets are those of consumerOffset.json, which ConsumerOffsetManager writes.

    stores     snapshot(path) ── one Extent(store, from, to) per store: one moment, even while brokers write
    raw        units with their properties, which show what a retry, a dead, parked or half message is
    trace_raw  units of the trace topic with their bodies
    offsets    topic, group, queue -> next offset

Left out: bodies other than those of the trace; no fact is about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqlab.data.arrow.growing import log_end
from mqlab.data.arrow.losses import Loss, find_losses, report
from mqlab.data.arrow.stores import StoreFolder, StorePath, find_stores
from mqlab.data.spark.pipeline.schemas import OFFSETS, checked
from mqlab.data.spark.small_tables import for_spark
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.wire import names

if TYPE_CHECKING:
    import pandas

PLAIN = (
    "broker_name",
    "topic",
    "queue_id",
    "queue_offset",
    "physical_offset",
    "msg_id",
    "tags",
    "keys",
    "born_timestamp",
    "store_timestamp",
    "total_size",
    "body_length",
    "reconsume_times",
)
TRACE_COLUMNS = ("broker_name", "physical_offset", "msg_id", "born_host", "topic", "body")


@dataclass(frozen=True, slots=True)
class Extent:
    """The part of one store that is read: units that begin from ``start`` and before ``end``, physical offsets.

    ``losses``: messages that its queues name and its log does not hold.
    """

    store: StoreFolder
    start: int
    end: int
    losses: tuple[Loss, ...] = ()

    @classmethod
    def from_manifest(cls, saved: Mapping[str, Any]) -> Extent:
        """An extent from the JSON of its ``dataclasses.asdict``."""
        losses = tuple(Loss(**loss) for loss in saved.get("losses", ()))
        return cls(StoreFolder(**saved["store"]), saved["start"], saved["end"], losses)


def snapshot(paths: StorePath | Sequence[StorePath], *, fail_on_data_loss: bool = True) -> list[Extent]:
    """Each store under the paths, with the present length of its log.

    Raises UsageError where there is no store, CorruptionError for a log that ends before its queues do. Without
    ``fail_on_data_loss`` such losses are recorded in the extent and reported as a warning.
    """
    extents = []
    for store in find_stores(paths):
        inspector = StoreReader(store.directory)
        start = inspector.min_physical_offset
        losses = find_losses(inspector, log_end(inspector), start)
        report(losses, fail_on_data_loss)
        extents.append(Extent(store, start, inspector.max_physical_offset, tuple(losses)))
        inspector.close()
    return extents


def raw(spark: SparkSession, extents: Sequence[Extent]) -> DataFrame:
    """The units of these stores for ``messages``: PLAIN and ``properties``."""
    return _read(spark, extents, (*PLAIN, "properties"))


def trace_raw(spark: SparkSession, extents: Sequence[Extent], topic: str = names.TRACE_TOPIC) -> DataFrame:
    """The units of the trace topic for ``trace``: TRACE_COLUMNS."""
    return _read(spark, extents, TRACE_COLUMNS, [topic])


def offsets(spark: SparkSession, stores: Iterable[StoreFolder]) -> DataFrame:
    """OFFSETS: how far each group had come when its broker last wrote consumerOffset.json. Raises CorruptionError."""
    rows = offset_rows(stores)
    return checked(for_spark(spark, rows, OFFSETS), OFFSETS, "offsets")


def offset_rows(stores: Iterable[StoreFolder]) -> pandas.DataFrame:
    """The same as a frame in the driver."""
    import pandas

    rows = []
    for store in stores:
        inspector = StoreReader(store.directory)
        table = (inspector.config("consumerOffset.json") or {}).get("offsetTable", {})
        inspector.close()
        for key, queues in table.items():
            topic, _, group = key.rpartition("@")
            if topic:
                rows += [(store.broker_name, topic, group, int(queue), int(offset)) for queue, offset in queues.items()]
    return pandas.DataFrame(rows, columns=OFFSETS.fieldNames())


def _read(
    spark: SparkSession, extents: Sequence[Extent], columns: Sequence[str], topics: Sequence[str] = ()
) -> DataFrame:
    """One scan of all stores; units appended after the snapshot are left out row by row."""
    reader = spark.read.format("rocketmq").option("columns", ",".join(columns))
    reader = reader.option("brokerName", ",".join(extent.store.broker_name for extent in extents))
    if topics:
        reader = reader.option("topic", ",".join(topics))
    if any(extent.losses for extent in extents):  # they were allowed when the snapshot was taken
        reader = reader.option("failOnDataLoss", "false")
    ends = [F.lit(literal) for extent in extents for literal in (extent.store.broker_name, extent.end)]
    units = reader.load([extent.store.directory for extent in extents])
    return units.where(F.col("physical_offset") < F.create_map(*ends)[F.col("broker_name")])
