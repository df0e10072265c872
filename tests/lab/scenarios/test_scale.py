"""Large worlds cost what they must: in proportion to what happens in them (steps and function calls; no seconds)."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message
from mqlab.lab.runtime.journal import Change, StepRecord

DELIVERIES = 17  # the first and sixteen retries, then the dead letter queue
ROOMY = {
    "mapped_file_size_commit_log": 1 << 26,
    "mapped_file_size_consume_queue": 6_000_000,
    "max_hash_slot_num": 200_000,
    "max_index_num": 800_000,
}


def calls_of(run: Callable[[], Any]) -> int:
    """How many function calls a run makes, C functions included: the same number every time, unlike seconds."""
    profiler = cProfile.Profile()
    profiler.runcall(run)
    return sum(entry.callcount for entry in profiler.getstats())


def group_of(members: int) -> Lab:
    """A settled group with a queue for each member; the broker notifies no member that others came (n² frames)."""
    lab = Lab(broker={"notify_consumer_ids_changed_enable": False}, client={"enable_trace": False}, journal_limit=1_000)
    lab.create_topic("orders", read_queue_nums=members, write_queue_nums=members)
    for number in range(members):
        consumer = lab.push_consumer("billing", name=f"billing-{number + 1}")
        consumer.subscribe("orders")
        consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
        consumer.start()
    lab.run_for("60s")
    return lab


def one_round(lab: Lab, members: int) -> dict[str, dict[str, Any]]:
    """What each member's rebalance says in its next round; all of them have theirs within 20 s and a few frames."""
    said: dict[str, dict[str, Any]] = {}

    def listen(record: StepRecord, change: Change) -> None:
        if change.kind == "rebalance.done":
            said.setdefault(change.values["client"], change.values)

    lab.world.watchers.append(listen)
    lab.run_until(lambda: len(said) == members, limit="21s")
    lab.world.watchers.remove(listen)
    return said


def everyone_has_one_queue(said: dict[str, dict[str, Any]], members: int) -> bool:
    owned = [queue for values in said.values() for queue in values["queues"] if queue.topic == "orders"]
    return all(values["balanced"] for values in said.values()) and sorted(queue.queue_id for queue in owned) == list(
        range(members)
    )


def test_a_settled_group_takes_steps_in_proportion_to_its_members() -> None:
    steps = {}
    for members in (20, 60):
        lab = group_of(members)
        assert everyone_has_one_queue(one_round(lab, members), members)
        before = lab.world.journal.next_step
        lab.run_for("60s")  # three rounds, two heartbeats
        steps[members] = lab.world.journal.next_step - before
    assert steps[60] <= 3.1 * steps[20]


@pytest.mark.long
def test_a_round_of_a_thousand_members_over_a_thousand_queues() -> None:
    lab = group_of(1_000)
    assert everyone_has_one_queue(one_round(lab, 1_000), 1_000)


def failing(count: int, *, last: str = "5h", **broker: Any) -> Lab:
    """So many messages sent to a listener that never succeeds, played until all lie in the dead letter queue."""
    lab = Lab(broker={**ROOMY, **broker}, client={"enable_trace": False}, journal_limit=1_000)
    lab.create_topic("orders")
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders")
    delivered: dict[str, int] = {}

    def listener(messages: Any, context: Any) -> str:
        for message in messages:
            delivered[message.keys] = delivered.get(message.keys, 0) + 1
        return RECONSUME_LATER

    consumer.on_messages(listener)
    consumer.start()
    lab.run_for("30s")
    producer = lab.producer("shop")
    for number in range(count):
        producer.send(Message("orders", "платёж 支付失败 💳".encode(), keys=f"order-{number}"))
    lab.run_for(last)
    assert delivered == {f"order-{number}": DELIVERIES for number in range(count)}
    assert lab.broker("broker-a").store.max_offset("%DLQ%billing", 0) == count
    return lab


def test_failing_messages_cost_in_proportion_to_their_number() -> None:
    soon = {"last": "2m", "message_delay_level": " ".join(["1s"] * 18)}
    idle, few, many = (calls_of(lambda count=count: failing(count, **soon)) for count in (0, 15, 60))
    assert many - idle <= 1.1 * 4 * (few - idle)


@pytest.mark.long
def test_ten_thousand_failing_messages_are_delivered_170_000_times_and_cost_ten_times_a_thousand() -> None:
    steps = {count: failing(count).world.journal.next_step for count in (0, 1_000, 10_000)}
    assert steps[10_000] - steps[0] <= 1.1 * 10 * (steps[1_000] - steps[0])
