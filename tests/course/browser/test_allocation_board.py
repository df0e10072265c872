"""The allocation board in Chromium: by mouse, by keyboard alone, dark, narrow, without a kernel; its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import AllocationBoard, allocation_board
from mqlab.course.widgets.boards.allocation import HandoverSettings
from tests.course.browser.live_boards import fits, live_page, open_more_settings, still_page, unnamed_controls

pytestmark = pytest.mark.browser

HISTORY = [("join", "billing-4"), ("leave", "billing-2"), ("rename", "billing-1", "billing-9")]
RECORDED = {
    "a member joins": HandoverSettings(),
    "none is notified": HandoverSettings(told=False),
}


def same_numbers(page: Any, board: AllocationBoard) -> None:
    """The page counts what mqlab/course/widgets/boards/allocation/measures.py counts."""
    region = page.get_by_role("region", name="All strategies")
    shown = region.evaluate(
        "box => [...box.querySelectorAll('tbody tr')].map(row => [...row.cells].map(c => c.innerText))"
    )
    expected = [[row.strategy, str(row.fairness), str(row.moved), str(row["fewest moves"])] for row in board.compare()]
    assert [row[:4] for row in shown] == expected
    ratios = [row[4] for row in shown]
    assert [ratio == "–" for ratio in ratios] == [row.churn is None for row in board.compare()]


def test_members_come_and_go_by_mouse_and_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    board = allocation_board(history=HISTORY, recorded=RECORDED)
    page = live_page(chromium, board, tmp_path)
    open_more_settings(page)
    status = page.get_by_role("status")
    status.filter(has_text="moment 3: billing-1 comes back as billing-9. 3 members, difference 1, 8 of 8").wait_for()
    same_numbers(page, board)

    # 1. By mouse: another strategy, a leave, a new name (from the kernel), more queues, a run.
    page.get_by_role("row", name="CONSISTENT_HASH").click()
    page.wait_for_timeout(100)
    assert board.state["strategy"] == "CONSISTENT_HASH"
    page.get_by_label("Member", exact=True).select_option(label="D billing-4")
    page.get_by_role("button", name="Leave").click()
    status.filter(has_text="moment 4: billing-4 leaves. 2 members").wait_for()
    page.get_by_label("Name").fill("mailer")
    page.get_by_role("button", name="Join under the name").click()
    status.filter(has_text="moment 5: mailer joins. 3 members").wait_for()
    assert board.members == ["billing-3", "billing-9", "mailer"]
    page.get_by_role("button", name="Join under the name").click()
    page.wait_for_timeout(100)
    page.get_by_label("Name").fill("mailer")
    page.get_by_role("button", name="Join under the name").click()
    page.get_by_role("alert").filter(has_text="mailer is a member already").wait_for()
    page.get_by_role("button", name="Undo").click()
    same_numbers(page, board)
    page.get_by_label("Topics").fill("3")
    page.get_by_label("Topics").press("Enter")
    status.filter(has_text="of 24 queues").wait_for()
    page.wait_for_timeout(100)
    same_numbers(page, board)
    page.get_by_role("rowheader", name="orders 3").click()
    page.get_by_text("orders 3 has hash").wait_for()
    page.get_by_label("A call takes", exact=True).select_option(label="1s")
    page.get_by_role("button", name="Play the group").click()
    page.get_by_text("a call takes 1 s, the members are notified").wait_for()
    assert board.run is not None and board.run.settings.strategy == "CONSISTENT_HASH"

    # 2. By keyboard alone: back to the beginning, other virtual nodes, a leave and an undo.
    page.get_by_role("slider", name="Moment").focus()
    page.keyboard.press("Home")
    status.filter(has_text="moment 0: at the beginning. 3 members").wait_for()
    page.get_by_role("slider", name="Virtual nodes").focus()
    page.keyboard.press("End")
    page.wait_for_timeout(100)
    assert (board.state["position"], board.state["virtual_nodes"]) == (0, 100)
    same_numbers(page, board)
    page.get_by_label("Member", exact=True).focus()
    page.keyboard.press("Home")
    page.keyboard.press("Tab")  # to "Leave"
    page.keyboard.press("Enter")
    status.filter(has_text="moment 1: billing-1 leaves. 2 members").wait_for()
    page.get_by_role("button", name="Undo").focus()
    page.keyboard.press("Space")
    status.filter(has_text="moment 0").wait_for()
    page.get_by_label("Queue", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.get_by_text("orders 4 has hash").wait_for()
    assert unnamed_controls(page) == [] and page.problems == []


def test_without_a_kernel_its_names_come_and_go_in_any_order(chromium: Any, tmp_path: Path) -> None:
    board = allocation_board("CONSISTENT_HASH", queues=4, members=2, recorded=RECORDED)
    page = still_page(chromium, board, tmp_path, dark=True)
    status = page.get_by_role("status")
    assert page.get_by_label("Topics").count() == 0
    page.get_by_text("this page has, computed beforehand: all strategies").wait_for()
    page.get_by_label("Name").fill("billing-6")
    page.get_by_role("button", name="Join under the name").click()
    status.filter(has_text="moment 1: billing-6 joins. 3 members").wait_for()
    page.get_by_label("Strategy").select_option(label="AVG")
    page.get_by_label("Member", exact=True).select_option(label="A billing-1")
    page.get_by_role("button", name="Leave").press("Enter")
    status.filter(has_text="moment 2: billing-1 leaves. 2 members").wait_for()
    same_numbers(page, board.join("billing-6").leave("billing-1").change(strategy="AVG"))
    page.get_by_label("Name").fill("mailer")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="Without a kernel this page has these names").wait_for()
    page.get_by_label("Run", exact=True).select_option(label="none is notified")
    page.get_by_text("no member is notified: no owner for up to").wait_for()
    page.get_by_text("Overlaps as a table").click()
    page.get_by_role("cell", name="two owners").first.wait_for()
    assert fits(page) and unnamed_controls(page) == [] and page.problems == []
    paper = "getComputedStyle(document.querySelector('.mqlab-board')).backgroundColor"
    assert page.evaluate(paper) == "rgb(22, 25, 31)"


def test_without_a_kernel_and_without_runs_there_is_no_running_group(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, allocation_board(queues=2, members=1, recorded={}), tmp_path)
    assert page.get_by_role("region", name="The hash ring").count() == 1
    assert page.get_by_role("region", name="While a queue changes hands").count() == 0


LABELS = """() => [...document.querySelectorAll('svg:is(.ho-picture, .ab-picture:not([style])) text')].map((label) =>
  parseFloat(getComputedStyle(label).fontSize) * label.getScreenCTM().a)"""


def test_labels_are_as_large_as_the_text_around_them_at_any_width(chromium: Any, tmp_path: Path) -> None:
    page = live_page(chromium, allocation_board(history=HISTORY, recorded=RECORDED), tmp_path, width=1400)
    for width in (1400, 420, 930):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(200)
        sizes = page.evaluate(LABELS)
        assert len(sizes) > 10 and 11.5 < min(sizes) <= max(sizes) < 13, (width, sizes)
