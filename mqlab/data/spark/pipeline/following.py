"""The first two steps as streams: messages and trace of stores that are being written, into the tables of a run.

Mirrors: a consumer group of the log itself; Spark's checkpoint keeps its offsets.

    stores ──stream──> messages ──> out/messages      out/.checkpoints/messages: how far it has read
           ──stream──> trace ─────> out/trace         exactly once: killed and called again, it resumes there
    run("stores", "out")  makes the other tables from these; they are made again each time

Left out: deliveries and lives as streams; a stream would wait for ever for a call that never returns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from mqlab.data.arrow.stores import StorePath, find_stores
from mqlab.data.spark.pipeline.job import check_stores, held, save, saved
from mqlab.data.spark.pipeline.log_units import PLAIN, TRACE_COLUMNS, snapshot
from mqlab.data.spark.pipeline.message_kinds import messages
from mqlab.data.spark.pipeline.steps import Work
from mqlab.data.spark.pipeline.trace_entries import trace
from mqlab.errors import StoreError, UsageError
from mqlab.rocketmq.wire import names

CHECKPOINTS = ".checkpoints"
POLL_SECONDS = 1
EVERY = "2 seconds"


class Follow:
    """Two queries that write ``out/messages`` and ``out/trace`` as the stores grow; ``stop()`` or ``wait()`` ends them.

    ``available_now``: the queries end when they have read all that was stored at first. Raises UsageError for
    an output that is not a stream's or of other stores, StoreError while another run works in it, CorruptionError for a
    log that ends before its queues do (``fail_on_data_loss=False``: a warning).
    """

    def __init__(
        self,
        stores: StorePath | Sequence[StorePath],
        out: StorePath,
        *,
        spark: SparkSession,
        available_now: bool = False,
        fail_on_data_loss: bool = True,
    ) -> None:
        self._out = Path(out)
        self._fail_on_data_loss = fail_on_data_loss
        # 1. Lock the output before anything in it is read.
        self._exit = ExitStack()
        self._exit.enter_context(held(self._out))
        try:
            self._note(stores, spark)
            # 2. One query per table: each reads the log for itself and has its own checkpoint.
            directories = [store.directory for store in find_stores(stores)]
            units = self._stream(spark, directories, (*PLAIN, "properties"))
            trace_units = self._stream(spark, directories, TRACE_COLUMNS, names.TRACE_TOPIC)
            self.queries = {
                "messages": self._start("messages", messages(units), available_now),
                "trace": self._start("trace", trace(trace_units), available_now),
            }
        except BaseException:
            self._exit.close()
            raise

    def _note(self, stores: StorePath | Sequence[StorePath], spark: SparkSession) -> None:
        """Record that a stream of these stores owns this output."""
        now, before = snapshot(stores, fail_on_data_loss=self._fail_on_data_loss), saved(self._out)
        if before is not None:
            check_stores(self._out, before, now)
            if not before["streamed"]:
                raise UsageError(
                    f"{self._out} was made by a run, not by a stream", hint="give the stream another --out"
                )
        save(Work(spark, self._out, now, streamed=True))

    def _stream(
        self, spark: SparkSession, stores: Sequence[str], columns: Sequence[str], topic: str | None = None
    ) -> DataFrame:
        reader = spark.readStream.format("rocketmq").option("columns", ",".join(columns))
        if topic:
            reader = reader.option("topic", topic)
        if not self._fail_on_data_loss:
            reader = reader.option("failOnDataLoss", "false")
        return reader.option("paths", json.dumps(list(stores))).load()

    def _start(self, name: str, frame: DataFrame, available_now: bool) -> StreamingQuery:
        trigger: dict[str, Any] = {"availableNow": True} if available_now else {"processingTime": EVERY}
        checkpoint = str(self._out / CHECKPOINTS / name)
        writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint).queryName(name)
        return writer.trigger(**trigger).start(str(self._out / name))

    def wait(self, tell: Callable[[str, int], None] = lambda name, rows: None) -> None:
        """Wait until both end, or for Ctrl-C; ``tell`` gets each batch's name and rows. StoreError when one fails."""
        reported: dict[str, int] = {}
        try:
            while any(query.isActive for query in self.queries.values()):
                # Each query is awaited for a moment in turn, so that the failure of either is noticed.
                for name, query in self.queries.items():
                    query.awaitTermination(POLL_SECONDS)
                    self._tell(name, query, reported, tell)
            for name, query in self.queries.items():
                query.awaitTermination()
                self._tell(name, query, reported, tell)
        except KeyboardInterrupt:
            pass
        except StreamingQueryException as error:
            raise StoreError(
                f"the stream failed: {error}", hint="call it again; it resumes where it stopped"
            ) from error
        finally:
            self.stop()

    def _tell(
        self, name: str, query: StreamingQuery, reported: dict[str, int], tell: Callable[[str, int], None]
    ) -> None:
        """Report the batches that were not reported before."""
        for progress in query.recentProgress:
            batch = int(progress["batchId"])
            if batch > reported.get(name, -1) and int(progress["numInputRows"]):
                reported[name] = batch
                tell(name, int(progress["numInputRows"]))

    def stop(self) -> None:
        """Stop both streams; the next run repeats unfinished batches."""
        for query in self.queries.values():
            query.stop()
        self._exit.close()
