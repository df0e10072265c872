"""All steps in a row, as `mqlab spark run` does it: Parquet between them, whole or not at all, resumed after a stop.

Mirrors: nothing in RocketMQ. Lab 11 runs it once and looks into what it left.

    out/pipeline.json          which stores, up to where; how long a stretch of time is; seconds and rows of the steps
    out/messages  trace  deliveries  offsets  readers  life       out/facts/traffic  queues  keys  ...
    out/.unfinished/life       being written; moved to its place when it is whole, thrown away otherwise

    A step is done when its folder is there. Steps stand in one order: what follows a missing one is made anew.

Left out: outputs on object stores and HDFS, where a folder cannot be moved in one step.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from mqlab.arrow.stores import Store, StorePath
from mqlab.errors import StoreError, UsageError
from mqlab.spark.pipeline import group_facts as g
from mqlab.spark.pipeline import schemas as s
from mqlab.spark.pipeline import stored_facts as t
from mqlab.spark.pipeline.listener_calls import deliveries
from mqlab.spark.pipeline.log_units import Extent, offsets, raw, snapshot, trace_raw
from mqlab.spark.pipeline.message_kinds import messages
from mqlab.spark.pipeline.message_life import life, readers
from mqlab.spark.pipeline.suspicions import ISLANDS, SUSPICIONS, islands, suspicions
from mqlab.spark.pipeline.trace_entries import trace
from mqlab.whole_files import whole_file

MANIFEST, LOCK, UNFINISHED = "pipeline.json", ".lock", ".unfinished"
FORMAT = 1
STREAMED = ("messages", "trace")  # the first steps
MOST_STRETCHES, MOST_KEY_WINDOWS = 300, 24
STRETCHES_MS = [1_000 * seconds for seconds in (1, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400)]
PARTITIONS = "spark.sql.shuffle.partitions"
SHUFFLE_BYTES = 96 << 20  # of the log, to one partition of a shuffle


@dataclass(slots=True)
class Work:
    """What the steps of one run share. ``span_ms``: first and last store time of what producers sent."""

    spark: SparkSession
    out: Path
    extents: list[Extent]
    span_ms: tuple[int, int] = (0, 0)
    done: dict[str, dict[str, float]] = field(default_factory=dict)
    streamed: bool = False

    @property
    def stretch_ms(self) -> int:
        """How long the stretches of time are by which facts are counted: five minutes of a day."""
        return self._round_ms(MOST_STRETCHES)

    @property
    def key_window_ms(self) -> int:
        """How long the windows are in which hot keys are looked for: an hour of a day."""
        return self._round_ms(MOST_KEY_WINDOWS)

    def _round_ms(self, most: int) -> int:
        """The shortest round stretch of time of which the day has no more than ``most``."""
        long = self.span_ms[1] - self.span_ms[0]
        fitting = [ms for ms in STRETCHES_MS if long <= ms * most]
        return fitting[0] if fitting else -(-long // most)

    def read(self, name: str) -> DataFrame:
        """The table that a step left."""
        step = STEPS[name]
        return self.spark.read.schema(step.schema).parquet(str(self.out / step.folder))


@dataclass(frozen=True, slots=True)
class Step:
    """One table: its schema, the folder it goes to, and how it is made of the tables before it."""

    name: str
    schema: StructType
    make: Callable[[Work], DataFrame]
    folder: str = ""


def _steps() -> dict[str, Step]:
    steps = [
        Step("messages", s.MESSAGES, lambda w: messages(raw(w.spark, w.extents)), "messages"),
        Step("trace", s.TRACE, lambda w: trace(trace_raw(w.spark, w.extents)), "trace"),
        Step("deliveries", s.DELIVERIES, lambda w: deliveries(w.read("trace")), "deliveries"),
        Step("offsets", s.OFFSETS, lambda w: offsets(w.spark, [e.store for e in w.extents]), "offsets"),
        Step("readers", s.READERS, lambda w: readers(*_of(w, "messages", "deliveries", "offsets")), "readers"),
        Step("life", s.LIFE, lambda w: life(*_of(w, "messages", "deliveries", "readers", "offsets")), "life"),
    ]
    facts: list[tuple[str, StructType, Callable[[Work], DataFrame]]] = [
        ("traffic", t.TRAFFIC, lambda w: t.traffic(w.read("messages"), w.stretch_ms)),
        ("queues", t.QUEUES, lambda w: t.queues(w.read("messages"))),
        ("keys", t.KEYS, lambda w: t.keys(w.read("messages"), w.key_window_ms)),
        ("groups", g.GROUPS, lambda w: g.groups(w.read("life"))),
        ("group_tags", g.GROUP_TAGS, lambda w: g.group_tags(w.read("life"))),
        ("lag", g.LAG, lambda w: g.lag(*_of(w, "queues", "offsets"))),
        ("backlog", g.BACKLOG, lambda w: g.backlog(w.read("life"), w.stretch_ms)),
        ("latency", g.LATENCY, lambda w: g.latency(w.read("life"), w.stretch_ms)),
        ("duplicates", g.DUPLICATES, lambda w: g.duplicates(w.read("life"))),
        ("calls", g.CALLS, lambda w: g.calls(w.read("deliveries"), w.stretch_ms)),
        ("slowest", g.SLOWEST_CALLS, lambda w: g.slowest(w.read("deliveries"))),
        ("producers", g.PRODUCERS, lambda w: g.producers(w.read("trace"))),
        ("islands", ISLANDS, lambda w: islands(w.read("life"), w.stretch_ms)),
        ("suspicions", SUSPICIONS, lambda w: suspicions(_Tables(w), w.stretch_ms, w.extents)),
    ]
    steps += [Step(name, schema, make, f"facts/{name}") for name, schema, make in facts]
    return {step.name: step for step in steps}


def _of(work: Work, *names: str) -> list[DataFrame]:
    return [work.read(name) for name in names]


class _Tables(dict[str, DataFrame]):
    """Tables of a run, read when they are asked for."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, name: str) -> DataFrame:
        return self._work.read(name)


