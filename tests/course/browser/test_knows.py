"""The knows board in Chromium: chosen by mouse and by keyboard, dark, narrow, and without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import knows_board
from tests.course.browser.live_boards import fits, live_page, still_page, unnamed_controls

pytestmark = pytest.mark.browser


def test_other_settings_are_played_and_a_cell_reads_them(chromium: Any, tmp_path: Path) -> None:
    board = knows_board(recorded={})
    page = live_page(chromium, board, tmp_path)
    page.get_by_text("Changes its mind: nameserver-1 after 0.5 s, shop after 27 s").wait_for()
    page.get_by_label("Clients poll every").select_option(label="5 s")
    page.get_by_text("0 of the shop's sends did not reach broker-b, 0 failed.").wait_for()
    page.get_by_label("What happens to broker-b").select_option(label="its machine loses power")
    page.get_by_text("broker-b is without power.").wait_for()
    assert board.settings.happens == "power_off" and board.settings.poll_s == 5

    page.get_by_role("slider", name="Moment").focus()
    page.keyboard.press("End")
    page.get_by_text("150 s after it happened").wait_for()
    table = page.get_by_role("table", name="What each one believes")
    assert "not registered" in table.inner_text()
    picture = page.locator(".kn-time").bounding_box()
    page.mouse.click(picture["x"] + picture["width"] / 2, picture["y"] + 30)
    page.wait_for_timeout(200)
    assert 50_000 < board.state["moment_ms"] < 90_000
    assert unnamed_controls(page) == [] and page.problems == []


def test_without_a_kernel_recorded_runs_are_chosen(chromium: Any, tmp_path: Path) -> None:
    recorded = {"happens": ("kill", "partition"), "name_servers": (1, 2), "poll_s": (30,)}
    page = still_page(chromium, knows_board(recorded=recorded), tmp_path, dark=True)
    page.get_by_label("What happens to broker-b").select_option(label="nameserver-1 no longer hears from it")
    page.get_by_label("Name servers").select_option(label="2")
    page.get_by_text("nameserver-2 never, shop never").wait_for()
    assert page.get_by_label("Clients poll every").locator("option").all_text_contents() == ["30 s"]
    assert page.problems == []


def test_a_narrow_page_shows_it(chromium: Any, tmp_path: Path) -> None:
    recorded = {"happens": ("wipe",), "name_servers": (2,), "poll_s": (30,)}
    page = still_page(chromium, knows_board(happens="wipe", name_servers=2, recorded=recorded), tmp_path, width=420)
    page.get_by_text("billing never. 0 of").wait_for()
    page.get_by_text("This page has one run: run the cell to play others.").wait_for()
    assert fits(page)
