"""Reads of a running cluster as Spark plans and runs them, without a JVM."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pyarrow
import pytest
from pyspark.sql.datasource import InputPartition

from mqlab import Message
from mqlab.cluster.connected import Cluster
from mqlab.cluster.serving import Server
from mqlab.data.arrow.columns import COLUMNS
from mqlab.data.arrow.losses import DataLossWarning
from mqlab.data.spark.live.options import parse_live
from mqlab.data.spark.live.pulled import LostMessages
from mqlab.data.spark.live.reader import LiveReader
from mqlab.errors import RemotingError, UsageError
from mqlab.rocketmq.wire.message import MessageQueue

MakeTopic = Callable[[str], str]


def read(address: str, topic: str, **more: object) -> list[dict[str, Any]]:
    """All rows, by the tasks that a plan has."""
    options = parse_live(
        {"nameServer": address, "subscribe": topic, **{key: str(value) for key, value in more.items()}}
    )
    reader = LiveReader(options, options.columns, 2)
    batches = [batch for task in reader.partitions() for batch in reader.read(task)]
    return pyarrow.Table.from_batches(batches).to_pylist() if batches else []


def sent(cluster: Cluster, topic: str, count: int, *, body: bytes = b"paid") -> None:
    """Messages with tags t0 and t1 in turn, spread evenly over the four queues."""
    producer = cluster.producer(f"{topic}-{count}")
    for number in range(count):
        queue = MessageQueue(topic, f"broker-{'ab'[number % 2]}", number // 2 % 2)
        producer.send(Message(topic, body + b" %d" % number, tags=f"t{number // 4 % 2}", keys=f"k{number}"), queue)


def test_every_column_of_every_message(cluster: Cluster, address: str, make_topic: MakeTopic) -> None:
    """Compared with what a consumer gets; a body above 4 KB is compressed on the way."""
    topic = make_topic("columns")
    sent(cluster, topic, 40)
    cluster.producer("long").send(Message(topic, "已付款".encode() * 4000, properties={"заказ": "7"}))
    rows = read(address, topic)
    assert list(rows[0]) == list(COLUMNS)
    admin = cluster.operator
    for row in rows:
        stored = admin.query_message_by_offset(topic, row["broker_name"], row["queue_id"], row["queue_offset"])
        assert (row["body"], row["tags"], row["keys"]) == (stored.body, stored.tags, stored.keys)
        assert (row["msg_id"], row["physical_offset"]) == (stored.msg_id, stored.physical_offset)
        assert row["store_timestamp"].timestamp() * 1000 == pytest.approx(stored.store_timestamp)
    assert len({(row["broker_name"], row["physical_offset"]) for row in rows}) == 41


def test_tags_are_chosen_by_the_broker_and_equal_hashes_by_the_reader(
    cluster: Cluster, address: str, make_topic: MakeTopic
) -> None:
    topic = make_topic("tagged")
    producer = cluster.producer("tagged")
    for tag in ("Aa", "BB", "other", None) * 3:  # Aa and BB have the same hash
        producer.send(Message(topic, b"x", tags=tag))
    assert {row["tags"] for row in read(address, topic, tags="Aa")} == {"Aa"}
    assert len(read(address, topic, tags="Aa || other")) == 6
    assert read(address, topic, tags="nobody") == []
    assert len(read(address, topic)) == 12


def test_offsets_and_times_say_where_a_read_begins_and_ends(
    cluster: Cluster, address: str, make_topic: MakeTopic
) -> None:
    topic = make_topic("places")
    sent(cluster, topic, 40)  # ten in each queue

    def counts(**options: str) -> list[int]:
        rows = read(address, topic, columns="broker_name,queue_id", **options)
        queues = [(name, queue) for name in ("broker-a", "broker-b") for queue in (0, 1)]
        return [sum((row["broker_name"], row["queue_id"]) == queue for row in rows) for queue in queues]

    assert counts() == [10, 10, 10, 10]
    assert counts(startingOffsets="latest") == [0, 0, 0, 0]
    assert counts(startingOffsets='{"places": {"broker-a": {"1": 7}, "broker-b": {"0": "latest"}}}') == [10, 3, 0, 10]
    assert counts(endingOffsets='{"places": {"broker-a": {"0": 2, "1": "earliest"}}}') == [2, 0, 10, 10]
    times = sorted({row["store_timestamp"] for row in read(address, topic)})
    half = times[len(times) // 2]
    early, late = (sum(counts(**{f"{word}Timestamp": half.isoformat()})) for word in ("ending", "starting"))
    assert 0 < early < 40
    assert early + late == 40


def test_what_an_option_cannot_mean_is_said(cluster: Cluster, address: str, make_topic: MakeTopic) -> None:
    topic = make_topic("mistaken")
    sent(cluster, topic, 4)
    for options, said in (
        ({"startingOffsets": '{"mistaken": {"broker-a": {"7": 0}}}'}, "mistaken broker-a 7.*queues there are 0, 1"),
        ({"startingOffsets": '{"mistaken": {"broker-z": {"0": 0}}}'}, "brokers are broker-a, broker-b"),
        ({"endingOffsets": '{"mistaken": {"broker-a": {"0": 9}}}'}, "ends at 1, before 9"),
        ({"startingOffsets": '{"mistaken": 9}'}, "expected earliest, latest or offsets such as"),
        ({"startingOffsets": '{"mistakes": {"broker-a": {"0": 9}}}'}, "did you mean mistaken"),
        ({"startingOffsets": '{"mistaken": {"broker-a": {"0": -2}}}'}, "expected earliest"),
        ({"startingOffsets": "latest", "startingTimestamp": "5"}, "give one of them"),
        ({"endingTimestamp": "noon"}, "expected ms since the epoch"),
        ({"maxOffsetsPerTrigger": "5"}, "no meaning in a batch"),
        ({"tags": "||"}, "option tags: a tag expression without tags"),
        ({"columns": "topic,colour"}, "there is no column 'colour'"),
        ({"accessKey": "shop"}, "both options accessKey and secretKey"),
        ({"consumerGroup": "a b"}, "option consumerGroup"),
        ({"subscribe": "mistake"}, "(?s)there is no topic 'mistake'.*did you mean mistaken"),
        ({"subscribe": " , "}, "no topic to read"),
        ({"offset": "4"}, "there is no option 'offset'"),
    ):
        with pytest.raises(UsageError, match=f"(?s){said}".replace("(?s)(?s)", "(?s)")):
            read(address, topic, **options)
    with pytest.raises(RemotingError, match="no name server answers"):
        read("127.0.0.1:1", topic)


def test_deleted_messages_are_an_error_or_a_warning(
    served: Server, cluster: Cluster, address: str, make_topic: MakeTopic
) -> None:
    """The first files of broker-a's log, of 1 MiB, are deleted between the plan and the read."""
    topic = make_topic("deleted")
    sent(cluster, topic, 16, body=random.Random(5).randbytes(300_000))
    plans = {}
    for fails in ("true", "false"):
        options = parse_live(
            {
                "nameServer": address,
                "subscribe": topic,
                "columns": "broker_name,queue_offset",
                "failOnDataLoss": fails,
            }
        )
        reader = LiveReader(options, options.columns, 2)
        plans[fails] = reader, reader.partitions()

    def rows_of(reader: LiveReader, tasks: list[InputPartition]) -> int:
        return sum(len(batch) for task in tasks for batch in reader.read(task))

    def delete() -> int:
        for mapped in store.state.commit_log.queue.mapped_files[:-1]:
            os.utime(mapped.path, (0, 0))
        store.retention.delete_manually()
        return len(store.retention.clean().commit_log_files)

    store = next(broker.state.store for broker in served.brokers if broker.config.broker_name == "broker-a")
    assert rows_of(*plans["true"]) == 16
    assert served.on_loop(delete) > 1
    left = len(read(address, topic))
    assert 8 < left < 16
    with pytest.raises(
        LostMessages, match=r"messages 0 to \d of deleted broker-a \d were deleted before they were read"
    ):
        rows_of(*plans["true"])
    with pytest.warns(DataLossWarning, match="messages 0 to"):
        assert rows_of(*plans["false"]) == left
    begin = '{"deleted": {"broker-a": {"0": 0}}}'
    with pytest.raises(LostMessages, match=r"messages 0 to \d"):
        read(address, topic, startingOffsets=begin)
    with pytest.warns(DataLossWarning, match="messages 0 to"):
        assert len(read(address, topic, startingOffsets=begin, failOnDataLoss="false")) == left
