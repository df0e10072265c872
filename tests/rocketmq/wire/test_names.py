"""What topics and groups may be called, and which names have a meaning."""

import pytest

from mqlab.rocketmq.wire import names


@pytest.mark.parametrize("topic", ["orders", "a" * 127, "%RETRY%" + "g" * 120, "%DLQ%billing", "a|b_c-D%9"])
def test_good_topics(topic):
    assert names.topic_problem(topic) is None


@pytest.mark.parametrize(
    ("topic", "problem"),
    [
        ("", "blank"),
        (" \t", "blank"),
        ("a b", "illegal"),
        ("заказы", "illegal"),
        ("订单", "illegal"),
        ("😀", "illegal"),
        ("a.b", "illegal"),
        ("orders\n", "illegal"),
        ("a" * 128, "longer than 127"),
        ("%RETRY%" + "g" * 121, "longer than 127"),
    ],
)
def test_bad_topics(topic, problem):
    assert problem in (names.topic_problem(topic) or "")


def test_groups():
    assert names.group_problem("g" * 255) is None
    assert "longer than 255" in (names.group_problem("g" * 256) or "")
    assert "illegal" in (names.group_problem("группа") or "")
    assert "blank" in (names.group_problem("") or "")


def test_topics_of_a_group():
    assert names.group_of(names.retry_topic("billing")) == "billing"
    assert names.group_of(names.dlq_topic("billing")) == "billing"
    assert names.group_of("orders") is None


def test_system_topics():
    assert names.is_system_topic("SCHEDULE_TOPIC_XXXX")
    assert names.is_system_topic("rmq_sys_wheel_timer")
    assert names.is_system_topic("CHECKPOINT_TOPIC")
    assert not names.is_system_topic("%RETRY%billing")
    assert set(names.NOT_FOR_SENDING) < set(names.SYSTEM_TOPICS)
