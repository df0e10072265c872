"""The retry clock in Chromium: played by mouse and by keyboard, dark, narrow, and without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import retry_clock
from mqlab.course.widgets.boards.retry_clock.runs import RetrySettings
from mqlab.lab.parts import OwnParts
from tests.course.browser.live_boards import fits, live_page, open_more_settings, still_page, unnamed_controls
from tests.lab.parts.brokers.rocketmq_shape import MyRetries

pytestmark = pytest.mark.browser

RECORDED = {"two retries": RetrySettings(max_retries=2), "in order": RetrySettings(orderly=True, max_retries=3)}


def test_a_run_is_played_by_mouse_and_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    clock = retry_clock(max_retries=1, recorded=RECORDED, prediction="10s")
    page = live_page(chromium, clock, tmp_path)
    open_more_settings(page)
    page.get_by_text("2 deliveries; dead after 10 s").wait_for()
    page.get_by_text("Nearest event: delivery 2").wait_for()

    page.get_by_label("Max retries").fill("3")
    page.get_by_role("button", name="Play").click()
    page.get_by_text("4 deliveries; dead after 1 min 40 s").wait_for()
    assert len(clock.deliveries()) == 4 and clock.settings.max_retries == 3
    page.get_by_role("row", name="3 40 s").click()
    page.get_by_text("Delivery 3 of 4").wait_for()
    assert clock.state["delivery"] == 3

    page.get_by_label("Level asked").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("1")
    page.keyboard.press("Enter")
    page.get_by_text("4 deliveries; dead after 3 s").wait_for()
    page.get_by_role("slider", name="Delivery").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("Delivery 2 of 4, after 1 s").wait_for()
    before = clock.state["pin_ms"]
    page.get_by_role("slider", name="Your prediction").focus()
    for _ in range(30):
        page.keyboard.press("ArrowLeft")
    page.wait_for_function("document.body.innerText.includes('Your pin: ')")
    page.wait_for_timeout(100)
    assert clock.state["pin_ms"] < before

    page.get_by_label("Level table").fill("1x")
    page.get_by_role("button", name="Play").click()
    page.get_by_role("alert").filter(has_text="level 1 is '1x'").wait_for()
    assert unnamed_controls(page) == [] and page.problems == []


def test_copies_on_own_retries_wait_there_and_not_in_rocketmqs_topic(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, retry_clock(max_retries=1, parts=OwnParts(retries=MyRetries)), tmp_path)
    page.get_by_text("waits in your retries, with its level").wait_for()
    page.get_by_text("Then it waits in your retries (level 3)").wait_for()
    assert page.get_by_text("SCHEDULE_TOPIC_XXXX").count() == 0


def test_without_a_kernel_recorded_runs_are_chosen(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, retry_clock(max_retries=1, recorded=RECORDED, prediction="1m"), tmp_path, dark=True)
    assert page.get_by_role("button", name="Play").count() == 0
    page.get_by_label("Recorded run").select_option(label="two retries")
    page.get_by_text("3 deliveries; dead after 40 s").wait_for()
    page.get_by_role("slider", name="Delivery").focus()
    page.keyboard.press("End")
    page.get_by_text("Delivery 3 of 3").wait_for()
    assert fits(page) and unnamed_controls(page) == [] and page.problems == []
    paper = "getComputedStyle(document.querySelector('.mqlab-board')).backgroundColor"
    assert page.evaluate(paper) == "rgb(22, 25, 31)"
