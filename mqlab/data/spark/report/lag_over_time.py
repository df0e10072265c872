"""Lag over time, in messages and in time, from snapshots of consumerOffset.json that were kept during the day.

Mirrors: what RocketMQ's exporter samples for Prometheus, computed afterwards from what the brokers had written.

    mqlab spark keep-offsets STORES --out KEPT                every few minutes: KEPT/broker-a/1731319200000.json
    mqlab spark run STORES --out OUT                          at the end of the day
    mqlab spark report OUT --offsets-kept KEPT                a section about it; no trace is needed

    lag_over_time("out", "kept")                              the numbers, as a pandas frame

Left out: broadcasting groups; their offsets are on their own disks.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import pyarrow.compute
import pyarrow.dataset

from mqlab.data.arrow.stores import find_stores
from mqlab.data.spark.report.section_parts import (
    HALF,
    NO_NAMES,
    SMALL,
    FactTable,
    Figure,
    Section,
    duration,
    moment,
    number,
)
from mqlab.errors import UsageError
from mqlab.lab.views.day_charts import Lines
from mqlab.rocketmq.wire import java_json, names

if TYPE_CHECKING:
    import pandas

MINUTE_MS = 60_000
COLUMNS = ("time_ms", "topic", "consumer_group", "lag", "behind_ms")
PLACE = ("broker_name", "topic", "queue_id")
DRAWN = 8
Queue = tuple[str, str, int]


def keep_offsets(stores: str | os.PathLike[str], kept: str | os.PathLike[str], now_ms: int | None = None) -> list[Path]:
    """Copy the consumerOffset.json of each store to ``kept``/broker/now_ms.json; returns the copies.

    A store without such a file has no copy. Raises UsageError where there is no store.
    """
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    copies = []
    for store in find_stores(stores):
        source = Path(store.directory) / "config" / "consumerOffset.json"
        if source.is_file():
            target = Path(kept) / store.broker_name / f"{now_ms}.json"
            target.parent.mkdir(parents=True, exist_ok=True)
            copies.append(Path(shutil.copyfile(source, target)))
    return copies


def lag_over_time(out: str | os.PathLike[str], kept: str | os.PathLike[str]) -> pandas.DataFrame:
    """One row per minute with a snapshot, topic and group: ``lag`` in messages, all queues together, and ``behind_ms``,
    the age of the oldest message that the group had not read then; 0 without a lag.

    Snapshots of one minute belong together; of each broker the last one counts. Raises UsageError when there is no
    snapshot, or ``out`` has no table of messages.
    """
    import pandas

    snapshots = _snapshots(Path(kept))
    stored = _stored(Path(out), {topic for _, _, topic, *_ in snapshots})
    rows = []
    for at_ms, broker, topic, group, queue_id, consumed in snapshots:
        lag, oldest_ms = _behind(stored.get((broker, topic, queue_id)), at_ms, consumed)
        rows.append((at_ms // MINUTE_MS * MINUTE_MS, topic, group, lag, at_ms - oldest_ms if lag else 0))
    frame = pandas.DataFrame(rows, columns=list(COLUMNS))
    return frame.groupby(list(COLUMNS[:3]), as_index=False).agg({"lag": "sum", "behind_ms": "max"})


def _snapshots(kept: Path) -> list[tuple[int, str, str, str, int, int]]:
    """(time, broker, topic, group, queue, offset) of the last snapshot of each broker in each minute."""
    last: dict[tuple[str, int], tuple[int, Path]] = {}
    for path in sorted(kept.glob("*/*.json")):
        if not path.stem.isdecimal():
            raise UsageError(f"{path} is named by no time", hint="a snapshot is DIR/BROKER/MS_SINCE_1970.json")
        minute = path.parent.name, int(path.stem) // MINUTE_MS
        last[minute] = max(last.get(minute, (0, path)), (int(path.stem), path))
    if not last:
        raise UsageError(
            f"no snapshot of consumerOffset.json in {kept}",
            hint="'mqlab spark keep-offsets STORES --out DIR' makes one",
        )
    return [row for at_ms, path in last.values() for row in _read(at_ms, path)]


def _read(at_ms: int, path: Path) -> Iterator[tuple[int, str, str, str, int, int]]:
    for key, queues in java_json.table(java_json.loads(path.read_text("utf-8")), "offsetTable").items():
        topic, _, group = key.rpartition("@")
        for queue_id, offset in queues.items():
            if topic:
                yield at_ms, path.parent.name, topic, group, java_json.to_int(queue_id), java_json.to_long(offset)


def _stored(out: Path, topics: set[str]) -> dict[Queue, tuple[Any, Any]]:
    """The queue offsets of each queue's messages and when they were stored, both ascending."""
    if not (out / "messages").is_dir():
        raise UsageError(f"{out} has no table of messages", hint="give the output of 'mqlab spark run'")
    dataset = pyarrow.dataset.dataset(out / "messages", format="parquet")
    table = dataset.to_table(
        columns=[*PLACE, "queue_offset", "store_timestamp"], filter=pyarrow.compute.field("topic").isin(sorted(topics))
    )
    frame = table.to_pandas().sort_values([*PLACE, "queue_offset"])
    stored: dict[Queue, tuple[Any, Any]] = {}
    for (broker, topic, queue_id), rows in frame.groupby(list(PLACE)):
        stored_ms = rows["store_timestamp"].to_numpy().astype("datetime64[ms]").astype("int64")
        stored[broker, topic, int(queue_id)] = rows["queue_offset"].to_numpy(), numpy.maximum.accumulate(stored_ms)
    return stored


