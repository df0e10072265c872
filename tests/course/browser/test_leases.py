"""The lease board in Chromium: chosen by mouse and by keyboard, dark, narrow, and without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import lease_board
from tests.course.browser.live_boards import fits, live_page, still_page, unnamed_controls

pytestmark = pytest.mark.browser


def test_another_run_is_played_and_a_cell_reads_it(chromium: Any, tmp_path: Path) -> None:
    board = lease_board(recorded={})
    page = live_page(chromium, board, tmp_path)
    page.get_by_text("8 of 8 orders done; 0 calls repeated.").wait_for()
    page.get_by_label("A lease lasts").select_option(label="5 s")
    page.get_by_label("A call takes").select_option(label="8 s")
    page.get_by_text("0 of 8 orders done").wait_for()
    assert board.settings.lease_s == 5 and board.done == 0
    page.get_by_role("slider", name="Moment").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("+500 ms: 8 handed out, so the lag is 0. On lease 8, done 0, coming back 0.").wait_for()
    picture = page.locator(".ls-time").bounding_box()
    page.mouse.click(picture["x"] + picture["width"] / 2, picture["y"] + 30)
    page.wait_for_timeout(200)
    assert 35_000 < board.state["moment_ms"] < 55_000
    assert unnamed_controls(page) == [] and page.problems == []


def test_a_narrow_dark_page_without_a_kernel_shows_recorded_runs(chromium: Any, tmp_path: Path) -> None:
    recorded = {"happens": ("works", "hangs"), "members": (2,), "lease_s": (10,), "work_s": (2,)}
    page = still_page(chromium, lease_board(recorded=recorded), tmp_path, dark=True, width=420)
    page.get_by_label("billing-1").select_option(label="hangs in its first call")
    page.get_by_text("8 of 8 orders done; 1 call repeated.").wait_for()
    assert page.get_by_label("A lease lasts").locator("option").all_text_contents() == ["10 s"]
    assert fits(page) and page.problems == []
