"""Tags by hash at the broker and by text at the client; SQL; what neither lets through.

Mirrors: DefaultMessageFilter, ExpressionMessageFilter, ConsumerFilterManager.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab
from mqlab.errors import ClientError, FilterError
from tests.lab.scenarios.stories import Seen, config, delivered, frames, member, quiet_lab, send, total_lag

SQL_ON = {"broker": {"enable_property_filter": True}}


def one_queue(lab: Lab) -> Lab:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    return lab


TAGS = ["TagA", "TagB", "TagA|TagB", "*", None]


@pytest.mark.parametrize(
    ("expression", "matched"),
    [
        (None, TAGS),
        ("", TAGS),
        ("*", TAGS),
        ("TagA", ["TagA"]),
        (" TagA||  TagB ||", ["TagA", "TagB"]),
        ("TagA|TagB", ["TagA|TagB"]),
        (" * ", ["*"]),
        ("* || TagA", ["TagA", "*"]),
        (" ", []),
        ("|| ||", []),
    ],
)
def test_what_a_tag_expression_selects(expression: str | None, matched: list[Any]) -> None:
    lab = one_queue(quiet_lab())
    producer = lab.producer("shop")
    for tag in TAGS:
        send(producer, str(tag), tags=tag)
    seen = Seen(lab)
    member(lab, "billing", seen, tags=expression)
    lab.run_for("10s")
    assert seen.bodies == [str(tag) for tag in matched]


def test_an_expression_without_any_tag_is_refused() -> None:
    lab = one_queue(quiet_lab())
    with pytest.raises(FilterError):
        lab.push_consumer("billing").subscribe("orders", "||")


def test_colliding_tags_pass_the_broker_and_fall_out_at_the_client() -> None:
    lab = one_queue(quiet_lab())
    producer = lab.producer("shop")
    for tag in ("Aa", "BB", "C"):
        send(producer, tag, tags=tag)
    seen = Seen(lab)
    member(lab, "billing", seen, tags="Aa")
    lab.run_for("10s")
    assert seen.bodies == ["Aa"]
    rows = [(one.queue_offset, one.status) for one in delivered(lab, "billing")]
    assert sorted(rows) == [(0, CONSUME_SUCCESS), (1, "FILTERED_BY_CLIENT")]  # "C" never left the broker


def test_a_message_without_a_tag_passes_the_broker_only_for_the_star() -> None:
    lab = one_queue(quiet_lab())
    send(lab.producer("shop"), "no tag")
    puller = lab.pull_consumer("audit")
    (queue,) = puller.fetch_subscribe_message_queues("orders")
    assert puller.pull(queue, "*", 0).pull_status == "FOUND"
    assert puller.pull(queue, "TagA", 0).pull_status == "NO_MATCHED_MSG"


def test_filtered_messages_never_cause_lag_and_are_gone_for_the_group() -> None:
    lab = one_queue(quiet_lab())
    consumer = member(lab, "billing", tags="paid")
    producer = lab.producer("shop")
    lab.run_for("5s")
    send(producer, *"abcdef", tags="noise")
    lab.run_for("40s")
    assert total_lag(lab, "billing") == 0 and len(delivered(lab, "billing")) == 0
    consumer.subscribe("orders", "noise")
    lab.run_for("40s")
    assert len(delivered(lab, "billing")) == 0


def test_tags_chinese_and_cyrillic_work_like_others() -> None:
    lab = one_queue(quiet_lab())
    producer = lab.producer("shop")
    for tag in ("оплачен", "已付款", "💳"):
        send(producer, tag, tags=tag)
    seen = Seen(lab)
    member(lab, "billing", seen, tags="оплачен || 💳")
    lab.run_for("10s")
    assert seen.bodies == ["оплачен", "💳"]


ROWS: list[dict[str, str]] = [{"a": "7"}, {"a": "5"}, {"a": "abc"}, {}, {"a": "7.5"}, {"a": "10", "b": "9"}]


@pytest.mark.parametrize(
    ("sql", "matched"),
    [
        ("a > 5", [0, 5]),
        ("a > 5.0", [0, 4, 5]),
        ("a IS NULL", [3]),
        ("a IS NOT NULL AND b IS NULL", [0, 1, 2, 4]),
        ("NOT a = 5", []),  # (NOT a) = 5: quite another thing, and never true
        ("NOT a <> 5", [0, 1, 2, 4, 5]),
        ("a BETWEEN 5 AND 7", [0, 1]),
        ("a IN ('abc', '7')", [0, 2]),
        ("a <> b", [0, 1, 2, 4, 5]),
        ("a > b", [5]),
        ("a contains '7'", [0, 4]),
        ("a > 5 nonsense follows", [0, 5]),
        ("a", []),
    ],
)
def test_what_an_sql_expression_selects(sql: str, matched: list[int]) -> None:
    lab = one_queue(quiet_lab(**SQL_ON))
    producer = lab.producer("shop")
    for number, properties in enumerate(ROWS):
        send(producer, str(number), properties=properties)
    seen = Seen(lab)
    member(lab, "billing", seen, sql=sql)
    lab.run_for("10s")
    assert seen.bodies == [str(number) for number in matched]


def test_sql_is_refused_by_a_broker_that_does_not_do_it_when_the_consumer_starts() -> None:
    lab = one_queue(quiet_lab())
    consumer = member(lab, "billing", sql="a > 5", start=False)
    with pytest.raises(ClientError, match="Check client in broker error"):
        consumer.start()
    assert "billing" not in lab.broker().consumers


def test_sql_that_does_not_parse_is_refused_too() -> None:
    lab = one_queue(quiet_lab(**SQL_ON))
    consumer = lab.push_consumer("billing")
    with pytest.raises((ClientError, FilterError)):
        consumer.subscribe("orders", sql="a > 'x'")
        consumer.on_messages(Seen(lab))
        consumer.start()


def test_the_brokers_keep_the_expression_in_a_file_and_after_the_group_is_gone() -> None:
    lab = one_queue(quiet_lab(**SQL_ON))
    consumer = member(lab, "billing", sql="a > 5")
    lab.run_for("25s")
    kept = config(lab, "consumerFilter.json")["filterDataByTopic"]["orders"]["groupFilterData"]["billing"]
    assert kept["expression"] == "a > 5"
    consumer.shutdown()
    lab.run_for("25s")
    kept = config(lab, "consumerFilter.json")["filterDataByTopic"]["orders"]["groupFilterData"]["billing"]
    assert kept["deadTime"] > kept["bornTime"]


def test_pull_and_lite_pull_clients_filter_by_sql_as_well() -> None:
    lab = one_queue(quiet_lab(**SQL_ON))
    producer = lab.producer("shop")
    for number, properties in enumerate(ROWS):
        send(producer, str(number), properties=properties)
    puller = lab.pull_consumer("audit")
    (queue,) = puller.fetch_subscribe_message_queues("orders")
    found = puller.pull(queue, None, 0, sql="a > 5").msg_found_list
    assert [message.body for message in found] == [b"0", b"5"]
    lite = lab.lite_pull_consumer("report")
    lite.subscribe("orders", None, sql="a > 5")
    lite.start()
    assert [message.body for message in lite.poll("5s")] == [b"0", b"5"]


def test_tags_and_keys_are_properties_too() -> None:
    lab = one_queue(quiet_lab(**SQL_ON))
    producer = lab.producer("shop")
    send(producer, "yes", tags="paid", keys="order-1")
    send(producer, "no", tags="paid", keys="order-2")
    seen = Seen(lab)
    member(lab, "billing", seen, sql="TAGS = 'paid' AND KEYS = 'order-1'")
    lab.run_for("10s")
    assert seen.bodies == ["yes"]


@pytest.mark.parametrize("support_retry", [False, True])
def test_retries_of_an_sql_group_come_back(support_retry: bool) -> None:
    lab = one_queue(quiet_lab(broker={"enable_property_filter": True, "filter_support_retry": support_retry}))
    seen = Seen(lab, RECONSUME_LATER, CONSUME_SUCCESS)
    member(lab, "billing", seen, sql="a > 5")
    lab.run_for("25s")
    send(lab.producer("shop"), "again", properties={"a": "7"})
    lab.run_for("30s")
    assert [message.reconsume_times for message in seen.messages] == [0, 1]


def test_a_held_pull_with_sql_wakes_for_what_matches_and_not_for_the_rest() -> None:
    lab = one_queue(quiet_lab(**SQL_ON))
    seen = Seen(lab)
    member(lab, "billing", seen, sql="a > 5")
    producer = lab.producer("shop")
    lab.run_for("6s")
    pulls = len(frames(lab, 11))
    send(producer, "small", properties={"a": "1"})
    lab.run_for("100ms")
    assert len(frames(lab, 11)) == pulls
    send(producer, "large", properties={"a": "9"})
    lab.run_for("100ms")
    assert seen.bodies == ["large"]


def test_each_sql_group_has_its_bits_in_the_bloom_filter() -> None:
    lab = one_queue(quiet_lab(**SQL_ON))
    lab.create_topic("TopicTest")
    member(lab, "G1", topic="TopicTest", sql="a > 5")
    lab.run_for("25s")
    kept = config(lab, "consumerFilter.json")["filterDataByTopic"]["TopicTest"]["groupFilterData"]["G1"]
    assert kept["bloomFilterData"] == {"bitNum": 112, "bitPos": [106, 23, 102]}
