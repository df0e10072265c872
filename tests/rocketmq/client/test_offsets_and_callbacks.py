"""Commits on their way, and what brokers ask of a client.

Mirrors: RemoteBrokerOffsetStore, ClientRemotingProcessor.
"""

from __future__ import annotations

import json
from typing import Any

from mqlab.rocketmq.client import LitePullConsumer, PullConsumer
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.wire import command, java_json
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message, MessageQueue
from tests.rocketmq.client.conftest import Recorder, World, send
from tests.rocketmq.client.scripted import ScriptedWorld

QUEUE = MessageQueue("orders", "broker-a", 0)
COMMIT = RequestCode.UPDATE_CONSUMER_OFFSET


def channel_to(world: World, ip: str) -> Any:
    return next(c for c in world.broker.remoting._channels.values() if c.remote_address.startswith(ip + ":"))


def ask(world: World, consumer: Any, request: command.RemotingCommand) -> command.RemotingCommand:
    """Have the broker ask a client and play on until it answers."""
    answer: Promise[command.RemotingCommand] = channel_to(world, consumer.ports.ip).invoke(request, 60_000)
    world.run_until(lambda: answer.done)
    return answer.result()


def test_commits_are_one_way_first_after_ten_seconds_then_every_five() -> None:
    world = ScriptedWorld(["broker-a"], queues=1)
    broker = world.brokers["broker-a"]
    broker.on[RequestCode.QUERY_CONSUMER_OFFSET] = lambda request: request.reply(offset=5)
    world.consumer()
    world.run_for(9_900)
    assert broker.of(COMMIT) == []
    world.run_for(10_500)
    commits = broker.of(COMMIT)
    assert [commit.ext_fields["commitOffset"] for commit in commits] == ["5", "5", "5"]  # said again and again
    assert all(commit.is_oneway for commit in commits)


def test_a_queue_that_is_not_owned_is_forgotten_not_sent(world: World) -> None:
    world.create_topic("orders", 1)
    consumer = world.consumer(listener=Recorder(world))
    world.run_for(5_000)
    stranger = MessageQueue("orders", "broker-a", 7)
    consumer.offset_store.update_offset(stranger, 3)
    consumer.persist_offsets()
    assert consumer.offset_store.read_memory(stranger) == -1


def test_shutdown_commits_and_says_goodbye(world: World) -> None:
    world.create_topic("orders", 1)
    consumer = world.consumer(listener=Recorder(world))
    world.run_for(3_000)
    send(world.producer(), "orders", "a", "b")
    world.run_for(500)
    consumer.shutdown()
    assert world.broker.offset_table.query("billing", "orders", 0) == 2
    told = [step.about.ext_fields for step in world.requests(RequestCode.UNREGISTER_CLIENT)]
    assert [fields.get("consumerGroup") or fields.get("producerGroup") for fields in told] == [
        "billing",
        "CLIENT_INNER_PRODUCER",
    ]


def test_increase_only_and_frozen(world: World) -> None:
    consumer = world.consumer(listener=Recorder(world))
    store = consumer.offset_store
    store.update_offset(QUEUE, 10)
    store.update_offset(QUEUE, 8, increase_only=True)
    assert store.read_memory(QUEUE) == 10
    store.update_offset(QUEUE, 8)
    assert store.read_memory(QUEUE) == 8
    store.update_and_freeze_offset(QUEUE, 3)
    store.update_offset(QUEUE, 99)
    assert store.read_memory(QUEUE) == 3
    store.remove_offset(QUEUE)
    store.update_offset(QUEUE, 4)
    assert store.clone_offset_table("orders") == {QUEUE: 4}


def test_a_server_side_reset_is_seen_with_the_next_pull(world: World) -> None:
    world.create_topic("orders", 1)
    listener = Recorder(world)
    consumer = world.consumer(listener=listener)
    producer = world.producer()
    world.run_for(3_000)
    send(producer, "orders", "a", "b", "c")
    world.run_for(12_000)
    world.broker.offset_table.assign_reset("billing", "orders", 0, 1)
    world.run_for(30_000)
    assert listener.bodies == ["a", "b", "c", "b", "c"]
    world.run_for(10_000)
    assert consumer.offset_store.read_memory(QUEUE) == 3
    assert world.broker.offset_table.query("billing", "orders", 0) == 3


def test_220_stops_waits_ten_seconds_sets_and_goes_on(world: World) -> None:
    world.create_topic("orders", 1)
    listener = Recorder(world)
    consumer = world.consumer(listener=listener)
    world.run_for(3_000)
    send(world.producer(), "orders", "a", "b", "c")
    world.run_for(3_000)
    body = b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"orders"}:1}}'
    request = command.request(
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET, body, topic="orders", group="billing", timestamp=0, isForce=True
    )
    began_ms = world.now_ms
    channel_to(world, consumer.ports.ip).send_oneway(request)
    world.run_for(9_000)
    assert consumer.is_suspended
    world.run_for(10_000)
    assert not consumer.is_suspended
    assert listener.bodies == ["a", "b", "c", "b", "c"]
    assert listener.times[3] - began_ms >= 10_000
    assert world.notes("consumer.reset")[0]["topic"] == "orders"


def test_reset_by_timestamp_covers_every_topic_the_retry_topic_too(world: World) -> None:
    world.create_topic("orders", 1)
    listener = Recorder(world)
    consumer = world.consumer(listener=listener)
    world.run_for(30_000)
    producer = world.producer()
    send(producer, "orders", "old")
    world.run_for(1_000)
    middle_ms = world.now_ms
    send(producer, "orders", "new")
    world.run_for(1_000)
    consumer.reset_offset_by_timestamp(middle_ms)
    world.run_for(5_000)
    assert listener.bodies == ["old", "new", "new"]
    assert [note["topic"] for note in world.notes("consumer.reset")] == ["orders", "%RETRY%billing"]


