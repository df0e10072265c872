"""The data source rocketmq in a real Spark session, over stores of the real broker and of mqlab."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.testing import assertDataFrameEqual

from mqlab.data.arrow.columns import COLUMNS
from mqlab.data.arrow.reading import read_table
from mqlab.data.spark import register
from mqlab.data.spark.session import LEAF_PARALLELISM
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.message import Message
from mqlab.rocketmq.wire.record import Record, encode
from tests.data.arrow.logs import some_records, write_log

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


def test_a_batch_from_one_place_to_another(spark: SparkSession, tmp_path: Path) -> None:
    """Brokers by their names, or all by a moment of each log; what was deleted is said."""
    written = write_log(tmp_path / "a", some_records(80))
    write_log(tmp_path / "b", some_records(30), start=4096)

    def places(**options: object) -> Counter[str]:
        reader = spark.read.format("rocketmq").option("columns", "broker_name,physical_offset")
        for name, value in options.items():
            reader = reader.option(name, str(value))
        return Counter(row["broker_name"] for row in reader.load(str(tmp_path)).collect())

    moments = written[20].store_timestamp, written[25].store_timestamp
    assert places(startingTimestamp=moments[0], endingTimestamp=moments[1]) == {"a": 5, "b": 5}
    assert places(startingTimestamp=moments[0], endingTimestamp=1 << 50) == {"a": 60, "b": 10}
    named = {"startingOffsets": f'{{"a": {written[70].physical_offset}}}', "endingOffsets": '{"b": 4096}'}
    assert places(**named) == {"a": 10}
    assert places(startingOffsets='{"b": 0}', failOnDataLoss="false") == {"a": 80, "b": 30}
    errors = (AnalysisException, PythonException)
    with pytest.raises(errors, match=r"messages 0 to 4096 of b were deleted[\s\S]*failOnDataLoss"):
        places(startingOffsets='{"b": 0}')
    with pytest.raises(errors, match=r"endingOffsets names c[\s\S]*brokers are a, b"):
        places(endingOffsets='{"c": 0}')


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


def write_orders(directory: Path, count: int = 40) -> list[int]:
    """A store with queues; where its messages are in the log."""
    with MessageStore.open(str(directory), mapped_file_size_commit_log=4096) as store:
        for number in range(count):
            store.put(Message(["orders", "заказы"][number % 2], f"оплачен {number}".encode() * 9, keys=f"k-{number}"))
    return [int(offset) for offset in read_table(directory, ["physical_offset"]).column(0).to_pylist()]


def test_a_log_that_ends_before_its_queues_do_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    places = write_orders(tmp_path / "broker-a")
    for path in sorted((tmp_path / "broker-a" / "commitlog").iterdir())[1:]:
        path.unlink()
    left = sum(place < 4096 for place in places)
    frame = spark.read.format("rocketmq").load(str(tmp_path))
    with pytest.raises((AnalysisException, PythonException)) as caught:
        frame.count()
    told = str(caught.value)
    assert f"{tmp_path / 'broker-a' / 'commitlog'} at offset" in told
    assert f"{40 - left} are missing" in told and "failOnDataLoss" in told
    assert spark.read.format("rocketmq").option("failOnDataLoss", "false").load(str(tmp_path)).count() == left


def test_a_flipped_bit_of_a_body_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    places = write_orders(tmp_path / "broker-a", 12)
    path = tmp_path / "broker-a" / "commitlog" / f"{0:020}"
    content = bytearray(path.read_bytes())
    at = content.index("оплачен 7".encode(), places[7])
    content[at + 40] ^= 4
    path.write_bytes(content)
    with pytest.raises(PythonException) as caught:
        spark.read.format("rocketmq").load(str(tmp_path)).select("body").collect()
    told = str(caught.value)
    assert f"does not match its check sum in {path} at offset {at}: expected a body of the check sum" in told
    assert "option('columns', ...)" in told
    assert spark.read.format("rocketmq").option("columns", "topic").load(str(tmp_path)).count() == 12


def test_topics_and_options_that_cannot_mean_anything(spark: SparkSession, tmp_path: Path) -> None:
    write_orders(tmp_path / "broker-a", 8)
    reads = spark.read.format("rocketmq"), spark.read.format("rocketmq-queues")
    for reader in reads:
        with pytest.raises((AnalysisException, PythonException), match=r"no topic 'ordesr'[\s\S]*orders, заказы"):
            reader.option("topic", "ordesr").load(str(tmp_path)).count()
    for name, value in (("startingOffsets", "latest"), ("maxBytesPerTrigger", "64m")):
        with pytest.raises((AnalysisException, PythonException), match=f"{name}( latest)? has no meaning in a batch"):
            spark.read.format("rocketmq").option(name, value).load(str(tmp_path)).count()
    with pytest.raises((AnalysisException, PythonException), match=r"'s3a://lake/day'[\s\S]*only local paths are read"):
        spark.read.format("rocketmq").load("s3a://lake/day").count()
    for path in (f"file:{tmp_path}", f"file://{tmp_path}"):
        assert spark.read.format("rocketmq").load(path).count() == 8


def test_the_parts_of_a_store_have_no_sink(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(3).selectExpr("'orders' AS topic", "CAST('paid' AS binary) AS body")
    errors = (AnalysisException, PythonException)
    for source in ("rocketmq-queues", "rocketmq-config"):
        for mode in ("append", "overwrite"):
            with pytest.raises(errors, match=rf"write cannot go to {source}[\s\S]*producer"):
                frame.write.format(source).mode(mode).save(str(tmp_path / "x"))
        with pytest.raises(errors, match="has no sink"):
            frame.write.format(source).mode("append").save()
    with pytest.raises(errors, match="no place to write to"):
        frame.write.format("rocketmq").mode("append").save()
    with pytest.raises(errors, match="cannot be overwritten"):
        frame.write.format("rocketmq").mode("overwrite").save(str(tmp_path / "x"))
    rate = spark.readStream.format("rate").load()
    writer = rate.writeStream.format("rocketmq-config").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises((*errors, StreamingQueryException), match="writeStream cannot go to rocketmq-config"):
        writer.start(str(tmp_path / "x")).awaitTermination()


def write_sparse(directory: Path, bodies: int, body_size: int) -> None:
    """A log of one file whose large bodies are zeros that take no room on the disk."""
    path = directory / "commitlog" / f"{0:020}"
    path.parent.mkdir(parents=True)
    unit = encode(Record("orders", bytes(body_size)))
    with path.open("wb") as file:
        for number in range(bodies):
            begin = encode(Record("orders", b"", physical_offset=number * len(unit)))[28:36]
            file.seek(number * len(unit))
            file.write(unit[:28] + begin + unit[36:88])
            file.seek((number + 1) * len(unit) - len(unit) + 88 + body_size)
            file.write(unit[88 + body_size :])


def test_tasks_are_planned_for_the_session(spark: SparkSession, tmp_path: Path) -> None:
    """Not for the cores of the machine that plans: four tasks for each that runs at once, none below 16 MB."""
    write_sparse(tmp_path / "broker-a", 150, 1 << 20)

    def tasks() -> int:
        frame = spark.read.format("rocketmq").option("columns", "queue_id").load(str(tmp_path))
        assert frame.count() == 150
        return frame.rdd.getNumPartitions()

    parallelism = spark.sparkContext.defaultParallelism
    assert min(4 * parallelism, 9) <= tasks() <= 10
    try:
        for at_once, fewest in ((1, 4), (64, 9)):
            spark.conf.set(LEAF_PARALLELISM, str(at_once))
            register(spark)
            assert fewest <= tasks() <= fewest + 1
    finally:
        spark.conf.unset(LEAF_PARALLELISM)
        register(spark)


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
