"""The console in Chromium: pages by mouse, a change by keyboard alone, dark, narrow, and without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab import Lab
from mqlab.course.widgets import console
from tests.cli.served_console import serving
from tests.course.browser.live_boards import fits, live_page, page_of, still_page, unnamed_controls
from tests.course.widgets.console_world import shop_day, shop_lab

pytestmark = pytest.mark.browser


def test_pages_are_opened_by_mouse_and_a_reset_is_confirmed_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    lab = shop_lab()
    board = console(lab)
    page = live_page(chromium, board, tmp_path)
    # 1. By mouse: topics, one topic, the newest message of it, a search.
    page.get_by_role("navigation", name="Pages").get_by_role("button", name="Topics").click()
    page.get_by_role("heading", name="Topics", exact=True).wait_for()
    page.get_by_role("button", name="orders", exact=True).click()
    page.get_by_role("heading", name="Topic orders").wait_for()
    assert board.state["place"] == "topic orders"
    page.get_by_role("button", name="Messages").click()
    page.get_by_role("heading", name="Messages", exact=True).wait_for()
    page.get_by_label("Key", exact=True).fill("order-3")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("group", name="Found").get_by_role("row", name="order-3").get_by_role("button", name="0A").click()
    page.get_by_role("heading", name="Message 0A").wait_for()
    page.get_by_role("group", name="In each group").get_by_role("row", name="billing DEAD").wait_for()
    page.get_by_role("group", name="Trace").get_by_text("SubAfter").first.wait_for()

    # 2. By keyboard: the group, the reset's preview, Escape, the preview again, its confirmation.
    page.get_by_role("button", name="Groups").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Groups", exact=True).wait_for()
    page.get_by_role("button", name="archive").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Group archive").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Group archive"
    page.get_by_text("CODE: 206").first.wait_for()
    change = page.get_by_role("group", name="Change", exact=True)
    for end in ("Escape", "Enter"):
        page.get_by_role("button", name="Preview reset").focus()
        page.keyboard.press("Enter")
        change.get_by_text("Messages read again: 6; skipped: 0.").wait_for()
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Change"
        if end == "Enter":
            page.keyboard.press("Tab")
        page.keyboard.press(end)
        if end == "Escape":
            change.wait_for(state="hidden")
            assert lab.admin.examine_consume_stats("archive", "orders").total_diff == 0
    change.get_by_text("Done.").wait_for()
    page.get_by_role("group", name="Lag").get_by_role("row", name="orders 6").wait_for()
    assert lab.admin.examine_consume_stats("archive", "orders").total_diff == 6 and len(board.changes()) == 1
    page.get_by_role("button", name="Close").click()

    # 3. Dead letters; time that passes; an error in the words of the verb.
    page.get_by_role("button", name="Groups").click()
    page.get_by_role("heading", name="Groups", exact=True).wait_for()
    page.get_by_role("button", name="billing").click()
    page.get_by_role("button", name="Preview resending of").click()
    change.get_by_text("Send 1 dead letter back to billing").wait_for()
    change.get_by_role("button", name="Do it").click()
    change.get_by_text("SEND_OK").wait_for()
    page.get_by_label("Let the Lab run for").fill("soon")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("alert").filter(has_text="'soon' is not a duration").wait_for()
    page.get_by_label("Let the Lab run for").fill("30s")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("group", name="Dead letters").get_by_role("row", name="order-3").nth(1).wait_for()
    board.open("topic", "payments")
    assert unnamed_controls(page) == [] and page.problems == []


def test_without_a_kernel_recorded_pages_are_switched(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, console(shop_lab()), tmp_path, dark=True)
    page.get_by_text("Recorded at Lab time").wait_for()
    for name in ("Ask again", "Run"):
        assert page.get_by_role("button", name=name, exact=True).count() == 0
    page.get_by_role("button", name="Groups").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="billing").press("Enter")
    page.get_by_role("heading", name="Group billing").wait_for()
    assert page.get_by_role("button", name="Preview").count() == 0
    letters = page.get_by_role("group", name="Dead letters")
    letters.get_by_role("button", name="0A").click()
    page.get_by_role("heading", name="Message 0A").wait_for()
    page.get_by_role("group", name="In each group").get_by_role("row", name="billing DEAD").wait_for()
    # What was not recorded is text and leads nowhere: here the message that the letter is a copy of.
    assert page.get_by_role("group", name="Copy of").get_by_role("button", name="0A").count() == 0
    page.get_by_role("button", name="Topics").click()
    page.get_by_label("Show kind").select_option(label="DLQ")
    page.get_by_role("row", name="%DLQ%billing").wait_for()
    assert fits(page) and unnamed_controls(page) == [] and page.problems == []
    paper = "getComputedStyle(document.querySelector('.mqlab-board')).backgroundColor"
    assert page.evaluate(paper) == "rgb(22, 25, 31)"


def test_mqlab_console_is_one_page_that_says_when_its_process_has_ended(chromium: Any, tmp_path: Path) -> None:
    with Lab(seed=7, directory=tmp_path / "run") as lab:
        shop_day(lab)
    page = page_of(chromium, width=420)
    with serving(tmp_path / "run") as (address, token):
        page.goto(f"{address}/?token={token}")
        page.get_by_role("button", name="Groups").click()
        page.get_by_role("button", name="archive").click()
        page.get_by_role("heading", name="Group archive").wait_for()
        page.get_by_role("button", name="Preview reset").click()
        page.get_by_role("button", name="Do it").click()
        page.get_by_role("group", name="Lag").get_by_role("row", name="orders 6").wait_for()
        assert fits(page) and page.get_by_text("the files are not changed").is_visible()
    page.get_by_role("button", name="Ask again").click()
    page.get_by_role("alert").filter(has_text="mqlab console has ended").wait_for()
