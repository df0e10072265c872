"""Heartbeats, goodbyes, closed channels, silence, queue locks over the wire.

Mirrors: ClientManageProcessor, RebalanceLockManager.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.rocketmq.wire import bodies
from mqlab.rocketmq.wire.bodies import (
    CheckClientRequestBody,
    ConsumerData,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    SubscriptionData,
)
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.message import MessageQueue
from tests.rocketmq.broker.world import BareClient, World

ORDERS = SubscriptionData("orders", sub_version=1)


def notices(client: BareClient) -> int:
    return sum(command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED for command in client.received)


def members(client: BareClient, group: str = "billing") -> list[str]:
    answer = client.ask(38, consumerGroup=group)
    return bodies.consumer_ids_from_json(answer.body) if answer.body else []


def test_the_first_heartbeat_makes_group_and_retry_topic(world: World, client: BareClient) -> None:
    assert client.heartbeat("billing", ORDERS).ext_fields == {}
    assert "billing" in world.broker.groups
    retry = world.broker.topics["%RETRY%billing"]
    assert (retry.read_queue_nums, retry.write_queue_nums, retry.perm) == (1, 1, 6)


def test_a_broadcasting_group_gets_its_retry_topic_too_but_no_notice(world: World, client: BareClient) -> None:
    client.heartbeat("news", ORDERS, message_model="BROADCASTING")
    assert "%RETRY%news" in world.broker.topics and notices(client) == 0


def test_the_notice_comes_before_the_answer_and_to_the_new_member_too(world: World, client: BareClient) -> None:
    client.heartbeat("billing", ORDERS)
    assert notices(client) == 1
    frames = [r for r in world.sim.journal if r.node == "client-1" and r.kind == "frame"]
    assert [frame.about.code for frame in frames] == [RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, 0]
    assert frames[0].about.is_oneway and frames[0].about.opaque >= 1


def test_a_repeated_heartbeat_and_a_new_expression_tell_nobody(world: World, client: BareClient) -> None:
    for version in (1, 1, 2):
        client.heartbeat("billing", SubscriptionData("orders", "paid", sub_version=version))
    assert notices(client) == 1


def v2_heartbeat(client: BareClient, *subscriptions: SubscriptionData) -> dict[str, str]:
    """As useHeartbeatV2=true sends it, without subscriptions when none are given; the header fields of the answer."""
    consumer = ConsumerData("billing", subscription_data_set=list(subscriptions))
    data = HeartbeatData("one", [], [consumer], heartbeat_fingerprint=4711, without_sub=not subscriptions)
    return client.ask(34, data.to_json()).ext_fields


def expressions(world: World) -> dict[str, str]:
    return {topic: each.sub_string for topic, each in world.broker.consumers["billing"].subscriptions.items()}


def test_a_v2_client_is_not_offered_v2_and_its_whole_heartbeats_count(world: World, client: BareClient) -> None:
    assert v2_heartbeat(client, ORDERS) == {}
    assert v2_heartbeat(client, SubscriptionData("orders", "paid", sub_version=2)) == {}
    assert expressions(world) == {"orders": "paid"}
    assert v2_heartbeat(client, SubscriptionData("stock", sub_version=3)) == {}
    assert expressions(world) == {"stock": "*"}


def test_a_heartbeat_without_subscriptions_takes_none_away_and_asks_for_all(world: World, client: BareClient) -> None:
    v2_heartbeat(client, ORDERS)
    world.run_for(60_000)
    told = notices(client)
    assert v2_heartbeat(client) == {"IS_SUB_CHANGE": "true"}
    assert expressions(world) == {"orders": "*"} and notices(client) == told
    world.run_for(100_000)  # the short heartbeat counts as a sign of life
    assert members(client) == ["one"]


def test_a_client_that_took_this_for_its_old_broker_is_asked_for_all(world: World, client: BareClient) -> None:
    assert v2_heartbeat(client) == {"IS_SUB_CHANGE": "true"}
    assert members(client) == ["one"] and expressions(world) == {}
    assert v2_heartbeat(client, ORDERS) == {}
    assert expressions(world) == {"orders": "*"}


def test_joining_leaving_and_closing_tell_everybody(world: World, client: BareClient) -> None:
    second = world.client("client-2")
    client.heartbeat("billing", ORDERS)
    second.heartbeat("billing", ORDERS)
    world.run_for(5)
    assert (notices(client), notices(second)) == (2, 1)
    assert members(client) == ["10.0.0.3@client-1", "10.0.0.4@client-2"]
    second.ask(35, clientID="x", consumerGroup="billing")
    world.run_for(5)
    assert notices(client) == 3 and members(client) == ["10.0.0.3@client-1"]
    second.heartbeat("billing", ORDERS)
    second.remoting.close()
    world.run_for(5)
    assert notices(client) == 5 and members(client) == ["10.0.0.3@client-1"]


def test_an_unknown_group_has_no_members(client: BareClient) -> None:
    assert client.ask(38, consumerGroup="nobody").code == ResponseCode.SYSTEM_ERROR


def test_a_silent_member_is_removed_at_the_first_10_s_tick_after_120_s(world: World, client: BareClient) -> None:
    watcher = world.client("watcher")
    client.heartbeat("billing", ORDERS)
    heard_ms = world.sim.now_ms
    world.run_for(119_000)
    assert members(watcher) == ["10.0.0.3@client-1"]
    world.run_for(12_000)
    assert members(watcher) == []
    (left,) = world.changes("member.left")
    assert left["why"] == "expired"
    (record,) = [record for record, _ in world.sim.journal.changes("member.left")]
    assert 120_000 < record.now_ms - heard_ms <= 130_000 and record.kind == "broker.scan_channels"
    assert not [event for event in world.sim.upcoming(50) if event.kind == "broker.scan_channels"]


def test_heartbeats_keep_a_member(world: World, client: BareClient) -> None:
    for _ in range(10):
        client.heartbeat("billing", ORDERS)
        world.run_for(30_000)
    assert members(client) == ["10.0.0.3@client-1"]


def test_groups_that_may_not_be_made_are_skipped_without_a_word(tmp_path: Path) -> None:
    world = World(tmp_path, auto_create_subscription_group=False)
    client = world.client()
    assert client.heartbeat("billing", ORDERS).code == ResponseCode.SUCCESS
    assert "billing" not in world.broker.consumers and "%RETRY%billing" not in world.broker.topics


def test_notices_of_15_s_in_one_when_told_to_batch(tmp_path: Path) -> None:
    world = World(tmp_path, real_time_notify_consumer_change=False)
    client, second = world.client(), world.client("client-2")
    client.heartbeat("billing", ORDERS)
    second.heartbeat("billing", ORDERS)
    world.run_for(29_000)
    assert notices(client) == 0
    world.run_for(2_000)
    assert (notices(client), notices(second)) == (1, 1)


def test_notices_can_be_switched_off_per_broker_and_per_group(tmp_path: Path) -> None:
    quiet = World(tmp_path / "a", notify_consumer_ids_changed_enable=False).client()
    quiet.heartbeat("billing", ORDERS)
    assert notices(quiet) == 0
    world = World(tmp_path / "b")
    world.broker.groups.update(bodies.SubscriptionGroupConfig("billing", notify_consumer_ids_changed_enable=False))
    client = world.client()
    client.heartbeat("billing", ORDERS)
    assert notices(client) == 0


@pytest.mark.parametrize("body", [None, b"", b"[]", b"{", b'{"consumerDataSet":7}'])
def test_heartbeats_that_cannot_be_read(client: BareClient, body: bytes | None) -> None:
    assert client.ask(34, body).code == ResponseCode.SYSTEM_ERROR


def test_an_empty_heartbeat_is_fine(client: BareClient) -> None:
    assert client.ask(34, b"{}").code == ResponseCode.SUCCESS


def test_a_producer_is_known_by_its_heartbeat(world: World, client: BareClient) -> None:
    client.heartbeat("shop")
    assert world.broker.producers.available_channel("shop") is not None
    client.ask(35, clientID="x", producerGroup="shop")
    assert world.broker.producers.available_channel("shop") is None


def lock(client: BareClient, client_id: str, *queue_ids: int, code: int = 41) -> list[int]:
    queues = [MessageQueue("orders", "broker-a", queue_id) for queue_id in queue_ids]
    answer = client.ask(code, LockBatchRequestBody("billing", client_id, queues).to_json())
    assert answer.code == ResponseCode.SUCCESS
    return [queue.queue_id for queue in LockBatchResponseBody.from_json(answer.body or b"{}").lock_ok_mq_set]


def test_queue_locks_over_the_wire(world: World, client: BareClient) -> None:
    assert lock(client, "one", 0, 1) == [0, 1]
    assert lock(client, "two", 0, 1, 2) == [2]
    lock(client, "one", 0, code=42)
    assert lock(client, "two", 0, 1) == [0]
    world.run_for(60_001)
    assert lock(client, "two", 1) == [1]


def test_a_restarted_broker_has_forgotten_its_locks(world: World, client: BareClient) -> None:
    lock(client, "one", 0)
    world.restart_broker()
    assert lock(client, "two", 0) == [0]


@pytest.mark.parametrize(
    ("text", "code"), [("a > 5", ResponseCode.SUCCESS), ("a >", ResponseCode.SUBSCRIPTION_PARSE_FAILED)]
)
def test_an_expression_is_judged_at_the_consumers_start(tmp_path: Path, text: str, code: int) -> None:
    client = World(tmp_path, enable_property_filter=True).client()
    body = CheckClientRequestBody("c", "g", SubscriptionData("t", text, expression_type="SQL92")).to_json()
    assert client.ask(46, body).code == code


def test_without_the_switch_only_tags_are_fine(client: BareClient) -> None:
    sql = CheckClientRequestBody("c", "g", SubscriptionData("t", "a > 5", expression_type="SQL92")).to_json()
    tags = CheckClientRequestBody("c", "g", SubscriptionData("t", "paid")).to_json()
    assert client.ask(46, sql).code == ResponseCode.SYSTEM_ERROR
    assert client.ask(46, tags).code == ResponseCode.SUCCESS
