"""The long-poll scope in Chromium: played by mouse and by keyboard, dark, narrow, and without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import long_poll_scope
from mqlab.course.widgets.boards.long_poll.runs import PollSettings
from tests.course.browser.live_boards import fits, live_page, open_more_settings, still_page, unnamed_controls

pytestmark = pytest.mark.browser


def test_settings_are_changed_by_mouse_and_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    scope = long_poll_scope(recorded={})
    page = live_page(chromium, scope, tmp_path)
    open_more_settings(page)
    page.get_by_text("Requests a second: 0.93 held, 1.00 asking.").wait_for()

    page.get_by_label("The other asks every").fill("100ms")
    page.keyboard.press("Enter")
    page.get_by_text("Requests a second: 0.93 held, 10.00 asking.").wait_for()
    assert scope.settings.interval_ms == 100 and scope.requests()[1].requests == 300
    page.locator(".lp-time g").nth(4).click()
    page.get_by_text("Pull 5 of 29: asked at").wait_for()
    page.get_by_label("Shown").select_option(label="100 ms around it")
    page.wait_for_timeout(100)
    assert scope.state == {"pull": 5, "window_ms": 100}

    page.get_by_role("slider", name="Pull").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("Pull 6 of 29: asked at").wait_for()
    page.get_by_label("Rare tag").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("10")
    page.keyboard.press("Enter")
    page.get_by_text("only one message of 10 is wanted").wait_for()
    page.get_by_role("slider", name="Pull").focus()
    page.keyboard.press("Home")
    page.get_by_text("until the check every 5 s found newer messages").wait_for()

    page.get_by_label("Held at most").fill("soon")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="\"Held at most\": 'soon' is not a duration").wait_for()
    assert unnamed_controls(page) == [] and page.problems == []


# The kernel answers when the test says so, and only that it was interrupted.
SLOW_KERNEL = """() => {
  window.toBoard = (content) => new Promise((done) => (window.finish = () =>
    done({ state: {}, messages: [{ answer: content.ask, error: "Interrupted" }] })));
}"""


def test_a_line_moves_while_the_kernel_works(chromium: Any, tmp_path: Path) -> None:
    page = live_page(chromium, long_poll_scope(recorded={}), tmp_path)
    line = page.get_by_role("progressbar")
    assert line.count() == 0
    page.evaluate(SLOW_KERNEL)
    page.get_by_label("The other asks every").fill("100ms")
    page.keyboard.press("Enter")
    line.wait_for()
    assert "Interrupt Kernel" in line.get_attribute("title") and line.get_attribute("value") is None
    page.evaluate("window.finish()")
    line.wait_for(state="hidden")
    page.get_by_role("alert").filter(has_text="Interrupted").wait_for()


def test_without_a_kernel_recorded_runs_are_chosen(chromium: Any, tmp_path: Path) -> None:
    scope = long_poll_scope(recorded={"quiet": PollSettings(rate=0.1)})
    page = still_page(chromium, scope, tmp_path, dark=True)
    assert page.get_by_label("Messages a second").count() == 0
    page.get_by_label("Recorded run").select_option(label="quiet")
    page.get_by_text("Requests a second: 0.13 held, 1.00 asking.").wait_for()
    page.get_by_role("slider", name="Pull").focus()
    page.keyboard.press("End")
    page.get_by_text("It is still under way.").wait_for()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.get_by_text("until a check every 5 s found that its time was over").wait_for()
    assert fits(page) and unnamed_controls(page) == [] and page.problems == []
    paper = "getComputedStyle(document.querySelector('.mqlab-board')).backgroundColor"
    assert page.evaluate(paper) == "rgb(22, 25, 31)"
