"""From the first failure to the dead letters (the default timeline is in test_retry_timeline.py).

Mirrors: AbstractSendMessageProcessor.consumerSendMsgBack, ScheduleMessageService.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, SUCCESS, Lab, Message
from tests.lab.scenarios.stories import Seen, Tool, changes, delivered, frames, member, quiet_lab, row, send

SEND_BACK = 36
SECOND_EACH = {"broker": {"message_delay_level": " ".join(["1s"] * 18)}}


def failing(lab: Lab, **settings: Any) -> Seen:
    """A group whose listener always fails, with one message to fail on."""
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    seen = Seen(lab, RECONSUME_LATER)
    member(lab, "billing", seen, **settings)
    lab.run_for("25s")
    send(lab.producer("shop"), "платёж 支付失败 💳", keys="order-1", tags="paid")
    return seen


def queue(lab: Lab, topic: str, queue_id: int = 0) -> list[Any]:
    return list(lab.broker().store.get(topic, queue_id, 0, 1_000).records())


def failing_once(lab: Lab, *, known: bool) -> Seen:
    """Billing fails once on an order that is there when it starts; ``known``: a life of billing was here before."""
    lab.create_topic("orders")
    if known:
        member(lab, "billing", name="earlier").shutdown()
    send(lab.producer("shop"), "платёж 支付失败 💳")
    seen = Seen(lab, RECONSUME_LATER, CONSUME_SUCCESS)
    member(lab, "billing", seen)
    lab.run_for("30s")
    return seen


# Not 9 ms: with four queues the first rebalance is then over while a heartbeat is on its way, so that the broker learns
# of the subscription 20 s later ("lock heartBeat, but failed").
@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize("latency_ms", [0, 1, 2, 3, 4, 5, 8, 10, 15, 20])
def test_a_new_groups_first_retry_comes_with_the_second_rebalance(latency_ms: int, seed: int) -> None:
    """Not after the 10 s of its level: a broker of 5.3.3 and its Java client gave 20.0 to 20.2 s, whenever asked."""
    seen = failing_once(quiet_lab(network={"latency": latency_ms}, seed=seed), known=False)
    assert [message.reconsume_times for message in seen.messages] == [0, 1]
    assert seen.times_ms[1] - seen.times_ms[0] == pytest.approx(20_000 + 16 * latency_ms, abs=8 * latency_ms)


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize("latency_ms", [0, 1, 2, 3, 4, 5, 8, 10, 15, 20])
def test_a_known_groups_first_retry_comes_when_it_is_due(latency_ms: int, seed: int) -> None:
    seen = failing_once(quiet_lab(network={"latency": latency_ms}, seed=seed), known=True)
    assert [message.reconsume_times for message in seen.messages] == [0, 1]
    assert 10_000 <= seen.times_ms[1] - seen.times_ms[0] <= 10_100 + 10 * latency_ms


def test_several_topics_and_brokers_do_not_bring_a_new_groups_retry_topic_sooner() -> None:
    lab = quiet_lab(brokers=2)
    for topic in ("orders", "letters", "parcels"):
        lab.create_topic(topic)
    send(lab.producer("shop"), "платёж")
    seen = Seen(lab, RECONSUME_LATER, CONSUME_SUCCESS)
    consumer = member(lab, "billing", seen, start=False)
    consumer.subscribe("letters")
    consumer.subscribe("parcels")
    consumer.start()
    lab.run_for("30s")
    assert seen.times_ms[1] - seen.times_ms[0] == pytest.approx(20_000, abs=200)


@pytest.mark.parametrize(("limit", "deliveries"), [(-1, 17), (0, 1), (1, 2), (3, 4), (20, 21)])
def test_so_many_retries_and_then_the_dead_letters_at_once(limit: int, deliveries: int) -> None:
    lab = quiet_lab(**SECOND_EACH)
    seen = failing(lab, max_reconsume_times=limit)
    lab.run_for("60s")
    assert [message.reconsume_times for message in seen.messages] == list(range(deliveries))
    (dead,) = queue(lab, "%DLQ%billing")
    assert dead.reconsume_times == deliveries
    assert dead.store_timestamp - seen.times_ms[-1] <= 2


def test_every_retry_is_three_messages_in_the_log() -> None:
    lab = quiet_lab(**SECOND_EACH)
    failing(lab, max_reconsume_times=2)
    lab.run_for("60s")
    topics = [record.topic for record in lab.store().messages()]
    assert topics == [
        "orders",
        "SCHEDULE_TOPIC_XXXX",
        "%RETRY%billing",
        "SCHEDULE_TOPIC_XXXX",
        "%RETRY%billing",
        "%DLQ%billing",
    ]


def test_what_the_copies_carry() -> None:
    lab = quiet_lab(**SECOND_EACH)
    seen = failing(lab, max_reconsume_times=1)
    lab.run_for("60s")
    first = queue(lab, "orders")[0]
    parked = lab.broker().store.get("SCHEDULE_TOPIC_XXXX", 2, 0).records()[0]
    again, dead = queue(lab, "%RETRY%billing")[0], queue(lab, "%DLQ%billing")[0]
    named = [record.property_map for record in (first, parked, again, dead)]
    assert [each["UNIQ_KEY"] for each in named] == [seen.messages[0].msg_id] * 4
    assert [each.get("RETRY_TOPIC") for each in named] == [None, "orders", "orders", "orders"]
    assert [each.get("ORIGIN_MESSAGE_ID") for each in named] == [None] + [first.offset_msg_id] * 3
    assert [each.get("REAL_TOPIC") for each in named] == [None, "%RETRY%billing", "%RETRY%billing", "%RETRY%billing"]
    assert [each["KEYS"] for each in named] == ["order-1"] * 4
    assert [record.reconsume_times for record in (first, parked, again, dead)] == [0, 1, 1, 2]
    assert len({record.born_timestamp for record in (first, parked, again, dead)}) == 1
    shown = seen.messages[1]
    assert (shown.topic, shown.queue_id, shown.queue_offset) == (
        "orders",
        0,
        0,
    )  # the topic of old, the retry queue's place


def test_dead_letters_can_be_read_like_a_topic() -> None:
    lab = quiet_lab(**SECOND_EACH)
    failing(lab, max_reconsume_times=0)
    lab.run_for("10s")
    seen = Seen(lab)
    member(lab, "undertaker", seen, topic="%DLQ%billing")
    lab.run_for("10s")
    assert seen.bodies == ["платёж 支付失败 💳"] and seen.messages[0].topic == "%DLQ%billing"
    assert lab.broker().topics["%DLQ%billing"].perm == 6


def test_the_groups_own_limit_is_not_asked() -> None:
    lab = quiet_lab(**SECOND_EACH)
    tool = Tool(lab)
    tool.ask(200, b'{"groupName":"billing","retryMaxTimes":1}')
    seen = failing(lab)
    lab.run_for("60s")
    assert len(seen.messages) == 17
    body = {"offset": 0, "group": "billing", "delayLevel": 0}
    assert tool.ask(SEND_BACK, **body).code == 0  # a client that names no limit: here the group's counts
    lab.run_for("5s")
    assert [record.reconsume_times for record in queue(lab, "%DLQ%billing")] == [17]
    last = max(queue(lab, "%RETRY%billing"), key=lambda record: record.physical_offset)
    assert tool.ask(SEND_BACK, **{**body, "offset": last.physical_offset}).code == 0
    assert len(queue(lab, "%DLQ%billing")) == 2


def test_a_group_without_retry_queues_throws_failures_away() -> None:
    lab = quiet_lab(**SECOND_EACH)
    Tool(lab).ask(200, b'{"groupName":"billing","retryQueueNums":0}')
    seen = failing(lab)
    lab.run_for("60s")
    assert len(seen.messages) == 1 and row(lab, "billing").lag == 0
    assert [record.topic for record in lab.store().messages()] == ["orders"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"group": "nobody"}, 26), ({"offset": 99_999}, 1), ({"delayLevel": 99}, 0)],
)
def test_what_a_broker_says_to_a_send_back(fields: dict[str, Any], code: int) -> None:
    lab = quiet_lab(broker={"auto_create_subscription_group": False})
    lab.create_topic("orders")
    tool = Tool(lab)
    tool.ask(200, b'{"groupName":"billing"}')
    send(lab.producer("shop"), "a")
    assert tool.ask(SEND_BACK, **{"offset": 0, "group": "billing", "delayLevel": 0, **fields}).code == code


def test_a_resent_message_of_a_group_with_a_live_lock_goes_to_the_dead_letters() -> None:
    lab = quiet_lab(**SECOND_EACH)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    member(lab, "ledger", Seen(lab, SUCCESS), orderly=True)
    member(lab, "billing")
    lab.run_for("25s")
    producer = lab.producer("shop")
    for group in ("ledger", "billing"):
        named = {"RETRY_TOPIC": "orders", "RECONSUME_TIME": "1", "MAX_RECONSUME_TIMES": "16"}
        message = Message(f"%RETRY%{group}", group.encode(), delay_time_level=4)
        message.properties.update(named)
        producer.send(message)
    lab.run_for("5s")
    assert [record.body for record in queue(lab, "%DLQ%ledger")] == [b"ledger"]
    assert [record.body for record in queue(lab, "%RETRY%billing")] == [b"billing"]


def test_broadcasting_gives_failures_up() -> None:
    lab = quiet_lab()
    seen = failing(lab, message_model="BROADCASTING")
    lab.run_for("60s")
    assert len(seen.messages) == 1 and frames(lab, SEND_BACK) == []
    assert len(changes(lab, "message.given_up")) == 1
    assert lab.broker().store.max_offset("%RETRY%billing", 0) == 0


def test_waiting_retries_survive_the_death_of_everybody() -> None:
    lab = quiet_lab()
    failing(lab)
    lab.run_for("1s")
    consumer = lab.handles["billing-1"]
    lab.kill(consumer)
    lab.run_for("6s")  # the offsets of what was committed are in the file
    lab.kill("broker-a")
    lab.run_for("1m")
    lab.start("broker-a")
    lab.start(consumer)
    lab.run_for("30s")
    times = [one.reconsume_times for one in delivered(lab, "billing")]
    assert times[0] == 0 and 1 in times
    assert queue(lab, "%RETRY%billing")


def test_the_retry_topic_is_shared_by_all_members_and_topics_of_a_group() -> None:
    lab = quiet_lab(**SECOND_EACH)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    lab.create_topic("refunds", read_queue_nums=1, write_queue_nums=1)
    seen = Seen(lab, RECONSUME_LATER, RECONSUME_LATER, CONSUME_SUCCESS)
    consumer = member(lab, "billing", seen, start=False)
    consumer.subscribe("refunds")
    consumer.start()
    lab.run_for("25s")
    producer = lab.producer("shop")
    send(producer, "order")
    send(producer, "refund", topic="refunds")
    lab.run_for("10s")
    assert [record.property_map["RETRY_TOPIC"] for record in queue(lab, "%RETRY%billing")] == ["orders", "refunds"]
    assert [message.topic for message in seen.messages[2:]] == ["orders", "refunds"]
