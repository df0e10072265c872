"""The topic table: what is there at start, what a send creates, what attributes may change, what the file holds."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.broker.config import BrokerConfig
from mqlab.rocketmq.broker.tables.topic_attributes import altered_attributes, parse_attributes
from mqlab.rocketmq.broker.tables.topics import TopicTable
from mqlab.rocketmq.wire.bodies import TopicConfig


def table(**settings: Any) -> tuple[TopicTable, list[list[str]]]:
    changed: list[list[str]] = []
    topics = TopicTable(BrokerConfig(**settings), lambda: 7)
    topics.changed.subscribe(lambda changed_topics: changed.append([topic.topic_name for topic in changed_topics]))
    return topics, changed


def test_every_broker_starts_with_rocketmqs_system_topics() -> None:
    topics, _ = table(trace_topic_enable=True)
    shown = {name: (topic.write_queue_nums, topic.perm) for name, topic in topics.items()}
    assert shown == {
        "SELF_TEST_TOPIC": (1, 6),
        "TBW102": (8, 7),
        "BenchmarkTest": (1024, 6),
        "DefaultCluster": (16, 7),
        "broker-a": (1, 7),
        "OFFSET_MOVED_EVENT": (1, 6),
        "SCHEDULE_TOPIC_XXXX": (18, 6),
        "RMQ_SYS_TRACE_TOPIC": (1, 6),
        "DefaultCluster_REPLY_TOPIC": (1, 6),
        "rmq_sys_REVIVE_LOG_DefaultCluster": (8, 6),
        "rmq_sys_SYNC_BROKER_MEMBER_broker-a": (1, 1),
        "RMQ_SYS_TRANS_HALF_TOPIC": (1, 6),
        "RMQ_SYS_TRANS_OP_HALF_TOPIC": (1, 6),
    }
    assert topics.is_system("broker-a") and topics.is_system("rmq_sys_anything") and not topics.is_system("orders")


def test_rocketmqs_reserved_names_are_listed_as_system_topics_before_they_exist() -> None:
    topics, _ = table()
    assert {"TRANS_CHECK_MAX_TIME_TOPIC", "CHECKPOINT_TOPIC", "TBW102"} <= set(topics.system_names)


def test_a_send_makes_a_topic_from_the_template() -> None:
    topics, changed = table()
    made = topics.create_on_send("orders", "TBW102", 4)
    assert made is not None and (made.read_queue_nums, made.write_queue_nums, made.perm) == (4, 4, 6)
    assert topics.create_on_send("many", "TBW102", 16).write_queue_nums == 8  # type: ignore[union-attr]
    assert topics.create_on_send("none", "TBW102", -3).write_queue_nums == 0  # type: ignore[union-attr]
    assert topics.create_on_send("orders", "TBW102", 1) is made
    assert changed == [["orders"], ["many"], ["none"]]
    assert topics.data_version.counter == 3


def test_a_template_without_the_inherit_bit_makes_nothing() -> None:
    topics, changed = table()
    topics.create_on_send("orders", "TBW102", 4)
    assert topics.create_on_send("more", "orders", 4) is None
    assert topics.create_on_send("more", "unknown", 4) is None
    assert changed == [["orders"]]


def test_auto_creation_switched_off_has_no_template() -> None:
    topics, _ = table(auto_create_topic_enable=False)
    assert "TBW102" not in topics
    topics.decode(
        '{"topicConfigTable":{"TBW102":{"topicName":"TBW102","perm":7,"writeQueueNums":8,"readQueueNums":8}}}'
    )
    assert topics.create_on_send("orders", "TBW102", 4) is None


def test_the_brokers_own_topics_are_made_once() -> None:
    topics, changed = table()
    first = topics.create_on_send_back("%RETRY%billing", 1)
    assert topics.create_on_send_back("%RETRY%billing", 5) is first
    ordered = topics.create_on_send_back("%RETRY%billing", 1, order=True)
    assert ordered.order and changed == [["%RETRY%billing"], ["%RETRY%billing"]]


def test_updates_and_deletions_advance_the_version() -> None:
    topics, changed = table()
    topics.update(TopicConfig("orders", read_queue_nums=8, write_queue_nums=4))
    topics.update(TopicConfig("orders", read_queue_nums=8, write_queue_nums=8))
    assert topics.delete("orders") and not topics.delete("orders")
    assert changed == [["orders"], ["orders"], []] and topics.data_version.counter == 3


def test_topics_listed_as_ordered_become_ordered() -> None:
    topics, changed = table()
    topics.update(TopicConfig("orders"))
    topics.set_order(["orders", "unknown"])
    topics.set_order(["orders"])
    assert topics["orders"].order and changed == [["orders"], ["orders"]]


def test_attributes_change_by_plus_and_minus() -> None:
    topics, _ = table()
    topics.update(TopicConfig("orders"), parse_attributes("+message.type=FIFO,+queue.type=SimpleCQ"))
    topics.update(TopicConfig("orders"), parse_attributes("+message.type=DELAY"))
    assert topics["orders"].attributes == {"message.type": "DELAY", "queue.type": "SimpleCQ"}
    topics.update(TopicConfig("orders"), parse_attributes("-message.type"))
    assert topics["orders"].attributes == {"queue.type": "SimpleCQ"}


@pytest.mark.parametrize("text", ["message.type=FIFO", "+message.type", "-message.type=FIFO", "+", "+a=b,+a=c"])
def test_text_that_is_no_change_of_attributes(text: str) -> None:
    with pytest.raises(UsageError):
        parse_attributes(text)


@pytest.mark.parametrize(
    ("current", "changes", "create"),
    [
        ({}, {"+unknown": "x"}, True),
        ({}, {"+queue.type": "BatchCQ"}, True),
        ({}, {"+cleanup.policy": "COMPACTION"}, True),
        ({}, {"+message.type": "SOMETHING"}, True),
        ({}, {"-message.type": ""}, True),
        ({}, {"-message.type": ""}, False),
        ({"queue.type": "SimpleCQ"}, {"+queue.type": "BatchCQ"}, False),
        ({"message.type": "FIFO"}, {"+message.type": "DELAY", "-message.type": ""}, False),
        ({}, {"message.type": "FIFO"}, True),
    ],
)
def test_changes_that_a_topic_cannot_take(current: dict[str, str], changes: dict[str, str], create: bool) -> None:
    with pytest.raises(UsageError):
        altered_attributes(current, changes, create=create)


def test_attributes_of_groups_change_by_the_same_rules() -> None:
    known = {"test": ("true", "false")}
    altered = altered_attributes({}, {"+test": "true"}, create=True, known=known, of="group")
    assert altered == {"test": "true"}
    assert altered_attributes(altered, {"-test": ""}, create=False, known=known, of="group") == {}


def test_the_file_comes_back_as_it_was() -> None:
    topics, _ = table()
    topics.create_on_send("заказы-订单", "TBW102", 4)
    again, _ = table()
    again.decode(topics.encode())
    assert dict(again) == dict(topics) and again.data_version == topics.data_version
    assert topics.encode().startswith(
        '{\n\t"dataVersion":{\n\t\t"counter":1,\n\t\t"stateVersion":0,\n\t\t"timestamp":7\n\t},'
    )


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"topicConfigTable":7}', '{"topicConfigTable":{"a":{"perm":"x"}}}'])
def test_a_damaged_file_is_said_to_be_one_and_changes_nothing(text: str) -> None:
    topics, _ = table()
    before = dict(topics)
    with pytest.raises(CorruptionError):
        topics.decode(text)
    assert dict(topics) == before
