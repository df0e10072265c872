"""Rows appended to a store that a Lab then opens; by a batch, by a stream, and not at all when something is wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql.types import StringType, StructField, StructType

from mqlab import Lab
from mqlab.data.arrow import read_table
from mqlab.data.spark.store_sink import Written, appended, checked, parse_store_sink, written
from mqlab.errors import StoreError, UsageError
from mqlab.lab.world.borrowed_stores import open_stores
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.message import MessageExt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BODY = StructType([StructField("body", StringType())])
NAMES = ["topic", "body", "keys", "properties", "sharding_key"]


def rows(first: int, count: int) -> list[tuple[object, ...]]:
    return [("orders", f"order {n}", f"k{n}", {"source": "spark"}, f"c{n % 3}") for n in range(first, first + count)]


def bodies(directory: Path) -> Counter[bytes]:
    return Counter(read_table(str(directory), ["body"])["body"].to_pylist())


def test_what_tasks_have_made_is_appended_in_their_order_and_a_lab_opens_it(tmp_path: Path) -> None:
    options = parse_store_sink({"path": str(tmp_path / "broker-a")})
    for n in range(2):
        (tmp_path / f"rows-{n}").mkdir()
    parts = [written(options, NAMES, "w", str(tmp_path / f"rows-{n}"), iter(rows(10 * n, 10))) for n in range(2)]
    swapped = [Written(1, parts[1].file), None, Written(0, parts[0].file)]
    assert appended(options, swapped) == 20
    with open_stores(tmp_path, None, print) as lab:
        found = list(lab.admin.query_message_by_time("orders", 0, (1 << 63) - 1))
    found.sort(key=lambda message: message.physical_offset)
    assert [each.body for each in found] == [b"order %d" % number for number in range(20)]
    assert len({each.msg_id for each in found}) == 10  # two tasks of a test without Spark have the same place
    queues = defaultdict(set)
    for each in found:
        queues[each.properties["__SHARDINGKEY"]].add(each.queue_id)
        assert each.properties["source"] == "spark" and each.keys == f"k{each.body.split()[1].decode()}"
    assert {len(numbers) for numbers in queues.values()} == {1}


def test_what_cannot_be_written_is_said_and_nothing_is_appended(tmp_path: Path) -> None:
    options = parse_store_sink({"path": str(tmp_path / "broker-a"), "topic": "orders"})
    delayed = StructType([*BODY.fields, StructField("delay_time_level", StringType())])
    for schema, overwrite, told in (
        (BODY, True, "cannot be overwritten"),
        (StructType([]), False, "there is no column 'body'"),
        (delayed, False, "delay_time_level is string"),
    ):
        with pytest.raises(UsageError, match=told):
            checked(options, schema, overwrite)
    for given, told in (({}, "no place to write to"), ({"path": "x", "queues": "0"}, "option queues is 0")):
        with pytest.raises(UsageError, match=told):
            parse_store_sink(given)
    with pytest.raises(UsageError, match="the file of partition 3 is not here"):
        appended(options, [Written(3, str(tmp_path / "elsewhere.arrow"))])
    (tmp_path / "rows").mkdir()
    part = written(options, ["body"], "w", str(tmp_path / "rows"), iter([("x",)]))
    with MessageStore.open(options.path), pytest.raises(StoreError):
        appended(options, [part])
    assert bodies(tmp_path / "broker-a") == Counter()


def consumed(store: Path) -> list[tuple[bytes, str | None, str]]:
    """Body, keys and unique key of each message that a new group of a Lab over this store is given."""
    found: list[tuple[bytes, str | None, str]] = []

    def listener(messages: list[MessageExt], context: object) -> str:
        found.extend((each.body, each.keys or None, each.msg_id) for each in messages)
        return CONSUME_SUCCESS

    with Lab(stores={"broker-a": store}) as lab:
        lab.create_topic("orders")
        consumer = lab.push_consumer("archive", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        consumer.subscribe("orders")
        consumer.on_messages(listener)
        consumer.start()
        lab.run_for("1m")
        assert {row.lag for row in lab.progress("archive") if row.topic == "orders"} == {0}
    return found


@pytest.mark.spark
def test_a_batch_and_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    store, checkpoint = tmp_path / "broker-a", tmp_path / "checkpoint"
    frame = spark.range(20).selectExpr("concat('order ', id) AS body", "concat('k', id) AS keys")
    frame.write.format("rocketmq").option("topic", "orders").mode("append").save(str(store))
    expected = Counter(b"order %d" % number for number in range(20))
    assert bodies(store) == expected
    with pytest.raises((AnalysisException, PythonException), match=r"row 0 of partition \d has no body"):
        nothing = spark.range(2).selectExpr("CAST(null AS string) AS body", "'orders' AS topic")
        nothing.write.format("rocketmq").mode("append").save(str(store))
    source = tmp_path / "rows"
    frame.select("body").write.parquet(str(source))
    stream = spark.readStream.schema("body string").parquet(str(source))
    for run in range(3):  # the second run finds nothing new, the third does a batch again whose end was not noted
        if run == 2:
            assert bodies(store) == expected + expected
            for noted in (checkpoint / "commits").glob("*0*"):
                noted.unlink()
        query = (
            stream.writeStream.format("rocketmq")
            .option("topic", "orders")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start(str(store))
        )
        query.awaitTermination()
    assert bodies(store) == expected + expected + expected
    read = spark.read.format("rocketmq").load(str(store))
    assert read.select("msg_id").distinct().count() == 40
    found = consumed(store)
    assert Counter(body for body, _, _ in found) == expected + expected + expected
    assert {key for _, key, _ in found} == {*(f"k{number}" for number in range(20)), None}
    # The batch that was done again is there twice, under the same unique keys.
    assert sorted(Counter(unique for _, _, unique in found).values()) == [1] * 20 + [2] * 20
    assert [path.name for path in tmp_path.iterdir() if ".rows-" in path.name] == []
