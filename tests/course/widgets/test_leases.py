"""The lease board: its runs are Labs, and it says what is out, done and coming back."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.course.widgets import LeaseBoard, lease_board
from mqlab.course.widgets.boards.leases.runs import LeaseSettings
from mqlab.course.widgets.frame.recorded_board import key_of
from mqlab.errors import UsageError


def board(**settings: Any) -> LeaseBoard:
    return lease_board(**{"recorded": {}, **settings})


@pytest.mark.parametrize("happens", ["hangs", "dies"])
def test_what_a_lost_member_had_comes_back_and_is_done(happens: str) -> None:
    shown = board(happens=happens)
    assert shown.at("12s")["coming back"] == 5 and shown.done == 8 and shown.repeats >= 1
    assert any(message.revived for message in shown.run.messages)


def test_everything_is_handed_out_before_anything_is_done() -> None:
    shown = board()
    assert shown.at("1s") == {"handed out": 8, "on lease": 8, "done": 0, "coming back": 0}
    assert shown.at("60s")["done"] == 8 and shown.repeats == 0


def test_leases_that_are_shorter_than_a_call_get_nothing_done() -> None:
    shown = board(lease_s=5, work_s=8)
    assert shown.done == 0 and shown.repeats > 5
    assert {call.status for call in shown.run.calls} <= {"RESULT_DISCARDED", "RUNNING"}


def test_the_page_has_the_recorded_runs_and_plays_others() -> None:
    shown = lease_board(recorded={"happens": ("works", "dies"), "members": (1, 2), "lease_s": (10,), "work_s": (2,)})
    data = shown.data()
    assert set(data["runs"]) == {
        key_of(LeaseSettings(happens, count)) for happens in ("works", "dies") for count in (1, 2)
    }
    answer = shown.asked("play", {"happens": "hangs", "members": 1, "lease_s": 5, "work_s": 1})
    assert shown.settings == LeaseSettings("hangs", 1, 5, 1) and len(answer) == 8
    assert shown.play(happens="works").state == {"moment_ms": 0} and shown.table().title == shown.summary
    assert len(shown.table().rows) >= 8 and shown.readable()


def test_settings_out_of_range_are_refused() -> None:
    for wrong in ({"happens": "sleeps"}, {"members": 3}, {"lease_s": 1}, {"threads": 4}):
        with pytest.raises(UsageError):
            board().play(**wrong)