STEPS = _steps()
FACTS = [name for name, step in STEPS.items() if step.folder.startswith("facts/")]
Told = Callable[[str, dict[str, float]], None]


def run(
    stores: StorePath | Sequence[StorePath],
    out: StorePath,
    *,
    spark: SparkSession | None = None,
    start: str | None = None,
    tell: Told = lambda step, numbers: None,
    fail_on_data_loss: bool = True,
) -> dict[str, dict[str, float]]:
    """Every step that is not done yet, in order; ``start`` names one from which on all are made anew.

    ``tell`` is called as each begins (no numbers) and ends (seconds, rows). Returns seconds and rows of all steps.
    An interrupt leaves whole steps only; another call goes on there. Raises UsageError for an output that is not ours
    or of other stores, StoreError while another run works in it, CorruptionError for a log that ends before its queues
    do; with ``fail_on_data_loss=False`` that is a warning and a row of the suspicions.
    """
    folder = Path(out)
    names = list(STEPS)
    first = names.index(step_named(start)) if start else len(names)
    with held(folder):
        work = _begin(snapshot(stores, fail_on_data_loss=fail_on_data_loss), folder, spark, first)
        missing = [at for at, step in enumerate(STEPS.values()) if not (folder / step.folder).is_dir()]
        if work.streamed:  # they have grown since
            missing.append(names.index("deliveries"))
        _forget(work, names[min([first, *missing]) :])
        with _settings_for(work):
            for name in names:
                if not (folder / STEPS[name].folder).is_dir():
                    tell(name, {})
                    _make(work, STEPS[name])
                    tell(name, work.done[name])
                if name == "messages" and work.span_ms == (0, 0):
                    work.span_ms = _span(work.read("messages"))
                    save(work)
        return work.done


