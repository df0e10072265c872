"""The offset strip in Chromium: messages finished by mouse and by keyboard, a crash, dark, narrow, without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import offset_strip
from tests.course.browser.live_boards import fits, live_page, open_more_settings, still_page, unnamed_controls

pytestmark = pytest.mark.browser


def test_messages_are_finished_by_mouse_and_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    strip = offset_strip(threads=4, messages=40, span=20, actions=[])
    page = live_page(chromium, strip, tmp_path)
    open_more_settings(page)
    status = page.get_by_role("status")
    queue = page.get_by_role("region", name="One queue")

    # 1. By mouse: a message, everything behind the first, the next persist, a crash.
    page.get_by_text("Pulling waits: span over its limit").wait_for()
    queue.get_by_role("button", name="Finish message 2:").click()
    status.filter(has_text="Step 1 of 1: 2 finished; the smallest still cached is 0").wait_for()
    assert strip.finished == [2]
    page.get_by_role("button", name="Finish all but the first").click()
    status.filter(has_text="Step 2 of 2: 38 messages finished, all but 0").wait_for()
    page.get_by_text("● Pulling").wait_for()
    page.get_by_role("button", name="To the client's next persist").click()
    page.get_by_role("row", name="The broker's table 0").wait_for()
    page.get_by_role("button", name="Crash the client").click()
    page.get_by_text("reads from 0 on: 39 messages that were finished come again").wait_for()
    assert len(strip.redelivered()) == 39
    assert (
        queue.get_by_role("img", name="message 5: cached, waits for a thread, finished before the crash").count() == 1
    )

    # 2. By keyboard alone: back in time, another message with the arrow keys, undo.
    page.get_by_role("slider", name="Step").focus()
    page.keyboard.press("Home")
    status.filter(has_text="Step 0 of 4").wait_for()
    queue.get_by_role("button", name="Finish message 0:").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    status.filter(has_text="Step 1 of 1: 1 finished").wait_for()
    page.wait_for_function("document.activeElement.dataset.offset === '2'")  # the next that can be finished
    page.keyboard.press("Space")
    status.filter(has_text="Step 2 of 2: 2 finished").wait_for()
    assert strip.finished == [1, 2]
    page.get_by_role("button", name="Undo").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # it is not lost, although the first press is not answered yet
    status.filter(has_text="Step 0 of 0").wait_for()

    # 3. Other settings begin anew, a refusal is told.
    page.get_by_label("Batch").fill("3")
    page.get_by_role("button", name="Start over").click()
    queue.get_by_role("button", name="Finish message 4: in a call (the call has 3 to 5)").wait_for()
    page.get_by_label("Client persists every").fill("soon")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="soon").wait_for()
    assert unnamed_controls(page) == [] and page.problems == []


def test_without_a_kernel_the_steps_are_shown_again(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, offset_strip(), tmp_path, dark=True)
    assert page.get_by_role("button", name="Crash").count() == 0
    status = page.get_by_role("status")
    status.filter(has_text="Step 4 of 4: the client was killed").wait_for()
    page.get_by_role("slider", name="Step").focus()
    page.keyboard.press("ArrowLeft")
    status.filter(has_text="Step 3 of 4: 0 finished").wait_for()
    page.get_by_text("The client has not crashed yet").wait_for()
    page.get_by_role("row", name="2 7.986 s later").click()
    status.filter(has_text="Step 2 of 4").wait_for()
    assert fits(page) and unnamed_controls(page) == [] and page.problems == []
    paper = "getComputedStyle(document.querySelector('.mqlab-board')).backgroundColor"
    assert page.evaluate(paper) == "rgb(22, 25, 31)"
