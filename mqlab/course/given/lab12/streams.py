"""A stream over a film: slices of what brokers stored, read one after the other, each as a batch of its own.

Lab 12 uses it.

    film            a folder: 000.parquet, 001.parquet, ... each what a job found new when it looked
    the answer      function(frame, *arguments) ─▶ (DataFrame, output mode)
    run_of_film     ─▶ what the sink was given, batch by batch, and what Spark tells of its state

A film gives the same batches on every machine, which brokers that grow do not.
Mirrors: StreamingQueryProgress of Spark, of which the state and the watermark are kept.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mqlab.errors import UsageError

FIRST_SLICE = "000.parquet"
MODES = ("append", "update", "complete")
SMALL = {"spark.sql.shuffle.partitions": "1"}  # a film has some hundred rows


def make_film(folder: Path, slices: Iterable[Iterable[Mapping[str, Any]]], types: Mapping[str, str]) -> Path:
    """A film with these rows in a new folder; the folder.

    ``types``: column -> "string", or "timestamp" for a column whose values are ms since 1970.
    """
    import pyarrow
    from pyarrow import parquet

    folder.mkdir(parents=True)
    kinds = {"string": pyarrow.string(), "timestamp": pyarrow.timestamp("us", "UTC")}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in types.items()])
    for number, rows in enumerate(slices):
        plain = [
            {name: row[name] * 1_000 if kind == "timestamp" else row[name] for name, kind in types.items()}
            for row in rows
        ]
        path = folder / f"{number:03}.parquet"
        parquet.write_table(pyarrow.Table.from_pylist(plain, schema), path)
        # Spark reads files in the order in which they were changed.
        os.utime(path, (number, number))
    return folder


def run_of_film(function: Callable[..., Any], film: str | Path, *arguments: Any) -> dict[str, Any]:
    """What happens when a stream over a film is asked ``function(frame, *arguments)``, in a session of its own.

        rows       what the sink was given: a dictionary for each row, with ``batch`` next to its columns
        batches    what mqlab.data.spark.state_of tells of each
        mode       the output mode
        refused    why Spark does not run this query; empty if it does

    Times of rows are texts as well. Raises UsageError when the function returns anything but a DataFrame of this
    stream and an output mode.
    """
    from pyspark.errors import AnalysisException, StreamingQueryException

    from mqlab.data.spark import session, state_of

    own = session().newSession()
    for name, value in SMALL.items():
        own.conf.set(name, value)
    schema = own.read.parquet(str(Path(film, FIRST_SLICE))).schema
    frame = own.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(film))
    name = getattr(function, "__name__", "the function")
    seen: dict[str, Any] = {"rows": [], "batches": [], "mode": "", "refused": ""}

    def sink(batch: Any, number: int) -> None:
        seen["rows"] += [{"batch": number, **plain_row(row.asDict(recursive=True))} for row in batch.collect()]

    with tempfile.TemporaryDirectory(prefix="mqlab-checkpoint-") as checkpoint:
        try:
            answer, seen["mode"] = frame_and_mode(function(frame, *arguments), name)
            writer = answer.writeStream.outputMode(seen["mode"]).foreachBatch(sink).trigger(availableNow=True)
            query = writer.option("checkpointLocation", checkpoint).start()
            query.awaitTermination()
        except (AnalysisException, StreamingQueryException) as error:
            seen["refused"] = first_sentence(str(error))
        else:
            seen["batches"] = state_of(query)
    return seen


def frame_and_mode(answer: Any, name: str) -> tuple[Any, str]:
    """What an answer returned, if it is a streaming DataFrame and an output mode. Raises UsageError."""
    from pyspark.sql import DataFrame

    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], DataFrame):
        what = "nothing" if answer is None else f"a {type(answer).__name__}"
        if isinstance(answer, tuple):
            what = f"a tuple of {', '.join(type(part).__name__ for part in answer) or 'nothing'}"
        raise UsageError(
            f"{name} returned {what}: expected a DataFrame and an output mode", hint='return counts, "update"'
        )
    frame, mode = answer
    if not frame.isStreaming:
        raise UsageError(
            f"{name} returned a table that is not a stream", hint="build it from the DataFrame that it is given"
        )
    if mode not in MODES:
        raise UsageError(f"{name} returned the output mode {mode!r}", hint=f"one of {', '.join(MODES)}")
    return frame, mode


def first_sentence(error: str) -> str:
    """What Spark says is wrong, without the trace of its calls.

    >>> first_sentence("[TOO_LATE] It is too late. SQLSTATE: 42000;\\nJoin LeftOuter")
    'It is too late.'
    """
    lines = error.splitlines() or [""]
    words = lines[0].rpartition("] ")[2] if "] " in lines[0] else lines[0]
    return words.partition(" SQLSTATE")[0][:300]


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its times as texts in UTC; a window of Spark becomes its beginning and end."""
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):  # a time of Spark has no zone here: it is that of this process
        return datetime.fromtimestamp(value.timestamp(), UTC).strftime("%Y-%m-%d %H:%M:%S")
    return plain_row(value) if isinstance(value, dict) else value
