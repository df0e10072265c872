"""All steps in order, as `mqlab spark run` runs them: Parquet between them, each complete or absent; resumable.

    out/pipeline.json          the stores and their extents; length of a stretch of time; seconds and rows of the steps
    out/messages  trace  deliveries  offsets  readers  life       out/facts/traffic  queues  keys  ...
    out/.unfinished/life       being written; moved to its place when it is complete, removed otherwise

    A step is done when its folder exists. When a step is missing, all steps after it are made again.

Left out: outputs on object stores and HDFS, where a folder cannot be moved in one step.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqlab.data.arrow.stores import StoreFolder, StorePath
from mqlab.data.spark.pipeline.log_units import Extent, snapshot
from mqlab.data.spark.pipeline.steps import FACTS, OF_THE_LOG, STEPS, UNFINISHED, TableStep, Work
from mqlab.data.spark.pipeline.table_parts import write_table
from mqlab.data.spark.small_tables import collected, written
from mqlab.data.spark.thresholds import Thresholds
from mqlab.errors import StoreError, UsageError
from mqlab.whole_files import whole_file

MANIFEST, LOCK, BEFORE = "pipeline.json", ".lock", ".before"
FORMAT = 2
RULES = ("islands", "suspicions")  # the last steps
PARTITIONS = "spark.sql.shuffle.partitions"
SHUFFLE_BYTES = 96 << 20  # of the log, to one partition of a shuffle
UNMEASURED = (1 << 31) - 1  # the size of a batch of Arrow from which on Spark does not measure it


Told = Callable[[str, dict[str, float]], None]


def run(
    stores: StorePath | Sequence[StorePath],
    out: StorePath,
    *,
    spark: SparkSession | None = None,
    start: str | None = None,
    tell: Told = lambda step, numbers: None,
    fail_on_data_loss: bool = True,
    thresholds: Thresholds | None = None,
    without: Sequence[str] = (),
) -> dict[str, dict[str, float]]:
    """Run every step that is not done yet, in order; ``start`` names the first of those to be made again.

    ``thresholds`` are those of the rules; without them those of the last run hold. ``without=("suspicions",)`` leaves
    the rules out, and removes what they had found.
    ``tell`` is called when each begins (no numbers) and ends (seconds, rows). Returns seconds and rows of all steps.
    After an interrupt only complete steps are left, and another call resumes there. Raises UsageError for an output
    of something else or of other stores, StoreError while another run works in it, CorruptionError for a log that ends
    before its queues do; with ``fail_on_data_loss=False`` that is a warning and a row of the suspicions.
    """
    folder = Path(out)
    # 1. Which steps are missing; all that follow the first of them are removed.
    names = list(STEPS)
    first = names.index(step_named(start)) if start else len(names)
    with held(folder):
        work = _begin(snapshot(stores, fail_on_data_loss=fail_on_data_loss), folder, spark, first)
        left_out = _left_out(without)
        missing = [names.index(name) for name in names if name not in left_out and not _is_done(folder, name)]
        if work.streamed:  # messages and trace have grown since
            missing.append(names.index("deliveries"))
        if thresholds is not None and thresholds != work.limits:  # the rules may find something else
            missing.append(names.index(RULES[0]))
        work.limits, work.without = thresholds or work.limits, left_out
        _forget(work, [*names[min([first, *missing]) :], *left_out])
        # 2. Make them. The length of a stretch is known after the first step, and the facts need it.
        with _settings_for(work):
            for name in names:
                if name not in left_out and not _is_done(folder, name):
                    tell(name, {})
                    _make(work, STEPS[name])
                    tell(name, work.done[name])
                if name == "messages" and work.span_ms == (0, 0):
                    work.span_ms = _span(work.read("messages"))
                    save(work)
        return work.done


def _is_done(folder: Path, name: str) -> bool:
    return (folder / STEPS[name].folder).is_dir()


def _left_out(without: Sequence[str]) -> tuple[str, ...]:
    """The steps to be left out: the rules and their table of islands, or none. Raises UsageError for other steps."""
    wrong = [name for name in without if name != RULES[-1]]
    if wrong:
        raise UsageError(f"a run cannot do without {wrong[0]!r}", hint=f"only {RULES[-1]} can be left out")
    return tuple(name for name in STEPS if name in RULES) if without else ()


@contextlib.contextmanager
def _settings_for(work: Work) -> Iterator[None]:
    """Changes the session's settings while the steps run: partitions by the log's size, and plans made once."""
    conf = work.spark.conf
    size = sum(extent.end - extent.start for extent in work.extents)
    # The caller's number of partitions is a minimum: a large log gets more, so that each fits in memory.
    least = int(conf.get(PARTITIONS) or 1)
    settings = {
        PARTITIONS: str(max(least, -(-size // SHUFFLE_BYTES))),
        "spark.sql.adaptive.enabled": "false",  # it plans again after each shuffle, and the partitions fit already
        "spark.sql.requireAllClusterKeysForCoPartition": "false",  # a join by group may use partitions by id and keys
        "spark.sql.execution.arrow.maxBytesPerBatch": str(UNMEASURED),  # else a batch is measured again at each row
    }
    before = {name: conf.get(name, None) for name in settings}
    for name, value in settings.items():
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
    """The step of this name. Raises UsageError for an unknown name."""
    if name == "facts":
        return FACTS[0]
    if name not in STEPS:
        raise UsageError(
            f"unknown step {name!r}", hint=f"steps are {', '.join(STEPS)}; facts means all from {FACTS[0]} on"
        )
    return name


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Create the folder if necessary and lock it for this run."""
    # 1. Never take over a folder that has other files in it: a run removes tables.
    ours = (folder / MANIFEST).exists() or (folder / LOCK).exists()
    if folder.exists() and (not folder.is_dir() or (not ours and any(folder.iterdir()))):
        raise UsageError(
            f"{folder} exists and was not made by 'mqlab spark run'", hint="give --out a folder that is new or empty"
        )
    folder.mkdir(parents=True, exist_ok=True)
    # 2. The lock belongs to the open file: it ends with the process, however that ends.
    with (folder / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(f"another run is working in {folder}", hint="wait for it, or give another --out") from None
        _put_back(folder)
        yield


def _put_back(folder: Path) -> None:
    """Repair a compaction that died between its two renames: the table as it was takes its place again."""
    for aside in (folder / BEFORE).iterdir() if (folder / BEFORE).is_dir() else ():
        if not (folder / aside.name).exists():
            aside.replace(folder / aside.name)
    shutil.rmtree(folder / BEFORE, ignore_errors=True)


def _begin(now: list[Extent], folder: Path, spark: SparkSession | None, first: int) -> Work:
    """The work as an earlier run left it, or new work with the present ends of the stores."""
    before = saved(folder)
    if before is not None:
        check_stores(folder, before, now)
        if before["streamed"]:
            _check_streamed(folder, first)
    # Spark starts only now: a wrong folder should be reported at once.
    if spark is None:
        from mqlab.data.spark.session import session

        spark = session()
    work = Work(spark, folder, now, limits=Thresholds.of((before or {}).get("thresholds", {})))
    # An earlier run is resumed with the extents that it read: tables of different moments do not fit together.
    if before is not None and before["streamed"]:
        work.streamed = True
    elif before is not None and (folder / STEPS["messages"].folder).is_dir() and first > 0:
        work.extents = [Extent.from_manifest(saved) for saved in before["stores"]]
        work.span_ms = (before["span_ms"][0], before["span_ms"][1])
        work.done = {name: numbers for name, numbers in before["steps"].items() if name in STEPS}
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
    save(work)
    return work


def _check_streamed(folder: Path, first: int) -> None:
    """Raise UsageError when tables of a stream are missing, or when a run is to make them."""
    there = all((folder / STEPS[name].folder).is_dir() for name in OF_THE_LOG)
    if not there or first < len(OF_THE_LOG):
        more = "" if there else ", which has written nothing yet"
        raise UsageError(
            f"{' and '.join(OF_THE_LOG)} in {folder} are written by a stream{more}",
            hint="run 'mqlab spark run --stream' for these tables, or give --from deliveries for the other ones",
        )


def check_stores(folder: Path, before: dict[str, Any], now: Sequence[Extent]) -> None:
    """Raise UsageError when an output was made of other stores."""
    stores = [StoreFolder(**saved["store"]) for saved in before["stores"]]
    if stores != [extent.store for extent in now]:
        raise UsageError(
            f"{folder} holds the tables of other stores: {', '.join(store.directory for store in stores)}",
            hint="give these stores another --out",
        )


def saved(folder: Path) -> dict[str, Any] | None:
    """The manifest of an earlier run or stream, or None. Raises UsageError for another version's manifest."""
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        saved: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UsageError(f"cannot read {path}: {error}", hint="give another --out") from error
    if saved.get("format") != FORMAT:
        raise UsageError(
            f"{folder} was made by another version of mqlab (format {saved.get('format')}, here {FORMAT})",
            hint="give another --out",
        )
    return saved


def save(work: Work) -> None:
    """Write the manifest, completely or not at all."""
    manifest = {
        "format": FORMAT,
        "stores": [asdict(extent) for extent in work.extents],
        "span_ms": work.span_ms,
        "stretch_ms": work.stretch_ms,
        "streamed": work.streamed,
        "thresholds": work.limits.as_dict(),
        "without": work.without,
        "steps": work.done,
    }
    with whole_file(work.out / MANIFEST) as draft:
        draft.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _forget(work: Work, names: Sequence[str]) -> None:
    """Remove the outputs of these steps, the last one first: no table may remain whose sources are gone."""
    for name in reversed(names):
        folder = work.out / STEPS[name].folder
        if folder.is_dir():
            # A rename is one step, a removal is many: a half-removed table would look complete.
            aside = work.draft(name)
            aside.parent.mkdir(exist_ok=True)
            folder.replace(aside)
            shutil.rmtree(aside)
        work.done.pop(name, None)
    save(work)


def _make(work: Work, step: TableStep) -> None:
    """Make one table and move it to its place."""
    began = time.monotonic()
    unfinished, final = work.draft(step.name), work.out / step.folder
    try:
        frame = step.make(work)
        if step.is_small and frame is not None:
            written(collected(frame) if isinstance(frame, DataFrame) else frame, step.schema, unfinished)
        elif isinstance(frame, DataFrame):
            write_table(frame, step.schema, unfinished)
    except BaseException:  # Ctrl-C too
        shutil.rmtree(work.out / UNFINISHED, ignore_errors=True)
        raise
    # The folder gets its final name last: a folder with that name is a complete table.
    final.parent.mkdir(exist_ok=True)
    unfinished.replace(final)
    seconds = round(time.monotonic() - began, 2)
    work.done[step.name] = {"seconds": seconds, "rows": rows_in(final)}
    save(work)


def rows_in(folder: Path) -> int:
    """Number of rows in a folder of Parquet files, read from their footers."""
    return sum(pyarrow.parquet.read_metadata(path).num_rows for path in folder.rglob("*.parquet"))


def _span(messages: DataFrame) -> tuple[int, int]:
    """First and last store time of the messages by producers, in ms; 0 and 0 for a store without such messages."""
    times = messages.where("kind = 'normal'").select(F.unix_millis("store_timestamp").alias("ms"))
    row = times.agg(F.min("ms"), F.max("ms")).first()
    return (0, 0) if row is None or row[0] is None else (row[0], row[1])
