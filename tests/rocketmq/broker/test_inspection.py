"""What the tools ask: topics, groups, connections, progress, numbers, settings, members.

Mirrors: AdminBrokerProcessor.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.bodies import SubscriptionData, SubscriptionGroupConfig, TopicConfig
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from tests.rocketmq.broker.world import BareClient, World

TOPIC = {
    "topic": "orders",
    "defaultTopic": "TBW102",
    "readQueueNums": 2,
    "writeQueueNums": 2,
    "perm": 6,
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": 0,
    "order": False,
    "attributes": "",
}


def body(answer: RemotingCommand) -> Any:
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return json.loads(answer.body or b"")


def by_queue(table: dict[str, Any]) -> dict[int, Any]:
    return {json.loads(key)["queueId"]: value for key, value in sorted(table.items())}


@pytest.fixture
def busy(world: World, client: BareClient) -> BareClient:
    """Topic orders with two queues, five messages in the first, of which group billing consumed three."""
    client.ask(17, **TOPIC)
    for number in range(5):
        client.put("orders", f"№{number}".encode())
    client.heartbeat("billing", SubscriptionData("orders", sub_version=5))
    client.heartbeat("shop")
    client.tell(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=3)
    answer = client.pull("billing", "orders", 0, maxMsgNums=4)
    world.run_for(5)
    assert answer.result().code == 0
    return client


def test_a_topic_is_created_changed_and_shown(world: World, client: BareClient) -> None:
    assert client.ask(17, **TOPIC).code == ResponseCode.SUCCESS
    assert client.ask(17, **{**TOPIC, "perm": 4, "attributes": "+message.type=FIFO"}).code == ResponseCode.SUCCESS
    shown = body(client.ask(351, topic="orders", lo=True))
    assert shown == {
        "attributes": {"message.type": "FIFO"},
        "order": False,
        "perm": 4,
        "readQueueNums": 2,
        "topicFilterType": "SINGLE_TAG",
        "topicName": "orders",
        "topicSysFlag": 0,
        "writeQueueNums": 2,
    }
    assert body(client.ask(21))["topicConfigTable"]["orders"] == shown
    assert client.ask(351, topic="unknown").code == ResponseCode.TOPIC_NOT_EXIST


def test_the_same_topic_again_changes_nothing(world: World, client: BareClient) -> None:
    client.ask(17, **TOPIC)
    version = world.broker.topics.data_version
    client.ask(17, **TOPIC)
    assert world.broker.topics.data_version == version


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"topic": "заказы"}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "TBW102"}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "broker-a"}, ResponseCode.INVALID_PARAMETER),
        ({"perm": 9}, ResponseCode.INVALID_PARAMETER),
        ({"readQueueNums": -1}, ResponseCode.INVALID_PARAMETER),
        ({"readQueueNums": "many"}, ResponseCode.INVALID_PARAMETER),
        ({"attributes": "nonsense"}, ResponseCode.SYSTEM_ERROR),
        ({"attributes": "+unknown=1"}, ResponseCode.SYSTEM_ERROR),
        ({"attributes": "+message.type=MIXED"}, ResponseCode.INVALID_PARAMETER),
        ({"attributes": "+message.type=FIFO,-message.type"}, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_topics_that_cannot_be(world: World, client: BareClient, more: dict[str, Any], code: int) -> None:
    before = dict(world.broker.topics)
    assert client.ask(17, **{**TOPIC, **more}).code == code
    assert dict(world.broker.topics) == before


def test_several_topics_at_once_or_none(world: World, client: BareClient) -> None:
    good, bad = TopicConfig("one", 1, 1).to_value(), TopicConfig("два", 1, 1).to_value()
    listed = json.dumps({"topicConfigList": [good, bad]}).encode()
    assert client.ask(18, listed).code == ResponseCode.INVALID_PARAMETER and "one" not in world.broker.topics
    assert client.ask(18, json.dumps({"topicConfigList": [good]}).encode()).code == ResponseCode.SUCCESS
    assert "one" in world.broker.topics


def topic_list(*topics: TopicConfig) -> bytes:
    return json.dumps({"topicConfigList": [topic.to_value() for topic in topics]}).encode()


def test_topics_of_a_list_get_their_attributes(world: World, client: BareClient) -> None:
    fifo = TopicConfig("fifo", 1, 1, attributes={"+message.type": "FIFO"})
    assert client.ask(18, topic_list(fifo, TopicConfig("plain", 1, 1))).code == ResponseCode.SUCCESS
    assert body(client.ask(351, topic="fifo"))["attributes"] == {"message.type": "FIFO"}
    removed = TopicConfig("fifo", 1, 1, attributes={"-message.type": ""})
    assert client.ask(18, topic_list(removed)).code == ResponseCode.SUCCESS
    assert world.broker.topics["fifo"].attributes == {}


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"+unknown": "1"}, ResponseCode.SYSTEM_ERROR),
        ({"message.type": "FIFO"}, ResponseCode.SYSTEM_ERROR),
        ({"+message.type": "MIXED"}, ResponseCode.INVALID_PARAMETER),
    ],
)
def test_a_list_with_one_change_of_attributes_that_cannot_be_makes_no_topic(
    world: World, client: BareClient, attributes: dict[str, str], code: int
) -> None:
    answer = client.ask(18, topic_list(TopicConfig("good", 1, 1), TopicConfig("bad", 1, 1, attributes=attributes)))
    assert answer.code == code and "good" not in world.broker.topics


def test_topics_of_mixed_messages_need_a_setting(tmp_path: Path) -> None:
    world = World(tmp_path, enable_mixed_message_type=True)
    assert world.client().ask(17, **{**TOPIC, "attributes": "+message.type=MIXED"}).code == ResponseCode.SUCCESS
    assert world.broker.topics["orders"].attributes == {"message.type": "MIXED"}


@pytest.mark.parametrize("code", [200, 225])
def test_a_group_has_no_attribute_that_could_be_set(world: World, client: BareClient, code: int) -> None:
    group = SubscriptionGroupConfig("billing", attributes={"+test": "true"}).to_value()
    answer = client.ask(code, json.dumps(group if code == 200 else {"groupConfigList": [group]}).encode())
    assert answer.code == ResponseCode.SYSTEM_ERROR and "unknown group attribute 'test'" in (answer.remark or "")
    assert "billing" not in world.broker.groups


def test_a_deleted_topic_is_gone_with_its_queues_and_offsets(world: World, busy: BareClient) -> None:
    assert busy.ask(215, topic="orders").code == ResponseCode.SUCCESS
    assert "orders" not in world.broker.topics and world.broker.offset_table.topics_of("billing") == []
    assert world.broker.store.max_offset("orders", 0) == 0
    assert busy.ask(215, topic="orders").code == ResponseCode.SUCCESS
    assert busy.ask(215, topic="TBW102").code == ResponseCode.INVALID_PARAMETER
    assert busy.ask(215, topic=" ").code == ResponseCode.INVALID_PARAMETER


def test_groups_are_created_shown_and_deleted(world: World, busy: BareClient) -> None:
    config = SubscriptionGroupConfig("billing", retry_max_times=3)
    assert busy.ask(200, config.to_json()).code == ResponseCode.SUCCESS
    assert body(busy.ask(352, group="billing"))["retryMaxTimes"] == 3
    assert body(busy.ask(201))["subscriptionGroupTable"]["billing"]["retryMaxTimes"] == 3
    assert body(busy.ask(352, group="made-by-asking"))["retryMaxTimes"] == 16
    assert busy.ask(352, group="так нельзя").code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    many = json.dumps({"groupConfigList": [SubscriptionGroupConfig("g2").to_value()]}).encode()
    assert busy.ask(225, many).code == ResponseCode.SUCCESS and "g2" in world.broker.groups
    busy.ask(207, groupName="billing", cleanOffset=False)
    assert "billing" not in world.broker.groups and world.broker.offset_table.query("billing", "orders", 0) == 3
    busy.ask(207, groupName="billing", cleanOffset=True)
    assert world.broker.offset_table.query("billing", "orders", 0) == -1


@pytest.mark.parametrize("content", [None, b"{", b"[]", b'{"groupName":'])
def test_bodies_that_are_no_json(client: BareClient, content: bytes | None) -> None:
    assert client.ask(200, content).code == ResponseCode.SYSTEM_ERROR


def test_a_topics_queues(world: World, busy: BareClient) -> None:
    stats = body(busy.ask(202, topic="orders"))
    last = world.messages("orders")[-1].store_timestamp
    assert by_queue(stats["offsetTable"]) == {
        0: {"lastUpdateTimestamp": last, "maxOffset": 5, "minOffset": 0},
        1: {"lastUpdateTimestamp": 0, "maxOffset": 0, "minOffset": 0},
    }
    assert busy.ask(202, topic="unknown").code == ResponseCode.TOPIC_NOT_EXIST


def test_a_groups_progress(world: World, busy: BareClient) -> None:
    third = world.messages("orders")[2].store_timestamp
    stats = body(busy.ask(208, consumerGroup="billing"))
    assert by_queue(stats["offsetTable"])[0] == {
        "brokerOffset": 5,
        "consumerOffset": 3,
        "lastTimestamp": third,
        "pullOffset": 4,
    }
    world.run_for(10_000)
    assert body(busy.ask(208, consumerGroup="billing", topic="orders"))["consumeTps"] == pytest.approx(0.4)
    assert body(busy.ask(208, consumerGroup="nobody")) == {"consumeTps": 0.0, "offsetTable": {}}


def test_topics_the_members_left_do_not_count(world: World, busy: BareClient) -> None:
    world.broker.offset_table.commit("billing", "SELF_TEST_TOPIC", 0, 0)
    assert len(body(busy.ask(208, consumerGroup="billing"))["offsetTable"]) == 2
    assert len(body(busy.ask(208, consumerGroup="billing", topicList="orders;SELF_TEST_TOPIC"))["offsetTable"]) == 3
    busy.ask(35, clientID="x", consumerGroup="billing")
    assert len(body(busy.ask(208, consumerGroup="billing"))["offsetTable"]) == 3


def test_every_groups_progress(busy: BareClient) -> None:
    stats = body(busy.ask(317, isOrder=False))
    assert stats["brokerAddr"] == "10.0.0.2:10911" and (stats["totalDiff"], stats["totalInflightDiff"]) == (2, 1)
    assert body(busy.ask(317, isOrder=True))["totalDiff"] == 0


def test_time_spans(world: World, busy: BareClient) -> None:
    times = [one.store_timestamp for one in world.messages("orders")]
    spans = {
        span["messageQueue"]["queueId"]: span
        for span in body(busy.ask(303, topic="orders", group="billing"))["consumeTimeSpanSet"]
    }
    first = spans[0]
    assert (first["minTimeStamp"], first["maxTimeStamp"], first["consumeTimeStamp"]) == (times[0], times[4], times[2])
    assert 0 < first["delayTime"] <= world.sim.now_ms - times[3]
    assert first["minTimeStampStr"].startswith("2026-01-01#00:00:00:")
    assert spans[1]["maxTimeStamp"] == -1 and spans[1]["delayTime"] == 0


def test_a_queues_units(world: World, busy: BareClient) -> None:
    shown = body(busy.ask(321, topic="orders", queueId=0, index=3, count=10, consumerGroup="billing"))
    assert (shown["minQueueIndex"], shown["maxQueueIndex"], len(shown["queueData"])) == (0, 5, 2)
    assert shown["queueData"][0]["physicOffset"] == world.messages("orders")[3].physical_offset
    assert shown["subscriptionData"]["subString"] == "*"
    assert (shown["filterData"], [row["eval"] for row in shown["queueData"]]) == ("null", [True, True])
    assert busy.ask(321, topic="orders", queueId=7, index=0, count=1).code == ResponseCode.SYSTEM_ERROR
    beyond = busy.ask(321, topic="orders", queueId=0, index=5, count=1)
    assert (beyond.code, beyond.remark) == (ResponseCode.SUCCESS, "Index 5 of 0@orders is not exist!")
    assert (
        "not online"
        in body(busy.ask(321, topic="orders", queueId=0, index=0, count=1, consumerGroup="x"))["filterData"]
    )


def test_who_is_connected(world: World, busy: BareClient) -> None:
    group = body(busy.ask(203, consumerGroup="billing"))
    assert [one["clientId"] for one in group["connectionSet"]] == ["10.0.0.3@client-1"]
    assert group["connectionSet"][0]["clientAddr"].startswith("10.0.0.3:")
    assert group["subscriptionTable"]["orders"]["subVersion"] == 5 and group["messageModel"] == "CLUSTERING"
    assert busy.ask(203, consumerGroup="nobody").code == ResponseCode.CONSUMER_NOT_ONLINE
    assert len(body(busy.ask(204, producerGroup="shop"))["connectionSet"]) == 1
    assert busy.ask(204, producerGroup="nobody").code == ResponseCode.SYSTEM_ERROR
    assert list(body(busy.ask(328))["data"]) == ["shop"]


def test_who_consumes_what(world: World, busy: BareClient) -> None:
    world.broker.offset_table.commit("offline", "orders", 0, 1)
    assert body(busy.ask(300, topic="orders"))["groupList"] == ["billing", "offline"]
    assert body(busy.ask(343, group="billing")) == {"brokerAddr": "10.0.0.2:10911", "topicList": ["orders"]}
    assert body(busy.ask(345, group="billing", topic="orders"))["subscriptionData"]["subString"] == "*"
    assert body(busy.ask(345, group="billing", topic="none")) == {"group": "billing", "topic": "none"}
    assert "TBW102" in body(busy.ask(305))["topicList"]


def test_the_brokers_numbers(world: World, busy: BareClient) -> None:
    busy.put("orders", DELAY="1")
    world.run_for(11_000)
    table = body(busy.ask(28))["table"]
    assert all(isinstance(value, str) for value in table.values())
    assert (table["msgPutTotalTodayNow"], table["msgGetTotalTodayNow"]) == ("6", "4")
    assert table["scheduleMessageOffset_1"] == "1,1" and table["dispatchBehindBytes"] == "0"
    assert table["brokerVersionDesc"] == "V5_3_3"
    assert float(table["putTps"].split()[0]) > 0 and table["putTps"].endswith("  ")  # 60 s and 600 s: not yet
    assert (table["getTotalTps"].split()[1:], table["putMessageTimesTotal"]) == (["0.0", "0.0"], "7")


KEYS_OF_THE_REAL_BROKER = """
EndTransactionQueueSize EndTransactionThreadPoolQueueCapacity ackThreadPoolQueueCapacity
ackThreadPoolQueueHeadWaitTimeMills ackThreadPoolQueueSize bootTimestamp brokerActive brokerVersion brokerVersionDesc
commitLogDirCapacity commitLogDiskRatio commitLogDiskRatio_commitlog commitLogMaxOffset commitLogMinOffset
consumeQueueDiskRatio dispatchBehindBytes dispatchMaxBuffer earliestMessageTimeStamp getFoundTps getMessageEntireTimeMax
getMissTps getTotalTps getTransferredTps litePullThreadPoolQueueCapacity litePullThreadPoolQueueHeadWaitTimeMills
litePullThreadPoolQueueSize msgGetTotalTodayMorning msgGetTotalTodayNow msgGetTotalYesterdayMorning
msgPutTotalTodayMorning msgPutTotalTodayNow msgPutTotalYesterdayMorning pageCacheLockTimeMills
pullThreadPoolQueueCapacity pullThreadPoolQueueHeadWaitTimeMills pullThreadPoolQueueSize putLatency99 putLatency999
putMessageAverageSize putMessageDistributeTime putMessageEntireTimeMax putMessageFailedTimes putMessageSizeTotal
putMessageTimesTotal putTps queryThreadPoolQueueCapacity queryThreadPoolQueueHeadWaitTimeMills queryThreadPoolQueueSize
remainHowManyDataToFlush remainTransientStoreBufferNumbs runtime sendThreadPoolQueueCapacity
sendThreadPoolQueueHeadWaitTimeMills sendThreadPoolQueueSize startAcceptSendRequestTimeStamp timerCongestNum
timerDequeueTps timerEnqueueTps timerOffsetBehind timerReadBehind
"""  # mqadmin brokerStatus of a 5.3.3 broker without messages; the path in commitLogDiskRatio_… cut


def test_the_brokers_numbers_have_the_names_that_a_real_broker_gives_them(world: World, client: BareClient) -> None:
    world.run_for(64_000)
    table = body(client.ask(28))["table"]
    assert sorted(table) == sorted(KEYS_OF_THE_REAL_BROKER.split())
    assert table["runtime"] == "[ 0 days, 0 hours, 1 minutes, 4 seconds ]"
    assert table["commitLogDirCapacity"] == "Total : 100.0 GiB, Free : 75.0 GiB."
    assert table["commitLogDiskRatio"] == table["consumeQueueDiskRatio"] == "0.25"
    assert (table["remainHowManyDataToFlush"], table["remainTransientStoreBufferNumbs"]) == ("0 B", "2147483647")
    capacities = [table[f"{pool}ThreadPoolQueueCapacity"] for pool in ("send", "pull", "query", "EndTransaction")]
    assert capacities == ["10000", "100000", "20000", "100000"]


def test_one_counter(world: World, busy: BareClient) -> None:
    world.run_for(10_000)
    shown = body(busy.ask(315, statsName="TOPIC_PUT_NUMS", statsKey="orders"))
    assert shown["statsMinute"]["sum"] == 5 and shown["statsDay"]["sum"] == 0
    missing = busy.ask(315, statsName="TOPIC_PUT_NUMS", statsKey="none")
    assert (missing.code, missing.remark) == (ResponseCode.SYSTEM_ERROR, "The stats <TOPIC_PUT_NUMS> <none> not exist")


def test_settings_are_shown_and_changed_live(world: World, client: BareClient) -> None:
    answer = client.ask(26)
    lines = (answer.body or b"").decode().splitlines()
    assert "transactionCheckMax=15" in lines and "brokerName=broker-a" in lines and "fileReservedTime=72" in lines
    assert json.loads(answer.ext_fields["version"])["counter"] == 0
    assert client.ask(25, b"transactionCheckMax=3\nautoCreateTopicEnable=false").code == ResponseCode.SUCCESS
    assert world.broker.config.transaction_check_max == 3
    assert client.put("new-topic").code == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.parametrize(
    "text",
    [
        b"unknown=1",
        b"transactionCheckMax",
        b"transactionCheckMax=x",
        b"transactionCheckMax=3\ntraceOn=perhaps",
        b"brokerPermission=99",
    ],
)
def test_settings_that_cannot_be(world: World, client: BareClient, text: bytes) -> None:
    before = world.broker.config
    assert client.ask(25, text).code == ResponseCode.SYSTEM_ERROR and world.broker.config == before


@pytest.mark.parametrize("name", ["brokerConfigPath", "rocketmqHome", "configBlackList", "regionId"])
def test_settings_on_the_black_list_are_not_changed_by_request(tmp_path: Path, name: str) -> None:
    world = World(tmp_path, config_black_list="configBlackList;regionId")
    before = world.broker.config
    answer = world.client().ask(25, f"transactionCheckMax=3\n{name}=x".encode())
    assert (answer.code, answer.remark) == (ResponseCode.NO_PERMISSION, "Can not update config in black list.")
    assert world.broker.config == before


def test_a_question_is_passed_on_with_the_members_answer(world: World, busy: BareClient) -> None:
    tool = world.client("tool")
    busy.answers[307] = RemotingCommand(0, body='{"properties":{"имя":"✓"}}'.encode())
    answer = tool.ask(307, consumerGroup="billing", clientId="10.0.0.3@client-1", jstackEnable=False)
    assert body(answer) == {"properties": {"имя": "✓"}}
    busy.answers[309] = RemotingCommand(0, body=b'{"consumeResult":"CR_SUCCESS"}')
    message = world.messages("orders")[1]
    answer = tool.ask(
        309, consumerGroup="billing", clientId="10.0.0.3@client-1", msgId=message.offset_msg_id, topic="orders"
    )
    assert body(answer) == {"consumeResult": "CR_SUCCESS"}
    asked = busy.received[-1]
    assert record.decode(asked.body or b"").body.decode() == "№1"
    assert asked.ext_fields["brokerName"] == "broker-a" and asked.ext_fields["topicSysFlag"] == "0"


def test_a_member_that_is_absent_silent_or_asked_for_nothing_stored(world: World, busy: BareClient) -> None:
    tool = world.client("tool")
    absent = tool.ask(307, consumerGroup="billing", clientId="nobody")
    assert absent.code == ResponseCode.SYSTEM_ERROR and "not online" in (absent.remark or "")
    started_ms = world.sim.now_ms
    silent = tool.ask(307, consumerGroup="billing", clientId="10.0.0.3@client-1")
    assert silent.code == ResponseCode.CONSUME_MSG_TIMEOUT and world.sim.now_ms - started_ms >= 10_000
    for msg_id in ("мусор", "0A00000200002A9F00000000000FFFFF"):
        answer = tool.ask(309, consumerGroup="billing", clientId="10.0.0.3@client-1", msgId=msg_id)
        assert answer.code == ResponseCode.SYSTEM_ERROR


def test_what_the_members_remember(world: World, busy: BareClient) -> None:
    tool = world.client("tool")
    busy.answers[221] = RemotingCommand(
        0, body=b'{"consumerTable":{},"messageQueueTable":{{"brokerName":"broker-a","queueId":0,"topic":"orders"}:5}}'
    )
    shown = body(tool.ask(223, group="billing", topic="orders"))
    assert by_queue(shown["consumerTable"]["10.0.0.3@client-1"]) == {0: 5}
    assert body(tool.ask(223, group="billing", topic="orders", clientAddr="other"))["consumerTable"] == {}
    assert tool.ask(223, group="nobody", topic="orders").code == ResponseCode.SYSTEM_ERROR


def test_unknown_codes_and_the_binary_header(world: World, client: BareClient) -> None:
    unknown = client.ask(9999)
    assert (unknown.code, unknown.remark) == (3, " request type 9999 not supported")
    asked = RemotingCommand(RequestCode.GET_MAX_OFFSET, {"topic": "orders", "queueId": "0"}, serialize_type=1)
    answer = client.remoting.invoke(world.broker.address, asked)
    world.sim.wait_for(answer)
    assert answer.result().serialize_type == 1 and answer.result().ext_fields == {"offset": "0"}


def test_a_topic_has_a_filter_type_that_rocketmq_knows(client: BareClient) -> None:
    """CreateTopicRequestHeader.checkFields."""

    def asked(kind: str) -> RemotingCommand:
        return client.ask(17, topic="new", readQueueNums=1, writeQueueNums=1, perm=6, topicFilterType=kind)

    assert (asked("NOPE").code, asked("NOPE").remark) == (1, "topicFilterType = [NOPE] value invalid")
    assert asked("MULTI_TAG").code == ResponseCode.SUCCESS
