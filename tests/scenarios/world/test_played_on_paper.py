"""Played on paper first, then run: cold reads, a stuck message, tags that differ, a kill before the commit."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message, play
from tests.scenarios.stories import Seen, changes, delivered, member, quiet_lab, row, send, send_many

QUIET = {"client": {"enable_trace": False}}


def pulled(lab: Lab) -> list[int]:
    """How many messages each pull of orders brought."""
    return [one["messages"] for one in changes(lab, "message.pulled") if one["queue"].topic == "orders"]


@pytest.mark.parametrize(("memory", "most"), [(None, 32), ("20KB", 8)])
def test_cold_reads_bring_eight_messages_a_pull_instead_of_thirty_two(memory: str | None, most: int) -> None:
    lab = quiet_lab(seed=41, memory=memory)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    send(lab.producer("shop"), *["订" * 300] * 200)
    lab.run_for("1s")
    member(lab, "billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET", pull_batch_size=32)
    lab.run_for("30s")
    batches = pulled(lab)
    assert sum(batches) == 200 and batches[0] == most
    assert len(batches) == 7 if memory is None else len(batches) > 20


def test_cold_reads_slow_a_group_down() -> None:
    def took_ms(memory: str | None) -> int:
        lab = quiet_lab(seed=42, memory=memory, network={"latency": "20ms"})
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        send_many(lab.producer("shop"), 1_000, queue=0)
        lab.run_for("1s")
        seen = Seen(lab)
        member(lab, "billing", seen, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        began_ms = lab.now_ms
        lab.run_until(lambda: len(seen.messages) == 1_000)
        return lab.now_ms - began_ms

    assert took_ms("2KB") > 2 * took_ms(None)


def test_one_stuck_message_holds_the_offset_while_a_hundred_later_ones_finish() -> None:
    lab = quiet_lab(seed=43)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)

    def listener(messages: Any, context: Any) -> str:
        if messages[0].keys == "stuck":
            context.sleep("1h")
        return CONSUME_SUCCESS

    member(lab, "billing", listener)
    producer = lab.producer("shop")
    send(producer, "застрял", keys="stuck")
    send(producer, *[f"订单 {number}" for number in range(100)])
    lab.run_for("2m")
    assert sum(one.status == CONSUME_SUCCESS for one in delivered(lab, "billing")) == 100
    seen = row(lab, "billing")
    assert (seen.broker_offset, seen.consumer_offset, seen.lag) == (101, 0, 101)
    assert lab.verify("billing").counts() == {"STUCK": 1}
    lab.kill("billing-1")
    lab.start("billing-1")
    lab.run_for("2m")
    assert len(lab.verify("billing").of("DUPLICATED")) == 100  # the price of an offset that did not move


@pytest.mark.parametrize("post", [False, True])
def test_two_members_with_different_tags_never_share_the_work(post: bool) -> None:
    lab = quiet_lab(seed=44)
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    paid, new = Seen(lab), Seen(lab)
    member(lab, "billing", paid, name="billing-1", tags="paid", post_subscription_when_pull=post)
    member(lab, "billing", new, name="billing-2", tags="new", post_subscription_when_pull=post)
    lab.run_for("40s")
    producer = lab.producer("shop")
    for number in range(40):
        send(producer, f"{number}", tags=("paid", "new")[number // 4 % 2], queue=number % 4)
    lab.run_for("2m")
    got = len(paid.messages), len(new.messages)
    assert {message.tags for message in paid.messages} <= {"paid"}
    assert {message.tags for message in new.messages} <= {"new"}
    if post:  # each gets its own tag, of its own two queues: half of everything is nobody's
        assert got == (10, 10)
    else:  # the broker knows one subscription; the member it is not of gets nothing
        assert sorted(got) == [0, 10]
    assert len(lab.verify("billing").of("SKIPPED")) == 40 - sum(got)


def test_sixteen_queues_become_eight_without_a_loss() -> None:
    lab = quiet_lab(seed=45)
    lab.create_topic("orders", read_queue_nums=16, write_queue_nums=16)
    seen = Seen(lab)
    member(lab, "billing", seen)
    producer = lab.producer("shop")
    lab.run_for("5s")
    bodies = [f"заказ {number}" for number in range(96)]
    send(producer, *bodies[:48])
    lab.admin.update_topic("orders", write_queue_nums=8)  # first the writers leave ...
    lab.run_for("35s")  # ... when they have asked for the route again
    queues = {result.message_queue.queue_id for result in send(producer, *bodies[48:])}
    assert queues == set(range(8))
    lab.run_for("20s")
    behind = [one for one in lab.admin.examine_consume_stats("billing", "orders").queues if one.lag]
    assert not behind  # ... the rest is read ...
    lab.admin.update_topic("orders", read_queue_nums=8)  # ... and then the readers may leave too
    lab.run_for("2m")
    assert sorted(seen.bodies) == sorted(bodies)
    assert lab.verify("billing").is_clean


def between_consuming_and_committing(lab: Lab) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    member(lab, "billing")
    producer = lab.producer("shop")
    for number in range(10):
        producer.send(Message("orders", f"订单 {number} 💳".encode()))
    lab.run_for("1m")


def test_a_consumer_killed_between_consuming_and_committing_does_it_all_again() -> None:
    whole = play(between_consuming_and_committing, seed=46, **QUIET)
    assert whole.verify("billing").is_clean
    last = [record.step for record in whole.journal.of("listener.returned")][-1]
    committed = next(record.step for record in whole.journal.of("offset.committed"))
    assert last < committed

    def kill_and_start(lab: Lab) -> None:
        lab.kill("billing-1")
        lab.start("billing-1")

    lab = play(between_consuming_and_committing, seed=46, faults={last + 1: kill_and_start}, **QUIET)
    assert len(lab.verify("billing").of("DUPLICATED")) == 10
    later = play(between_consuming_and_committing, seed=46, faults={committed + 1: kill_and_start}, **QUIET)
    assert later.verify("billing").is_clean  # a step after the commit it costs nothing
