"""Request-reply, queues divided by the broker, and smaller requests of mqadmin: 323 to 325, 353, 400 to 402, 2001."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqlab.rocketmq.wire import properties
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from tests.rocketmq.broker.world import BareClient, World

ORDERS = SubscriptionData("orders", sub_version=1)
REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"


def requester_of(world: World, taken: int = ResponseCode.SUCCESS) -> BareClient:
    """A producer with a heartbeat, which answers a pushed reply with this code."""
    requester = world.client("requester")
    requester.remoting._handlers = {326: requester._asked}
    requester.answers[326] = RemotingCommand(int(taken))
    requester.heartbeat("shop", client_id="requester@1")
    return requester


@pytest.mark.parametrize("code", [324, 325])
def test_a_reply_is_pushed_to_who_waits_for_it_and_stored(world: World, client: BareClient, code: int) -> None:
    requester = requester_of(world)
    more = {"producerGroup": "billing"}
    named = {"REPLY_TO_CLIENT": "requester@1", "CORRELATION_ID": "c-1"}
    answer = client.put(REPLY_TOPIC, b"42", code=10 if code == 324 else 310, more=more, **named)
    assert answer.code == ResponseCode.SUCCESS  # a plain send to that topic is a message like any other
    answer = reply_of(client, code, b"42", **named)
    assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
    (pushed,) = requester.received
    assert (pushed.code, pushed.body) == (RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, b"42")
    told = properties.decode(pushed.ext_fields["properties"])
    assert told["CORRELATION_ID"] == "c-1"
    assert int(told["PUSH_REPLY_TIME"]) == int(pushed.ext_fields["storeTimestamp"])
    assert pushed.ext_fields["topic"] == REPLY_TOPIC
    _, stored = world.messages(REPLY_TOPIC)
    region = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    assert told == {**named, **region, "PUSH_REPLY_TIME": told["PUSH_REPLY_TIME"]}
    assert properties.decode(stored.properties) == {**named, **region}


@pytest.mark.parametrize("code", [324, 325])
def test_a_reply_without_a_body_is_refused_as_any_message(world: World, client: BareClient, code: int) -> None:
    """As in 5.3.3, where buildMsgContext asks for the body's length."""
    requester = requester_of(world)
    client.put(REPLY_TOPIC, b"42")
    answer = reply_of(client, code, b"", REPLY_TO_CLIENT="requester@1")
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "the reply has no body")
    assert requester.received == [] and len(world.messages(REPLY_TOPIC)) == 1


def reply_of(client: BareClient, code: int, content: bytes, **named: str) -> RemotingCommand:
    from mqlab.rocketmq.broker.sending import LETTERS

    values: dict[str, Any] = {
        "producerGroup": "billing",
        "topic": REPLY_TOPIC,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 4,
        "queueId": 0,
        "sysFlag": 0,
        "bornTimestamp": client.ports.clock.now_ms(),
        "flag": 0,
        "properties": properties.to_text(named),
        "reconsumeTimes": 0,
    }
    if code == 325:
        values = {LETTERS[name]: value for name, value in values.items()}
    return client.ask(code, content, **values)


@pytest.mark.parametrize(
    ("named", "taken", "remark"),
    [
        ({}, 0, "reply message properties[REPLY_TO_CLIENT] is null"),
        ({"REPLY_TO_CLIENT": "nobody@1"}, 0, "channel of <nobody@1> not found"),
        ({"REPLY_TO_CLIENT": "requester@1"}, 1, "push reply message to requester@1fail."),
    ],
)
def test_a_reply_that_reaches_nobody_says_so_and_is_stored_all_the_same(
    world: World, client: BareClient, named: dict[str, str], taken: int, remark: str
) -> None:
    requester_of(world, ResponseCode(taken))
    answer = reply_of(client, 325, b"late", **named)
    assert answer.code == ResponseCode.SYSTEM_ERROR and remark in (answer.remark or "")
    world.run_for(5)
    assert [record.body for record in world.messages(REPLY_TOPIC)] == [b"late"]


def assignment(client: BareClient, client_id: str, **more: str) -> Any:
    asked = {
        "topic": "orders",
        "consumerGroup": "billing",
        "clientId": client_id,
        "strategyName": "AVG",
        "messageModel": "CLUSTERING",
        **more,
    }
    answer = client.ask(400, json.dumps(asked).encode())
    assert answer.code == ResponseCode.SUCCESS and answer.body is not None
    rows = json.loads(answer.body).get("messageQueueAssignments")
    return None if rows is None else [(row["messageQueue"]["queueId"], row["mode"]) for row in rows]


