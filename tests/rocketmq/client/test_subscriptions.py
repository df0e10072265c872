"""What members of a group want, and what happens when they disagree.

Mirrors: ConsumerGroupInfo.updateSubscription, FilterAPI.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import mqlab
from mqlab.errors import ClientError, FilterError, UsageError
from mqlab.rocketmq.client.consuming.subscriptions import subscription, tag_subscription
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message, MessageQueue
from tests.rocketmq.client.conftest import Recorder, World


def test_tag_subscriptions() -> None:
    all_of_it = tag_subscription("T", "*", 7)
    assert (all_of_it.sub_string, all_of_it.tags_set, all_of_it.code_set, all_of_it.sub_version) == ("*", [], [], 7)
    two = tag_subscription("T", " TagA||  TagB ||", 7)
    assert (two.tags_set, two.code_set) == (["TagA", "TagB"], [2598919, 2598920])
    assert subscription("T", "*", "a > 10", 7).expression_type == "SQL92"
    with pytest.raises(UsageError, match="not both"):
        subscription("T", "TagA", "a > 10", 7)
    with pytest.raises(FilterError):
        tag_subscription("T", "||", 7)


def test_what_the_heartbeat_says(world: World) -> None:
    world.create_topic("orders", 1)
    consumer = world.consumer(listener=Recorder(world), expression="TagA || TagB")
    world.run_for(100)
    (beat, *_) = world.requests(RequestCode.HEART_BEAT, "broker-a")
    told = json.loads(beat.about.body)
    assert told["clientID"] == consumer.client_id == "10.0.0.3@billing-1"
    assert told["producerDataSet"] == [{"groupName": "CLIENT_INNER_PRODUCER"}]
    (member,) = told["consumerDataSet"]
    assert (member["groupName"], member["consumeType"], member["messageModel"], member["unitMode"]) == (
        "billing",
        "CONSUME_PASSIVELY",
        "CLUSTERING",
        False,
    )
    wanted = {each["topic"]: each for each in member["subscriptionDataSet"]}
    assert wanted.keys() == {"orders", "%RETRY%billing"}
    assert (wanted["orders"]["subString"], wanted["orders"]["codeSet"]) == ("TagA || TagB", [2598919, 2598920])
    assert wanted["%RETRY%billing"]["subString"] == "*"


def send_tags(world: World) -> None:
    producer = world.producer()
    for number in range(4):
        for tag in ("TagA", "TagB"):
            producer.send(
                Message("orders", f"{tag} q{number}".encode(), tags=tag), MessageQueue("orders", "broker-a", number)
            )


def pitfall(world: World, *, post: bool) -> tuple[list[str], list[str], list[int]]:
    """A wants TagA, B wants TagB, one group: what each got, and the lag of each queue at the end."""
    world.create_topic("orders", 4)
    a, b = Recorder(world), Recorder(world)
    world.consumer(listener=a, expression="TagA", post_subscription_when_pull=post)
    world.run_for(1_000)
    world.consumer(listener=b, expression="TagB", post_subscription_when_pull=post, name="billing-2")
    world.run_for(5_000)
    send_tags(world)
    world.run_for(40_000)
    table = world.broker.offset_table
    lags = [world.broker.store.max_offset("orders", n) - table.query("billing", "orders", n) for n in range(4)]
    return sorted(a.bodies), sorted(b.bodies), lags


@pytest.fixture
def crowd(world: World) -> World:
    world.members = []  # type: ignore[attr-defined]
    make = world.consumer

    def remembered(*args: Any, **kwargs: Any) -> Any:
        member = make(*args, **kwargs)
        world.members.append(member)  # type: ignore[attr-defined]
        return member

    world.consumer = remembered  # type: ignore[method-assign]
    return world


def test_the_tag_pitfall_by_default_one_member_gets_nothing(crowd: World) -> None:
    a, b, lags = pitfall(crowd, post=False)
    first, second = (member.state.subscriptions["orders"].sub_version for member in crowd.members)  # type: ignore
    assert first != second  # both were raised by their own allocation change: a race of clocks decides
    assert (a, b) == (([], ["TagB q2", "TagB q3"]) if second > first else (["TagA q0", "TagA q1"], []))
    assert lags == [0, 0, 0, 0]  # no alarm: the messages are lost for the group


def test_the_tag_pitfall_with_the_text_in_the_pull(crowd: World) -> None:
    a, b, lags = pitfall(crowd, post=True)
    assert a == ["TagA q0", "TagA q1"]
    assert b == ["TagB q2", "TagB q3"]
    assert lags == [0, 0, 0, 0]


def test_sql_is_checked_at_start_and_a_refusal_ends_it(world: World) -> None:
    world.create_topic("orders", 1)
    consumer = world.consumer(listener=Recorder(world), start=False)
    consumer.subscribe("orders", sql="amount > 10")
    with pytest.raises(ClientError, match="Check client in broker error"):
        consumer.start()
    assert consumer.service.state == "SHUTDOWN_ALREADY"


def test_sql_filters_at_the_broker(make_world) -> None:  # type: ignore[no-untyped-def]
    world = make_world(enable_property_filter=True)
    world.create_topic("orders", 1)
    listener = Recorder(world)
    consumer = world.consumer(listener=listener, start=False)
    consumer.subscribe("orders", sql="amount > 10 AND region = 'ЕС'")
    consumer.start()
    world.run_for(3_000)
    producer = world.producer()
    for amount, region in [(5, "ЕС"), (50, "ЕС"), (50, "US")]:
        properties = {"amount": str(amount), "region": region}
        producer.send(Message("orders", f"{amount} {region}".encode(), properties=properties))
    world.run_for(10_000)
    assert listener.bodies == ["50 ЕС"]


def test_subscribing_while_running_tells_brokers_at_once_but_queues_come_later(world: World) -> None:
    world.create_topic("orders", 1)
    world.create_topic("payments", 1)
    consumer = world.consumer(listener=Recorder(world))
    world.run_for(5_000)
    beats = len(world.requests(RequestCode.HEART_BEAT))
    consumer.subscribe("payments")
    assert len(world.requests(RequestCode.HEART_BEAT)) == beats + 1
    assert "payments" not in [queue.topic for queue in consumer.message_queues]
    world.run_for(51_000)
    assert "payments" in [queue.topic for queue in consumer.message_queues]


def test_members_with_different_topics_undo_each_other(world: World) -> None:
    for topic in ("orders", "payments"):
        world.create_topic(topic, 2)
    one, two = Recorder(world), Recorder(world)
    world.consumer(listener=one, topic="orders")
    world.consumer(listener=two, topic="payments", name="billing-2")
    world.run_for(5_000)
    send_from = world.producer()
    for topic in ("orders", "payments"):
        for number in range(2):
            send_from.send(Message(topic, f"{topic} {number}".encode()), MessageQueue(topic, "broker-a", number))
    world.run_for(60_000)
    assert "orders 1" not in one.bodies + two.bodies  # its queue belongs to the member that does not want it
    assert "payments 0" not in one.bodies + two.bodies
    refused = [note["error"] for note in world.notes("pull.failed")]
    assert any("CODE: 24" in error for error in refused)


def test_a_second_consumer_of_the_group_in_one_client_is_refused(world: World) -> None:
    from mqlab.rocketmq.client import PushConsumer

    first = world.consumer(listener=Recorder(world))
    second = PushConsumer(first.ports, "billing", world.name_servers, client=first.client, enable_trace=False)
    second.subscribe("orders")
    second.on_messages(Recorder(world))
    with pytest.raises(ClientError, match="has been created before, specify another name please"):
        second.start()


@pytest.mark.parametrize("length", [121, 200, 255])
def test_a_group_may_have_255_characters(length: int) -> None:
    lab = mqlab.Lab(seed=1)
    got: list[bytes] = []
    consumer = lab.push_consumer("g" * length, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")
    consumer.on_messages(lambda messages, context: (got.extend(m.body for m in messages), mqlab.CONSUME_SUCCESS)[1])
    consumer.start()
    lab.producer("shop").send(mqlab.Message("orders", b"x"))
    lab.run_for("60s")
    assert got == [b"x"]
