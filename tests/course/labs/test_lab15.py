"""Lab 15: the judges agree with a broker, and wrong answers of other kinds are told."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course.cases.lab15 import invisible, out_now, reviving, table, tasks
from mqlab.lab.world.lab import Lab
from tests.course.teach.notebook_answers import finding_of, reference

found = functools.partial(finding_of, "lab15")
REVIVE_TOPIC = "rmq_sys_REVIVE_LOG_DefaultCluster"
RETRY = "%RETRY%billing_orders"


def a_day(lab: Lab) -> None:
    """Pops of several lengths, acks of some, one in the middle of a pop, one too late."""
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    consumer = lab.simple_consumer("billing", await_duration="100ms")
    consumer.subscribe("orders")
    consumer.start()
    late: Any = None
    for number in range(12):
        for _ in range(3):
            shop.send(Message("orders", b"x", keys=f"{number}"))
        orders = consumer.receive(3, f"{4 + number * 3 % 7}s")
        for order in orders[number % 3 :][:2]:
            consumer.ack(order)
        late = late or orders[0]
        lab.run_for("700ms")
    consumer.ack(late)
    lab.run_for("30s")


@functools.cache
def played() -> Lab:
    return play(a_day, seed=5, client={"enable_trace": False})


def units_of(lab: Lab, revive_queue: int) -> list[tuple[Any, ...]]:
    """The units of a revive queue, as exercise 2 gives them."""
    units: list[tuple[Any, ...]] = []
    for message in lab.store().messages(REVIVE_TOPIC):
        body = json.loads(message.body)
        name = (f"{body['t']} {body['q']}", body["so"], body["pt"])
        if message.queue_id == revive_queue:
            is_point = message.tags == "ck"
            units.append(("ck", *name, body["it"], body["d"]) if is_point else ("ack", *name, body["ao"]))
    return units


def test_a_broker_revives_what_the_judge_and_the_reference_say() -> None:
    lab = played()
    expected: list[tuple[str, int]] = []
    for revive_queue in range(8):
        units = units_of(lab, revive_queue)
        back, _ = reviving.round_of(units, lab.now_ms)
        assert reference("lab15.revive")["revive"](units, lab.now_ms) == reviving.round_of(units, lab.now_ms)
        expected += back
    came = [
        (f"{values['popped_from']} {values['popped_queue']}", values["popped_offset"])
        for _, values in lab.journal.changes("message.revived")
    ]
    assert sorted(came) == sorted(expected) and len(came) > 10


def test_the_lease_table_in_the_brokers_place_gives_back_what_the_broker_did() -> None:
    """The calls that a broker got, to the reference's table: it is made again before each of them."""
    lab, log = played(), list[Any]()
    make = functools.partial(reference("lab15.lease_table")["LeaseTable"], log.append, lambda: list(log))
    back: list[tuple[str, int]] = []
    for record in lab.journal:
        for kind, values in record.changes:
            if kind == "message.popped":
                pieces = [piece.split(" ") for piece in values["offsets"].split(";")]
                for topic_kind, queue_id, offsets in pieces:
                    queue = f"{values['topic'] if topic_kind == '0' else RETRY} {queue_id}"
                    numbers = [int(offset) for offset in offsets.split(",")]
                    make().lease(queue, numbers, values["pop_time"], values["invisible_time"])
            elif kind == "message.acked":
                make().ack(f"{values['topic']} {values['queue_id']}", values["queue_offset"], values["pop_time"])
            elif kind == "message.revived":
                back += make().expired(record.now_ms - 2_000)
    back += make().expired(lab.now_ms)
    came = [
        (f"{values['popped_from']} {values['popped_queue']}", values["popped_offset"])
        for _, values in lab.journal.changes("message.revived")
    ]
    assert sorted(back) == sorted(came)


def test_what_is_out_is_what_the_lab_says_is_out() -> None:
    def story(lab: Lab) -> None:
        a_day(lab)
        consumer = next(handle.node for handle in lab.handles.values() if handle.role == "consumer")
        orders = consumer.receive(4, "40s")
        consumer.ack(orders[1])
        consumer.change_invisible_duration(orders[2], "50s")
        lab.run_for("1s")

    lab = play(story, seed=5, client={"enable_trace": False})
    pops: list[Any] = []
    acks: list[Any] = []
    for message in lab.store().messages():
        if message.tags in ("ck", "ack") and message.topic == "rmq_sys_wheel_timer":
            body = json.loads(message.body)
            queue = f"{body['t']} {body['q']}"
            if message.tags == "ck":
                pops.append((body["pt"], body["it"], queue, [body["so"] + step for step in body["d"]]))
            else:
                acks.append((message.store_timestamp, queue, body["ao"], body["pt"]))
    rows = out_now.out(pops, acks, lab.now_ms)
    assert rows == [
        (f"{row['message_queue'].topic} {row['message_queue'].queue_id}", row["queue_offset"], row["until_ms"])
        for row in lab.leases("billing")
    ]
    assert rows and rows == reference("lab15.out_now")["out_now"](pops, acks, lab.now_ms)