def test_the_broker_divides_the_queues_as_the_members_would(world: World, client: BareClient) -> None:
    other = world.client("other")
    client.put("orders")
    for member, name in ((client, "b"), (other, "a")):
        member.heartbeat("billing", ORDERS, client_id=name)
    world.run_for(50)
    assert assignment(client, "a") == [(0, "PULL"), (1, "PULL")]
    assert assignment(client, "b") == [(2, "PULL"), (3, "PULL")]
    assert assignment(client, "b", strategyName="AVG_BY_CIRCLE") == [(1, "PULL"), (3, "PULL")]
    assert assignment(client, "stranger") == []
    assert assignment(client, "a", strategyName="SOMETHING") is None
    assert assignment(client, "a", topic="nothing") is None
    assert assignment(client, "a", consumerGroup="nobody") is None
    assert len(assignment(client, "a", messageModel="BROADCASTING")) == 4


def test_the_mode_of_a_group_is_kept_in_a_file(world: World, client: BareClient) -> None:
    def asked(topic: str, mode: str) -> int:
        body = {"topic": topic, "consumerGroup": "billing", "mode": mode, "popShareQueueNum": 0}
        return client.ask(401, json.dumps(body).encode()).code

    assert asked("orders", "PULL") == ResponseCode.TOPIC_NOT_EXIST
    client.put("orders")
    assert asked("%RETRY%billing", "PULL") == ResponseCode.NO_PERMISSION
    assert asked("orders", "SOMETHING") == ResponseCode.SYSTEM_ERROR
    assert asked("orders", "POP") == ResponseCode.SUCCESS
    assert asked("orders", "PULL") == ResponseCode.SUCCESS
    before = client.ask(402).body
    assert b'"mode":"PULL"' in (before or b"")
    world.restart_broker()
    assert client.ask(402).body == before


def test_a_group_loses_and_gets_back_the_right_to_read_a_topic(world: World, client: BareClient) -> None:
    client.put("orders")
    client.heartbeat("billing", ORDERS)

    def told(**more: Any) -> Any:
        return json.loads(client.ask(353, group="billing", topic="orders", **more).body or b"")

    def pulled() -> int:
        answer = client.pull("billing", "orders", sysFlag=0)
        world.sim.wait_for(answer)
        return answer.result().code

    assert told() == {"group": "billing", "readable": True, "topic": "orders"}
    assert told(readable="false")["readable"] is False
    assert pulled() == ResponseCode.NO_PERMISSION
    assert told(readable="true")["readable"] is True
    assert pulled() != ResponseCode.NO_PERMISSION


def test_limits_of_cold_reads_are_kept_and_shown(client: BareClient) -> None:
    assert client.ask(2001, b"billing=1024\nmail=many").code == ResponseCode.SUCCESS
    assert json.loads(client.ask(2003).body or b"")["configTable"] == {"billing": 1024}
    assert client.ask(2002, b"billing").code == ResponseCode.SUCCESS
    assert json.loads(client.ask(2003).body or b"")["configTable"] == {}
    assert client.ask(2004, READ_AHEAD_MODE=1).remark == "set commitlog readahead mode success, mode: 1"
    assert client.ask(2004, READ_AHEAD_MODE=7).code == ResponseCode.INVALID_PARAMETER


def test_a_half_message_is_stored_again_for_another_check(world: World, client: BareClient) -> None:
    answer = client.put("orders", b"half", TRAN_MSG="true", PGROUP="shop", UNIQ_KEY="A1")
    world.run_for(5)
    assert client.ask(323, topic="orders", msgId=answer.ext_fields["msgId"]).code == ResponseCode.SUCCESS
    world.run_for(5)
    first, again = world.messages("RMQ_SYS_TRANS_HALF_TOPIC")
    assert first.body == again.body == b"half"
    assert again.property_map["TRANSACTION_CHECK_TIMES"] == "0"
    refused = client.ask(323, topic="orders", msgId="0A00000200002A9F00000000000FFFFF")
    assert refused.code == ResponseCode.SYSTEM_ERROR
