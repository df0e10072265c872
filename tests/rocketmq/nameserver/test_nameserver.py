"""The name server over the wire: routes, lists, key-value configuration, expiry, restart.

Mirrors: DefaultRequestProcessor, ClientRequestProcessor.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqlab.errors import CorruptionError
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.nameserver import NameServer, NameServerConfig
from mqlab.rocketmq.wire.bodies import DataVersion, RegisterBrokerBody, TopicConfig, TopicRouteData
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_hash import crc32
from tests.rocketmq.broker.world import BareClient, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def client(world: World) -> BareClient:
    return world.client()


def ask(client: BareClient, code: int, body: bytes | None = None, **fields: Any) -> RemotingCommand:
    return client.ask(code, body, to=client.world.name_server.address, **fields)


def test_a_route_is_what_a_real_name_server_writes(world: World, client: BareClient) -> None:
    client.put("TopicTest")
    world.run_for(5)
    answer = ask(client, 105, topic="TopicTest", acceptStandardJsonOnly=True)
    assert (answer.body or b"").decode() == (
        '{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.2:10911"},"brokerName":"broker-a","cluster":"DefaultCluster",'
        '"enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,'
        '"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
    )


def test_unknown_topics(client: BareClient) -> None:
    assert ask(client, 105, topic="нет").code == ResponseCode.TOPIC_NOT_EXIST
    assert ask(client, 105).code == ResponseCode.TOPIC_NOT_EXIST


def test_clusters_and_topics(world: World, client: BareClient) -> None:
    client.put("orders")
    world.run_for(5)
    info = json.loads(ask(client, 106).body or b"")
    assert info["clusterAddrTable"] == {"DefaultCluster": ["broker-a"]}
    assert info["brokerAddrTable"]["broker-a"]["brokerAddrs"] == {"0": "10.0.0.2:10911"}
    topics = json.loads(ask(client, 206).body or b"")["topicList"]
    assert "orders" in topics and "TBW102" in topics
    assert json.loads(ask(client, 224, cluster="DefaultCluster").body or b"")["topicList"] == topics
    system = json.loads(ask(client, 304).body or b"")
    assert system == {"brokerAddr": "10.0.0.2:10911", "topicList": ["DefaultCluster", "broker-a"]}


def test_topics_made_and_deleted_by_hand(world: World, client: BareClient) -> None:
    route = TopicRouteData.from_json(ask(client, 105, topic="TBW102").body or b"")
    assert ask(client, 217, route.to_json(), topic="copied").code == ResponseCode.SUCCESS
    assert ask(client, 105, topic="copied").code == ResponseCode.SUCCESS
    assert ask(client, 216, topic="copied", clusterName="Other").code == ResponseCode.SUCCESS
    assert ask(client, 105, topic="copied").code == ResponseCode.SUCCESS
    ask(client, 216, topic="copied")
    assert ask(client, 105, topic="copied").code == ResponseCode.TOPIC_NOT_EXIST


def test_permissions_of_a_whole_broker(client: BareClient) -> None:
    assert ask(client, 205, brokerName="broker-a").ext_fields == {"wipeTopicCount": "13"}
    assert ask(client, 327, brokerName="broker-a").ext_fields == {"addTopicCount": "13"}
    assert ask(client, 205).code == ResponseCode.INVALID_PARAMETER


def register(client: BareClient, content: bytes, **more: Any) -> RemotingCommand:
    values = {
        "brokerName": "broker-b",
        "brokerAddr": "10.0.0.9:10911",
        "clusterName": "DefaultCluster",
        "haServerAddr": "10.0.0.9:10912",
        "brokerId": 0,
        "heartbeatTimeoutMillis": None,
        "bodyCrc32": crc32(content),
        **more,
    }
    return ask(client, 103, content, **values)


TWO = RegisterBrokerBody({name: TopicConfig(name, 4, 4) for name in ("one", "два")}, DataVersion(3, 0, 7)).to_json()


def test_a_registration_needs_its_check_sum(client: BareClient) -> None:
    assert register(client, TWO, bodyCrc32=5).code == ResponseCode.SYSTEM_ERROR
    assert register(client, TWO, bodyCrc32=0).code == ResponseCode.SUCCESS
    assert register(client, TWO).code == ResponseCode.SUCCESS


@pytest.mark.parametrize("content", [b"{", b"{}", b"[]", b'{"topicConfigSerializeWrapper":7}'])
def test_registrations_that_cannot_be_read(world: World, client: BareClient, content: bytes) -> None:
    assert register(client, content).code == ResponseCode.SYSTEM_ERROR
    assert world.name_server.routes.broker_names() == ["broker-a"]


def test_the_version_a_broker_registered_last(client: BareClient) -> None:
    register(client, TWO)
    fields = {"brokerAddr": "10.0.0.9:10911", "brokerName": "broker-b", "clusterName": "DefaultCluster", "brokerId": 0}
    assert ask(client, 322, DataVersion(3, 0, 7).to_json(), **fields).ext_fields == {"changed": "false"}
    assert ask(client, 322, DataVersion(4, 0, 9).to_json(), **fields).ext_fields == {"changed": "true"}


def test_a_slave_learns_where_its_master_is(client: BareClient) -> None:
    answer = register(client, TWO, brokerName="broker-a", brokerId=1)
    assert answer.ext_fields == {"haServerAddr": "10.0.0.2:10912", "masterAddr": "10.0.0.2:10911"}


def test_a_broker_that_falls_silent_is_forgotten_at_the_first_scan_after_120_s(
    world: World, client: BareClient
) -> None:
    register(client, TWO)
    heard_ms = world.sim.now_ms
    world.run_for(119_000)
    assert "broker-b" in world.name_server.routes.broker_names()
    world.run_for(7_000)
    assert world.name_server.routes.broker_names() == ["broker-a"]
    (step,) = [step for step, values in world.sim.journal.changes("broker.unregistered")]
    assert 120_000 < step.now_ms - heard_ms <= 125_000 and (step.now_ms - world.name_server.started_ms) % 5_000 == 0


def test_a_registration_may_bring_its_own_patience(world: World, client: BareClient) -> None:
    register(client, TWO, heartbeatTimeoutMillis=10_000)
    world.run_for(16_000)
    assert world.name_server.routes.broker_names() == ["broker-a"]


def test_a_closed_channel_forgets_the_broker_at_once(world: World, client: BareClient) -> None:
    register(client, TWO)
    client.remoting.close()
    world.run_for(5)
    assert world.name_server.routes.broker_names() == ["broker-a"]


def test_goodbye(world: World, client: BareClient) -> None:
    register(client, TWO)
    fields = {"brokerAddr": "10.0.0.9:10911", "brokerName": "broker-b", "clusterName": "DefaultCluster", "brokerId": 0}
    assert ask(client, 104, **fields).code == ResponseCode.SUCCESS
    assert ask(client, 105, topic="два").code == ResponseCode.TOPIC_NOT_EXIST
    assert ask(client, 104, **fields).code == ResponseCode.SUCCESS


def test_a_restarted_name_server_knows_nobody_until_the_next_registration(world: World, client: BareClient) -> None:
    world.run_for(11_000)
    node = world.sim.nodes["nameserver-1"]
    world.sim.network.drop_node(node, silent=False)
    world.sim.disarm(node)
    node.incarnation += 1
    world.name_server = NameServer(world.sim.ports(node, RealFiles()))
    world.name_server.start()
    assert ask(client, 105, topic="TBW102").code == ResponseCode.TOPIC_NOT_EXIST
    world.run_for(30_000)
    assert ask(client, 105, topic="TBW102").code == ResponseCode.SUCCESS


def test_it_can_be_told_to_wait_for_its_brokers(tmp_path: Path) -> None:
    config = NameServerConfig(need_wait_for_service=True, wait_seconds_for_service=5)
    world = World(tmp_path, name_server=config)
    client = world.client()
    assert ask(client, 105, topic="TBW102").code == ResponseCode.SYSTEM_ERROR
    world.run_for(5_000)
    assert ask(client, 105, topic="TBW102").code == ResponseCode.SUCCESS


def test_values_in_namespaces(client: BareClient) -> None:
    ask(client, 100, namespace="N", key="ключ", value="значение 值")
    assert ask(client, 101, namespace="N", key="ключ").ext_fields == {"value": "значение 值"}
    assert json.loads(ask(client, 219, namespace="N").body or b"") == {"table": {"ключ": "значение 值"}}
    ask(client, 102, namespace="N", key="ключ")
    assert ask(client, 101, namespace="N", key="ключ").code == ResponseCode.QUERY_NOT_FOUND
    assert ask(client, 219, namespace="other").code == ResponseCode.QUERY_NOT_FOUND


def test_ordered_topics_in_routes_when_switched_on(tmp_path: Path) -> None:
    client = World(tmp_path, name_server=NameServerConfig(order_message_enable=True)).client()
    ask(client, 100, namespace="ORDER_TOPIC_CONFIG", key="TBW102", value="broker-a:4;broker-b:4")
    assert json.loads(ask(client, 105, topic="TBW102").body or b"")["orderTopicConf"] == "broker-a:4;broker-b:4"
    assert "orderTopicConf" not in json.loads(ask(client, 105, topic="BenchmarkTest").body or b"")


def test_values_are_kept_in_a_file_when_there_is_one(tmp_path: Path) -> None:
    config = NameServerConfig(kv_config_path=f"{tmp_path}/kvConfig.json")
    client = World(tmp_path / "a", name_server=config).client()
    ask(client, 100, namespace="N", key="k", value="v")
    again = World(tmp_path / "b", name_server=config).client()
    assert ask(again, 101, namespace="N", key="k").ext_fields == {"value": "v"}
    for name in ("kvConfig.json", "kvConfig.json.bak"):
        (tmp_path / name).write_text("[1]", encoding="utf-8")
    with pytest.raises(CorruptionError, match=r"kvConfig\.json"):
        World(tmp_path / "c", name_server=config)


def test_its_settings(client: BareClient) -> None:
    lines = (ask(client, 319).body or b"").decode().splitlines()
    assert "listenPort=9876" in lines and "orderMessageEnable=false" in lines


def test_its_settings_change_by_request(world: World, client: BareClient) -> None:
    changed = b"orderMessageEnable=true\ndeleteTopicWithBrokerRegistration=true\ndefaultBrokerChannelExpiredTime=90000"
    assert ask(client, 318, changed).code == ResponseCode.SUCCESS
    lines = (ask(client, 319).body or b"").decode().splitlines()
    assert set(changed.decode().splitlines()) <= set(lines)
    assert world.name_server.config.order_message_enable
    ask(client, 100, namespace="ORDER_TOPIC_CONFIG", key="TBW102", value="broker-a:8")
    assert TopicRouteData.from_json(ask(client, 105, topic="TBW102").body or b"").order_topic_conf == "broker-a:8"
    client.put("orders")
    world.run_for(5)
    client.ask(215, topic="orders")
    world.run_for(30_000)  # the broker's next whole registration
    assert ask(client, 105, topic="orders").code == ResponseCode.TOPIC_NOT_EXIST
    heard_ms = max(live.last_update_ms for live in world.name_server.routes.live.values())
    assert world.name_server.routes.next_expiry_ms() == heard_ms + 90_001
    assert ask(client, 318).code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("unknown=1", ResponseCode.SYSTEM_ERROR),
        ("orderMessageEnable", ResponseCode.SYSTEM_ERROR),
        ("orderMessageEnable=perhaps", ResponseCode.SYSTEM_ERROR),
        ("scanNotActiveBrokerInterval=0", ResponseCode.SYSTEM_ERROR),
        ("orderMessageEnable=true\nkvConfigPath=elsewhere", ResponseCode.NO_PERMISSION),
        ("rocketmqHome=elsewhere", ResponseCode.NO_PERMISSION),
        ("configBlackList=", ResponseCode.NO_PERMISSION),
        ("configStorePath=elsewhere", ResponseCode.NO_PERMISSION),
    ],
)
def test_settings_that_it_does_not_take(world: World, client: BareClient, text: str, code: int) -> None:
    before = world.name_server.config
    assert ask(client, 318, text.encode()).code == code and world.name_server.config == before


def test_topics_of_units_are_listed(client: BareClient) -> None:
    for topic, flag in (("plain", 0), ("unit", 1), ("subscribed", 2), ("both", 3)):
        numbers = {"readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "topicSysFlag": flag}
        client.ask(17, topic=topic, **numbers, topicFilterType="SINGLE_TAG", order=False)
    client.world.run_for(5)
    listed = {code: json.loads(ask(client, code).body or b"")["topicList"] for code in (311, 312, 313)}
    assert listed == {311: ["unit", "both"], 312: ["subscribed", "both"], 313: ["subscribed"]}


@pytest.mark.parametrize(
    ("setting", "codes"), [("enableAllTopicList", (206,)), ("enableTopicList", (224, 311, 312, 313))]
)
def test_lists_of_topics_can_be_switched_off(client: BareClient, setting: str, codes: tuple[int, ...]) -> None:
    fields = {"cluster": "DefaultCluster"}
    assert all(ask(client, code, **fields).code == ResponseCode.SUCCESS for code in codes)
    ask(client, 318, f"{setting}=false".encode())
    for code in codes:
        answer = ask(client, code, **fields)
        assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "disable")
    others = {206, 224, 304, 311, 312, 313} - set(codes)
    assert all(ask(client, code, **fields).code == ResponseCode.SUCCESS for code in others)


def test_codes_of_a_broker_are_not_its_own(client: BareClient) -> None:
    assert ask(client, 310).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
