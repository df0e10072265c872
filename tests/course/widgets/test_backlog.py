from __future__ import annotations

from typing import Any

import pytest

from mqlab.course.widgets import BacklogTank, backlog_tank
from mqlab.course.widgets.boards.backlog.runs import TankSettings, play_tank
from mqlab.errors import UsageError

PEAK = (1, 6, 6, 1, 1, 1, 0, 0, 0, 0, 0, 0)


def tank(**settings: Any) -> BacklogTank:
    return backlog_tank(**{"traffic": PEAK, "threads": 3, "recorded": {}, **settings})


@pytest.mark.parametrize(
    ("changes", "binds"),
    [
        ({}, "threads"),
        ({"threads": 8}, "nothing"),
        ({"instances": 2, "threads": 4}, "nothing"),
        ({"threads": 10, "compute": "400ms", "wait": "600ms"}, "cores"),
        ({"threads": 10, "compute": "400ms", "wait": "600ms", "cores": 3}, "nothing"),
        ({"slots": 2}, "database slots"),
        ({"slots": 2, "instances": 4, "threads": 10}, "database slots"),  # more of everything else changes nothing
        ({"instances": 4, "threads": 1, "queues": 2}, "queues"),
        ({"instances": 4, "threads": 2, "queues": 4}, "nothing"),
    ],
)
def test_the_limit_that_binds_is_measured(changes: dict[str, Any], binds: str) -> None:
    shown = tank(**changes)
    assert shown.binding == binds and (shown.behind_s > 0) == (binds != "nothing")
    assert [row.limit for row in shown.limits() if row.binds] == [binds] * (binds != "nothing")


def test_a_group_of_three_threads_and_calls_of_a_second_does_three_a_second() -> None:
    shown = tank()
    assert {row.done for row in shown.seconds()[12:30]} == {3}
    # 6 arrive and 3 are done, for 20 s: what is left is done at 3 less 1 a second.
    assert shown.largest_lag == pytest.approx(20 * 3, abs=5) and shown.left == 0
    assert shown.behind_s == pytest.approx(20 + 60 / 2, abs=3)
    assert sum(row.arrived for row in shown.seconds()) == len(shown.calls()) == sum(row.done for row in shown.seconds())


def test_monitoring_shows_at_least_what_is_not_done_and_zero_at_the_end() -> None:
    seconds = list(tank().seconds())
    assert all(row.committed_lag >= row.lag >= 0 for row in seconds)
    assert seconds[-1].committed_lag == 0


def test_where_the_time_of_a_call_goes_is_timed_in_the_call() -> None:
    for call in tank(slots=2).calls():
        assert call.stored_ms <= call.begun_ms <= call.computed_ms <= call.entered_ms < call.ended_ms
        assert call.ended_ms - call.entered_ms == 950 and call.computed_ms - call.begun_ms >= 50
    waits = {row.limit: row.wait_ms for row in tank(slots=2).limits()}
    assert waits["database slots"] > 100 and waits["cores"] < 10


def test_a_call_has_several_messages_only_when_a_pull_brought_them() -> None:
    alone, together = tank(batch=8), tank(batch=8, pull_interval="2s")
    assert alone.per_call == 1 and alone.largest_lag == tank().largest_lag
    assert together.per_call > 1.5 and together.largest_lag < alone.largest_lag / 2
    assert {sum(call.messages for call in each.calls()) for each in (alone, together)} == {sum(PEAK) * 10}
    for shown in (alone, together):
        assert len(shown.run.took_ms) == sum(row.done for row in shown.seconds()) == sum(PEAK) * 10
    # Each message of a call is computed, and all of them wait once.
    for call in together.calls():
        assert call.computed_ms - call.begun_ms >= 50 * call.messages and call.ended_ms - call.entered_ms == 950


def test_what_cannot_be_done_is_still_there_at_the_end() -> None:
    shown = tank(traffic=(3,) * 12, threads=1, wait="4s", compute="1s")
    assert len(shown.seconds()) == 240 and shown.left > 300 and "not done at the end" in shown.summary


def test_the_page_plays_again_and_a_cell_reads_what_it_shows() -> None:
    shown = tank()
    shown.set("second", 30)
    wish = {
        "traffic": list(PEAK),
        "instances": 2,
        "threads": 3,
        "cores": 1,
        "compute": "0ms",
        "wait": "500ms",
        "queues": 4,
        "slots": 0,
        "batch": 4,
        "pull_interval": "1s",
    }
    answer = shown.asked("play", wish)
    assert answer["per_call"] == shown.per_call > 1
    assert shown.settings == TankSettings(PEAK, 2, 3, 1, 0, 500, batch=4, pull_interval_ms=1_000)
    assert len(answer["seconds"]) == len(shown.seconds())
    assert shown.play(threads=4).state == {"second": 1} and shown.table().title == shown.summary
    assert play_tank(shown.settings) is shown.run
    with pytest.raises(UsageError, match="cannot answer"):
        shown.asked("stop", {})


def test_a_page_without_a_kernel_has_the_recorded_runs() -> None:
    shown = tank()
    shown._recorded = {"more": TankSettings(PEAK, threads=8)}
    assert [run["name"] for run in shown.data()["runs"]] == ["as set", "more"]
    assert shown.data()["runs"][1]["behind"] is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"traffic": [1, 2]}, "traffic has 12 numbers"),
        ({"traffic": [61] + [0] * 11}, "traffic must be between 0 and 60"),
        ({"traffic": [60] * 12}, "7200 messages are too many"),
        ({"traffic": 5}, "traffic is a list of rates"),
        ({"instances": 0}, "instances must be between 1 and 16"),
        ({"threads": None}, "threads must be a whole number"),
        ({"wait": "1h"}, "wait_ms must be between 0 and 5000"),
        ({"compute": "0s", "wait": 0}, "takes no time"),
        ({"slots": -1}, "slots must be between 0 and 500"),
        ({"batch": 33}, "batch must be between 1 and 32"),
        ({"pull_interval": "1m"}, "pull_interval_ms must be between 0 and 10000"),
        ({"members": 2}, "no setting 'members'"),
    ],
)
def test_wrong_settings_are_refused_in_words(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tank().play(**wrong)
