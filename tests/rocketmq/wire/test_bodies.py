"""JSON bodies: RocketMQ's spelling to the byte, and tolerance for what other clients write."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire import bodies
from mqlab.rocketmq.wire.body import queue_from_key, queue_key
from mqlab.rocketmq.wire.message import MessageQueue

ROUTE = (
    b'{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:10911"},"brokerName":"broker-a","cluster":"DefaultCluster",'
    b'"enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,'
    b'"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
)
HEARTBEAT = (
    b'{"clientID":"10.0.0.5@12100#3727961384708","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET",'
    b'"consumeType":"CONSUME_PASSIVELY","groupName":"CG1","messageModel":"CLUSTERING","subscriptionDataSet":['
    b'{"classFilterMode":false,"codeSet":[2598919,2598920],"expressionType":"TAG","subString":"TagA || TagB",'
    b'"subVersion":1795189326663,"tagsSet":["TagA","TagB"],"topic":"TopicTest"},{"classFilterMode":false,"codeSet":[],'
    b'"expressionType":"TAG","subString":"*","subVersion":1795189326501,"tagsSet":[],"topic":"%RETRY%CG1"}],'
    b'"unitMode":false}],"heartbeatFingerprint":0,"producerDataSet":[{"groupName":"CLIENT_INNER_PRODUCER"}],'
    b'"withoutSub":false}'
)
LOCK = (
    b'{"clientId":"c","consumerGroup":"CGO","mqSet":[{"brokerName":"broker-a","queueId":3,"topic":"TopicTest"}],'
    b'"onlyThisBroker":false}'
)
LOCKED = b'{"lockOKMQSet":[{"brokerName":"broker-a","queueId":3,"topic":"TopicTest"}]}'
TOPIC = (
    b'{"attributes":{},"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG",'
    b'"topicName":"TopicTest","topicSysFlag":0,"writeQueueNums":4}'
)
VERSION = b'{"counter":1,"stateVersion":0,"timestamp":1700000000000}'
CHECK = (
    b'{"clientId":"c","group":"CGS","subscriptionData":{"classFilterMode":false,"codeSet":[],"expressionType":"SQL92",'
    b'"subString":"a > 5","subVersion":7,"tagsSet":[],"topic":"TopicTest"}}'
)
REGISTER = (
    b'{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":VERSION,"mappingDataVersion":VERSION,'
    b'"topicConfigTable":{"TopicTest":TOPIC},"topicQueueMappingDetailMap":{},"topicQueueMappingInfoMap":{}}}'
).replace(b"VERSION", VERSION)
REGISTER = REGISTER.replace(b"TOPIC}", TOPIC + b"}")
WHOLE = [
    (bodies.TopicRouteData, ROUTE),
    (bodies.HeartbeatData, HEARTBEAT),
    (bodies.LockBatchRequestBody, LOCK),
    (bodies.LockBatchResponseBody, LOCKED),
    (bodies.TopicConfig, TOPIC),
    (bodies.DataVersion, VERSION),
    (bodies.CheckClientRequestBody, CHECK),
    (bodies.RegisterBrokerBody, REGISTER),
]
QUEUE = MessageQueue("TopicTest", "broker-a", 3)


@pytest.mark.parametrize(("kind", "data"), WHOLE)
def test_texts_of_java_are_read_and_written_to_the_byte(kind, data):
    assert kind.from_json(data).to_json() == data


@pytest.mark.parametrize(("kind", "data"), WHOLE)
def test_cut_texts(kind, data):
    for length in range(len(data)):
        with pytest.raises(CorruptionError, match=kind.__name__):
            kind.from_json(data[:length])


VALUES = (b"null", b"true", b"[]", b"[7]", b"{}", b'"x"', b"-1.5", b"1e999", b"NaN", b'{"a":{}}')


@given(st.sampled_from(WHOLE), st.data())
def test_values_of_another_kind(whole, data):
    kind, text = whole
    places = [at for at in range(len(text)) if text[at : at + 1] in (b":", b"[")]
    at = data.draw(st.sampled_from(places)) + 1
    end = min(found for found in (text.find(mark, at) for mark in (b",", b"}", b"]")) if found >= 0)
    try:
        kind.from_json(text[:at] + data.draw(st.sampled_from(VALUES)) + text[end:]).to_json()
    except CorruptionError as error:
        assert error.expected is not None


def test_a_route():
    route = bodies.TopicRouteData.from_json(ROUTE)
    assert len(ROUTE) == 262
    assert route.broker_datas[0].broker_addrs == {0: "127.0.0.1:10911"}
    assert route.queue_datas[0] == bodies.TopicConfig("TopicTest", 4, 4).queue_data("broker-a")
    assert bodies.TopicRouteData.from_json(ROUTE.replace(b'"0"', b"0")) == route
    assert bodies.TopicRouteData.from_json(b'{"queueDatas":[],"brokerDatas":[],"later":1}') == bodies.TopicRouteData()


def test_a_heartbeat_of_another_client():
    beat = bodies.HeartbeatData.from_json(
        b'{"consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"t","subString":"a"}]}],"clientID":"c"}'
    )
    assert beat.client_id == "c" and beat.producer_data_set == []
    assert beat.consumer_data_set[0].subscription_data_set == [bodies.SubscriptionData("t", "a")]


def test_booleans_as_text():
    assert bodies.TopicConfig.from_json(b'{"topicName":"t","order":"false"}').order is False
    assert bodies.TopicConfig.from_json(b'{"topicName":"t","order":"true"}').order is True


def test_queues_in_bodies():
    assert bodies.LockBatchRequestBody.from_json(LOCK).mq_set == [QUEUE]
    assert bodies.LockBatchResponseBody([QUEUE]).to_json() == LOCKED
    key = '{"brokerName":"broker-a","queueId":3,"topic":"TopicTest"}'
    assert queue_key(QUEUE) == key
    assert queue_from_key(key) == QUEUE


def test_groups_and_versions():
    group = bodies.SubscriptionGroupConfig("g")
    assert bodies.SubscriptionGroupConfig.from_json(group.to_json()) == group
    assert list(json.loads(group.to_json())) == sorted(json.loads(group.to_json()))
    first = bodies.DataVersion.at(5)
    assert first.next(9) == bodies.DataVersion(1, 0, 9)


def test_clusters():
    legacy = (
        b'{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"127.0.0.1:10911"},"brokerName":"broker-a",'
        b'"cluster":"DefaultCluster","enableActingMaster":false}},"clusterAddrTable":{"DefaultCluster":["broker-a"]}}'
    )
    cluster = bodies.ClusterInfo.from_json(legacy)
    assert cluster.broker_addr_table["broker-a"].broker_addrs == {0: "127.0.0.1:10911"}
    assert cluster.to_json() == legacy.replace(b"{0:", b'{"0":')


def test_lists():
    assert bodies.consumer_ids_to_json(["a", "б"]) == '{"consumerIdList":["a","б"]}'.encode()
    assert bodies.consumer_ids_from_json('{"consumerIdList":["a","б"]}'.encode()) == ["a", "б"]
    assert bodies.consumer_ids_from_json(b"{}") == []
    for bad in (b"", b"[]", b"7", b'{"consumerIdList":"x"}', b'{"consumerIdList":{}}'):
        with pytest.raises(CorruptionError):
            bodies.consumer_ids_from_json(bad)
    assert bodies.topic_list_to_json(["t"]) == b'{"topicList":["t"]}'
    assert bodies.topic_list_to_json(["t"], "10.0.0.2:10911") == b'{"brokerAddr":"10.0.0.2:10911","topicList":["t"]}'
    assert bodies.kv_table_to_json({"a": "1"}) == b'{"table":{"a":"1"}}'
