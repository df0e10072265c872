"""An exercise whose day is played once per crash point: which points are chosen, and what a finding says."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS
from mqlab.course.kit.crashing import EveryCrash
from mqlab.course.kit.days import Day, Does, Played, Reads, Topics, Waits
from mqlab.course.teach.exercises import Finding
from mqlab.rocketmq.wire.message import Message


def day(seed: int) -> Day:
    def send(played: Played) -> None:
        played.producer("shop").send(Message("orders", b"a book", keys="order-0"))

    def listener(messages: Any, context: Any) -> str:
        context.sleep("20ms")
        return CONSUME_SUCCESS

    return Day((Topics(("orders",)), Does(send), Reads("billing", "orders", listener, ready_after="5s")))


def given_once(played: Played) -> Finding | None:
    count = len(played.deliveries("billing"))
    return None if count == 1 else Finding("given once", "order-0", 1, count)


def exercise(at: str, **more: Any) -> Any:
    return EveryCrash(
        "lab99.once",
        "unused()",
        points=1,
        about="a death",
        crash_day=day,
        promises=[given_once],
        node="billing-1",
        at=at,
        **more,
    )


@pytest.mark.parametrize("at", ["line", "step"])
def test_a_promise_that_only_a_crash_breaks_is_told_with_the_crash(at: str) -> None:
    found = exercise(at).case(1).run({})
    assert found.rule == "given once" and (found.expected, found.found) == (1, 2)
    assert found.first_wrong.startswith(f"billing-1 killed before {at} ")
    assert found.first_wrong.endswith("and started again: order-0")
    assert found.lab.telling is not None  # so that show_me can play it again


def test_many_steps_are_thinned_out_by_time_and_each_is_taken_once() -> None:
    form = exercise("step", most=5).form
    played: list[Played] = []
    from mqlab.lab.world.crashes import calm_run

    calm, points = calm_run(day(1).story({}, played), node="billing-1", seed=1)
    chosen = form._chosen(points, calm)
    assert 2 <= len(chosen) <= 5 and len(set(chosen)) == len(chosen)
    times = [calm.journal[point.number].now_ms for point in chosen]
    assert times == sorted(times) and times[-1] == max(
        calm.journal[point.number].now_ms for point in points if point.kind == "step"
    )


def test_what_is_asked_of_the_answer_alone_comes_first() -> None:
    said = Finding("alone", "at once", 1, 2)
    assert exercise("line", first=[lambda answers, seed: said]).case(1).run({}) is said


def test_a_day_without_a_crash_is_judged_before_any_crash() -> None:
    def twice(seed: int) -> Day:
        first = day(seed)
        return Day((*first.acts, first.acts[1], Waits("2s")))

    found = exercise("line", days=[twice]).case(1).run({})
    assert found is not None and "killed before" not in found.first_wrong
