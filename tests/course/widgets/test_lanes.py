"""The lanes board: its runs are Labs, its words follow them, and its page has what it lets a reader choose."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from mqlab.course.widgets import LanesBoard, lanes_board
from mqlab.course.widgets.boards.lanes.board import RECORDED
from mqlab.course.widgets.boards.lanes.runs import FAILING, STEPS, TAKES_MS, LanesSettings, play_lanes
from mqlab.course.widgets.frame.recorded_board import key_of
from mqlab.errors import UsageError

LIFE_MS = sum(TAKES_MS.values())


def board(**settings: Any) -> LanesBoard:
    return lanes_board(**{"recorded": {}, **settings})


def test_many_threads_turn_a_life_round_and_one_does_not() -> None:
    many, one = board(threads=20), board(threads=1)
    assert many.overtaken == 12 and many.done_s == pytest.approx(0.6, abs=0.05)
    assert one.overtaken == 0 and one.done_s == pytest.approx(6 * LIFE_MS / 1000, abs=0.05)
    assert max(call.row for call in many.run.calls) == 17 and one.run.rows == 1


@pytest.mark.parametrize(("queues", "lives"), [(1, 6), (2, 3), (3, 2), (6, 1)])
def test_orderly_takes_the_longest_queue(queues: int, lives: int) -> None:
    shown = board(mode="orderly", queues=queues)
    assert shown.overtaken == 0 and shown.run.rows == queues
    assert shown.done_s == pytest.approx(lives * LIFE_MS / 1000, abs=0.1)


def test_lanes_keep_the_order_and_are_as_quick_as_the_longest_lane() -> None:
    shown = board(mode="lanes", batch=32)
    assert shown.overtaken == 0 and shown.done_s == pytest.approx(LIFE_MS / 1000, abs=0.05)
    assert {(call.row + 1, call.order) for call in shown.run.calls} == {(n, n) for n in range(1, 7)}


@pytest.mark.parametrize(("queues", "orders"), [(1, {1, 2, 3, 4, 5, 6}), (3, {1, 4}), (6, {1})])
def test_a_failing_head_holds_back_its_queue(queues: int, orders: set[int]) -> None:
    shown = board(mode="orderly", queues=queues, failing=True)
    assert shown.held() == [f"order-{order} {step}" for order in sorted(orders) for step in STEPS]
    tries = [call for call in shown.run.calls if call.order == FAILING]
    assert len(tries) > 8 and not any(call.succeeded for call in tries) and shown.done_s is None


def test_a_failing_event_holds_nobody_back_when_order_does_not_count() -> None:
    shown = board(failing=True)
    assert shown.held() == ["order-1 created"] and shown.overtaken == 12


def test_the_offset_never_passes_what_is_not_done_and_reaches_the_end() -> None:
    for mode in ("concurrent", "orderly", "lanes"):
        run = play_lanes(LanesSettings(mode=mode, queues=1, threads=4, batch=8))
        ends = sorted(run.done.values())
        for ms, _, offset in run.offsets:
            assert sum(end <= ms for end in ends) >= offset
        assert max(offset for _, _, offset in run.offsets) == 18


def test_the_page_has_every_run_that_it_lets_a_reader_choose() -> None:
    data = lanes_board().data()
    count = 1
    for values in RECORDED.values():
        count *= len(values)
    assert len(data["runs"]) == count
    assert set(RECORDED) == set(data["choices"]) and data["now"] == asdict(LanesSettings())
    settings = LanesSettings(mode="orderly", queues=3, failing=True)
    assert len(data["runs"][key_of(settings)]["calls"]) == len(play_lanes(settings).calls)


def test_the_page_plays_and_a_cell_reads_what_it_shows() -> None:
    shown = board()
    shown.set("moment_ms", 300)
    answer = shown.asked("play", {"mode": "orderly", "queues": 2, "threads": 20, "batch": 2, "failing": False})
    assert shown.settings == LanesSettings("orderly", 2, 20, 2) and len(answer["calls"]) == len(shown.calls())
    assert shown.play(queues=6).state == {"moment_ms": 0} and shown.table().title == shown.summary
    with pytest.raises(UsageError, match="cannot answer"):
        shown.asked("stop", {})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"mode": "fifo"}, "mode must be one of"),
        ({"queues": 0}, "queues must be a whole number from 1 to 6"),
        ({"threads": True}, "threads must be a whole number"),
        ({"batch": 33}, "batch must be a whole number from 1 to 32"),
        ({"failing": 1}, "failing must be True or False"),
        ({"members": 2}, "no setting 'members'"),
    ],
)
def test_wrong_settings_are_refused_in_words(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        board().play(**wrong)
