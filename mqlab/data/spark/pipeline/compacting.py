"""The small files of a stream's tables made into few: a batch of a stream writes a file or more, 43,200 of them a day.

Mirrors: what OPTIMIZE does for a Delta table, for the plain Parquet files and the file log of Spark's file sink.

    out/messages  part-0 … part-9999                out/messages  part-0 part-1
                  _spark_metadata/  9999.compact ──▶              _spark_metadata/ 9999.compact

    out/.unfinished/messages    being written, with a file log whose newest batch has the number of the old one, so that
                                the stream goes on after it; then two renames, the old folder by way of out/.before

A death between the renames is repaired when the folder is locked the next time. What killed batches left behind, files
that no batch names, goes with the old folder. Left out: compaction while a stream writes; the lock refuses it.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow.parquet
from pyspark.sql import SparkSession

from mqlab.data.arrow.stores import StorePath
from mqlab.data.spark.pipeline.job import BEFORE, held, rows_in, saved
from mqlab.data.spark.pipeline.steps import OF_THE_LOG, STEPS, UNFINISHED
from mqlab.errors import StoreError, UsageError

FILE_LOG, COMPACT = "_spark_metadata", ".compact"
VERSION = "v1"
TARGET_BYTES = 128 << 20


def compact(out: StorePath, *, spark: SparkSession, target_bytes: int = TARGET_BYTES) -> dict[str, tuple[int, int]]:
    """Write the tables of a stream in ``out`` again, in files of about ``target_bytes``.

    Returns how many files each table had and has. Raises UsageError for an output of no stream, StoreError while a
    stream or a run works in it, or when the new files do not have the rows of the old ones; then nothing is changed.
    """
    folder = Path(out)
    before = saved(folder)
    if before is None or not before["streamed"]:
        raise UsageError(
            f"{folder} has no tables of a stream", hint="'mqlab spark run DIR --out OUT --stream' writes such tables"
        )
    with held(folder):
        shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
        return {name: _compact(folder, name, spark, target_bytes) for name in OF_THE_LOG if (folder / name).is_dir()}


def _compact(out: Path, name: str, spark: SparkSession, target_bytes: int) -> tuple[int, int]:
    table, draft, aside = out / name, out / UNFINISHED / name, out / BEFORE / name
    # 1. The files that the batches of the stream name. Others are left from batches that were killed.
    files = files_of(table)
    wanted = max(1, -(-sum(path.stat().st_size for path in files) // target_bytes))
    if len(files) <= wanted:
        return len(files), len(files)
    # 2. The same rows in few files, counted before anything is replaced.
    rows = spark.read.schema(STEPS[name].schema).parquet(str(table))
    rows.coalesce(wanted).write.parquet(str(draft))
    expected = sum(pyarrow.parquet.read_metadata(path).num_rows for path in files)
    if rows_in(draft) != expected:
        raise StoreError(f"{draft} has {rows_in(draft)} rows: expected the {expected} of {table}")
    _write_file_log(table, draft)
    # 3. The new folder takes the place of the old one.
    aside.parent.mkdir(exist_ok=True)
    table.replace(aside)
    draft.replace(table)
    shutil.rmtree(aside.parent)
    return len(files), len(files_of(table))


def files_of(table: Path) -> list[Path]:
    """The files of a table that a stream has written, as its file log names them."""
    return [path for log in _log_files(table) for path in _paths_in(log)]


def _log_files(table: Path) -> list[Path]:
    """The files of the log that count: the newest compact one, which repeats all before it, and those after it."""
    numbers = {}
    for path in (table / FILE_LOG).iterdir():
        number, _, rest = path.name.partition(".")
        if number.isdecimal() and rest in ("", COMPACT[1:]):
            numbers[int(number)] = path
    newest = max((number for number, path in numbers.items() if path.suffix == COMPACT), default=-1)
    return [numbers[number] for number in sorted(numbers) if number >= newest]


def _paths_in(log: Path) -> list[Path]:
    lines = log.read_text("utf-8").splitlines()
    if not lines or lines[0] != VERSION:
        raise StoreError(f"{log} is not a file log of Spark: expected {VERSION}, found {lines[:1]}")
    return [Path(unquote(urlparse(json.loads(line)["path"]).path)) for line in lines[1:]]


def _write_file_log(table: Path, draft: Path) -> None:
    """The log of the new files: the first of the old log's files names them all, the others name none."""
    log = draft / FILE_LOG
    log.mkdir()
    entries = []
    for path in sorted(draft.glob("*.parquet")):
        status = path.stat()
        entries.append(
            json.dumps(
                {
                    "path": f"{table.absolute().as_uri()}/{path.name}",
                    "size": status.st_size,
                    "isDir": False,
                    "modificationTime": status.st_mtime_ns // 1_000_000,
                    "blockReplication": 1,
                    "blockSize": 32 << 20,
                    "action": "add",
                }
            )
        )
    for number, old in enumerate(_log_files(table)):
        (log / old.name).write_text("\n".join([VERSION, *(entries if number == 0 else ())]), "utf-8")
    # The old files are removed soon: the new ones must be on the disk by then.
    for path in [*draft.glob("*.parquet"), *log.iterdir()]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