def _behind(queue: tuple[Any, Any] | None, at_ms: int, consumed: int) -> tuple[int, int]:
    """How many messages stored until then were not read, and when the first of them was stored.

    >>> queue = numpy.array([5, 6, 7]), numpy.array([1_000, 2_000, 3_000])
    >>> _behind(queue, 2_500, 5), _behind(queue, 2_500, 7), _behind(queue, 9_000, 0)
    ((2, 1000), (0, 0), (3, 1000))
    """
    if queue is None:
        return 0, 0
    offsets, stored_ms = queue
    first, end = int(numpy.searchsorted(offsets, consumed)), int(numpy.searchsorted(stored_ms, at_ms, "right"))
    return (end - first, int(stored_ms[first])) if end > first else (0, 0)


def behind_by_offsets(frame: pandas.DataFrame) -> Section:
    """The section about it: two small pictures and a row for each group and topic that it reads, worst first."""
    own = frame[~frame["topic"].str.startswith((names.RETRY_PREFIX, names.DLQ_PREFIX))]
    pairs = own.groupby(["consumer_group", "topic"])["behind_ms"].max().sort_values(ascending=False).index
    figures: list[Figure] = []
    rows = []
    for group, topic in pairs:
        mine = own[(own["consumer_group"] == group) & (own["topic"] == topic)].set_index("time_ms").sort_index()
        most, longest = mine["lag"].idxmax(), mine["behind_ms"].idxmax()
        rows.append(
            (
                group,
                topic,
                number(mine["lag"].max()),
                moment(most),
                duration(mine["behind_ms"].max()),
                moment(longest),
                number(mine["lag"].iloc[-1]),
            )
        )
        if len(figures) < 2 * DRAWN:
            for column, unit, what in (("lag", "", "messages"), ("behind_ms", "ms", "oldest unread message")):
                said = f"{what} of {group} over the day"
                line = {"": mine[column]}
                chart = Lines(line, unit=unit, log=False, said=said, width=HALF, height=SMALL, right=NO_NAMES)
                figures.append(Figure(chart, f"{group} ← {topic}: {what}", "half"))
    columns = [
        ("group", "text"),
        ("topic", "text"),
        ("most", "number"),
        ("at", "text"),
        ("furthest behind", "number"),
        ("at", "text"),
        ("at the end", "number"),
    ]
    note = (
        f"From {frame['time_ms'].nunique()} snapshots of consumerOffset.json, also for groups without a trace: "
        "messages stored and not read at that moment, and the age of the oldest of them."
    )
    return Section("lag-over-time", "Lag, over time", note, figures, [FactTable(columns, rows, "no group is known")])
