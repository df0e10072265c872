"""What a popping push consumer asks, compared with what a Java client of 5.3.3 asked in the same situation."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message
from mqlab.rocketmq.wire.command import RemotingCommand
from tests.rocketmq.broker.replayed import recorded

JAVA = recorded("pop_java_client")
VARYING = {"bornTime", "extraInfo", "consumerGroup", "topic", "queueId", "offset"}


def _asked(lab: Lab, code: int) -> list[tuple[int, RemotingCommand]]:
    """When the broker got each request of a code, and the request."""
    return [
        (step.now_ms, step.about)
        for step in lab.journal
        if step.node == "broker-a" and getattr(step.about, "code", None) == code and not step.about.is_response
    ]


@pytest.fixture(scope="module")
def lab() -> Lab:
    lab = Lab(seed=5)
    lab.create_topic("jpop", read_queue_nums=4, write_queue_nums=4)
    lab.admin.set_message_request_mode("jpop", "gjpop")

    def listener(messages: Any, context: Any) -> str:
        fails = messages[0].body == b"2" and messages[0].reconsume_times < 2
        return RECONSUME_LATER if fails else CONSUME_SUCCESS

    consumer = lab.push_consumer(
        "gjpop", client_rebalance=False, pop_invisible_time="10s", consume_from_where="CONSUME_FROM_FIRST_OFFSET"
    )
    consumer.subscribe("jpop")
    consumer.on_messages(listener)
    consumer.start()
    lab.run_for("3s")
    producer = lab.producer("shop")
    for number in range(4):
        producer.send(Message("jpop", b"%d" % number))
    lab.run_for("70s")
    return lab


def test_an_operator_sees_the_queues_it_pops() -> None:
    lab = Lab(seed=5)
    lab.create_topic("jpop", read_queue_nums=4, write_queue_nums=4)
    lab.admin.set_message_request_mode("jpop", "gjpop")
    consumer = lab.push_consumer(
        "gjpop",
        client_rebalance=False,
        pop_invisible_time="10s",
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        consume_thread_min=1,
        consume_thread_max=1,
    )
    consumer.subscribe("jpop")
    consumer.on_messages(lambda messages, context: context.sleep("12s") or CONSUME_SUCCESS)
    consumer.start()
    lab.run_for("3s")
    producer = lab.producer("shop")
    producer.send(Message("jpop", b"0"))
    producer.send(Message("jpop", b"1"))
    lab.run_for("1s")
    info = lab.admin.get_consumer_running_info("gjpop", consumer.client_id)
    (popped,) = info.popped_queues
    assert (popped.message_queue.topic, popped.message_queue.queue_id) == ("jpop", -1)
    assert popped.wait_ack_count == 2 and not popped.dropped
    assert 0 <= lab.now_ms - popped.last_pop_timestamp <= 1_100
    assert {row.message_queue.topic for row in info.queues} == {"%RETRY%gjpop"}
    assert "wait_ack_count" in str(info)
    lab.run_for("20s")  # both leases were over, so both messages were subtracted, and counted when they came again
    (later,) = lab.admin.get_consumer_running_info("gjpop", consumer.client_id).popped_queues
    assert later.wait_ack_count == 2
    lab.run_for("3h")  # for ever late, and still popping
    (last,) = lab.admin.get_consumer_running_info("gjpop", consumer.client_id).popped_queues
    assert 0 <= last.wait_ack_count <= 2 and lab.now_ms - last.last_pop_timestamp < 20_000


@pytest.mark.parametrize("code", [200050, 200051, 200053])
def test_the_header_fields_are_the_java_clients(lab: Lab, code: int) -> None:
    java = [row["requestExt"] for row in JAVA if row["code"] == code]
    mine = [request.ext_fields for _, request in _asked(lab, code)]
    assert len(mine) >= 2
    for fields in mine:
        assert set(fields) == set(java[0])
    fixed = {name: value for name, value in java[0].items() if name not in VARYING and name != "invisibleTime"}
    assert {name: mine[0][name] for name in fixed} == fixed


def test_failed_messages_wait_for_the_java_clients_steps(lab: Lab) -> None:
    java = [row["requestExt"]["invisibleTime"] for row in JAVA if row["code"] == 200053]
    mine = [request.ext_fields["invisibleTime"] for _, request in _asked(lab, 200053)]
    assert mine[:2] == java[:2] == ["10000", "30000"]


def test_a_retry_message_is_acknowledged_in_its_own_topic(lab: Lab) -> None:
    java = [row["requestExt"] for row in JAVA if row["code"] == 200053][1]
    mine = [request.ext_fields for _, request in _asked(lab, 200053)][1]
    assert (mine["topic"], mine["queueId"]) == (java["topic"], java["queueId"]) == ("%RETRY%gjpop_jpop", "0")
    kinds = [fields["extraInfo"].split(" ")[4] for fields in (mine, java)]
    assert kinds == ["1", "1"] and mine["extraInfo"].split(" ")[7] == mine["offset"]


def test_queues_are_asked_of_the_broker_every_20_s_and_the_first_pop_comes_half_a_second_later(lab: Lab) -> None:
    asked = _asked(lab, 400)
    java = {frozenset(json.loads(row["requestBody"])) for row in JAVA if row["code"] == 400}
    assert {frozenset(json.loads(request.body)) for _, request in asked} == java
    topics = {json.loads(request.body)["topic"] for _, request in asked}
    assert topics == {"jpop", "%RETRY%gjpop"}
    times = [at_ms for at_ms, request in asked if json.loads(request.body)["topic"] == "jpop"]
    assert 19_000 <= times[2] - times[1] <= 21_000
    first_pop_ms = _asked(lab, 200050)[0][0]
    assert 500 <= first_pop_ms - times[0] <= 520


def test_a_held_pop_is_followed_by_the_next_at_once(lab: Lab) -> None:
    pops = [at_ms for at_ms, _ in _asked(lab, 200050)]
    waits = [after - before for before, after in pairwise(pops)]
    assert 14_900 <= max(waits) <= 15_050