class Forgets:
    """Returns nothing at all."""

    def __init__(self, write: Any, read: Any) -> None:
        pass

    def lease(self, *given: Any) -> None:
        pass

    ack = lease

    def expired(self, now_ms: int) -> Any:
        return None


class Talks(Forgets):
    """Writes without end."""

    def __init__(self, write: Any, read: Any) -> None:
        for number in range(1_000):
            write(number)


def test_a_table_that_returns_nothing_is_told_what_expired_returns() -> None:
    finding = found("lease_table", LeaseTable=Forgets)
    assert finding.rule == table.LIST_RULE


def test_a_table_that_fills_the_log_is_stopped() -> None:
    with pytest.raises(Exception, match="400 records"):
        found("lease_table", LeaseTable=Talks)


@pytest.mark.parametrize(
    ("exercise", "answer", "rule"),
    [
        ("out_now", lambda pops, acks, now_ms: [], out_now.OUT_RULE),
        ("out_now", lambda pops, acks, now_ms: out_now.out(pops, acks, now_ms)[::-1], out_now.SORTED_RULE),
        ("invisible_for", lambda *given: 7, invisible.COST_RULE),
        ("revive", lambda units, seen_ms: ([], 0), reviving.BACK_RULE),
        ("revive", lambda units, seen_ms: (reviving.round_of(units, seen_ms)[0], 99), reviving.SETTLED_RULE),
    ],
)
def test_other_answers_are_told(exercise: str, answer: Any, rule: str) -> None:
    assert found(exercise, **{exercise: answer}).rule == rule


@pytest.mark.parametrize(("lease_s", "times"), [(tasks.SHORTEST_S - 1, 3), (tasks.SHORTEST_S, 1)])
def test_the_shortest_lease_is_two_seconds_shorter_than_the_work(lease_s: int, times: int) -> None:
    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        lab.producer("shop").send(Message("orders", b"x"))
        consumer = lab.simple_consumer("billing", await_duration="2s")
        consumer.subscribe("orders")
        consumer.start()
        while lab.now_ms - lab.began_ms < 20_000:
            for message in consumer.receive(1, f"{lease_s}s"):
                lab.run_for(f"{tasks.WORK_S}s")
                consumer.ack(message)

    lab = play(story, seed=7, client={"enable_trace": False})
    assert len(lab.journal.changes("message.popped")) == times


def test_a_member_that_joins_gets_new_orders_and_lost_leases() -> None:
    def story(lab: Lab, more: int) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        lab.admin.set_message_request_mode("orders", "billing", "POP")
        for name, waits in (("billing-1", "1h"), ("billing-2", "100ms")):
            consumer = lab.push_consumer("billing", name=name, client_rebalance=False, pop_invisible_time="10s")
            consumer.subscribe("orders", "*")
            consumer.on_messages(lambda messages, context, waits=waits: context.sleep(waits) or CONSUME_SUCCESS)
            consumer.start()
        lab.run_for("3s")
        shop = lab.producer("shop")
        for _ in range(tasks.BEFORE + more):
            shop.send(Message("orders", b"x"))
        lab.run_for("30s")

    (task,) = [task for task in tasks.TASKS if task.id == "lab15.joined"]
    few, right = (
        play(lambda lab, more=more: story(lab, more), seed=7, client={"enable_trace": False})
        for more in (0, tasks.MORE)
    )
    assert f"set MORE to {tasks.MORE}" in task.unready(few) and not task.unready(right)
    calls = [row["msg_id"] for row in right.deliveries("billing", absences=False) if row["client"] == "billing-2"]
    assert 0 < task.right(right) == len(set(calls)) <= len(calls)


def test_every_choice_of_cost_is_different_for_each_belief_in_some_month() -> None:
    for seed in range(6):
        calls = invisible.months_of_work(seed)
        assert len({call.right for call in calls}) > 1
