"""The backlog tank in Chromium: drawn and played by mouse and by keyboard, dark, narrow, and without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import backlog_tank
from mqlab.course.widgets.boards.backlog.runs import TankSettings
from tests.course.browser.live_boards import fits, live_page, open_more_settings, still_page, unnamed_controls

pytestmark = pytest.mark.browser

PEAK = (2, 12, 12, 2, 2, 2, 0, 0, 0, 0, 0, 0)


def test_a_curve_is_drawn_and_played_by_mouse_and_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    tank = backlog_tank(traffic=PEAK, threads=6, recorded={})
    page = live_page(chromium, tank, tmp_path)
    open_more_settings(page)
    page.get_by_text("The limit that binds: threads.").wait_for()

    page.get_by_label("Threads each").fill("14")
    page.get_by_role("button", name="Play").click()
    page.get_by_text("The limit that binds: nothing.").wait_for()
    assert tank.settings.threads == 14 and tank.binding == "nothing"
    first = page.get_by_role("slider", name="Messages a second from 0:00 to 0:10")
    first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_function("!document.querySelector('button[disabled]')")
    assert tank.settings.traffic[0] == 5

    box = page.get_by_role("slider", name="Messages a second from 0:10 to 0:20").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.get_by_label("Database slots").fill("5")
    page.keyboard.press("Enter")
    page.get_by_text("The limit that binds: database slots.").wait_for()
    assert 25 <= tank.settings.traffic[1] <= 35
    picture = page.locator(".bt-time").bounding_box()
    page.mouse.click(picture["x"] + picture["width"] / 2, picture["y"] + 40)
    page.get_by_role("slider", name="Moment").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(100)
    assert tank.state["second"] == pytest.approx(len(tank.seconds()) / 2, abs=4)

    page.get_by_label("T2, waiting").fill("long")
    page.get_by_role("button", name="Play").click()
    page.get_by_role("alert").filter(has_text="not a duration").wait_for()
    assert unnamed_controls(page) == [] and page.problems == []


def test_without_a_kernel_recorded_runs_are_chosen(chromium: Any, tmp_path: Path) -> None:
    recorded = {"few slots": TankSettings(PEAK, threads=6, slots=5)}
    page = still_page(chromium, backlog_tank(traffic=PEAK, threads=6, recorded=recorded), tmp_path, dark=True)
    assert page.get_by_role("button", name="Play").count() == 0
    page.get_by_label("Recorded run").select_option(label="few slots")
    page.get_by_text("The limit that binds: database slots.").wait_for()
    page.get_by_role("slider", name="Moment").focus()
    page.keyboard.press("End")
    page.get_by_text("Lag 0; monitoring shows 0.").wait_for()
    assert fits(page) and unnamed_controls(page) == [] and page.problems == []
    paper = "getComputedStyle(document.querySelector('.mqlab-board')).backgroundColor"
    assert page.evaluate(paper) == "rgb(22, 25, 31)"
