"""Reading a range, or a whole store, as record batches.

Lab 10 reads a store with it before Spark does.

    range ─ map the file ─ find its units ─ 10,000 at a time ─ choose by topic, queue, time ─ columns ─> RecordBatch

Left out: choosing by tag through the consume queue's tag codes.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from mqlab.data.arrow.boundaries import boundaries
from mqlab.data.arrow.columns import COLUMNS, UnitColumns, schema
from mqlab.data.arrow.known_topics import check_topics
from mqlab.data.arrow.ranges import LogRange, plan
from mqlab.data.arrow.stores import StorePath, find_stores
from mqlab.errors import StoreError

BATCH_ROWS = 10_000
TARGET_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Selection:
    """The messages of these topics and queue ids, stored from ``start_ms`` on and before ``end_ms``."""

    topics: tuple[str, ...] = ()
    queues: tuple[int, ...] = ()
    start_ms: int | None = None
    end_ms: int | None = None

    def rows(self, units: UnitColumns) -> Any:
        """True for each unit that is chosen; None when all are."""
        chosen = numpy.ones(len(units), dtype=bool)
        if self.queues:
            chosen &= numpy.isin(units.number("queue_id"), self.queues)
        if self.start_ms is not None:
            chosen &= units.number("store_timestamp") >= self.start_ms
        if self.end_ms is not None:
            chosen &= units.number("store_timestamp") < self.end_ms
        if self.topics:
            has_topic = pyarrow.compute.is_in(units.column("topic"), pyarrow.array(self.topics))
            chosen &= has_topic.to_numpy(zero_copy_only=False)
        return None if chosen.all() else chosen


EVERYTHING = Selection()


def read_range(
    where: LogRange, names: Sequence[str] | None = None, selection: Selection = EVERYTHING
) -> Iterator[pyarrow.RecordBatch]:
    """The chosen units of one range with these columns.

    Raises CorruptionError at the first unit that is damaged, StoreError when the file was deleted meanwhile.
    """
    names = list(COLUMNS) if names is None else names
    for units in read_units(where, selection):
        yield units.batch(names)


def read_units(where: LogRange, selection: Selection = EVERYTHING) -> Iterator[UnitColumns]:
    """The same, thousands at a time, for a caller that makes several batches of them. Raises the same errors."""
    view = _mapped(where)  # closed when the last batch is made
    positions = boundaries(view, where)
    for start in range(0, len(positions), BATCH_ROWS):
        units = UnitColumns(view, where, positions[start : start + BATCH_ROWS])
        chosen = selection.rows(units)
        if chosen is not None:
            units = units.at(chosen)
        if len(units):
            yield units


def _mapped(where: LogRange) -> mmap.mmap:
    try:
        with open(where.path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise StoreError(
            f"{where.path} is gone, messages {where.start} to {where.end} were to be read from it",
            hint="a broker deletes old files of its log (fileReservedTime, full disk): plan again, or read a copy",
        ) from error


def read_batches(
    paths: StorePath | Sequence[StorePath],
    names: Sequence[str] | None = None,
    selection: Selection = EVERYTHING,
    *,
    fail_on_data_loss: bool = True,
) -> pyarrow.RecordBatchReader:
    """Whole stores batch by batch, each in the order of its log: for logs larger than memory. See ``mqlab.data.arrow``.

    ``paths``: a store, a folder of stores, or several of either (``find_stores``). Raises UsageError for a wrong path,
    column or topic and CorruptionError for a log that ends before its queues do now (with ``fail_on_data_loss=False``
    that is a DataLossWarning), CorruptionError when the reader reaches a damaged unit or body.
    """
    columns = schema(names)
    stores = find_stores(paths)
    check_topics(stores, selection.topics)
    ranges = [where for store in stores for where in plan(store, TARGET_BYTES, fail_on_data_loss=fail_on_data_loss)]
    batches = (batch for where in ranges for batch in read_range(where, columns.names, selection))
    return pyarrow.RecordBatchReader.from_batches(columns, batches)


def read_table(
    paths: StorePath | Sequence[StorePath],
    names: Sequence[str] | None = None,
    selection: Selection = EVERYTHING,
    *,
    fail_on_data_loss: bool = True,
) -> pyarrow.Table:
    """The same as one Arrow table in memory."""
    return read_batches(paths, names, selection, fail_on_data_loss=fail_on_data_loss).read_all()
