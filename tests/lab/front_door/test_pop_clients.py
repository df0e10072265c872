"""POP as a notebook uses it: a push consumer whose group pops, and a simple consumer."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message
from mqlab.errors import BrokerError, ClientError, UsageError


def _lab(queues: int = 4, **settings: Any) -> Lab:
    lab = Lab(seed=7, **settings)
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    return lab


def _set_mode(lab: Lab, group: str, **mode: Any) -> None:
    lab.admin.set_message_request_mode("orders", group, **mode)


def _popping(lab: Lab, listener: Any, name: str | None = None, **settings: Any) -> Any:
    consumer = lab.push_consumer("billing", name=name, client_rebalance=False, **settings)
    consumer.subscribe("orders", "*")
    consumer.on_messages(listener)
    consumer.start()
    return consumer


def test_a_popping_group_gets_every_message_once() -> None:
    lab = _lab()
    _set_mode(lab, "billing")
    seen: Counter[bytes] = Counter()

    def listener(messages: Any, context: Any) -> str:
        seen.update(message.body for message in messages)
        return CONSUME_SUCCESS

    first = _popping(lab, listener)
    _popping(lab, listener, name="billing-2")
    producer = lab.producer("shop")
    for number in range(40):
        producer.send(Message("orders", b"%d" % number))
    lab.run_for("30s")
    assert seen == {b"%d" % number: 1 for number in range(40)}
    assert [queue.queue_id for queue in first.pop_loop.queues] == [-1]
    assert not [queue for queue in first.message_queues if queue.topic == "orders"]
    lab.run_for("3m")
    assert sum(seen.values()) == 40  # every ack arrived: nothing came again


def test_failed_messages_come_again_after_the_pop_steps_and_are_dropped_in_the_end() -> None:
    lab = _lab(1)
    _set_mode(lab, "billing")
    calls: list[tuple[int, int]] = []

    def listener(messages: Any, context: Any) -> str:
        calls.append((messages[0].reconsume_times, lab.now_ms))
        return RECONSUME_LATER

    _popping(lab, listener, max_reconsume_times=2)
    lab.producer("shop").send(Message("orders", b"poison"))
    lab.run_for("12m")
    times = [reconsume_times for reconsume_times, _ in calls]
    waits = [(after - before) // 1000 for (_, before), (_, after) in pairwise(calls)]
    assert times[:3] == [0, 1, 2]
    assert 12 <= waits[0] <= 30 and 32 <= waits[1] <= 50  # 10 s and 30 s, revival, and the poll that finds it
    assert "%DLQ%billing" not in lab.broker().topics


def test_a_listener_that_outlasts_its_lease_is_successful_for_nothing() -> None:
    lab = _lab(1)
    _set_mode(lab, "billing")
    seen: list[int] = []

    def listener(messages: Any, context: Any) -> str:
        seen.append(messages[0].reconsume_times)
        if messages[0].reconsume_times == 0:
            context.sleep("13s")
        return CONSUME_SUCCESS

    _popping(lab, listener, pop_invisible_time="10s")
    lab.producer("shop").send(Message("orders", b"slow"))
    lab.run_for("90s")
    assert seen == [0, 1]
    statuses = [row["status"] for row in lab.deliveries("billing")]
    assert "RESULT_DISCARDED" in statuses


def test_a_consumer_that_dies_gives_its_leases_to_another() -> None:
    lab = _lab(1)
    _set_mode(lab, "billing")
    seen: Counter[str] = Counter()

    def hangs(messages: Any, context: Any) -> str:
        context.sleep("1h")
        return CONSUME_SUCCESS

    def works(messages: Any, context: Any) -> str:
        seen[messages[0].body.decode()] += 1
        return CONSUME_SUCCESS

    first = _popping(lab, hangs, pop_invisible_time="10s")
    lab.producer("shop").send(Message("orders", b"x"))
    lab.run_for("5s")
    lab.kill(first)
    _popping(lab, works, name="billing-2", pop_invisible_time="10s")
    lab.run_for("60s")
    assert seen == {"x": 1}


def test_without_the_mode_and_in_order_the_group_pulls() -> None:
    lab = _lab()
    consumer = _popping(lab, lambda messages, context: CONSUME_SUCCESS)
    lab.run_for("5s")
    assert len([queue for queue in consumer.message_queues if queue.topic == "orders"]) == 4
    assert not consumer.pop_loop.queues


def test_tags_are_compared_again_and_what_does_not_match_is_acknowledged() -> None:
    lab = _lab(1)
    _set_mode(lab, "billing")
    seen: list[bytes] = []
    consumer = lab.push_consumer("billing", client_rebalance=False)
    consumer.subscribe("orders", "AaAa")

    def listener(messages: Any, context: Any) -> str:
        seen.extend(message.body for message in messages)
        return CONSUME_SUCCESS

    consumer.on_messages(listener)
    consumer.start()
    producer = lab.producer("shop")
    producer.send(Message("orders", b"mine", tags="AaAa"))
    producer.send(Message("orders", b"collides", tags="BBBB"))  # the same Java hash
    lab.run_for("3m")
    assert seen == [b"mine"] and "%RETRY%billing_orders" not in lab.broker().topics


def test_a_simple_consumer_receives_acknowledges_and_asks_for_time() -> None:
    lab = _lab(1)
    producer = lab.producer("shop")
    for number in range(3):
        producer.send(Message("orders", b"%d" % number))
    consumer = lab.simple_consumer("audit", await_duration="2s", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")
    consumer.start()
    messages = consumer.receive(16, "10s")
    assert [message.body for message in messages] == [b"0", b"1", b"2"]
    assert consumer.receive(16, "10s") == []
    consumer.ack(messages[0])
    consumer.change_invisible_duration(messages[1], "40s")
    lab.run_for("20s")
    again = consumer.receive(16, "10s")
    assert [(message.body, message.reconsume_times) for message in again] == [(b"2", 1)]
    consumer.ack(again[0])
    consumer.ack(messages[1])  # its handle followed the change
    lab.run_for("2m")
    assert consumer.receive(16, "10s") == []


def test_what_is_out_and_until_when() -> None:
    lab = _lab(1)
    producer = lab.producer("shop")
    for number in range(3):
        producer.send(Message("orders", b"%d" % number))
    consumer = lab.simple_consumer("audit", await_duration="2s", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")
    consumer.start()
    messages = consumer.receive(16, "30s")
    consumer.ack(messages[1])
    lab.run_for("1s")
    assert [row["queue_offset"] for row in lab.leases("audit")] == [0, 2]
    assert all(28_000 <= row["left_ms"] <= 29_000 for row in lab.leases("audit"))
    assert all(row["lag"] == 0 for row in lab.progress("audit") if row["topic"] == "orders")
    lab.run_for("31s")
    assert len(lab.leases("audit")) == 0
    assert set(lab.admin.timer_metrics("broker-a")) == {"rmq_sys_REVIVE_LOG_DefaultCluster"}
    assert lab.admin.timer_check_point("broker-a")["queue_offset"] == 2


def test_deliveries_timeline_and_how_far_show_leases() -> None:
    lab = _lab(1)
    lab.producer("shop").send(Message("orders", b"x"))
    consumer = lab.simple_consumer("audit", await_duration="2s", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")
    consumer.start()
    (message,) = consumer.receive(16, "10s")
    popped_ms = lab.now_ms
    lab.run_for("10ms")
    (standing,) = lab.how_far("audit", "orders").standings
    assert (standing.pulled, standing.finished) == (1, frozenset())
    consumer.change_invisible_duration(message, "20s")
    lab.run_for("30s")
    (again,) = consumer.receive(16, "10s")
    consumer.ack(again)
    first, second = lab.deliveries("audit")
    assert popped_ms + 20_000 <= first["leased_until_ms"] <= popped_ms + 20_020 < first["revived_ms"]
    assert (first["acked_ms"], second["acked_ms"], second["revived_ms"]) == (None, lab.now_ms - 1, None)
    assert lab.how_far("audit", "orders").standings[0].finished == {0}
    kinds = [row["kind"] for row in lab.timeline(message.msg_id).table() if row["kind"].startswith("message.")]
    of_a_lease = ["message.invisible_time_changed", "message.stored", "message.revived", "message.dispatched"]
    popped = ["message.popped", "message.polled"]
    assert kinds == [
        "message.stored",
        "message.dispatched",
        "message.sent",
        *popped,
        *of_a_lease,
        *popped,
        "message.acked",
    ]


def test_two_held_pops_end_together_and_the_first_wakes_the_second() -> None:
    """The first one finds a revived message, more are left, so it wakes the next: that one is not held any more."""
    lab = _lab(1)
    producer = lab.producer("shop")
    for number in range(2):
        producer.send(Message("orders", b"%d" % number))
    first, second = (
        lab.simple_consumer("billing", name=f"billing-{number}", await_duration="15s") for number in (1, 2)
    )
    for consumer in (first, second):
        consumer.subscribe("orders")
        consumer.start()
    first.receive(2, "5s")
    lab.run_for("1s")
    pending = [consumer.receive_async(1, "30s") for consumer in (first, second)]
    lab.run_for("20s")
    assert [message.reconsume_times for each in pending for message in each.result()] == [1, 1]


def test_what_a_simple_consumer_refuses() -> None:
    lab = _lab(1)
    consumer = lab.simple_consumer("audit")
    consumer.start()
    with pytest.raises(ClientError, match="nothing to receive"):
        consumer.receive()
    consumer.subscribe("orders")
    with pytest.raises(ClientError, match="1 to 32"):
        consumer.receive(33)
    with pytest.raises(UsageError):
        lab.simple_consumer("other", wait="1s")
    with pytest.raises(UsageError, match="pop_batch_nums"):
        lab.push_consumer("third", pop_batch_nums=33)


def test_the_mode_is_asked_of_every_broker_and_wrong_ones_are_refused() -> None:
    lab = _lab(1)
    _set_mode(lab, "billing")
    modes = json.loads(lab.admin.message_request_modes("broker-a"))
    assert modes["messageRequestModeMap"]["orders"]["billing"]["mode"] == "POP"
    with pytest.raises((UsageError, BrokerError)):
        lab.admin.set_message_request_mode("orders", "billing", mode="SOMETHING")
