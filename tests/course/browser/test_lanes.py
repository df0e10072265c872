"""The lanes board in Chromium: chosen by mouse and by keyboard, dark, narrow, and without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import lanes_board
from mqlab.course.widgets.boards.lanes.board import RECORDED
from tests.course.browser.live_boards import fits, live_page, still_page, unnamed_controls

pytestmark = pytest.mark.browser


def test_other_settings_are_played_and_a_cell_reads_them(chromium: Any, tmp_path: Path) -> None:
    board = lanes_board(recorded={})
    page = live_page(chromium, board, tmp_path)
    page.get_by_text("12 overtook the one before them.").wait_for()
    page.get_by_label("Listener").select_option(label="orderly: one thread per queue at a time")
    page.get_by_text("All 18 events are done after 6.3 s. Nothing overtook.").wait_for()
    page.get_by_label("Queues").select_option(label="2")
    page.get_by_text("done after 3.2 s").wait_for()
    page.get_by_label("order-1 can never be created").check()
    page.get_by_text("9 of 18 events are not done after 16 s.").wait_for()
    assert board.settings.mode == "orderly" and board.settings.failing and board.settings.queues == 2

    page.get_by_role("slider", name="Moment").focus()
    page.keyboard.press("End")
    page.get_by_text("nothing in hand; 9 done, the offset has passed 9").wait_for()
    picture = page.locator(".ln-time").bounding_box()
    page.mouse.click(picture["x"] + picture["width"] / 2, picture["y"] + 30)
    page.wait_for_timeout(200)
    assert 6_000 < board.state["moment_ms"] < 10_000
    assert unnamed_controls(page) == [] and page.problems == []


def test_without_a_kernel_recorded_runs_are_chosen(chromium: Any, tmp_path: Path) -> None:
    recorded = {
        "mode": ("concurrent", "orderly"),
        "queues": (1, 3),
        "threads": (20,),
        "batch": (1,),
        "failing": (False, True),
    }
    page = still_page(chromium, lanes_board(recorded=recorded), tmp_path, dark=True)
    page.get_by_label("Queues").select_option(label="3")
    page.get_by_label("Listener").select_option(label="orderly: one thread per queue at a time")
    page.get_by_text("All 18 events are done after 2.1 s. Nothing overtook.").wait_for()
    page.get_by_label("order-1 can never be created").check()
    page.get_by_text("6 of 18 events are not done after 16 s.").wait_for()
    assert page.get_by_label("Queues").locator("option").all_text_contents() == ["1", "3"]
    assert page.problems == []


def test_a_narrow_page_shows_it(chromium: Any, tmp_path: Path) -> None:
    recorded = {**RECORDED, "queues": (1,), "threads": (20,)}
    page = still_page(chromium, lanes_board(mode="lanes", batch=8, recorded=recorded), tmp_path, width=420)
    page.get_by_text("All 18 events are done after 2.5 s.").wait_for()
    assert fits(page)