def test_221_tells_the_offsets_in_memory(world: World) -> None:
    world.create_topic("orders", 1)
    consumer = world.consumer(listener=Recorder(world))
    world.run_for(3_000)
    send(world.producer(), "orders", "a")
    world.run_for(1_000)
    request = command.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, topic="orders", group="billing")
    answer = java_json.loads(ask(world, consumer, request).body or b"")
    key = '{"brokerName":"broker-a","queueId":0,"topic":"orders"}'
    assert answer == {"consumerTable": {}, "messageQueueTable": {key: 1}}


def test_307_tells_everything(world: World) -> None:
    world.create_topic("orders", 1)
    consumer = world.consumer(listener=Recorder(world, takes="1h"))
    world.run_for(3_000)
    send(world.producer(), "orders", "a", "b")
    world.run_for(1_000)
    request = command.request(
        RequestCode.GET_CONSUMER_RUNNING_INFO, consumerGroup="billing", clientId=consumer.client_id, jstackEnable=False
    )
    info = json.loads(ask(world, consumer, request).body or b"")
    held = info["mqTable"]['{"brokerName":"broker-a","queueId":0,"topic":"orders"}']
    assert (held["cachedMsgCount"], held["cachedMsgMinOffset"], held["cachedMsgMaxOffset"]) == (2, 0, 1)
    assert (held["commitOffset"], held["droped"], held["locked"]) == (0, False, True)
    assert info["properties"]["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
    assert info["properties"]["consumeThreadMin"] == "20"
    names = ("clientIP", "instanceName", "consumerGroup", "namesrvAddr")
    assert [info["properties"][name] for name in names] == ["10.0.0.3", "billing-1", "billing", "10.0.0.1:9876"]
    assert info["properties"]["PROP_NAMESERVER_ADDR"] == "10.0.0.1:9876;"
    assert {each["topic"] for each in info["subscriptionSet"]} == {"orders", "%RETRY%billing"}
    assert info["statusTable"]["orders"].keys() == {
        "pullRT",
        "pullTPS",
        "consumeRT",
        "consumeOKTPS",
        "consumeFailedTPS",
        "consumeFailedMsgs",
    }
    stranger = command.request(
        RequestCode.GET_CONSUMER_RUNNING_INFO, consumerGroup="nobody", clientId="x", jstackEnable=False
    )
    refusal = ask(world, consumer, stranger)
    assert (refusal.code, refusal.remark) == (1, "The Consumer Group <nobody> not exist in this consumer")


def test_307_of_pull_and_lite_pull_consumers(world: World) -> None:
    world.create_topic("orders", 1)
    send(world.producer(), "orders", *"abcdefghijkl")
    lite = LitePullConsumer(world.ports("lite-1"), "lite", world.name_servers, enable_trace=False)
    lite.subscribe("orders", "*")
    lite.start()
    puller = PullConsumer(world.ports("audit-1"), "audit", world.name_servers, enable_trace=False)
    puller.register_topics("orders")
    puller.start()
    assert len(lite.poll()) == 10
    world.run_for(100)
    told = {}
    for consumer in (lite, puller):
        request = command.request(
            RequestCode.GET_CONSUMER_RUNNING_INFO,
            consumerGroup=consumer.group,
            clientId=consumer.client_id,
            jstackEnable=False,
        )
        told[consumer.group] = json.loads(ask(world, consumer, request).body or b"")
        assert told[consumer.group]["properties"]["PROP_CONSUME_TYPE"] == "CONSUME_ACTIVELY"
        assert [each["topic"] for each in told[consumer.group]["subscriptionSet"]] == ["orders"]
        assert told[consumer.group]["statusTable"] == {}
    (held,) = told["lite"]["mqTable"].values()
    assert (held["cachedMsgCount"], held["cachedMsgMinOffset"]) == (2, 10)
    assert told["audit"]["mqTable"] == {}
    puller.update_consume_offset(QUEUE, 5)
    request = command.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, topic="orders", group="audit")
    assert list(java_json.loads(ask(world, puller, request).body or b"")["messageQueueTable"].values()) == [5]


def test_309_has_one_message_consumed_now(world: World) -> None:
    world.create_topic("orders", 1)
    listener = Recorder(world, "CONSUME_SUCCESS", "RECONSUME_LATER", None, ValueError("нет"), takes="30ms")
    consumer = world.consumer(listener=listener)
    world.run_for(3_000)
    producer = world.producer()
    producer.send(Message("orders", "订单".encode()))
    world.run_for(1_000)
    unit = bytes(world.broker.store.get("orders", 0, 0).units[0])
    results = []
    for _ in range(3):
        request = command.request(
            RequestCode.CONSUME_MESSAGE_DIRECTLY,
            unit,
            consumerGroup="billing",
            clientId=consumer.client_id,
            msgId="x",
            brokerName="broker-a",
        )
        results.append(json.loads(ask(world, consumer, request).body or b""))
    assert [result["consumeResult"] for result in results] == ["CR_LATER", "CR_RETURN_NULL", "CR_THROW_EXCEPTION"]
    assert {result["spentTimeMills"] for result in results} == {30}
    assert "нет" in results[2]["remark"]
    assert consumer.offset_store.read_memory(QUEUE) == 1
    assert world.requests(RequestCode.CONSUMER_SEND_MSG_BACK) == []


def test_unknown_requests_are_answered_with_3(world: World) -> None:
    world.create_topic("orders", 1)
    consumer = world.consumer(listener=Recorder(world))
    world.run_for(3_000)
    assert ask(world, consumer, command.request(RequestCode.PUT_KV_CONFIG)).code == 3
