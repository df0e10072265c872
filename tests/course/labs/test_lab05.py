"""Lab 05: days are what they are about, the judge sees what happened, and wrong answers that no file holds are told."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, SUCCESS, SUSPEND_CURRENT_QUEUE_A_MOMENT
from mqlab.course.cases.lab05 import lanes, life, manual, parking, partial
from mqlab.course.teach.exercises import manifest
from mqlab.course.words import refutation
from tests.course.teach.notebook_answers import finding_of, reference

EXERCISES = {one.id.partition(".")[2]: one for one in manifest("lab05").exercises}
found = functools.partial(finding_of, "lab05")


@pytest.mark.parametrize("seed", range(40, 44))
def test_a_day_at_the_bank_has_whole_batches_and_what_comes_back(seed: int) -> None:
    made = partial.decisions({"partial": partial.right}, seed)
    sizes = [len(one.charged) for one in made]
    assert sizes[:3] == [8, 8, 8] and sum(sizes[3:]) > 8
    assert all(made[0].charged) and not made[1].charged[-1] and not made[2].charged[0]


def test_the_judge_and_the_consumer_agree_on_what_is_sent_back() -> None:
    played = partial.day(3).play({"partial": partial.right}, 3)
    again = {row.msg_id for row in played.deliveries("billing") if row.reconsume_times == 1}
    keys = {played.sent[msg_id].key for msg_id in again}
    expected = {
        key
        for one in played.decisions[:3]
        for key, back in zip(one.keys, partial.sent_back(one.charged, one.said), strict=True)
        if back
    }
    assert keys == expected and keys


def first_refused(charged: list[bool]) -> tuple[str, int]:
    return CONSUME_SUCCESS, charged.index(False) if False in charged else 7


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda charged: None, "partial returned nothing"),
        (lambda charged: 3, partial.FORM_RULE),
        (lambda charged: (True, 3), partial.STATUS_RULE),
        (lambda charged: (CONSUME_SUCCESS, "3"), partial.INDEX_RULE),
        (lambda charged: (CONSUME_SUCCESS, True), partial.INDEX_RULE),
        (lambda charged: (CONSUME_SUCCESS, 0 if charged[0] else -1), refutation("lab05.one_less")),
        (lambda charged: (RECONSUME_LATER, -1), refutation("lab05.all_or_nothing")),
        (first_refused, refutation("lab05.ack_counts")),
    ],
)
def test_other_decisions_are_told_what_they_do(answer: Any, rule: str) -> None:
    assert rule in found("partial", partial=answer).rule


def test_a_list_and_a_later_status_for_nothing_charged_are_right() -> None:
    def answer(charged: list[bool]) -> list[Any]:
        status, index = partial.right(charged)
        return [status, index] if any(charged) else [RECONSUME_LATER, 0]

    assert EXERCISES["partial"].case(4).run({"partial": answer}) is None


def test_an_exception_of_the_answer_is_raised() -> None:
    def answer(charged: list[bool]) -> Any:
        raise KeyError("nobody")

    with pytest.raises(KeyError, match="nobody"):
        EXERCISES["partial"].case(1).run({"partial": answer})


def test_the_day_of_orders_has_two_owners_and_a_death() -> None:
    names = reference("lab05.life_of_an_order")
    day = life.day(5).play(names, 5)
    assert {work.client for work in day.works} == {"billing-1", "billing-2"} and day.deaths_ms
    cut = [work for work in day.works if work.ended_ms is None]
    assert cut and cut[0].client == "billing-1"
    assert any(not work.succeeded and work.ended_ms for work in day.works), "the warehouse was busy"


def test_nothing_sent_and_nothing_read_are_told() -> None:
    assert found("life_of_an_order", send_event=lambda shop, message: None).rule == life.STORED_RULE
    assert found("life_of_an_order", read_events=lambda consumer, handle: None).rule == life.LISTENER_RULE


def test_a_listener_that_returns_nothing_holds_its_orders_for_ever() -> None:
    def read_events(consumer: Any, handle: Any) -> None:
        consumer.on_messages_orderly(lambda messages, context: None)

    assert found("life_of_an_order", read_events=read_events).rule == life.HANDLED_RULE


def test_success_without_the_warehouse_is_told() -> None:
    def read_events(consumer: Any, handle: Any) -> None:
        consumer.on_messages_orderly(lambda messages, context: SUCCESS)

    assert found("life_of_an_order", read_events=read_events).rule == refutation("lab05.swallowed")


def test_an_invoice_is_in_the_listener_when_billing_dies() -> None:
    day = manual.day(6).play(reference("lab05.manual"), 6)
    before = [work for work in day.works if work.began_ms < day.deaths_ms[0]]
    after = [work for work in day.works if work.began_ms > day.deaths_ms[0]]
    assert before[-1].event.number == 1 and after[0].event is before[-1].event
    assert {row.status for row in day.deliveries("billing")} >= {"COMMIT", "ROLLBACK", "SUCCESS"}


def test_a_listener_that_books_nothing_is_told() -> None:
    def forgets(book: Any) -> Any:
        def listener(messages: Any, context: Any) -> str:
            context.auto_commit = False
            last = messages[-1].properties
            return "COMMIT" if last["line"] == last["of"] else SUCCESS

        return listener

    assert found("manual", manual=forgets).rule == manual.BOOKED_RULE


@pytest.mark.parametrize("name", ["manual", "lanes"])
def test_what_is_no_listener_is_told(name: str) -> None:
    said = found(name, **{name: lambda handle: None})
    assert "returns a listener" in said.rule
    said = found(name, **{name: lambda handle: lambda messages: SUCCESS})
    assert "messages and a context" in said.rule


def test_every_line_of_the_short_day_is_a_crash_point() -> None:
    """No line is left out: the days are short enough."""
    for form in (parking.POISONED.form, lanes.LANES.form):
        names = reference(form.id)
        from mqlab.lab.world.crashes import calm_run

        played: list[Any] = []
        made = form.crash_day(1)
        _, points = calm_run(made.story(names, played), node=form.node, seed=1, **made.settings)
        lines = [point for point in points if point.kind == "line"]
        assert 20 < len(lines) <= form.most


def test_parking_without_a_table_row_is_told() -> None:
    def skips(lab: Any, handle: Any) -> Any:
        def listener(messages: Any, context: Any) -> str:
            try:
                handle(messages[0], context)
            except ValueError:
                return SUSPEND_CURRENT_QUEUE_A_MOMENT if messages[0].reconsume_times < 2 else SUCCESS
            return SUCCESS

        return listener

    assert found("poisoned", poisoned=skips).rule == refutation("lab05.only_the_head")


def test_once_is_not_three_times() -> None:
    def once(lab: Any, handle: Any) -> Any:
        held = set()

        def listener(messages: Any, context: Any) -> str:
            try:
                if messages[0].keys not in held:
                    handle(messages[0], context)
            except ValueError:
                held.add(messages[0].keys)
            return SUCCESS

        return listener

    assert "is tried 3 times before it is parked" in found("poisoned", poisoned=once).rule


def test_the_busy_day_has_lanes_that_outlast_a_failure() -> None:
    day = lanes.busy_day(2).play(reference("lab05.lanes"), 2)
    failed = next(work for work in day.works if work.ended_ms is not None and not work.succeeded)
    slow = [work for work in day.works if work.began_ms <= failed.ended_ms < (work.ended_ms or 0)]
    assert slow, "others are under way when the first one fails"


def test_lanes_that_know_nothing_of_orders_are_too_slow_or_out_of_order() -> None:
    def one_call(handle: Any) -> Any:
        def listener(messages: Any, context: Any) -> str:
            works = [context.start(handle, message, context) for message in messages]
            for work in works:
                work.result()
            return SUCCESS

        return listener

    assert found("lanes", lanes=one_call).rule == refutation("lab05.start_waits")


def test_the_fewest_queues_are_asked_for_when_the_number_below_them_was_measured() -> None:
    (task,) = [one for one in manifest("lab05").tasks if one.id == "lab05.enough_queues"]
    rates = {queues: 10.0 * queues for queues in range(1, 17)}
    assert task.unready(rates) == "" and task.right(rates) == 6
    assert "Put 7 into TRY" in task.unready({queues: rates[queues] for queues in (4, 8)})
    assert "measure more queues" in task.unready({1: 10.0})
