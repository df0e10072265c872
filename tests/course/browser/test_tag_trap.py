"""The tag-trap board in Chromium: played by mouse and by keyboard, dark, narrow, and without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import tag_trap_board
from mqlab.course.widgets.boards.tag_trap.board import every_choice
from tests.course.browser.live_boards import fits, live_page, open_more_settings, still_page, unnamed_controls

pytestmark = pytest.mark.browser


def test_settings_are_changed_by_mouse_and_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    board = tag_trap_board(recorded=())
    page = live_page(chromium, board, tmp_path)
    open_more_settings(page)
    page.get_by_text("billing received 2, shipping received 0. Nobody received 6. Lag in monitoring: 0.").wait_for()

    page.get_by_label("post_subscription_when_pull").check()
    page.get_by_text("billing received 2, shipping received 2. Nobody received 4.").wait_for()
    assert board.settings.post_subscription_when_pull and len(board.nobody()) == 4
    page.get_by_label("post_subscription_when_pull").uncheck()
    page.get_by_label("Show what the popular picture says").check()
    page.get_by_text("it differs (≠) on 2 of 8 lanes").wait_for()
    assert board.state["compare"] is True

    page.get_by_label("After both have joined").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.get_by_text("billing received 0, shipping received 2.").wait_for()
    page.get_by_role("slider", name="Order").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("Order 2 of 8, shipped-0").wait_for()
    page.get_by_text("billing compares the text with its own tags (paid): the client drops it.").wait_for()
    assert board.state["lane"] == 2

    page.get_by_label("billing subscribes to").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("paid || shipped")
    page.keyboard.press("Enter")
    page.get_by_text("Nobody received 4.").wait_for()
    page.get_by_label("shipping subscribes to").fill("||")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="a tag expression without tags").wait_for()
    assert unnamed_controls(page) == [] and page.problems == []


def test_without_a_kernel_every_recorded_choice_is_there(chromium: Any, tmp_path: Path) -> None:
    recorded = every_choice((("paid", "shipped"),))
    page = still_page(chromium, tag_trap_board(recorded=recorded), tmp_path, dark=True)
    assert page.get_by_label("billing subscribes to").count() == 0
    assert page.get_by_label("Clock a minute ahead").count() == 0
    page.get_by_label("Groups").select_option(label="one for each")
    page.get_by_text("billing received 4, shipping received 4. Nobody received 0.").wait_for()
    page.get_by_role("slider", name="Order").focus()
    page.keyboard.press("End")
    page.get_by_text("Order 16 of 16, shipped-3 in group shipping").wait_for()
    page.get_by_text("Heartbeats before the orders").click()
    page.get_by_role("table", name="A heartbeat with a lower").wait_for()
    assert fits(page) and unnamed_controls(page) == [] and page.problems == []
    paper = "getComputedStyle(document.querySelector('.mqlab-board')).backgroundColor"
    assert page.evaluate(paper) == "rgb(22, 25, 31)"
