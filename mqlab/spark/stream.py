"""The stream of the data source rocketmq: a log that grows, read batch by batch, each message once.

Spark's checkpoint takes the place of a consumer group's offsets.

    offset         {"broker-a": 1048576, "broker-b": 524288}       a place between two units of each broker's log
    latestOffset   up to the last unit that is surely complete     cut to maxBytesPerTrigger, between two units
    batch          from one offset to the next                     the same rows whenever Spark asks for it again
    AvailableNow   up to where the logs ended when the query began

A broker that appears later joins the stream; its first batch begins at the start of its log when it was found. Left
out: queue offsets as offsets of a stream (they are a column), and waiting: Spark asks again at its trigger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from mqlab.arrow.growing import boundary_before, is_boundary, log_end, unit_end
from mqlab.arrow.known_topics import check_topics
from mqlab.arrow.losses import find_losses, report
from mqlab.arrow.ranges import LogRange, plan_between
from mqlab.arrow.stores import Store, find_stores
from mqlab.errors import StoreError, UsageError
from mqlab.inspector import StoreInspector
from mqlab.spark.options import LATEST, Options
from mqlab.spark.tasks import read_task, split_bytes, tasks

TASKS_PER_CORE, SMALLEST_SPLIT = 1, 16 << 20

Offsets = dict[str, int]


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans on the driver, reads in the tasks; its state between batches can be computed again."""

    def __init__(self, options: Options, names: Sequence[str], parallelism: int | None = None) -> None:
        options.check_stream()
        self.options = options
        self.names = list(names)
        self.parallelism = parallelism
        self._target: Offsets | None = None
        self._seen: Offsets | None = None

    def initialOffset(self) -> Offsets:
        """Where a query without a checkpoint begins. Raises UsageError for brokers or topics that are not
        there, CorruptionError for a log that ends before its queues do."""
        check_topics(self._stores(), self.options.selection.topics)
        inspectors = self._inspectors()
        self.options.check_bounds(len(inspectors))
        unknown = set(self.options.starting_offsets) - set(inspectors)
        if unknown:
            raise UsageError(
                f"startingOffsets names {', '.join(sorted(unknown))}", hint=f"brokers are {', '.join(inspectors)}"
            )
        # A broker's own offset has priority over the option for all brokers.
        begins: Offsets = {}
        for name, inspector in inspectors.items():
            option = self.options.starting_offsets.get(name, self.options.start_physical_offset)
            if option is not None:
                begins[name] = option
            else:
                latest = self.options.starting == LATEST
                begins[name] = self._log_end(inspector) if latest else inspector.min_physical_offset
        return begins

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of the option maxBytesPerTrigger."""
        limit = self.options.max_bytes_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxBytes(limit)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """How far the next batch reads. Raises StoreError when a log lost units not read yet or is another log, and
        CorruptionError when it ends before its queues do.

        A limit is divided in proportion to each broker's backlog; a batch holds at least one unit.
        """
        # 1. Where each broker's log begins now; files may have been deleted since the last batch.
        inspectors = self._inspectors()
        for name in start:
            if name not in inspectors:
                self._lost(f"the store of {name} no longer exists; it had been read up to {start[name]}")
        begins = {
            name: self._first_there(name, inspector, start[name])
            for name, inspector in inspectors.items() if name in start
        }  # fmt: skip
        self._check_places(begins, inspectors)
        # 2. Where each log ends now.
        ends = dict(start)
        for name, inspector in inspectors.items():
            if name in begins:
                ends[name] = self._end(name, inspector, begins[name])
            elif self._target is None or name in self._target:
                ends[name] = inspector.min_physical_offset  # a new broker: the next batch reads from here
        self._seen = dict(ends)
        # 3. The limit shortens the batch.
        if isinstance(limit, ReadAllAvailable):
            return ends
        if not isinstance(limit, ReadMaxBytes):
            raise UsageError(f"the limit {limit} is not supported", hint="option maxBytesPerTrigger sets one")
        return {**ends, **_cut(begins, ends, limit.max_bytes, inspectors)}

    def _end(self, name: str, inspector: StoreInspector, begin: int) -> int:
        if self._target is not None:
            return max(self._target.get(name, begin), begin)
        return self._log_end(inspector, begin)

    def _log_end(self, inspector: StoreInspector, begin: int | None = None) -> int:
        """How far a log can be read. Raises CorruptionError when queues know more, or warns if that is allowed."""
        end = log_end(inspector, begin)
        losses = find_losses(inspector, end, end.offset if begin is None else begin)
        report(losses, self.options.fail_on_data_loss)
        return end.offset

    def _check_places(self, begins: Offsets, inspectors: Mapping[str, StoreInspector]) -> None:
        """Check once per query that its offsets are boundaries between units of these logs. Raises StoreError."""
        if self._seen is not None:
            return
        for name, place in begins.items():
            if not is_boundary(inspectors[name], place):
                raise StoreError(
                    f"no message of {name} begins or ends at {place} in {inspectors[name].log.folder}",
                    hint="the log was cut by a recovery, or was replaced by another one: start again with another "
                    "checkpoint folder, or give startingOffsets from the column physical_offset",
                )

    def _first_there(self, name: str, inspector: StoreInspector, known: int) -> int:
        """``known``, or the log's first place when unread files were deleted and that is allowed."""
        first = inspector.min_physical_offset
        if known >= first:
            return known
        self._lost(f"{inspector.log.folder}: messages {known} to {first} of {name} were deleted before they were read")
        return first

    def _lost(self, what: str) -> None:
        if self.options.fail_on_data_loss:
            raise StoreError(what, hint="option('failOnDataLoss', 'false') continues with what is left")

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends where the logs end now."""
        self._target = {name: self._log_end(inspector) for name, inspector in self._inspectors().items()}

    def reportLatestOffset(self) -> Offsets | None:
        """How far the logs could be read when Spark last asked; the query's progress shows it."""
        return self._seen

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """The tasks of one batch."""
        stores = {store.broker_name: store for store in self._stores()}
        changed = {name: offset for name, offset in end.items() if start.get(name, offset) != offset}
        total = sum(offset - start[name] for name, offset in changed.items())
        size = self.options.split_bytes or split_bytes(total, self.parallelism, TASKS_PER_CORE, SMALLEST_SPLIT)
        ranges: list[LogRange] = []
        for name, offset in changed.items():
            if name not in stores:
                self._lost(f"the store of {name} no longer exists; {start[name]} to {offset} were still to be read")
                continue
            begin = self._first_there(name, StoreInspector(stores[name].directory), start[name])
            ranges += plan_between(stores[name], size, begin, offset)
        return tasks(ranges, size)

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The batches of one task. Raises CorruptionError with file and physical offset."""
        return read_task(partition, self.names, self.options.selection)

    def _stores(self) -> list[Store]:
        return find_stores(self.options.paths, self.options.broker_names)

    def _inspectors(self) -> dict[str, StoreInspector]:
        return {store.broker_name: StoreInspector(store.directory) for store in self._stores()}


def _cut(begins: Offsets, ends: Offsets, max_bytes: int, inspectors: Mapping[str, StoreInspector]) -> Offsets:
    """The ends of brokers with something to read, so that together they have ``max_bytes`` or less, or one unit."""
    backlog = {name: ends[name] - begin for name, begin in begins.items() if ends[name] > begin}
    total = sum(backlog.values())
    if total <= max_bytes:
        return {}
    # 1. Each broker gets its share of the limit, down to the last boundary within it.
    cut = {
        name: boundary_before(inspectors[name], begins[name], begins[name] + max_bytes * size // total)
        for name, size in backlog.items()
    }
    # 2. When no share holds a whole unit, the longest backlog gives one: a stream must advance.
    if all(cut[name] == begins[name] for name in cut):
        name = max(backlog, key=lambda broker: backlog[broker])
        cut[name] = unit_end(inspectors[name], begins[name])
    return cut
