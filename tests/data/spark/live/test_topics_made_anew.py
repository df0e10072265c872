"""A stream's offsets tell the topic that was read from one that was deleted and made anew under its name."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from mqlab import Message
from mqlab.cluster.connected import Cluster
from mqlab.data.arrow.losses import DataLossWarning
from mqlab.data.spark.live.options import parse_live
from mqlab.data.spark.live.pulled import LostMessages
from mqlab.data.spark.live.stream import LiveStreamReader
from mqlab.rocketmq.wire.message import MessageQueue

EVERYTHING = ReadAllAvailable()
MakeTopic = Callable[[str], str]


@pytest.fixture
def readers(address: str) -> Iterator[Callable[..., LiveStreamReader]]:
    made: list[LiveStreamReader] = []

    def reader(topic: str, **more: object) -> LiveStreamReader:
        options = parse_live({"nameServer": address, "subscribe": topic, **{k: str(v) for k, v in more.items()}})
        made.append(LiveStreamReader(options, ["body"], 1))
        return made[-1]

    yield reader
    for each in made:
        each.stop()


def one_queue(cluster: Cluster, topic: str, old: bool = False) -> MessageQueue:
    """A topic with one queue at broker-a; with ``old`` the topic of this name is deleted before."""
    admin = cluster.operator
    if old:
        admin.delete_topic(topic)
    admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1, brokers="broker-a")
    for _ in range(500):
        rows = list(admin.examine_topic_stats(topic)) if _routed(cluster, topic) else []
        if len(rows) == 1 and rows[0].max_offset == 0:
            return rows[0].message_queue
        time.sleep(0.02)
    raise AssertionError(f"{topic} has no route")


def _routed(cluster: Cluster, topic: str) -> bool:
    from mqlab.rocketmq.admin.topics import readable_queues

    return bool(readable_queues(cluster.operator, topic))


def send(cluster: Cluster, queue: MessageQueue, bodies: list[str]) -> None:
    """Send, and wait until the queue has them all."""
    results = [cluster.operator.send_message(Message(queue.topic, body.encode()), queue=queue) for body in bodies]
    for _ in range(500):
        (row,) = cluster.operator.examine_topic_stats(queue.topic)
        if row.max_offset > results[-1].queue_offset:
            return
        time.sleep(0.01)
    raise AssertionError("the last message was not dispatched")


def rows(reader: LiveStreamReader, start: Any, end: Any) -> list[str]:
    """What Spark would get of a batch, after its offsets went through the JSON of a checkpoint."""
    start, end = json.loads(json.dumps(start)), json.loads(json.dumps(end))
    batches = [batch for task in reader.partitions(start, end) for batch in reader.read(task)]
    return [bytes(body).decode() for batch in batches for body in pyarrow.table(batch)["body"].to_pylist()]


def old(count: int) -> list[str]:
    return [f"old {number}" for number in range(count)]


def new(count: int) -> list[str]:
    return [f"новое {number}" for number in range(count)]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("count", [3, 5, 6, 40])
def test_a_topic_made_anew_is_a_loss_however_many_messages_it_has(
    cluster: Cluster, readers: Any, count: int, restarted: bool
) -> None:
    topic = f"anew-{count}-{restarted}"
    queue = one_queue(cluster, topic)
    send(cluster, queue, old(5))
    reader = readers(topic)
    start = reader.initialOffset()
    at = reader.latestOffset(start, EVERYTHING)
    assert rows(reader, start, at) == old(5)
    queue = one_queue(cluster, topic, old=True)
    send(cluster, queue, new(count))
    reader = readers(topic) if restarted else reader
    if count == 5:  # as many as were read: told with the next message
        assert reader.latestOffset(at, EVERYTHING) == at
        send(cluster, queue, ["новое 5"])
    with pytest.raises(LostMessages, match="created again"):
        reader.latestOffset(at, EVERYTHING)


def test_where_losses_are_allowed_a_topic_made_anew_is_read_from_its_first_message(
    cluster: Cluster, readers: Any
) -> None:
    queue = one_queue(cluster, "anew-lenient")
    send(cluster, queue, old(5))
    reader = readers("anew-lenient", failOnDataLoss="false")
    at = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    queue = one_queue(cluster, "anew-lenient", old=True)
    send(cluster, queue, new(9))
    got = []
    with pytest.warns(DataLossWarning, match="created again"):
        turn = reader.latestOffset(at, EVERYTHING)
    got += rows(reader, at, turn)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        end = reader.latestOffset(turn, EVERYTHING)
        assert got + rows(reader, turn, end) == new(9)
        assert reader.latestOffset(end, EVERYTHING) == end


def test_a_planned_batch_is_not_read_of_another_topic_after_a_restart(cluster: Cluster, readers: Any) -> None:
    queue = one_queue(cluster, "anew-planned")
    send(cluster, queue, old(5))
    reader = readers("anew-planned")
    start = reader.initialOffset()
    planned = reader.latestOffset(start, EVERYTHING)  # Spark writes it down, and dies
    queue = one_queue(cluster, "anew-planned", old=True)
    send(cluster, queue, new(8))
    with pytest.raises(LostMessages, match=r"message 4 of .* is not the one that was to be read"):
        rows(readers("anew-planned"), start, planned)
    with pytest.warns(DataLossWarning):
        assert rows(readers("anew-planned", failOnDataLoss="false"), start, planned) == []


@pytest.mark.parametrize("place", ["latest", "named"])
def test_a_stream_that_has_not_read_yet_knows_its_topic(cluster: Cluster, readers: Any, place: str) -> None:
    topic = f"anew-{place}"
    queue = one_queue(cluster, topic)
    send(cluster, queue, old(5))
    word = place if place == "latest" else json.dumps({topic: {"broker-a": {"0": 5}}})
    start = readers(topic, startingOffsets=word).initialOffset()
    queue = one_queue(cluster, topic, old=True)
    send(cluster, queue, new(9))
    with pytest.raises(LostMessages, match="created again"):
        readers(topic).latestOffset(start, EVERYTHING)


def test_a_checkpoint_of_before_and_a_limit_go_on_as_ever(cluster: Cluster, readers: Any) -> None:
    queue = one_queue(cluster, "unmarked")
    send(cluster, queue, old(5))
    reader = readers("unmarked")
    at: Any = {"unmarked": {"broker-a": {"0": 2}}}
    got = []
    for _ in range(3):
        end = reader.latestOffset(at, ReadMaxRows(1))
        got += rows(reader, at, end)
        at = end
    assert got == old(5)[2:] and reader.latestOffset(at, ReadMaxRows(1)) == at
    again = readers("unmarked", startingOffsets=json.dumps(at)).initialOffset()
    assert again == at, "a checkpoint's text is an option's text"
