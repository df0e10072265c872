"""Pulls: checks in order, status to code, holding and waking, piggy-backed commits, resets.

Mirrors: PullMessageProcessor, PullRequestHoldService.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.bodies import SubscriptionData, SubscriptionGroupConfig
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_hash import string_hash
from tests.rocketmq.broker.world import BareClient, World


def tag(text: str, version: int = 5, topic: str = "orders") -> SubscriptionData:
    tags = [] if text == "*" else text.split("||")
    return SubscriptionData(topic, text, tags, [string_hash(one) for one in tags], version)


def answered(client: BareClient, *args: Any, **more: Any) -> RemotingCommand:
    """A pull that may not be held."""
    answer = client.pull(*args, **{"sysFlag": 0, **more})
    client.world.run_for(5)
    return answer.result()


@pytest.fixture
def subscribed(world: World, client: BareClient) -> BareClient:
    """Three messages in queue 0, tags paid, shipped, paid; group billing subscribed with ``*``."""
    for number, name in enumerate(("paid", "shipped", "paid")):
        client.put("orders", f"№{number}".encode(), TAGS=name)
    client.heartbeat("billing", tag("*"))
    world.run_for(5)
    return client


def test_found_messages_come_as_stored_units(world: World, subscribed: BareClient) -> None:
    answer = answered(subscribed, "billing", "orders")
    assert (answer.code, answer.remark) == (0, "FOUND")
    assert answer.ext_fields == {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": "3",
        "minOffset": "0",
        "maxOffset": "3",
        "topicSysFlag": "0",
        "groupSysFlag": "0",
    }
    assert [one.body.decode() for one in record.decode_all(answer.body or b"")] == ["№0", "№1", "№2"]
    assert world.broker.offset_table.query_pull("billing", "orders", 0) == 3


@pytest.mark.parametrize(
    ("offset", "code", "status", "next_offset"),
    [
        (3, ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", "3"),
        (9, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", "3"),
        (-1, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", "0"),
    ],
)
def test_offsets_at_and_behind_the_ends(
    subscribed: BareClient, offset: int, code: int, status: str, next_offset: str
) -> None:
    answer = answered(subscribed, "billing", "orders", offset)
    assert (answer.code, answer.remark, answer.ext_fields["nextBeginOffset"]) == (code, status, next_offset)


def test_an_empty_queue_depends_on_the_offset_asked_for(subscribed: BareClient) -> None:
    assert answered(subscribed, "billing", "orders", 0, queue_id=1).code == ResponseCode.PULL_NOT_FOUND
    moved = answered(subscribed, "billing", "orders", 5, queue_id=1)
    assert (moved.code, moved.ext_fields["nextBeginOffset"]) == (ResponseCode.PULL_OFFSET_MOVED, "0")


def test_the_stored_expression_filters_and_nothing_found_is_answered_at_once(
    world: World, subscribed: BareClient
) -> None:
    subscribed.heartbeat("billing", tag("shipped", 6))
    answer = answered(subscribed, "billing", "orders", subVersion=6)
    assert [one.body.decode() for one in record.decode_all(answer.body or b"")] == ["№1"]
    answer = answered(subscribed, "billing", "orders", 2, sysFlag=2)
    assert (answer.code, answer.ext_fields["nextBeginOffset"]) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "3")


def test_an_expression_brought_along_outranks_the_stored_one(subscribed: BareClient) -> None:
    answer = answered(subscribed, "unheard-of", "orders", sysFlag=4, subscription="shipped || other")
    assert [one.body.decode() for one in record.decode_all(answer.body or b"")] == ["№1"]
    answer = answered(subscribed, "billing", "orders", sysFlag=4, subscription="||")
    assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED


def test_hash_collisions_pass_the_broker(world: World, client: BareClient) -> None:
    for name in ("Aa", "BB", "CC"):
        client.put("orders", name.encode(), TAGS=name)
    client.heartbeat("billing", tag("Aa"))
    answer = answered(client, "billing", "orders")
    assert [one.body for one in record.decode_all(answer.body or b"")] == [b"Aa", b"BB"]


def test_an_older_stored_subscription_is_not_latest(subscribed: BareClient) -> None:
    assert answered(subscribed, "billing", "orders", subVersion=6).code == ResponseCode.SUBSCRIPTION_NOT_LATEST
    assert answered(subscribed, "billing", "orders", subVersion=4).code == ResponseCode.SUCCESS


def test_unknown_groups_and_topics(world: World, subscribed: BareClient) -> None:
    assert answered(subscribed, "nobody", "orders").code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    assert answered(subscribed, "billing", "unknown").code == ResponseCode.TOPIC_NOT_EXIST
    subscribed.put("other")
    assert answered(subscribed, "billing", "other").code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    assert answered(subscribed, "плохое имя", "orders").code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    for queue_id in (-1, 4):
        assert answered(subscribed, "billing", "orders", queue_id=queue_id).code == ResponseCode.INVALID_PARAMETER


def test_permissions_of_group_topic_and_broadcasting(world: World, subscribed: BareClient) -> None:
    groups, topics = world.broker.groups, world.broker.topics
    topics.update(type(topics["orders"])("orders", 4, 4, perm=2))
    denied = answered(subscribed, "billing", "orders")
    assert (denied.code, denied.ext_fields["forbiddenType"]) == (ResponseCode.NO_PERMISSION, "3")
    topics.update(type(topics["orders"])("orders", 4, 4, perm=6))
    groups.update(SubscriptionGroupConfig("billing", consume_enable=False))
    assert answered(subscribed, "billing", "orders").ext_fields["forbiddenType"] == "2"
    groups.update(SubscriptionGroupConfig("billing", consume_broadcast_enable=False))
    assert answered(subscribed, "billing", "orders").code == ResponseCode.SUCCESS
    subscribed.heartbeat("billing", tag("*"), message_model="BROADCASTING")
    assert answered(subscribed, "billing", "orders").ext_fields["forbiddenType"] == "4"
    groups.update(SubscriptionGroupConfig("billing"))
    groups.forbidden = {"billing": {"orders": 1 << 2}}
    assert answered(subscribed, "billing", "orders").ext_fields["forbiddenType"] == "5"


def test_a_broker_that_may_not_be_read(tmp_path: Path) -> None:
    client = World(tmp_path, broker_permission=2).client()
    answer = answered(client, "billing", "orders")
    assert (answer.code, answer.ext_fields["forbiddenType"]) == (ResponseCode.NO_PERMISSION, "1")


def test_a_held_pull_is_answered_by_the_message_it_waits_for(world: World, subscribed: BareClient) -> None:
    held = subscribed.pull("billing", "orders", 3)
    world.run_for(4_000)
    assert not held.done and world.broker.held_pulls["orders", 0][0].group == "billing"
    subscribed.put("orders", "№3".encode())
    world.run_for(5)
    assert [one.body.decode() for one in record.decode_all(held.result().body or b"")] == ["№3"]


def test_a_held_pull_ends_between_15_and_20_seconds(world: World, subscribed: BareClient) -> None:
    started_ms = world.sim.now_ms
    held = subscribed.pull("billing", "orders", 3)
    world.sim.wait_for(held)
    assert held.result().code == ResponseCode.PULL_NOT_FOUND
    assert 15_000 <= world.sim.now_ms - started_ms <= 20_010


def test_traffic_that_does_not_match_wakes_within_5_seconds_with_an_advanced_offset(
    world: World, subscribed: BareClient
) -> None:
    subscribed.heartbeat("billing", tag("never", 6))
    held = subscribed.pull("billing", "orders", 3, subVersion=6)
    world.run_for(100)
    subscribed.put("orders", TAGS="paid")
    world.run_for(5_000)
    answer = held.result()
    assert (answer.code, answer.ext_fields["nextBeginOffset"]) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "4")


def test_a_pull_without_the_suspend_flag_is_never_held(world: World, subscribed: BareClient) -> None:
    assert answered(subscribed, "billing", "orders", 3, sysFlag=0).code == ResponseCode.PULL_NOT_FOUND


def test_a_held_pull_of_a_closed_channel_is_forgotten(world: World, subscribed: BareClient) -> None:
    subscribed.pull("billing", "orders", 3)
    world.run_for(10)
    subscribed.remoting.close()
    world.run_for(10)
    assert len(world.broker.held_pulls) == 0


def test_short_polling_holds_one_second(tmp_path: Path) -> None:
    world = World(tmp_path, long_polling_enable=False)
    client = world.client()
    client.put("orders")
    client.heartbeat("billing", tag("*"))
    held = client.pull("billing", "orders", 1)
    started_ms = world.sim.now_ms
    world.sim.wait_for(held)
    assert 1_000 <= world.sim.now_ms - started_ms <= 2_010


def test_a_commit_rides_on_the_first_run_of_a_pull_only(world: World, subscribed: BareClient) -> None:
    held = subscribed.pull("billing", "orders", 3, sysFlag=3, commitOffset=2)
    world.run_for(10)
    assert world.broker.offset_table.query("billing", "orders", 0) == 2
    world.broker.offset_table.commit("billing", "orders", 0, 3)
    subscribed.put("orders")
    world.run_for(10)
    assert held.done and world.broker.offset_table.query("billing", "orders", 0) == 3


def test_a_pull_takes_a_waiting_reset_and_its_own_commit_still_counts(world: World, subscribed: BareClient) -> None:
    world.broker.offset_table.assign_reset("billing", "orders", 0, 1)
    answer = answered(subscribed, "billing", "orders", 3, sysFlag=1, commitOffset=3)
    assert (answer.code, answer.remark) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET")
    assert answer.ext_fields["nextBeginOffset"] == "1"
    assert world.broker.offset_table.query("billing", "orders", 0) == 3
    assert answered(subscribed, "billing", "orders", 1).code == ResponseCode.SUCCESS


def test_sql_is_refused_unless_the_broker_allows_it(subscribed: BareClient) -> None:
    sql = SubscriptionData("orders", "a > 5", sub_version=9, expression_type="SQL92")
    subscribed.heartbeat("audit", sql)
    answer = answered(subscribed, "audit", "orders", subVersion=9)
    assert answer.code == ResponseCode.SYSTEM_ERROR and "SQL92" in (answer.remark or "")


@pytest.fixture
def sql_world(tmp_path: Path) -> BareClient:
    world = World(tmp_path, enable_property_filter=True)
    client = world.client()
    for amount in ("3", "7", "много"):
        client.put("orders", amount.encode(), amount=amount)
    client.put("orders", b"none")
    world.run_for(5)
    return client


def test_sql_filters_by_stored_properties(sql_world: BareClient) -> None:
    sql_world.heartbeat("audit", SubscriptionData("orders", "amount > 5", sub_version=9, expression_type="SQL92"))
    answer = answered(sql_world, "audit", "orders", subVersion=9)
    assert [one.body for one in record.decode_all(answer.body or b"")] == [b"7"]
    assert answered(sql_world, "audit", "orders", subVersion=10).code == ResponseCode.SUBSCRIPTION_NOT_LATEST


def test_sql_brought_along(sql_world: BareClient) -> None:
    more = {"sysFlag": 4, "expressionType": "SQL92"}
    answer = answered(sql_world, "lite", "orders", subscription="amount IS NULL", **more)
    assert [one.body for one in record.decode_all(answer.body or b"")] == [b"none"]
    assert answered(sql_world, "lite", "orders", subscription="a >", **more).code == 23
    assert answered(sql_world, "lite", "orders", subscription="x", sysFlag=4, expressionType="XPATH").code == 23


def test_an_expression_that_does_not_parse_has_no_filter_data(sql_world: BareClient) -> None:
    sql_world.heartbeat("audit", SubscriptionData("orders", "amount >", sub_version=9, expression_type="SQL92"))
    assert answered(sql_world, "audit", "orders", subVersion=9).code == ResponseCode.FILTER_DATA_NOT_EXIST
