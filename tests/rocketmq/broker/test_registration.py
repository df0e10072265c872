"""What a broker tells the name servers and when; what its files hold when; what it arms when idle."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.bodies import RegisterBrokerBody, SubscriptionData, TopicConfig
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.rocketmq.broker.world import BareClient, World


def registrations(world: World) -> list[tuple[int, list[str]]]:
    """(ms after the broker's start, topics) of every registration that arrived at the name server."""
    found = []
    for step in world.sim.journal:
        if step.node == "nameserver-1" and getattr(step.about, "code", 0) == RequestCode.REGISTER_BROKER:
            topics = RegisterBrokerBody.from_json(step.about.body).topic_config_table
            found.append((step.now_ms - world.broker.started_ms, list(topics)))
    return found


def test_registrations_at_start_after_10_s_then_every_30_s(world: World) -> None:
    world.run_for(75_000)
    assert [at_ms // 1_000 for at_ms, _ in registrations(world)] == [0, 10, 40, 70]
    assert all(len(topics) == 13 for _, topics in registrations(world))


@pytest.mark.parametrize(("period", "expected"), [(1_000, [0, 10, 20, 30]), (3_600_000, [0, 10, 70])])
def test_the_period_is_held_between_10_and_60_s(tmp_path: Path, period: int, expected: list[int]) -> None:
    world = World(tmp_path, register_name_server_period=period)
    world.run_for(expected[-1] * 1_000 + 5_000)
    assert [at_ms // 1_000 for at_ms, _ in registrations(world)] == expected


def test_a_new_topic_is_registered_alone_at_once(world: World, client: BareClient) -> None:
    client.put("orders")
    world.run_for(5)
    assert registrations(world)[-1][1] == ["orders"]
    route = client.ask(105, to=world.name_server.address, topic="orders")
    assert route.code == ResponseCode.SUCCESS


def test_the_frame_is_what_a_name_server_checks(world: World) -> None:
    (step,) = [s for s in world.sim.journal if getattr(s.about, "code", 0) == 103]
    fields = dict(step.about.ext_fields)
    assert int(fields.pop("bodyCrc32")) > 0
    assert fields == {
        "brokerName": "broker-a",
        "brokerAddr": "10.0.0.2:10911",
        "clusterName": "DefaultCluster",
        "haServerAddr": "10.0.0.2:10912",
        "brokerId": "0",
        "enableActingMaster": "false",
        "compressed": "false",
    }


def test_a_clean_stop_unregisters_and_a_killed_broker_is_forgotten_by_its_channel(world: World) -> None:
    world.broker.shutdown()
    world.run_for(10)
    assert world.name_server.routes.broker_names() == []
    assert world.changes("broker.unregistered") == [
        {"broker": "broker-a", "address": "10.0.0.2:10911", "why": "unregistered"}
    ]
    world.restart_broker()
    world.sim.network.drop_node(world.sim.nodes["broker-a"], silent=False)
    world.run_for(10)
    assert world.changes("broker.unregistered")[-1]["why"] == "channel closed"


def test_what_the_broker_may_not_do_no_topic_of_it_may(world: World) -> None:
    world.broker.state.change_config(dataclasses.replace(world.broker.config, broker_permission=4))
    world.run_for(10)
    queue = world.name_server.routes.queue_data("TBW102", "broker-a")
    assert queue is not None and queue.perm == 4


def test_the_name_servers_list_of_ordered_topics_reaches_the_broker(world: World, client: BareClient) -> None:
    client.put("orders")
    client.ask(100, to=world.name_server.address, namespace="ORDER_TOPIC_CONFIG", key="orders", value="broker-a:4")
    world.run_for(31_000)
    assert world.broker.topics["orders"].order


def test_a_name_server_that_is_not_there_is_no_trouble(world: World) -> None:
    world.sim.nodes["nameserver-1"].alive = False
    world.sim.network.drop_node(world.sim.nodes["nameserver-1"], silent=False)
    world.run_for(100_000)
    assert world.client().put("orders").code == ResponseCode.SUCCESS


def file(world: World, name: str) -> Any:
    return java_json.loads(Path(world.directory, "broker-a", "config", name).read_text(encoding="utf-8"))


def saved(world: World, name: str) -> list[int]:
    """When (s after the broker's start) a file was written."""
    kinds = ("offset.persisted", "config.persisted")
    changes = [c for kind in kinds for c in world.sim.journal.changes(kind)]
    return [(step.now_ms - world.broker.started_ms) // 1_000 for step, values in changes if values["file"] == name]


def test_consumer_offsets_are_written_first_after_10_s_then_on_a_5_s_grid_and_only_when_changed(
    world: World, client: BareClient
) -> None:
    client.put("orders")
    client.heartbeat("billing", SubscriptionData("orders"))
    for offset, at_s in ((1, 1), (2, 12), (3, 14), (4, 31)):
        world.run_for(world.broker.started_ms + at_s * 1_000 - world.sim.now_ms)
        client.tell(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=offset)
    world.run_for(60_000)
    assert saved(world, "consumerOffset.json") == [10, 15, 35]
    assert file(world, "consumerOffset.json")["offsetTable"] == {"orders@billing": {0: 4}}


def test_topics_and_groups_are_written_at_once(world: World, client: BareClient) -> None:
    client.put("orders")
    client.heartbeat("billing", SubscriptionData("orders"))
    assert "orders" in file(world, "topics.json")["topicConfigTable"]
    assert "billing" in file(world, "subscriptionGroup.json")["subscriptionGroupTable"]


def test_a_clean_stop_writes_everything_and_a_crash_loses_the_last_seconds(world: World, client: BareClient) -> None:
    client.put("orders")
    client.heartbeat("billing", SubscriptionData("orders"))
    world.run_for(11_000)
    client.tell(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=1)
    world.restart_broker()
    assert world.broker.offset_table.query("billing", "orders", 0) == 1
    client.tell(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=0)
    world.restart_broker(clean=False)
    assert world.broker.offset_table.query("billing", "orders", 0) == 1
    assert "orders" in world.broker.topics and "billing" in world.broker.groups


def test_a_damaged_file_is_replaced_by_its_backup(world: World, client: BareClient) -> None:
    client.put("one")
    client.put("two")
    world.broker.shutdown()
    path = Path(world.directory, "broker-a", "config", "topics.json")
    path.write_text(path.read_text(encoding="utf-8")[:300], encoding="utf-8")
    world.restart_broker()
    assert "one" in world.broker.topics


def test_two_damaged_files_stop_the_start_with_their_names(world: World, client: BareClient) -> None:
    client.put("one")
    world.broker.shutdown()
    for name in ("topics.json", "topics.json.bak"):
        Path(world.directory, "broker-a", "config", name).write_text('{"topicConfigTable":7}', encoding="utf-8")
    broker = world.make_broker("broker-a")
    with pytest.raises(CorruptionError, match=r"topics\.json"):
        broker.start()


def test_an_idle_broker_only_registers(world: World) -> None:
    world.run_for(70_000)
    before = world.sim.journal.next_step
    world.run_for(600_000)
    kinds = {step.kind for step in world.sim.journal[before:] if step.node == "broker-a"}
    assert kinds <= {"broker.register", "frame"}
    assert [event.kind for event in world.sim.upcoming(50) if event.node.name == "broker-a"] == ["broker.register"]


def test_created_by_the_lab_is_created_as_by_mqadmin(world: World) -> None:
    world.broker.create_topic(TopicConfig("orders", 8, 4))
    world.run_for(5)
    queue = world.name_server.routes.queue_data("orders", "broker-a")
    assert queue is not None and (queue.read_queue_nums, queue.write_queue_nums, queue.perm) == (8, 4, 6)
