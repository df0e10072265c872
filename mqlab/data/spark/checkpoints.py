"""The offsets of a stream, as its query reports them or as its checkpoint folder keeps them.

Mirrors: what OffsetSeqLog and CommitLog of Spark's structured streaming write.

    checkpoint/offsets/7   v1, a line of settings, then one line per source: {"broker-a": 8622, "broker-b": 6461}
                           written before batch 7 begins: what it will read
    checkpoint/commits/7   written when batch 7 has finished; without it the query runs batch 7 again

Left out: state, and the log of a file sink, which are the operators' and the sink's own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqlab.data.arrow.stores import local_path
from mqlab.data.spark.marks import offset_in
from mqlab.errors import CorruptionError, UsageError

Offsets = dict[str, int]

OFFSETS, COMMITS = "offsets", "commits"


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """The newest batch of a stream, for one of its sources: physical offsets of the brokers.

    ``number`` None: no batch has begun. ``start`` and ``committed`` lack brokers that no earlier batch knew.
    """

    source: int = 0
    number: int | None = None
    finished: bool = False
    start: Offsets = field(default_factory=dict)
    end: Offsets = field(default_factory=dict)

    @property
    def committed(self) -> Offsets:
        """Where the last batch that has finished ended; a query that starts again reads from here."""
        return self.end if self.finished else self.start


def newest_batches(query_or_checkpoint: Any) -> list[StreamBatch]:
    """The newest batch, once for each source that has offsets of brokers.

    ``query_or_checkpoint``: a StreamingQuery, one report of its recentProgress, or a checkpoint folder. Raises
    UsageError for anything else, and for a stream whose sources read no stores.
    """
    if isinstance(query_or_checkpoint, str | os.PathLike):
        return _batches_on_disk(Path(local_path(os.fspath(query_or_checkpoint))))
    if hasattr(query_or_checkpoint, "lastProgress"):
        progress = query_or_checkpoint.lastProgress
        return [StreamBatch()] if progress is None else _batches_reported(progress)
    if isinstance(query_or_checkpoint, Mapping) and "sources" in query_or_checkpoint:
        return _batches_reported(query_or_checkpoint)
    raise UsageError(
        f"no progress in {query_or_checkpoint!r}: expected a streaming query or its checkpoint folder",
        hint="give what .start() returned, or the folder of option('checkpointLocation')",
    )


def _batches_reported(progress: Any) -> list[StreamBatch]:
    """The batch that a query has reported: a batch is reported when it has finished."""
    batches = []
    for number, source in enumerate(progress["sources"]):
        end = offsets_of(source["endOffset"])
        if end is not None:
            batches.append(
                StreamBatch(number, int(progress["batchId"]), True, offsets_of(source["startOffset"]) or {}, end)
            )
    return _checked(batches, "the query")


def _batches_on_disk(checkpoint: Path) -> list[StreamBatch]:
    """The newest batch in a checkpoint folder: it has finished when its commit is there."""
    # The commits are read first: a query at work writes a batch's offsets before it, and its commit after it.
    finished = _numbers_in(checkpoint / COMMITS)
    begun = _numbers_in(checkpoint / OFFSETS)
    if not (checkpoint / OFFSETS).is_dir():
        raise UsageError(
            f"no checkpoint in {str(checkpoint)!r}: expected a folder with {OFFSETS}/ in it",
            hint="give the folder of option('checkpointLocation'); a query writes it when its first batch begins",
        )
    if not begun:
        return [StreamBatch()]
    newest = begun[-1]
    ends = _lines_of(checkpoint / OFFSETS / str(newest))
    starts = _lines_of(checkpoint / OFFSETS / str(newest - 1)) if newest - 1 in begun else []
    batches = []
    for number, end in enumerate(ends):
        start = starts[number] if number < len(starts) else None
        if end is not None:
            batches.append(StreamBatch(number, newest, newest in finished, start or {}, end))
    return _checked(batches, str(checkpoint))


def _checked(batches: list[StreamBatch], where: str) -> list[StreamBatch]:
    if not batches:
        raise UsageError(
            f"no offsets of stores in {where}: expected at least one source of format('rocketmq')",
            hint="a source of another kind counts its progress in its own way: query.lastProgress shows it",
        )
    return batches


def _numbers_in(folder: Path) -> list[int]:
    """The batches of which a folder has a file; Spark's own temporary files and check sums begin with a point."""
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdecimal()) if folder.is_dir() else []


def _lines_of(path: Path) -> list[Offsets | None]:
    """One offset per source, None for a source that has none or counts in another way. Raises CorruptionError."""
    lines = path.read_text("utf-8").splitlines()
    if len(lines) < 3 or lines[0] != "v1":
        raise CorruptionError(
            "this is not an offset log of Spark",
            where=str(path),
            expected="v1, a line of settings, and a line per source",
            found=lines[0][:40] if lines else "an empty file",
            hint="a machine that lost power may leave it empty; the batch before is complete",
        )
    return [offsets_of(line) for line in lines[2:]]


def offsets_of(value: Any) -> Offsets | None:
    """Physical offsets of brokers, from a source's offset or its JSON; None when it is something else.

    >>> offsets_of('{"broker-a": 8622}'), offsets_of("-"), offsets_of({"topic of Kafka": {"0": 4}})
    ({'broker-a': 8622}, None, None)
    >>> offsets_of({"broker-a": {"offset": 8622, "unit": 2774523921}})
    {'broker-a': 8622}
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if not isinstance(value, Mapping):
        return None
    numbers = {str(name): offset_in(offset) for name, offset in value.items()}
    return numbers if all(type(offset) is int for offset in numbers.values()) else None
