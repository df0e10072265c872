"""The stream of the data source rocketmq: a log that grows, read batch by batch, each message once.

Spark's checkpoint takes the place of a consumer group's offsets.

    offset         {"broker-a": 1048576, "broker-b": 524288}       a place between two units of each broker's log, with
                                                                   a mark of the unit before it: mqlab.data.spark.marks
    latestOffset   up to the last unit that is surely complete     cut to the options' limits, between two units
    batch          from one offset to the next                     the same rows whenever Spark asks for it again
    AvailableNow   up to where the logs ended when the query began

A broker that appears later joins the stream; its first batch begins at the start of its log when it was found. Left
out: queue offsets as offsets of a stream (they are a column), and waiting: Spark asks again at its trigger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from mqlab.data.arrow.growing import is_boundary, log_end, unit_before
from mqlab.data.arrow.known_topics import check_topics
from mqlab.data.arrow.losses import find_losses, report
from mqlab.data.arrow.ranges import LogRange, plan_between
from mqlab.data.arrow.stores import StoreFolder, find_stores
from mqlab.data.spark.batch_limits import cut_to_bytes, cut_to_units
from mqlab.data.spark.log_places import Offsets, check_not_deleted, report_lost
from mqlab.data.spark.marks import Marked, mark_in, mark_of, marked, offset_in
from mqlab.data.spark.options import Options
from mqlab.data.spark.tasks import read_task, split_bytes, tasks
from mqlab.errors import StoreError, UsageError
from mqlab.rocketmq.store.reading.store_reader import StoreReader

TASKS_PER_CORE, SMALLEST_SPLIT = 1, 16 << 20

KeptOffsets = dict[str, Marked]


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans on the driver, reads in the tasks; its state between batches can be computed again."""

    def __init__(self, options: Options, names: Sequence[str], parallelism: int | None = None) -> None:
        options.check_stream()
        self.options = options
        self.names = list(names)
        self.parallelism = parallelism
        self._target: Offsets | None = None
        self._seen: KeptOffsets | None = None
        self._planned: KeptOffsets | None = None

    def initialOffset(self) -> Offsets:
        """Where a query without a checkpoint begins. Raises UsageError for brokers or topics that are not
        there, CorruptionError for a log that ends before its queues do."""
        check_topics(self._stores(), self.options.selection.topics)
        inspectors = self._inspectors()
        self.options.check_bounds(len(inspectors))
        return self.options.starting.offsets(inspectors, lambda name: self._log_end(inspectors[name]))

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of maxBytesPerTrigger or maxOffsetsPerTrigger; Spark takes one, the other one is kept as well."""
        most_bytes, most_units = self.options.max_bytes_per_trigger, self.options.max_offsets_per_trigger
        if most_bytes is not None:
            return ReadMaxBytes(most_bytes)
        return ReadAllAvailable() if most_units is None else ReadMaxRows(most_units)

    def latestOffset(self, start: KeptOffsets, limit: ReadLimit) -> KeptOffsets:
        """How far the next batch reads. Raises StoreError when a log lost units not read yet or is another log, and
        CorruptionError when it ends before its queues do.

        A limit is divided in proportion to each broker's backlog; a batch holds at least one unit.
        """
        # 1. Where each broker's log begins now; files may have been deleted since the last batch.
        inspectors, places = self._inspectors(), numbers_of(start)
        for name in places:
            if name not in inspectors:
                self._lost(f"the store of {name} no longer exists; it had been read up to {places[name]}")
        begins = {
            name: check_not_deleted(name, inspector, places[name], self.options.fail_on_data_loss)
            for name, inspector in inspectors.items()
            if name in places
        }
        self._check_places(begins, inspectors)
        # 2. Where each log ends now.
        ends = dict(places)
        for name, inspector in inspectors.items():
            if name in begins:
                ends[name] = self._end(name, inspector, begins[name])
            elif (self._target is None or name in self._target) and inspector.log.segments():
                # A new broker joins when it has a file: the next batch reads from the beginning of its log.
                ends[name] = inspector.min_physical_offset
        check_marks({name: value for name, value in start.items() if ends[name] > places[name]}, inspectors)
        # 3. The limit shortens the batch. What is read last of each log is marked.
        cut = self._cut(begins, ends, limit, inspectors)
        self._planned = {
            name: start[name] if name in places and end == places[name] else with_mark(inspectors.get(name), end)
            for name, end in {**ends, **cut}.items()
        }
        self._seen = {**self._planned, **{name: ends[name] for name in cut}}
        return self._planned

    def _cut(self, begins: Offsets, ends: Offsets, limit: ReadLimit, inspectors: Mapping[str, StoreReader]) -> Offsets:
        """The ends that a limit of Spark's, and the other one of the options, leave to brokers."""
        if isinstance(limit, ReadAllAvailable):
            return {}
        if not isinstance(limit, ReadMaxBytes | ReadMaxRows):
            raise UsageError(
                f"the limit {limit} is not supported",
                hint="options maxBytesPerTrigger and maxOffsetsPerTrigger set one",
            )
        most_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self.options.max_bytes_per_trigger
        most_units = limit.max_rows if isinstance(limit, ReadMaxRows) else self.options.max_offsets_per_trigger
        cut = {} if most_bytes is None else cut_to_bytes(begins, ends, most_bytes, inspectors)
        if most_units is not None:
            cut.update(cut_to_units(begins, {**ends, **cut}, most_units, inspectors))
        return cut

    def _end(self, name: str, inspector: StoreReader, begin: int) -> int:
        if self._target is not None:
            return max(self._target.get(name, begin), begin)
        return self._log_end(inspector, begin)

    def _log_end(self, inspector: StoreReader, begin: int | None = None) -> int:
        """How far a log can be read. Raises CorruptionError when queues know more, or warns if that is allowed."""
        end = log_end(inspector, begin)
        losses = find_losses(inspector, end, end.offset if begin is None else begin)
        report(losses, self.options.fail_on_data_loss)
        return end.offset

    def _check_places(self, begins: Offsets, inspectors: Mapping[str, StoreReader]) -> None:
        """Check once per query that its offsets are boundaries between units of these logs. Raises StoreError."""
        if self._seen is not None:
            return
        for name, position in begins.items():
            if not is_boundary(inspectors[name], position):
                raise StoreError(
                    f"no message of {name} begins or ends at {position} in {inspectors[name].log.folder}",
                    hint="the log was cut by a recovery, or was replaced by another one: start again with another "
                    "checkpoint folder, or give startingOffsets from the column physical_offset",
                )

    def _lost(self, what: str) -> None:
        report_lost(what, self.options.fail_on_data_loss)

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends where the logs end now."""
        self._target = {name: self._log_end(inspector) for name, inspector in self._inspectors().items()}

    def reportLatestOffset(self) -> KeptOffsets | None:
        """How far the logs could be read when Spark last asked; the query's progress shows it."""
        return self._seen

    def partitions(self, start: KeptOffsets, end: KeptOffsets) -> list[InputPartition]:
        """The tasks of one batch. Raises StoreError when a log is not the one for which a process before planned it."""
        stores = {store.broker_name: store for store in self._stores()}
        if end != self._planned:
            check_marks(end, {name: StoreReader(store.directory) for name, store in stores.items()})
        begins, ends = numbers_of(start), numbers_of(end)
        changed = {name: offset for name, offset in ends.items() if begins.get(name, offset) != offset}
        total = sum(offset - begins[name] for name, offset in changed.items())
        size = self.options.split_bytes or split_bytes(total, self.parallelism, TASKS_PER_CORE, SMALLEST_SPLIT)
        ranges: list[LogRange] = []
        for name, offset in changed.items():
            if name not in stores:
                self._lost(f"the store of {name} no longer exists; {begins[name]} to {offset} were still to be read")
                continue
            inspector = StoreReader(stores[name].directory)
            first = check_not_deleted(name, inspector, begins[name], self.options.fail_on_data_loss)
            ranges += plan_between(stores[name], size, first, offset)
        return tasks(ranges, size)

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The batches of one task. Raises CorruptionError with file and physical offset."""
        return read_task(partition, self.names, self.options.selection)

    def _stores(self) -> list[StoreFolder]:
        return find_stores(self.options.paths, self.options.broker_names)

    def _inspectors(self) -> dict[str, StoreReader]:
        return {store.broker_name: StoreReader(store.directory) for store in self._stores()}


def numbers_of(kept: Mapping[str, Marked]) -> Offsets:
    """The physical offsets of a checkpoint, without marks."""
    return {name: offset_in(value) for name, value in kept.items()}


def with_mark(inspector: StoreReader | None, position: int) -> Marked:
    """A place of a log as a checkpoint keeps it."""
    unit = None if inspector is None else unit_before(inspector, position)
    return marked(position, None if unit is None else mark_of(unit.raw()))


def check_marks(kept: Mapping[str, Marked], inspectors: Mapping[str, StoreReader]) -> None:
    """Raise StoreError when the unit before a place is not the one that was read. A unit that is gone tells nothing."""
    for name, value in kept.items():
        mark, position = mark_in(value), offset_in(value)
        now = mark_in(with_mark(inspectors.get(name), position)) if mark is not None else None
        if now is not None and now != mark:
            raise StoreError(
                f"the message of {name} that ends at {position} in {inspectors[name].log.folder} is another one now",
                hint="the log was cut by a recovery, or was replaced by another one: start again with another "
                "checkpoint folder, or give startingOffsets from the column physical_offset",
            )
