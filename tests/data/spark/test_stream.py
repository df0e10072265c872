"""The stream in a real Spark session: a live store, a limit, a checkpoint that goes on, damage that is told."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from mqlab.data.arrow.reading import read_table
from mqlab.data.spark.session import log_file
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.message import Message
from tests.data.arrow.logs import some_records, write_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_live_store_of_several_brokers(spark: SparkSession, tmp_path: Path) -> None:
    """What is put while the query runs comes out of it, once, with the bodies that were sent."""
    name = f"live_{uuid.uuid4().hex}"
    reader = spark.readStream.format("rocketmq").option("columns", "broker_name,queue_offset,tags,body")
    log = reader.load(str(tmp_path))
    sent = []
    with (
        MessageStore.open(str(tmp_path / "broker-a"), mapped_file_size_commit_log=4096) as left,
        MessageStore.open(str(tmp_path / "broker-b"), mapped_file_size_commit_log=4096) as right,
    ):
        left.put(Message("orders", b"before", tags="t"))
        sent.append(("broker-a", 0, "t", b"before"))
        query = log.writeStream.format("memory").queryName(name).start()
        try:
            for turn in range(3):
                for number in range(12):
                    body = f"оплачен 已付款 🚚 {turn} {number}".encode() * 9
                    store = [left, right][number % 2]
                    put = store.put(Message("orders", body, tags=f"t{turn}"))
                    sent.append((["broker-a", "broker-b"][number % 2], put.queue_offset, f"t{turn}", body))
                query.processAllAvailable()
                rows = [(*row[:3], bytes(row["body"])) for row in spark.table(name).collect()]
                assert sorted(rows) == sorted(sent)
        finally:
            query.stop()


def test_batches_of_a_limited_size_and_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """A query of its own each time takes up where the one before ended."""
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")

    def run() -> list[dict[str, object]]:
        reader = spark.readStream.format("rocketmq").option("maxBytesPerTrigger", "3k").option("topic", "заказы")
        writer = reader.load(str(tmp_path / "broker-a")).writeStream.option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).format("parquet").start(out)
        query.awaitTermination()
        return [dict(progress) for progress in query.recentProgress]

    with MessageStore.open(str(tmp_path / "broker-a"), mapped_file_size_commit_log=4096) as store:
        for number in range(40):
            store.put(Message(["orders", "заказы"][number % 2], b"x" * 300, keys=f"k{number}"))
        first = run()
        for number in range(40, 44):
            store.put(Message("заказы", b"x" * 300, keys=f"k{number}"))
        second = run()
    assert len([progress for progress in first if progress["numInputRows"]]) > 3
    assert len(second) < len(first)
    found = [row["keys"] for row in spark.read.parquet(out).collect()]
    table = read_table(tmp_path / "broker-a", ["topic", "keys"]).to_pylist()
    assert sorted(found) == sorted(row["keys"] for row in table if row["topic"] == "заказы")


def test_deleted_files_that_are_skipped_are_reported_where_spark_plans(spark: SparkSession, tmp_path: Path) -> None:
    """The query goes on with what is left. Spark plans in a process of its own: the warning is in the JVM's log."""
    write_log(tmp_path / "stores" / "deleted", some_records(60))
    options = {"startingOffsets": '{"deleted": 0}', "failOnDataLoss": "false", "columns": "physical_offset"}
    (tmp_path / "stores" / "deleted" / "commitlog" / f"{0:020}").unlink()
    log = spark.readStream.format("rocketmq").options(**options).load(str(tmp_path / "stores"))
    name = f"left_{uuid.uuid4().hex}"
    query = log.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    places = [row[0] for row in spark.table(name).collect()]
    assert min(places) == 4096 and len(places) == read_table(tmp_path / "stores").num_rows
    assert "messages 0 to 4096 of deleted were deleted before they were read" in log_file().read_text("utf-8")


def test_damage_ends_the_query_with_file_and_offset(spark: SparkSession, tmp_path: Path) -> None:
    written = write_log(tmp_path / "b", some_records(20))
    path = tmp_path / "b" / "commitlog" / f"{0:020}"
    damaged = bytearray(path.read_bytes())
    damaged[written[3].physical_offset + 4] ^= 1
    path.write_bytes(damaged)
    log = spark.readStream.format("rocketmq").load(str(tmp_path / "b"))
    query = log.writeStream.format("noop").trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination()
    assert f"commitlog/{0:020} at offset {written[3].physical_offset + 4}: expected DAA320A7" in str(caught.value)
