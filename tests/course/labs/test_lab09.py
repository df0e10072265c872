"""Lab 09: the rules agree with played runs, every shape of a day is in the cases, and wrong answers are told."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from mqlab.course.cases.lab09 import bottleneck, capacity, catching, sizing
from mqlab.course.teach.exercises import manifest
from mqlab.course.widgets.boards.backlog.runs import TankSettings, play_tank
from mqlab.course.words import refutation
from tests.course.teach.notebook_answers import finding_of, reference
from tests.course.teach.seeds import first_of

EXERCISES = {one.id.partition(".")[2]: one for one in manifest("lab09").exercises}
found = functools.partial(finding_of, "lab09")


def test_the_knee_of_a_run_is_that_of_the_rule() -> None:
    """One core, 100 ms and 100 ms: two threads and ten a second; one thread less does half of it."""
    threads, per_second = capacity.knee(1, 100, 100)
    most = {}
    for count in (threads - 1, threads, threads + 4):
        run = play_tank(TankSettings(traffic=(12,) * 3 + (0,) * 9, threads=count, compute_ms=100, wait_ms=100))
        most[count] = sum(row["done"] for row in run.seconds[10:20]) / 10
    assert most[threads] == pytest.approx(per_second, rel=0.06) == most[threads + 4]
    assert most[threads - 1] == pytest.approx(per_second / 2, rel=0.06)


def test_a_played_lag_is_over_when_the_rule_says_so() -> None:
    """Calls of a second begin a second before they are done, and one more second may be cut by the grid."""
    settings = TankSettings()
    run = play_tank(settings)
    largest, second = catching.behind(settings.traffic, settings.threads)
    # In a played run a message that is being worked at counts as lag: three a second, for a second each.
    assert max(row["lag"] for row in run.seconds) == pytest.approx(largest, abs=10)
    assert second is not None
    assert next(row["second"] for row in run.seconds[61:] if row["lag"] <= 3) == pytest.approx(second, abs=3)


def test_each_curve_is_what_it_is_called() -> None:
    for seed in range(5):
        one, _, two, none, stays, over, long = (call.right for call in catching.curves(seed))
        assert one[0] > 0 and two[0] > 0 and none == (0, 0) and stays[0] > 0 and stays[1] is None
        assert over[0] > 0 and over[1] is not None and long[1] is not None and long[1] > 1_000


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda cores, t1, t2: None, "threads returned nothing"),
        (lambda cores, t1, t2: 5, "threads returns a tuple"),
        (lambda cores, t1, t2: (20, 1000 * cores // t1), capacity.THREADS_RULE),
        (lambda cores, t1, t2: (capacity.knee(cores, t1, t2)[0], 1000 // t1), capacity.RATE_RULE),
        (lambda cores, t1, t2: (cores, 1000 * cores // t1), refutation("lab09.one_a_core")),
    ],
)
def test_other_knees_are_told(answer: Any, rule: str) -> None:
    assert rule in found("threads", threads=answer).rule


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda traffic, capacity: None, "catch_up returned nothing"),
        (lambda traffic, capacity: (0, 0), catching.LAG_RULE),
        (lambda traffic, capacity: (catching.behind(traffic, capacity)[0], 0), catching.SECOND_RULE),
        (lambda traffic, capacity: catching.behind(traffic, capacity, False), refutation("lab09.saved_up")),
    ],
)
def test_other_ends_of_a_lag_are_told(answer: Any, rule: str) -> None:
    assert rule in found("catch_up", catch_up=answer).rule


@pytest.mark.parametrize(
    ("size", "rule", "seen"),
    [
        ((0, 4, 1), "range", "(0, 4, 1)"),
        ((1, 4, 33), "range", "(1, 4, 33)"),
        ((16, 200, 1), "budget", "costs 3520"),
        ((1, 40, 1), "cores", "what binds: cores"),
        ((3, 8, 1), "queues", "what binds: queues"),
        ((5, 1, 1), "threads", "what binds: threads"),
        ((5, 1, 1), "threads", "needed at the peak: 621.0 of 1,000 ms of cores per second, 1.9 of 1 threads, 355 of"),
        ((16, 200, 1), "budget", "3,520 of 138 money"),
    ],
)
def test_a_size_is_told_what_its_day_showed(size: tuple[int, int, int], rule: str, seen: str) -> None:
    finding = found("size", size=lambda *given: size)
    assert finding.rule == sizing.RULES[rule] and seen in str(finding.found)


def test_a_batch_is_told_what_its_calls_had() -> None:
    one_by_one, bundles = sizing.days(1)
    threads = bundles.right[1]
    finding = found("size", size=lambda *given: one_by_one.right if given[5] == 0 else (1, threads, 32))
    assert finding.rule == sizing.RULES[sizing.SLOW_CALL] and "messages per call" in str(finding.found)
    # A batch that pulls cannot fill is as good as a batch of one.
    instances, threads, _ = one_by_one.right
    full = sizing.played(one_by_one, (instances, threads, 32))
    assert full.took_ms == sizing.played(one_by_one, one_by_one.right).took_ms
    assert {call.messages for call in full.calls} == {1}


def test_another_size_that_holds_is_right() -> None:
    def a_thread_more(*given: Any) -> tuple[int, int, int]:
        instances, threads, batch = right[given[5]]
        return instances, threads + 1, batch

    right = {day["pull_interval_ms"]: day.right for day in sizing.days(1)}
    assert len(right) == 2 and EXERCISES["size"].case(1).run({"size": a_thread_more}) is None


def test_the_knee_is_asked_for_when_the_number_below_it_was_measured() -> None:
    (task,) = [one for one in manifest("lab09").tasks if one.id == "lab09.fewest"]
    rates = {threads: min(threads * 4.0, 40.0) for threads in (2, 4, 8, 9, 10, 32)}
    assert task.unready(rates) == "" and task.right(rates) == 10
    as_delivered = {threads: rates[threads] for threads in (2, 4, 32)}
    assert "between 4 and 32" in task.unready(as_delivered)


@pytest.mark.parametrize("seed", first_of(1, 2))
def test_each_world_shows_its_limit_in_every_late_second_and_looks_like_another_one(seed: int) -> None:
    """Threads are busy in all four; beside too few threads, cores are busy in some second."""
    worlds = {one.given: one for one in bottleneck.worlds(seed)}
    assert set(worlds) == set(bottleneck.LIMITS)
    for limit, call in worlds.items():
        _, table, row = call.right
        tables = call["tables"]
        assert bottleneck.proves(tables, limit, table, tables[table][row])
        late = bottleneck.behind_in(tables)
        shown = {one["second"] for one in tables[table] if bottleneck.proves(tables, limit, table, one)}
        assert len(late) >= 20 and len(shown & late) >= 0.9 * len(late)
        assert "threads" in bottleneck.limits_of(call)
    assert "cores" in bottleneck.limits_of(worlds["threads"])


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda tables: None, "bottleneck returned nothing"),
        (lambda tables: "database", "bottleneck returns a tuple"),
        (lambda tables: ("disk", "instances", 0), bottleneck.LIMIT_RULE),
    ],
)
def test_other_bottlenecks_are_told(answer: Any, rule: str) -> None:
    assert rule in found("bottleneck", bottleneck=answer).rule


def test_a_row_that_does_not_show_the_limit_is_told() -> None:
    limit, table, _ = bottleneck.worlds(1)[0].right
    assert found("bottleneck", bottleneck=lambda tables: (limit, table, 0)).rule == bottleneck.ROW_RULE


def gives_one_back(*given: Any) -> Any:
    """The reference, but that it returns nothing for the first message."""
    right, first = reference("lab09.brake")["brake"](*given), []

    def listener(messages: Any, context: Any) -> Any:
        if not first:
            first.append(messages)
            return None
        return right(messages, context)

    return listener


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda ask, now, usual_ms, most_waiting: None, "brake takes ask, now, usual_ms and most_waiting"),
        (lambda ask: None, "brake takes ask, now, usual_ms and most_waiting"),
        (gives_one_back, refutation("lab09.give_back")),
        (lambda *given: lambda messages, context: "CONSUME_SUCCESS", "return it only after ask has returned"),
    ],
)
def test_other_brakes_are_told(answer: Any, rule: str) -> None:
    assert rule in found("brake", brake=answer).rule


def test_a_right_number_of_threads_needs_the_numbers_beside_it() -> None:
    (task,) = [one for one in manifest("lab09").tasks if one.id == "lab09.most_threads"]
    all_of_them = {8: 0, 16: 0, 24: 0, 28: 0, 32: 5, 40: 9}
    assert task.right(all_of_them) == 24 and not task.unready(all_of_them)
    assert "16, 24, 32" in task.unready({8: 0, 40: 9})
    (task,) = [one for one in manifest("lab09").tasks if one.id == "lab09.more_queues"]
    lags = {1: {40: 667}, 3: {40: 12}}
    assert "try 2" in task.unready(lags) and task.right({**lags, 2: {40: 20}}) == 2
    assert "larger" in task.unready({1: {40: 667}})
