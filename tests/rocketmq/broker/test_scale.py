"""More and fewer queues, permissions, several brokers of one topic.

Mirrors: TopicConfigManager, AdminBrokerProcessor.
"""

from __future__ import annotations

from pathlib import Path

from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.bodies import SubscriptionData, TopicConfig, TopicRouteData
from mqlab.rocketmq.wire.codes import ResponseCode
from tests.rocketmq.broker.world import BareClient, World


def route(client: BareClient, topic: str = "orders") -> TopicRouteData:
    answer = client.ask(105, to=client.world.name_server.address, topic=topic)
    return TopicRouteData.from_json(answer.body or b"{}")


def test_shrinking_without_loss(world: World, client: BareClient) -> None:
    """Write queues first, drain, then read queues: nothing of the queues that go is lost."""
    world.broker.create_topic(TopicConfig("orders", 8, 8))
    client.put("orders", b"old", queue_id=7)
    client.heartbeat("billing", SubscriptionData("orders"))
    world.broker.create_topic(TopicConfig("orders", 8, 4))
    world.run_for(5)
    (queues,) = route(client).queue_datas
    assert (queues.read_queue_nums, queues.write_queue_nums) == (8, 4)
    assert client.put("orders", b"late producer", queue_id=7).code == ResponseCode.SUCCESS
    found = client.pull("billing", "orders", queue_id=7, sysFlag=0)
    world.run_for(5)
    assert [one.body for one in record.decode_all(found.result().body or b"")] == [b"old", b"late producer"]
    world.broker.create_topic(TopicConfig("orders", 4, 4))
    refused = client.pull("billing", "orders", 2, queue_id=7, sysFlag=0)
    world.run_for(5)
    assert refused.result().code == ResponseCode.INVALID_PARAMETER
    assert client.put("orders", queue_id=7).code == ResponseCode.INVALID_PARAMETER


def test_growing(world: World, client: BareClient) -> None:
    client.put("orders")
    world.broker.create_topic(TopicConfig("orders", 16, 16))
    world.run_for(5)
    (queues,) = route(client).queue_datas
    assert queues.read_queue_nums == 16 and client.put("orders", queue_id=15).code == ResponseCode.SUCCESS


def test_only_brokers_that_received_a_message_have_the_topic(tmp_path: Path) -> None:
    world = World(tmp_path)
    second = world.make_broker("broker-b")
    second.start()
    world.run_for(20)
    client = world.client()
    assert [one.broker_name for one in route(client, "TBW102").queue_datas] == ["broker-a", "broker-b"]
    client.put("orders")
    world.run_for(5)
    assert [one.broker_name for one in route(client).queue_datas] == ["broker-a"]


def test_a_wiped_broker_still_serves_its_readers(world: World, client: BareClient) -> None:
    client.put("orders", b"before")
    world.run_for(5)
    client.ask(205, to=world.name_server.address, brokerName="broker-a")
    assert [one.perm for one in route(client).queue_datas] == [4]
    world.run_for(65_000)
    assert [one.perm for one in route(client).queue_datas] == [4]
    assert client.put("orders", b"a producer with an old route").code == ResponseCode.SUCCESS
    client.ask(327, to=world.name_server.address, brokerName="broker-a")
    assert [one.perm for one in route(client).queue_datas] == [6]


def test_a_topics_own_permissions(world: World, client: BareClient) -> None:
    client.put("orders")
    client.heartbeat("billing", SubscriptionData("orders"))
    world.broker.create_topic(TopicConfig("orders", 4, 4, perm=2))
    refused = client.pull("billing", "orders", sysFlag=0)
    world.run_for(5)
    assert refused.result().code == ResponseCode.NO_PERMISSION
    assert [one.perm for one in route(client).queue_datas] == [2]
