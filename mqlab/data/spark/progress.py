"""How far a stream over stores has come, broker by broker: what it has read, what it is reading, how far it is behind.

Mirrors: mqadmin consumerProgress (broker offset, consumer offset, diff), for a stream's checkpoint.

    log_start      committed       batch_end      confirmed_end     file_end
    ├── read ──────┼── batch ──────┼── not read ──┼── not complete ─┤      physical offsets of one broker's log
                   └ bytes_behind, units_behind, seconds_behind: from here to confirmed_end

Lab 12 draws the table as a strip per broker (mqlab.lab.views.batch_strip). Spark reports offsets and rows of a batch,
but neither bytes nor seconds: a query's progress carries no metrics of a source that is written in Python.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mqlab.data.arrow.growing import boundary_before, confirmed_end, first_unit, place_after
from mqlab.data.arrow.stores import StoreFolder, StorePath, find_stores
from mqlab.data.spark.checkpoints import StreamBatch, newest_batches
from mqlab.rocketmq.store.reading.store_reader import StoreReader

if TYPE_CHECKING:
    import pandas

COUNTS = (
    "batch_id",
    "log_start",
    "batch_start",
    "committed",
    "batch_end",
    "confirmed_end",
    "file_end",
    "bytes_behind",
    "units_behind",
    "lost_bytes",
)


def progress_of(
    query_or_checkpoint: Any, stores: StorePath | Sequence[StorePath], *, now_ms: int | None = None
) -> pandas.DataFrame:
    """How far a stream has come: one row per broker of ``stores``, and per source of a query that reads them twice.

    ``query_or_checkpoint``: what ``.start()`` returned, one report of its ``recentProgress``, or a checkpoint folder.
    A query reports a batch when it has finished; its checkpoint folder knows the batch that is running or was cut off.

        broker_name, source                 the broker; 0 for a query with one source
        batch_id, finished                  the newest batch, and whether it has finished
        log_start, file_end                 where the first file begins, where the last one ends
        batch_start, batch_end              what the newest batch reads, or has read
        committed                           where the last batch that has finished ended
        confirmed_end                       the end of the last unit that is surely complete
        bytes_behind, units_behind          from ``committed`` (or ``log_start``) to ``confirmed_end``, of every topic
        seconds_behind                      age of the oldest unit that is not read; 0 when there is none
        lost_bytes                          bytes after ``committed`` that the log no longer has

    ``now_ms`` is the time at which ages are taken; without it the store time of the newest unit of all the stores. A
    broker that no batch has reached yet has no ``committed`` (<NA>), and its whole log is behind. Raises UsageError.
    """
    import pandas

    logs = [_log_of(store) for store in find_stores(stores)]
    now = max((log.newest_ms for log in logs), default=0) if now_ms is None else now_ms
    rows = [_row(log, batch, now) for batch in newest_batches(query_or_checkpoint) for log in logs]
    # Whole numbers that may be missing: pandas would turn them into floats, which do not hold every offset.
    return pandas.DataFrame(rows).astype(dict.fromkeys(COUNTS, "Int64"))


@dataclass(frozen=True, slots=True)
class _Log:
    """A log as it is now, in physical offsets, and the store time of its newest complete unit (0: it has none)."""

    broker_name: str
    inspector: StoreReader
    start: int
    confirmed_end: int
    file_end: int
    newest_ms: int


def _log_of(store: StoreFolder) -> _Log:
    inspector = StoreReader(store.directory)
    end = confirmed_end(inspector)
    segments = inspector.log.segments()
    start = inspector.min_physical_offset
    newest = first_unit(inspector, boundary_before(inspector, start, end - 1)) if end > start else None
    return _Log(
        store.broker_name,
        inspector,
        start,
        end,
        segments[-1].end if segments else end,
        newest.store_timestamp if newest is not None else 0,
    )


def _row(log: _Log, batch: StreamBatch, now_ms: int) -> dict[str, Any]:
    name = log.broker_name
    committed = batch.committed.get(name)
    begin = max(log.start if committed is None else committed, log.start)
    behind = max(log.confirmed_end - begin, 0)
    unit = first_unit(log.inspector, begin) if behind else None
    age_ms = max(now_ms - unit.store_timestamp, 0) if unit is not None else 0
    return {
        "broker_name": name,
        "source": batch.source,
        "batch_id": batch.number,
        "finished": batch.finished,
        "log_start": log.start,
        "batch_start": batch.start.get(name),
        "committed": committed,
        "batch_end": batch.end.get(name),
        "confirmed_end": log.confirmed_end,
        "file_end": log.file_end,
        "bytes_behind": behind,
        "units_behind": place_after(log.inspector, begin, behind, log.confirmed_end)[1] if behind else 0,
        # At damage it cannot be said how old the next unit is.
        "seconds_behind": math.nan if behind and unit is None else age_ms / 1000,
        "lost_bytes": max(log.start - committed, 0) if committed is not None else 0,
    }
