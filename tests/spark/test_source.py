"""The data source rocketmq in a real Spark session, over stores of the real broker and of mqlab."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.testing import assertDataFrameEqual

from mqlab.arrow.columns import COLUMNS
from mqlab.arrow.reading import read_table
from mqlab.store import MessageStore
from mqlab.wire.message import Message
from tests.arrow.logs import some_records, write_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

pytestmark = pytest.mark.spark

Counts = dict[tuple[str, int], int]


def counts(frame: DataFrame) -> Counts:
    rows = frame.groupBy("topic", "queue_id").count().collect()
    return {(row["topic"], row["queue_id"]): row["count"] for row in rows}


@pytest.mark.parametrize("name", ["clean", "killed", "edges", "edges-killed"])
def test_messages_per_topic_and_queue_of_a_real_store(
    spark: SparkSession, real_store: Callable[[str], Path], expected: Callable[[str], dict[str, Any]], name: str
) -> None:
    messages = expected(name)["messages"]
    frame = spark.read.format("rocketmq").load(str(real_store(name)))
    assert counts(frame) == Counter((message["topic"], message["queueId"]) for message in messages)


def test_rows_are_what_the_arrow_columns_are(spark: SparkSession, real_store: Callable[[str], Path]) -> None:
    """Through the JVM and back, every column of every row; in several tasks."""
    directory = str(real_store("edges"))
    rows = spark.read.format("rocketmq").option("splitMB", 1).load(directory).orderBy("physical_offset").toArrow()
    assert rows.cast(read_table(directory).schema).equals(read_table(directory))


def test_a_store_written_by_mqlab(spark: SparkSession, tmp_path: Path) -> None:
    sent: Counts = Counter()
    with MessageStore.open(str(tmp_path / "broker-a"), mapped_file_size_commit_log=16_384) as store:
        for number in range(200):
            topic = ["orders", "заказы", "订单"][number % 3]
            body = ["paid", "оплачен", "已付款", "🚚"][number % 4].encode()
            store.put(Message(topic, body * 20, tags=f"t{number % 2}", keys=f"k-{number}"))
            sent[topic, 0] += 1
    frame = spark.read.format("rocketmq").load(str(tmp_path / "broker-a"))
    assert counts(frame) == sent
    row = frame.where("keys = 'k-7'").first()
    assert row is not None
    assert (row["topic"], bytes(row["body"]), row["tags"]) == ("заказы", "🚚".encode() * 20, "t1")
    assert (row["properties"]["KEYS"], row["broker_name"], row["queue_offset"]) == ("k-7", "broker-a", 2)


def test_options_choose_columns_topics_queues_times_and_offsets(spark: SparkSession, tmp_path: Path) -> None:
    written = write_log(tmp_path / "b", some_records(80))

    def offsets(**options: object) -> list[int]:
        reader = spark.read.format("rocketmq").option("path", str(tmp_path / "b"))
        for name, value in options.items():
            reader = reader.option(name, str(value))
        return sorted(row["physical_offset"] for row in reader.load().collect())

    middle = written[40]
    assert offsets(topic="заказы", queues="1") == [r.physical_offset for r in written if r.topic == "заказы"]
    assert offsets(startTime=middle.store_timestamp) == [r.physical_offset for r in written[40:]]
    assert offsets(endPhysicalOffset=middle.physical_offset) == [r.physical_offset for r in written[:40]]
    narrow = spark.read.format("rocketmq").option("columns", "queue_id,physical_offset").load(str(tmp_path / "b"))
    assert narrow.columns == ["queue_id", "physical_offset"]
    assert narrow.count() == 80


def test_a_schema_prunes_like_the_option(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "b", some_records(20))
    reader = spark.read.format("rocketmq")
    by_schema = reader.schema("topic string, queue_id int").load(str(tmp_path / "b"))
    by_option = spark.read.format("rocketmq").option("columns", "topic,queue_id").load(str(tmp_path / "b"))
    assertDataFrameEqual(by_schema, by_option)


def test_several_stores_are_several_brokers(spark: SparkSession, tmp_path: Path) -> None:
    """Their paths one by one, or the folder they are in; names from the folders, or given."""
    for name, count in (("broker-a", 10), ("broker-b", 15)):
        write_log(tmp_path / name / "store", some_records(count))
    (tmp_path / "notes.txt").write_text("no store")

    def rows(reader: DataFrameReader, path: str | list[str]) -> dict[str, int]:
        counted = reader.format("rocketmq").load(path).groupBy("broker_name").count().collect()
        return {row["broker_name"]: row["count"] for row in counted}

    both = [str(tmp_path / "broker-a/store"), str(tmp_path / "broker-b/store")]
    assert rows(spark.read, both) == rows(spark.read, str(tmp_path)) == {"broker-a": 10, "broker-b": 15}
    assert rows(spark.read.option("brokerName", "a, b"), str(tmp_path)) == {"a": 10, "b": 15}
    with pytest.raises((AnalysisException, PythonException), match="one store, and 2 are read"):
        rows(spark.read.option("startPhysicalOffset", 0), str(tmp_path))


def test_sql_and_reuse_of_one_frame(spark: SparkSession, tmp_path: Path) -> None:
    """Two filters over one frame, and their union: the case in which pushed-down filters go wrong."""
    write_log(tmp_path / "b", some_records(40))
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW log USING rocketmq OPTIONS (path '{tmp_path / 'b'}')")
    assert spark.sql("SELECT max(queue_offset) FROM log WHERE queue_id = 3").first()[0] == 9  # type: ignore[index]
    frame = spark.table("log")
    zero, one = frame.where("queue_id = 0"), frame.where("queue_id = 1")
    assert (zero.count(), one.count(), zero.union(one).count(), frame.count()) == (10, 10, 20, 40)


def test_columns_say_what_they_hold(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "b", some_records(1))
    frame = spark.read.format("rocketmq").load(str(tmp_path / "b"))
    assert frame.columns == list(COLUMNS)
    assert dict(frame.dtypes)["store_timestamp"] == "timestamp"
    assert all(field.metadata["comment"] for field in frame.schema.fields)


def test_an_empty_log_has_the_columns_and_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "b", [])
    assert spark.read.format("rocketmq").load(str(tmp_path / "b")).count() == 0


def test_wrong_questions_are_told_what_would_be_right(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "b", some_records(1))
    with pytest.raises(AnalysisException, match=r"no option 'topics'[\s\S]*startTime"):
        spark.read.format("rocketmq").option("topics", "x").load(str(tmp_path / "b"))
    with pytest.raises((AnalysisException, PythonException), match="queue_id is int, not string"):
        spark.read.format("rocketmq").schema("queue_id string").load(str(tmp_path / "b")).count()
    with pytest.raises((AnalysisException, PythonException), match=r"no store directory[\s\S]*commitlog/"):
        spark.read.format("rocketmq").load(str(tmp_path / "nowhere")).count()


def test_damage_is_an_error_with_file_and_offset(spark: SparkSession, tmp_path: Path) -> None:
    written = write_log(tmp_path / "b", some_records(20))
    path = tmp_path / "b" / "commitlog" / f"{0:020}"
    damaged = bytearray(path.read_bytes())
    damaged[written[3].physical_offset + 4] ^= 1
    path.write_bytes(damaged)
    frame = spark.read.format("rocketmq").load(str(tmp_path / "b"))
    with pytest.raises(PythonException) as caught:
        frame.count()
    told = str(caught.value)
    assert f"commitlog/{0:020} at offset {written[3].physical_offset + 4}: expected DAA320A7 (V1)" in told
    assert "mqlab inspect" in told
