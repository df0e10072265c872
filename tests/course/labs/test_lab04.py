"""Lab 04: what the cases call right is what deliveries say; days are what they are about; slips are told."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mqlab.course import CheckFailed, check
from mqlab.course.cases.lab04 import crash_cost, offsets, once, own_queue, rescue, resets
from mqlab.course.teach.exercises import Exercise, Finding, manifest
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue
from tests.course.teach.notebook_answers import reference

EXERCISES = {one.id.partition(".")[2]: one for one in manifest("lab04").exercises}


def exercise(name: str) -> Exercise:
    return EXERCISES[name]


@pytest.mark.parametrize("seed", range(30, 34))
def test_every_history_has_one_that_tells_each_slip_from_the_right_answer(seed: int) -> None:
    calls = offsets.histories(seed)
    for slip in offsets.COMMITTED.form.slips:
        assert any(slip.would(call) != call.right for call in calls), slip.name


@pytest.mark.parametrize("seed", range(30, 34))
def test_every_afternoon_tells_each_slip_from_the_right_answer(seed: int) -> None:
    calls = crash_cost.crashes(seed)
    for slip in crash_cost.CRASH_COST.form.slips:
        assert any(slip.would(call) != call.right for call in calls), slip.name
    alone = next(call for call in calls if call["dies"] == crash_cost.BROKER_DIES)
    assert alone.right == [] and len(alone["done"]) > 5


def test_a_crash_before_the_first_write_leaves_the_file_of_yesterday() -> None:
    call = crash_cost.crashed(random.Random(1), crash_cost.BOTH_DIE, (10_300, 11_900))
    assert call["writes"] == [] and call["reports"] == [10_000]
    assert call.right == sorted(call["done"])


class LargestDone(ProcessQueue):
    def remove_message(self, messages: Any) -> int:
        super().remove_message(messages)
        return int(max(message.queue_offset for message in messages)) + 1


def test_a_cache_that_reports_the_largest_loses_an_order_in_some_crash() -> None:
    form = own_queue.PROCESS_QUEUE.form
    found = form._crashed({own_queue.NAME: LargestDone}, form.make(1))
    assert found is not None and found.rule == own_queue.LOST_RULE
    assert found.first_wrong.startswith("billing-1 killed before step ") and found.lab is not None


def test_rocketmqs_own_passes_alone_and_in_a_consumer_that_dies() -> None:
    assert exercise("process_queue").case(5).run({own_queue.NAME: ProcessQueue}) is None


def test_the_first_answer_that_differs_is_told_with_what_came_before() -> None:
    found = own_queue.alone({own_queue.NAME: LargestDone}, 3)
    assert found is not None and found.call is not None
    assert found.rule == own_queue.EMPTY_RULE and found.first_wrong.endswith(", the first call")

    class KnowsEmpty(LargestDone):
        def remove_message(self, messages: Any) -> int:
            return super().remove_message(messages) if self.msg_count else -1

    found = own_queue.alone({own_queue.NAME: KnowsEmpty}, 3)
    assert found is not None and found.call is not None
    assert found.rule in (own_queue.SMALLEST_LEFT_RULE, own_queue.ONE_PAST_RULE) and " after " in found.first_wrong
    assert found.call.arguments["calls"][-1] == found.first_wrong.partition(" after ")[0]


def test_a_plan_is_what_a_reset_then_does() -> None:
    """The offline group is really reset, and what its next member is given is what was planned."""
    rng = random.Random("a real reset")
    lab: Lab = resets.stopped_group(rng, deleted=False)
    times = resets.stored_ms(lab)
    call = resets.planned(lab, times[len(times) // 2], "the middle")
    lab.admin.reset_offset_by_timestamp(resets.TOPIC, resets.GROUP, times[len(times) // 2])
    before = len(lab.deliveries(resets.GROUP, absences=False))
    resets.start_billing(lab, "billing-2")
    lab.run_for("30s")
    rows = list(lab.deliveries(resets.GROUP, absences=False))[before:]
    for queue_id, now, _, again, skipped in call.right:
        given = sorted(row.queue_offset for row in rows if row.message_queue.queue_id == queue_id)
        assert [offset for offset in given if offset < now] == again
        assert not set(given) & set(skipped)


def test_a_deleted_past_is_before_what_the_group_has_read() -> None:
    calls = resets.after_retention(3)
    smallest = {row.message_queue.queue_id: row.min_offset for row in calls[-1]["stats"]}
    assert any(now < smallest[queue_id] for queue_id, now, *_ in calls[-1].right)
    assert all(skipped[:1] >= [smallest[queue_id]] for queue_id, _, _, _, skipped in calls[-1].right if skipped)


@pytest.mark.parametrize("seed", (1, 2, 3))
def test_two_owners_have_the_same_orders_in_their_listeners(seed: int) -> None:
    def idle(lab: Any) -> Any:
        def listener(messages: Any, context: Any) -> str:
            context.sleep(int(messages[0].properties["rate_ms"]))
            return "CONSUME_SUCCESS"

        return listener

    day = once.two_owners(seed).play({"once": idle}, seed)
    rows = day.deliveries(once.GROUP)
    both = [
        (one, other)
        for one in rows
        for other in rows
        if one.msg_id == other.msg_id and one.client == once.NODE and other.client == once.OTHER
    ]
    assert both and all(one.ended_ms > other.started_ms for one, other in both)


def test_a_death_is_told_with_its_line() -> None:
    source = """
def once(lab):
    database = lab.database("billing")
    def listener(messages, context):
        with database.connect() as connection:
            new = connection.execute("INSERT OR IGNORE INTO charged VALUES (?)", (messages[0].keys,)).rowcount
        if new:
            amount = ask_rate(messages[0], context)
            with database.connect() as connection:
                customer = messages[0].properties["customer"]
                connection.execute("UPDATE accounts SET paid = paid + ? WHERE customer = ?", (amount, customer))
        return "CONSUME_SUCCESS"
    return listener
"""
    known = {"ask_rate": reference("lab04.once")["ask_rate"]}
    exec(compile(source, "<a cell>", "exec"), known)
    found = exercise("once").case(1).run({"once": known["once"]})
    assert isinstance(found, Finding) and found.rule == once.LOST_RULE
    assert "billing-1 killed before line" in found.first_wrong and "(listener line" in found.first_wrong


def test_a_listener_that_is_not_returned_is_told_so() -> None:
    with pytest.raises(CheckFailed) as failed:
        check("lab04.once", {"once": lambda lab: lab.database("billing").path.name})
    assert "once returns a listener" in str(failed.value)


@pytest.mark.parametrize("seed", (1, 2))
def test_nothing_moves_before_the_rescue(seed: int) -> None:
    day = rescue.day(seed).play({"rescue": lambda lab: None}, seed)
    held = day.lab.broker().offset_table.queues_of(rescue.GROUP, rescue.TOPIC)
    stood = {queue.queue_id: offset for queue, offset in day.committed.items()}
    stuck = [queue_id for queue_id, offset in stood.items() if held[queue_id] == offset]
    assert stuck and any(order.poisoned for order in day.sent.values())


def test_a_group_that_was_left_alone_is_told_that_it_does_not_read_on() -> None:
    with pytest.raises(CheckFailed) as failed:
        check("lab04.rescue", {"rescue": lambda lab: lab.run_for("1m")})
    told = " ".join(str(failed.value).split())
    assert rescue.WAITS_RULE in told and "the group's offset there is" in told
