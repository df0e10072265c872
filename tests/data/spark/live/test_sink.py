"""Rows sent to a cluster: what a message is made of, without Spark; then a batch and a stream of a real session."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from mqlab.cluster.connected import Cluster
from mqlab.data.spark.live.rows_to_messages import MessageMaker, check_columns
from mqlab.data.spark.live.sink import Outbox, parse_sink
from mqlab.errors import ClientError, RemotingError, UsageError
from mqlab.rocketmq.wire.message import Message, MessageExt, MessageQueue
from mqlab.rocketmq.wire.property_names import UNIQ_KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ERRORS = (AnalysisException, PythonException)


def unique(message: Message) -> str:
    return message.properties[UNIQ_KEY]


def texts(*names: str) -> StructType:
    return StructType([StructField(name, StringType()) for name in names])


@pytest.mark.parametrize(
    "schema, told",
    [
        (texts("topic"), "there is no column 'body'"),
        (texts("body"), "there is no column 'topic'"),
        (texts("topic", "body", "key"), "column 'key' would not be sent"),
        (StructType([*texts("topic", "body").fields, StructField("tags", IntegerType())]), "column tags is int, not"),
        (texts("topic", "body", "properties"), r"column properties is string, not map<string,string>"),
    ],
)
def test_a_column_that_cannot_be_sent_is_named(schema: StructType, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        check_columns(schema, topic_is_given=False)


def test_a_row_is_a_message_and_keeps_its_unique_key_when_it_is_made_again() -> None:
    names = ["body", "tags", "keys", "properties", "delay_time_level", "flag", "sharding_key"]
    rows = [
        ("заказ", "paid", ["a", "b"], {"color": "red", "UNIQ_KEY": "of another message"}, 3, 7, "order-1"),
        (b"2", None, None, None, None, None, None),
    ]
    made = [MessageMaker(names, "orders", "a write", 4) for _ in range(2)]
    (first, key), (second, _) = (made[0].make(row) for row in rows)
    sent = (first.topic, first.body, first.tags, first.keys, first.flag)
    assert sent == ("orders", "заказ".encode(), "paid", "a b", 7)
    assert (first.delay_time_level, key, first.properties["color"]) == (3, "order-1", "red")
    assert first.properties["__SHARDINGKEY"] == "order-1" and unique(first) != "of another message"
    assert (second.body, second.tags, second.keys) == (b"2", None, None)
    again = [unique(made[1].make(row)[0]) for row in rows]
    others = {MessageMaker(names, "orders", write, part).unique_key(0) for write, part in (("b", 4), ("a write", 5))}
    assert again == [unique(first), unique(second)] and len({*again, *others}) == 4
    assert {len(each) for each in again} == {32} and made[0].unique_key(1 << 20) != made[0].unique_key(0)


@pytest.mark.parametrize(
    "row, told",
    [
        ((None, {}), "row 0 of partition 2 has no body: it is null"),
        ((b"x", {"color": ""}), "row 0 of partition 2: property 'color': '' cannot be sent"),
    ],
)
def test_a_row_that_cannot_be_sent_is_named(row: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        MessageMaker(["body", "properties"], "orders", "w", 2).make(row)


class Told:
    """A producer that notes what it sends. ``fails`` of the first sends are not answered; nothing is answered early."""

    def __init__(self, status: str = "SEND_OK", fails: int = 0) -> None:
        self.sent: list[tuple[bytes, MessageQueue | None]] = []
        self.under_way = self.most_under_way = 0
        self.send_status, self.message_queue, self.fails = status, MessageQueue("orders", "broker-a", 0), fails

    def fetch_publish_message_queues(self, topic: str) -> list[MessageQueue]:
        return [MessageQueue(topic, "broker-a", number) for number in range(4)]

    def send_async(self, message: Message, queue: MessageQueue | None = None) -> Any:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        return SimpleNamespace(result=lambda: self._answered(message, queue))

    def send(self, message: Message, queue: MessageQueue | None = None) -> Told:
        return self.send_async(message, queue).result()  # type: ignore[no-any-return]

    def _answered(self, message: Message, queue: MessageQueue | None) -> Told:
        self.under_way -= 1
        if self.fails:
            self.fails -= 1
            raise RemotingError("no answer", code="timeout")
        self.sent.append((message.body, queue))
        return self


def test_many_are_under_way_but_one_for_a_queue_that_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlab.data.spark.live.sink.MOST_UNDER_WAY", 3)
    monkeypatch.setattr("mqlab.data.spark.live.sink.PAUSE_SECONDS", 0)
    producer: Any = Told()
    outbox = Outbox(producer, True)
    for number in range(5):
        outbox.add(Message("orders", b"%d" % number), None)
    assert (len(producer.sent), producer.most_under_way) == (2, 3)
    outbox.send_all()
    assert [body for body, _ in producer.sent] == [b"0", b"1", b"2", b"3", b"4"]
    # One key, one queue, one at a time and in order, also when an answer is missing.
    producer = Told(fails=2)
    outbox = Outbox(producer, True)
    for number in range(6):
        outbox.add(Message("orders", b"%d" % number), f"key-{number % 2}")
    outbox.send_all()
    by_queue = defaultdict(list)
    for body, queue in producer.sent:
        by_queue[queue].append(body)
    assert sorted(by_queue.values()) == [[b"0", b"2", b"4"], [b"1", b"3", b"5"]] and producer.most_under_way == 2
    for fails, key in ((1, None), (3, "key")):
        with pytest.raises(RemotingError):
            _one(Told(fails=fails), key)


def test_what_is_stored_with_a_warning_is_sent_only_if_that_is_wanted() -> None:
    with pytest.raises(ClientError, match=r"stored a message, but answered FLUSH_DISK_TIMEOUT"):
        _one(Told("FLUSH_DISK_TIMEOUT"))
    _one(Told("FLUSH_DISK_TIMEOUT"), require=False)


def _one(producer: Any, key: str | None = None, *, require: bool = True) -> None:
    outbox = Outbox(producer, require)
    outbox.add(Message("orders", b"x"), key)
    outbox.send_all()


def test_options_are_named() -> None:
    with pytest.raises(UsageError, match=r"no option 'subscribe'[\s\S]*producerGroup"):
        parse_sink({"nameServer": "a:1", "subscribe": "orders"})
    with pytest.raises(UsageError, match="option requireSendOk is 'yes'"):
        parse_sink({"nameServer": "a:1", "requireSendOk": "yes"})


def stored(cluster: Cluster, topic: str) -> list[MessageExt]:
    return list(cluster.operator.query_message_by_time(topic, 0, (1 << 63) - 1))


@pytest.mark.spark
def test_a_batch_is_sent_and_what_cannot_be_is_said_before(
    spark: SparkSession, cluster: Cluster, address: str, make_topic: Callable[[str], str]
) -> None:
    topic = make_topic("written")
    frame = spark.range(60).selectExpr(
        "concat('order ', id) AS body",
        "if(id % 2 = 0, 'paid', null) AS tags",
        "array(concat('k', id)) AS keys",
        "map('source', 'spark') AS properties",
        "concat('customer-', id % 3) AS sharding_key",
    )

    def write(rows: DataFrame, mode: str = "append", **options: str) -> None:
        rows.write.format("rocketmq").option("nameServer", address).options(**options).mode(mode).save()

    # 1. Refused before anything is sent.
    for rows, mode, options, told in (
        (frame, "append", {"topic": "writen"}, "there is no topic 'writen'"),
        (frame, "overwrite", {"topic": topic}, "cannot be overwritten"),
    ):
        with pytest.raises(ERRORS, match=told):
            write(rows, mode, **options)
    assert stored(cluster, topic) == []

    # 2. Every row is a message, and the rows of a customer are in one queue.
    write(frame, topic=topic)
    found = stored(cluster, topic)
    assert Counter(each.body for each in found) == Counter(b"order %d" % number for number in range(60))
    assert len({unique(each) for each in found}) == 60
    queues = defaultdict(set)
    for each in found:
        queues[each.properties["__SHARDINGKEY"]].add((each.broker_name, each.queue_id))
        assert (each.tags is None) == bool(int(each.body.split()[1]) % 2) and each.properties["source"] == "spark"
    assert {len(places) for places in queues.values()} == {1}
    (by_key,) = cluster.operator.query_message(topic, "k7")
    assert by_key.body == b"order 7"

    # 3. A copy of a topic: what is read can be written.
    copy = make_topic("copied")
    read = spark.read.format("rocketmq").option("nameServer", address).option("subscribe", topic).load()
    write(read.select("body", "tags", "keys", "properties"), topic=copy)
    assert Counter(each.body for each in stored(cluster, copy)) == Counter(each.body for each in found)
    assert not {unique(each) for each in stored(cluster, copy)} & {unique(each) for each in found}


@pytest.mark.spark
def test_a_batch_of_a_stream_that_is_done_again_has_the_same_unique_keys(
    spark: SparkSession, cluster: Cluster, address: str, make_topic: Callable[[str], str], tmp_path: Path
) -> None:
    topic = make_topic("flowing")
    checkpoint = tmp_path / "checkpoint"
    source = tmp_path / "rows"
    spark.range(20).selectExpr("CAST(id AS string) AS body").coalesce(1).write.parquet(str(source))

    def run() -> None:
        rows = spark.readStream.schema("body string").parquet(str(source))
        writer = rows.writeStream.format("rocketmq").option("nameServer", address).option("topic", topic)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()

    run()
    first = {each.body: unique(each) for each in stored(cluster, topic)}
    assert len(first) == 20
    # As after a kill between the last send and the end of the batch: the checkpoint does not know that it has ended.
    for path in checkpoint.joinpath("commits").iterdir():
        path.unlink()
    run()
    found = stored(cluster, topic)
    assert len(found) == 40 and {each.body: unique(each) for each in found} == first
