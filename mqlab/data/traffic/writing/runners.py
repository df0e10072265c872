"""Ways to write the stores of a run: ``run.py`` writes one after the other, these write several at a time.

    in_processes(2)     one store per process, two at a time
    on_spark(session)   one store per partition; the directory must be one that driver and executors share

Each takes the missing stores and yields the finished ones, so ``write`` records each store as soon as it is complete.
One store is never split: its log is one sequence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from mqlab.data.traffic.model import Asked
from mqlab.data.traffic.writing.closing_files import BrokerSummary
from mqlab.data.traffic.writing.run import Progress, RunBrokers, make_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def in_processes(workers: int) -> RunBrokers:
    """Stores made by ``workers`` processes at a time; progress is reported store by store."""

    def run(
        asked: Asked, missing: Sequence[tuple[int, str]], progress: Progress
    ) -> Iterator[tuple[int, BrokerSummary]]:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            running = {pool.submit(make_store, asked, broker, directory): broker for broker, directory in missing}
            try:
                for done in as_completed(running):
                    progress(done.result().messages)
                    yield running[done], done.result()
            except BaseException:
                # A store that is being written ends by itself; its folder is replaced by the next run.
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    return run


def on_spark(spark: SparkSession) -> RunBrokers:
    """Stores made by the executors of a session, one partition per store."""

    def run(
        asked: Asked, missing: Sequence[tuple[int, str]], progress: Progress
    ) -> Iterator[tuple[int, BrokerSummary]]:
        def make(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow

            for batch in batches:
                summaries = [_as_text(asked, *missing[row]) for row in batch.column(0).to_pylist()]
                yield pyarrow.RecordBatch.from_pydict({"summary": summaries})

        # One row and one partition per missing store, so that each task writes one store.
        rows = spark.range(0, len(missing), 1, len(missing)).mapInArrow(make, "summary string")
        for row in rows.collect():
            broker, value = json.loads(row.summary)
            progress(value["messages"])
            yield broker, BrokerSummary(**value)

    return run


def _as_text(asked: Asked, broker: int, directory: str) -> str:
    return json.dumps([broker, asdict(make_store(asked, broker, directory))])
