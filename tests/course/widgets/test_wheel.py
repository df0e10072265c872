"""The wheel board: its runs are Labs, and it says what waits, what came, and how often it was stored."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.course.widgets import WheelBoard, wheel_board
from mqlab.course.widgets.boards.wheel.runs import DUE_MS, WheelSettings
from mqlab.course.widgets.frame.recorded_board import key_of
from mqlab.errors import UsageError


def board(**settings: Any) -> WheelBoard:
    return wheel_board(**{"recorded": {}, **settings})


def test_every_reminder_comes_late_and_never_early() -> None:
    shown = board()
    for name, due_ms in DUE_MS.items():
        (came_ms,) = shown.run.came[name]
        assert due_ms <= came_ms <= due_ms + 1_000
    assert shown.at("12s") == {"waiting": 3, "delivered": 3, "read next": 12} and set(shown.copies.values()) == {1}


def test_a_slot_is_a_list_in_the_timer_log() -> None:
    moment = board().run.at(2_000)
    slots = {number: (first, last, num) for number, _, first, last, num in moment.slots}
    units = {position: (previous, name) for position, previous, _, _, name in moment.units}
    first, last, num = slots[9]
    assert num == 2 and units[last] == (first, "auction-2") and units[first] == (-1, "auction-1")


def test_a_small_window_stores_far_reminders_again_and_again() -> None:
    shown = board(window_s=6)
    assert shown.copies["auction-0"] == 1 < shown.copies["auction-3"] < shown.copies["auction-5"]
    assert shown.came == dict.fromkeys(DUE_MS, 1)
    assert {kind for *_, kind, _ in shown.run.at(2_000).units} == {"waits", "is stored again on its way"}


@pytest.mark.parametrize(("recall", "came", "answer"), [("in time", 0, "yes"), ("too late", 1, "refused")])
def test_a_recall_is_a_marker_in_the_slot_of_its_victim(recall: str, came: int, answer: str) -> None:
    shown = board(recall=recall)
    assert shown.came["auction-3"] == came and shown.run.recalled == answer
    assert any(kind.startswith("recalls") for *_, kind, _ in shown.run.at(8_000).units) == (answer == "yes")


@pytest.mark.parametrize(("lost", "counts"), [("timerwheel", [1] * 6), ("timerlog", [1] + [0] * 5)])
def test_the_wheel_can_be_built_again_and_the_log_cannot(lost: str, counts: list[int]) -> None:
    shown = board(lost=lost)
    assert list(shown.came.values()) == counts and not shown.run.at(6_500).up and shown.run.at(8_000).up


def test_without_the_check_file_reminders_come_again() -> None:
    assert min(board(lost="timercheck").came.values()) > 1


def test_the_page_has_the_recorded_runs_and_plays_others() -> None:
    shown = wheel_board(recorded={"window_s": (6, 60), "recall": ("never",), "lost": ("nothing",)})
    data = shown.data()
    assert set(data["runs"]) == {key_of(WheelSettings(window)) for window in (6, 60)}
    answer = shown.asked("play", {"window_s": 10, "recall": "never", "lost": "timerlog"})
    assert shown.settings == WheelSettings(10, "never", "timerlog") and answer["moments"]
    assert shown.play(lost="nothing").state == {"moment_ms": 0, "slot": -1} and shown.table().title == shown.summary
    assert len(shown.table().rows) == 6 and shown.readable()


def test_settings_out_of_range_are_refused() -> None:
    for wrong in ({"window_s": 1}, {"recall": "maybe"}, {"lost": "everything"}, {"threads": 4}):
        with pytest.raises(UsageError):
            board().play(**wrong)