@contextlib.contextmanager
def _settings_for(work: Work) -> Iterator[None]:
    """The session's settings while the steps run: partitions by the log's size, and joins as ``life`` wants them."""
    conf = work.spark.conf
    size = sum(extent.end - extent.start for extent in work.extents)
    least = int(conf.get(PARTITIONS) or 1)
    wanted = {
        PARTITIONS: str(max(least, -(-size // SHUFFLE_BYTES))),
        "spark.sql.requireAllClusterKeysForCoPartition": "false",  # by id, keys and group where they lie by id and keys
    }
    before = {name: conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                conf.unset(name)
            else:
                conf.set(name, old)


def step_named(name: str) -> str:
    """The step that a user means. Raises UsageError when there is none of that name."""
    if name == "facts":
        return FACTS[0]
    if name not in STEPS:
        raise UsageError(
            f"there is no step {name!r}", hint=f"steps are {', '.join(STEPS)}; facts: all from {FACTS[0]} on"
        )
    return name


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder, made if need be, for this run alone."""
    ours = (folder / MANIFEST).exists() or (folder / LOCK).exists()
    if folder.exists() and (not folder.is_dir() or (not ours and any(folder.iterdir()))):
        raise UsageError(
            f"{folder} is there and was not made by 'mqlab spark run'", hint="give --out a folder that is new or empty"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(f"another run is working in {folder}", hint="wait for it, or give another --out") from None
        yield


def _begin(now: list[Extent], folder: Path, spark: SparkSession | None, first: int) -> Work:
    """The work as an earlier run left it, or from the start: then the stores' ends of this moment count."""
    before = saved(folder)
    if before is not None:
        check_stores(folder, before, now)
        if before["streamed"]:
            _check_streamed(folder, first)
    if spark is None:
        from mqlab.spark.session import session

        spark = session()
    work = Work(spark, folder, now)
    if before is not None and before["streamed"]:
        work.streamed = True
    elif before is not None and (folder / STEPS["messages"].folder).is_dir() and first > 0:
        work.extents = [Extent.from_manifest(each) for each in before["stores"]]
        work.span_ms = (before["span_ms"][0], before["span_ms"][1])
        work.done = {name: numbers for name, numbers in before["steps"].items() if name in STEPS}
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
    save(work)
    return work


def _check_streamed(folder: Path, first: int) -> None:
    """Raise UsageError when tables of a stream are missing, or when a run is to make them."""
    there = all((folder / STEPS[name].folder).is_dir() for name in STREAMED)
    if not there or first < len(STREAMED):
        more = "" if there else ", which has written nothing yet"
        raise UsageError(
            f"{' and '.join(STREAMED)} in {folder} are a stream's{more}",
            hint="'mqlab spark run --stream' makes them; --from deliveries makes the rest anew",
        )


def check_stores(folder: Path, before: dict[str, Any], now: Sequence[Extent]) -> None:
    """Raise UsageError when an output was made of other stores."""
    stores = [Store(**each["store"]) for each in before["stores"]]
    if stores != [extent.store for extent in now]:
        raise UsageError(
            f"{folder} holds what was made of {', '.join(store.directory for store in stores)}",
            hint="give other stores another --out",
        )


def saved(folder: Path) -> dict[str, Any] | None:
    """The manifest of an earlier run or stream, None without. Raises UsageError when it is not for this version."""
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        saved: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} does not read: {error}", hint="give another --out") from error
    if saved.get("format") != FORMAT:
        raise UsageError(
            f"{folder} was made by another version of mqlab (format {saved.get('format')}, here {FORMAT})",
            hint="give another --out",
        )
    return saved


def save(work: Work) -> None:
    """Write the manifest, whole or not at all."""
    told = {
        "format": FORMAT,
        "stores": [asdict(extent) for extent in work.extents],
        "span_ms": work.span_ms,
        "stretch_ms": work.stretch_ms,
        "streamed": work.streamed,
        "steps": work.done,
    }
    with whole_file(work.out / MANIFEST) as draft:
        draft.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _forget(work: Work, names: Sequence[str]) -> None:
    """Remove the outputs of these steps, the last first: an interrupt must not leave a table of older ones."""
    for name in reversed(names):
        folder = work.out / STEPS[name].folder
        if folder.is_dir():
            aside = work.out / UNFINISHED / name
            aside.parent.mkdir(exist_ok=True)
            folder.replace(aside)
            shutil.rmtree(aside)
        work.done.pop(name, None)
    save(work)


def _make(work: Work, step: Step) -> None:
    """Make one table and move it to its place."""
    began = time.monotonic()
    unfinished, final = work.out / UNFINISHED / step.name, work.out / step.folder
    try:
        step.make(work).write.mode("overwrite").parquet(str(unfinished))
    except BaseException:  # Ctrl-C too
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    final.parent.mkdir(exist_ok=True)
    unfinished.replace(final)
    seconds = round(time.monotonic() - began, 2)
    work.done[step.name] = {"seconds": seconds, "rows": rows_in(final)}
    save(work)


def rows_in(folder: Path) -> int:
    """How many rows a folder of Parquet files has, by their footers."""
    return sum(pyarrow.parquet.read_metadata(path).num_rows for path in folder.rglob("*.parquet"))


def _span(found: DataFrame) -> tuple[int, int]:
    """First and last store time of what producers sent, ms; of a store without such, 0 and 0."""
    times = found.where("kind = 'normal'").select(F.unix_millis("store_timestamp").alias("ms"))
    row = times.agg(F.min("ms"), F.max("ms")).first()
    return (0, 0) if row is None or row[0] is None else (row[0], row[1])
