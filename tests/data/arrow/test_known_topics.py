"""A misspelt topic is an error that names those there are; what cannot be known is not judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.data.arrow.known_topics import check_topics
from mqlab.data.arrow.queues import read_queue_units
from mqlab.data.arrow.reading import Selection, read_table
from mqlab.data.arrow.stores import find_stores
from mqlab.errors import UsageError
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.message import Message
from tests.data.arrow.logs import some_records, write_log


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    for name, topic in (("broker-a", "orders"), ("broker-b", "заказы")):
        with MessageStore.open(str(tmp_path / name), mapped_file_size_commit_log=16_384) as store:
            store.put(Message(topic, b"x"))
            store.put(Message("RMQ_SYS_TRACE_TOPIC", b"x"))
    return tmp_path


def test_an_unknown_topic_is_answered_with_those_there_are(cluster: Path) -> None:
    asked = Selection(topics=("orders", "ordesr"))
    for read in (
        lambda: read_table(cluster, ["topic"], asked),
        lambda: read_queue_units(cluster, topics=["orders", "ordesr"]),
    ):
        with pytest.raises(UsageError, match=r"no topic 'ordesr' in .*broker-a.*broker-b\n.*topics are orders, заказы"):
            read()
    assert read_table(cluster, ["topic"], Selection(topics=("orders",))).num_rows == 1


def test_topics_that_have_no_message_yet_are_topics(cluster: Path) -> None:
    """A configured one, and those that brokers make when a group or the trace needs them."""
    (cluster / "broker-a" / "config").mkdir(exist_ok=True)
    config = '{"topicConfigTable":{"refunds":{"topicName":"refunds"}}}'
    (cluster / "broker-a" / "config" / "topics.json").write_text(config, "utf-8")
    quiet = ("refunds", "%RETRY%billing", "%DLQ%billing", "RMQ_SYS_TRANS_HALF_TOPIC")
    assert read_table(cluster, ["topic"], Selection(topics=quiet)).num_rows == 0


def test_what_the_queues_do_not_cover_is_not_judged(cluster: Path, tmp_path: Path) -> None:
    write_log(tmp_path / "log-only", some_records(5))
    check_topics(find_stores(cluster), ["anything"])  # a log without queues may hold it
    with MessageStore.open(str(tmp_path / "c"), mapped_file_size_commit_log=16_384, dispatch=False) as store:
        store.put(Message("orders", b"x"))
        store.dispatch()
        store.put(Message("refunds", b"x"))
        assert read_table(tmp_path / "c", ["topic"], Selection(topics=("refunds",))).num_rows == 1
    (cluster / "empty" / "commitlog").mkdir(parents=True)
    check_topics(find_stores(cluster / "empty"), ["anything"])


def test_a_long_list_of_topics_is_cut(tmp_path: Path) -> None:
    with MessageStore.open(str(tmp_path / "b")) as store:
        for number in range(25):
            store.put(Message(f"topic-{number:02}", b"x"))
    with pytest.raises(UsageError, match=r"topics are topic-00, .*topic-19 and 5 more;"):
        check_topics(find_stores(tmp_path), ["topic"])
