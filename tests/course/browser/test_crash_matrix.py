"""The crash matrix in Chromium: run in slices, runs chosen and opened by mouse and keyboard, dark, without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import crash_matrix
from tests.course.browser.live_boards import fits, live_page, still_page, unnamed_controls
from tests.course.widgets.crash_stories import QUIET, VARIANTS, charges, lines_only

pytestmark = pytest.mark.browser

OPENED = ".cm-opened"
OPENED_STATUS = f"{OPENED} [role=status]"


def matrix(*, run: bool) -> Any:
    return crash_matrix(VARIANTS, node="billing-1", outcome=charges, only=lines_only, run=run, **QUIET)


def test_runs_are_made_chosen_and_opened(chromium: Any, tmp_path: Path) -> None:
    shown = matrix(run=False)
    page = live_page(chromium, shown, tmp_path)
    status = page.locator("[role=status]").first
    status.filter(has_text="0 of ").wait_for()

    # 1. By mouse: run all, choose the first bad run, open it.
    page.get_by_role("button", name="Run the rest").click()
    page.get_by_text("✓ charged 1 times", exact=False).first.wait_for()
    page.wait_for_function("document.querySelector('[aria-label=\"Runs done\"]').value === 1", timeout=60_000)
    assert shown.waiting == []
    page.get_by_role("button", name="charged 2 times").first.click()
    status.filter(has_text="two commits: billing-1 ended before line").wait_for()
    assert page.locator(".cm-crash").count() == 1
    assert (shown.state["variant"], shown.chosen().outcome) == ("two commits", "charged 2 times")
    page.get_by_role("button", name="Open in the time machine").click()
    page.locator(OPENED_STATUS, has_text="billing-1: killed").first.wait_for()

    # 2. By keyboard alone: the next run, the other variant, open.
    page.get_by_role("group", name="two commits").get_by_role("button", pressed=True).focus()
    number = shown.state["number"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.wait_for_timeout(200)
    assert shown.state == {"variant": "two commits", "number": number + 1}
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    status.filter(has_text="one commit: billing-1 ended").wait_for()
    assert page.locator(f"{OPENED} > *").count() == 0
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(OPENED_STATUS, has_text="billing-1: killed").first.wait_for()

    # 3. A filter, and names for everything.
    page.get_by_label("Show", exact=True).select_option(label="not as it should")
    assert page.locator("button.cm-cell").count() == 2
    assert unnamed_controls(page) == [] and page.problems == []


def test_without_a_kernel_runs_are_read_and_the_first_bad_one_opens(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, matrix(run=True), tmp_path, dark=True)
    assert page.get_by_role("button", name="Run the rest").count() == 0
    opening = page.get_by_role("button", name="Open in the time machine")
    status = page.locator("[role=status]").first
    page.get_by_role("button", name="one commit, before line 0").click()
    status.filter(has_text="Its time machine needs a kernel").wait_for()
    assert opening.is_disabled() and page.locator(".cm-crash").count() == 1
    page.get_by_role("button", name="charged 2 times").first.click()
    opening.click()
    page.locator(OPENED_STATUS, has_text="billing-1: killed").first.wait_for()
    assert fits(page) and unnamed_controls(page) == [] and page.problems == []
