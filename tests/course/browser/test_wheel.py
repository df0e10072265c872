"""The wheel board in Chromium: chosen by mouse and by keyboard, dark, narrow, and without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import wheel_board
from tests.course.browser.live_boards import fits, live_page, still_page, unnamed_controls

pytestmark = pytest.mark.browser


def test_another_run_is_played_and_a_cell_reads_it(chromium: Any, tmp_path: Path) -> None:
    board = wheel_board(recorded={})
    page = live_page(chromium, board, tmp_path)
    page.get_by_text("6 of 6 reminders delivered, 0 of them again.").wait_for()
    page.get_by_label("Lost in a crash at 6 s").select_option(label="timerlog")
    page.get_by_text("1 of 6 reminders delivered").wait_for()
    assert board.settings.lost == "timerlog" and board.came["auction-5"] == 0
    page.get_by_role("slider", name="Moment").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text(
        "+500 ms: 0 of 6 reminders delivered. The slot of second 0 is read next. Slot 3: first 0"
    ).wait_for()
    page.get_by_role("button", name="slot ▶").click()
    page.get_by_text("From the last: 104 auction-2 (waits), then 52 auction-1 (waits).").wait_for()
    assert board.state["slot"] == 9
    picture = page.locator(".wh-time").bounding_box()
    page.mouse.click(picture["x"] + picture["width"] / 2, picture["y"] + 30)
    page.wait_for_timeout(200)
    assert 14_000 < board.state["moment_ms"] < 22_000
    assert unnamed_controls(page) == [] and page.problems == []


def test_a_narrow_dark_page_without_a_kernel_shows_recorded_runs(chromium: Any, tmp_path: Path) -> None:
    recorded = {"window_s": (6, 60), "recall": ("never",), "lost": ("nothing",)}
    page = still_page(chromium, wheel_board(recorded=recorded), tmp_path, dark=True, width=420)
    page.get_by_label("Roll window").select_option(label="6 s")
    page.get_by_role("slider", name="Moment").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="slot ▶").click()
    page.get_by_text("(is stored again on its way)").wait_for()
    assert page.get_by_label("Lost in a crash at 6 s").locator("option").all_text_contents() == ["nothing"]
    assert fits(page) and page.problems == []
