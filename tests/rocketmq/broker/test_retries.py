"""Send-back, delay levels and dead letters at the broker.

Mirrors: AbstractSendMessageProcessor.consumerSendMsgBack, ScheduleMessageService.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.wire.bodies import SubscriptionData, SubscriptionGroupConfig
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from tests.rocketmq.broker.world import SMALL_STORE, BareClient, World


def send_back(client: BareClient, physical_offset: int, **more: object) -> RemotingCommand:
    values = {
        "offset": physical_offset,
        "group": "billing",
        "delayLevel": 0,
        "originMsgId": "U",
        "originTopic": "orders",
        "unitMode": False,
        "maxReconsumeTimes": 16,
        **more,
    }
    return client.ask(36, **values)


@pytest.fixture
def stored(world: World, client: BareClient) -> BareClient:
    """One message at physical offset 0, group billing known."""
    client.put("orders", "заказ 🚀".encode(), TAGS="paid", UNIQ_KEY="U", WAIT="true")
    client.heartbeat("billing", SubscriptionData("orders"))
    world.run_for(5)
    return client


def test_a_failed_message_waits_and_comes_back_in_the_retry_topic(world: World, stored: BareClient) -> None:
    started_ms = world.sim.now_ms
    assert send_back(stored, 0).code == ResponseCode.SUCCESS
    world.run_for(9_500)
    (parked,) = world.messages("SCHEDULE_TOPIC_XXXX", 2)
    assert parked.property_map["DELAY"] == "3" and parked.property_map["REAL_TOPIC"] == "%RETRY%billing"
    assert world.messages("%RETRY%billing") == []
    world.run_for(700)
    (retry,) = world.messages("%RETRY%billing")
    assert retry.store_timestamp - parked.store_timestamp in range(10_000, 10_101)
    assert retry.reconsume_times == 1 and retry.body.decode() == "заказ 🚀"
    assert retry.property_map == {
        **parked.property_map,
        "RETRY_TOPIC": "orders",
        "ORIGIN_MESSAGE_ID": "0A00000200002A9F0000000000000000",
        "WAIT": "false",
        "UNIQ_KEY": "U",
        "TAGS": "paid",
    }
    (original,) = world.messages("orders")
    assert (retry.born_timestamp, retry.born_host) == (original.born_timestamp, original.born_host)
    assert world.sim.now_ms - started_ms < 10_300


def test_sixteen_retries_at_the_levels_three_to_eighteen_then_the_dead_letters(
    world: World, stored: BareClient
) -> None:
    delays_s = [10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200]
    at, waited = 0, []
    for delay_s in delays_s:
        sent_ms = world.sim.now_ms
        assert send_back(stored, at).code == ResponseCode.SUCCESS
        world.run_for(delay_s * 1000 + 200)
        latest = world.messages("%RETRY%billing")[-1]
        waited.append((latest.store_timestamp - sent_ms) // 1000)
        at = latest.physical_offset
    assert waited == delays_s and sum(delays_s) == 17_140
    assert send_back(stored, at).code == ResponseCode.SUCCESS
    world.run_for(5)
    (dead,) = world.messages("%DLQ%billing")
    assert dead.reconsume_times == 17 and dead.property_map["RETRY_TOPIC"] == "orders"
    assert dead.property_map["UNIQ_KEY"] == "U" and dead.property_map["DELAY"] == "0"
    assert dead.property_map["ORIGIN_MESSAGE_ID"] == "0A00000200002A9F0000000000000000"
    topic = world.broker.topics["%DLQ%billing"]
    assert (topic.read_queue_nums, topic.perm) == (1, 6)


@pytest.mark.parametrize(
    ("more", "queue_id"),
    [({"delayLevel": 1}, 0), ({"delayLevel": 18}, 17), ({"delayLevel": 99}, 17), ({"delayLevel": 0}, 2)],
)
def test_the_level_asked_for_decides_the_queue(
    world: World, stored: BareClient, more: dict[str, int], queue_id: int
) -> None:
    assert send_back(stored, 0, **more).code == ResponseCode.SUCCESS
    world.run_for(5)
    assert len(world.messages("SCHEDULE_TOPIC_XXXX", queue_id)) == 1


@pytest.mark.parametrize("more", [{"delayLevel": -1}, {"maxReconsumeTimes": 0}])
def test_some_messages_die_at_once(world: World, stored: BareClient, more: dict[str, int]) -> None:
    assert send_back(stored, 0, **more).code == ResponseCode.SUCCESS
    world.run_for(5)
    assert len(world.messages("%DLQ%billing")) == 1


def test_the_groups_own_limit_counts_only_for_clients_that_send_none(world: World, stored: BareClient) -> None:
    world.broker.groups.update(SubscriptionGroupConfig("billing", retry_max_times=0))
    send_back(stored, 0)
    world.run_for(5)
    assert "%DLQ%billing" not in world.broker.topics
    send_back(stored, 0, maxReconsumeTimes=None)
    world.run_for(5)
    assert "%DLQ%billing" in world.broker.topics


def test_a_group_without_retry_queues_throws_the_message_away(world: World, stored: BareClient) -> None:
    world.broker.groups.update(SubscriptionGroupConfig("billing", retry_queue_nums=0))
    before = world.broker.store.max_physical_offset
    assert send_back(stored, 0).code == ResponseCode.SUCCESS
    assert world.broker.store.max_physical_offset == before


def test_what_is_refused(world: World, stored: BareClient) -> None:
    assert send_back(stored, 0, group="не группа").code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert send_back(stored, 7).code == ResponseCode.SYSTEM_ERROR
    assert send_back(stored, 1 << 40).code == ResponseCode.SYSTEM_ERROR
    retry = world.broker.topics["%RETRY%billing"]
    world.broker.topics.update(dataclasses.replace(retry, perm=4))
    assert send_back(stored, 0).code == ResponseCode.NO_PERMISSION


def test_retry_queues_are_chosen_by_chance(world: World, stored: BareClient) -> None:
    world.broker.groups.update(SubscriptionGroupConfig("many", retry_queue_nums=4))
    for _ in range(30):
        send_back(stored, 0, group="many", delayLevel=1)
    world.run_for(2_000)
    assert all(world.messages("%RETRY%many", queue_id) for queue_id in range(4))


def test_a_delayed_message_is_delivered_on_the_100_ms_grid(world: World, client: BareClient) -> None:
    client.put("orders", "позже".encode(), queue_id=3, DELAY="1", TAGS="t")
    world.run_for(1_200)
    (delivered,) = world.messages("orders", 3)
    assert delivered.body.decode() == "позже" and delivered.property_map["DELAY"] == "1"
    assert (delivered.store_timestamp - world.broker.started_ms) % 100 == 0
    assert dict(world.broker.delay_offset_table) == {1: 1}


def test_levels_do_not_wait_for_each_other(world: World, client: BareClient) -> None:
    for level in (3, 2, 1):
        client.put("orders", str(level).encode(), DELAY=str(level))
    world.run_for(11_000)
    assert [one.body for one in world.messages("orders")] == [b"1", b"2", b"3"]


def test_an_idle_schedule_arms_nothing(world: World, client: BareClient) -> None:
    client.put("orders", DELAY="1")
    world.run_for(30_000)
    assert not [event for event in world.sim.upcoming(50) if event.kind.startswith("schedule")]


def test_own_delay_levels_and_units(tmp_path: Path) -> None:
    world = World(tmp_path, store=dataclasses.replace(SMALL_STORE, message_delay_level="2s 1m"))
    client = world.client()
    client.put("orders", b"two", DELAY="1")
    client.put("orders", b"minute", DELAY="7")
    world.run_for(2_300)
    assert [one.body for one in world.messages("orders")] == [b"two"]
    world.run_for(60_000)
    assert [one.body for one in world.messages("orders")] == [b"two", b"minute"]


def test_delivery_goes_on_after_a_restart_where_it_was(world: World, client: BareClient) -> None:
    client.put("orders", b"before", DELAY="1")
    client.put("orders", b"after", DELAY="2")
    world.run_for(1_500)
    world.restart_broker()
    assert dict(world.broker.delay_offset_table) == {1: 1, 2: 0}
    world.run_for(6_000)
    assert [one.body for one in world.messages("orders")] == [b"before", b"after"]


def test_a_lost_delay_offset_file_delivers_again(world: World, client: BareClient) -> None:
    client.put("orders", b"once", DELAY="1")
    world.run_for(1_500)
    world.restart_broker(clean=False)
    world.run_for(2_000)
    assert [one.body for one in world.messages("orders")] == [b"once", b"once"]


def with_delay_offsets(world: World, text: str) -> None:
    """Start the broker again with another delayOffset.json."""
    world.broker.shutdown()
    Path(world.directory, "broker-a", "config", "delayOffset.json").write_text(text)
    world.restart_broker(clean=False)


def test_a_delay_offset_outside_its_queue_is_corrected_at_the_start(world: World, client: BareClient) -> None:
    with_delay_offsets(world, '{"offsetTable":{1:3,2:0,7:-5}}')
    assert json.loads(client.ask(45).body or b"")["offsetTable"] == {"1": 0, "2": 0, "7": 0}
    for body in (b"a", b"b", b"c"):
        client.put("orders", body, DELAY="1")
    world.run_for(2_000)
    assert [one.body for one in world.messages("orders")] == [b"a", b"b", b"c"]
    assert [one["level"] for one in world.changes("schedule.offset_corrected")] == [1, 7]


def test_a_corrected_delay_offset_delivers_nothing_again(world: World, client: BareClient) -> None:
    client.put("orders", b"once", DELAY="1")
    world.run_for(1_500)
    with_delay_offsets(world, '{"offsetTable":{1:9}}')
    assert dict(world.broker.delay_offset_table) == {1: 1}
    client.put("orders", b"next", DELAY="1")
    world.run_for(1_500)
    assert [one.body for one in world.messages("orders")] == [b"once", b"next"]


def test_a_slave_that_is_ahead_of_its_queues_delivers_everything_once_it_is_the_master(tmp_path: Path) -> None:
    slave = dataclasses.replace(SMALL_STORE, broker_role="SLAVE", ha_master_address="10.0.0.9:10912")
    world = World(tmp_path, store=slave, broker_id=1)
    table = world.broker.delay_offset_table
    assert table.take_over('{"offsetTable":{1:3,4:2}}') and not table.take_over('{"offsetTable":{1:3}}')
    assert dict(table) == {1: 3, 4: 2}  # the log may still be on its way: nothing is corrected yet
    world.store_config, world.settings = SMALL_STORE, {}
    world.restart_broker()
    assert dict(world.broker.delay_offset_table) == {1: 0, 4: 0}
    world.client().put("orders", b"a", DELAY="1")
    world.run_for(2_000)
    assert [one.body for one in world.messages("orders")] == [b"a"]


def test_a_level_made_shorter_delivers_what_waits_too_long(tmp_path: Path) -> None:
    world = World(tmp_path, store=dataclasses.replace(SMALL_STORE, message_delay_level="1h"))
    world.client().put("orders", b"soon", DELAY="1")
    world.run_for(100)
    world.store_config = StoreConfig(message_delay_level="1s", mapped_file_size_commit_log=1 << 18)
    world.restart_broker()
    world.run_for(2_000)
    assert [one.body for one in world.messages("orders")] == [b"soon"]


def test_delivery_waits_while_the_store_refuses(world: World, client: BareClient) -> None:
    client.put("orders", b"late", DELAY="1")
    world.broker.store.admission.set_disk_full(True)
    world.run_for(3_000)
    assert world.messages("orders") == []
    world.broker.store.admission.set_disk_full(False)
    world.run_for(200)
    assert [one.body for one in world.messages("orders")] == [b"late"]
