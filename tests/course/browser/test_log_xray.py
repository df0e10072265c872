"""The log X-ray in Chromium: actions by mouse and by keyboard, one message lit up, dark, narrow, without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import log_xray
from tests.course.browser.live_boards import fits, live_page, still_page, unnamed_controls

pytestmark = pytest.mark.browser

ACTIONS: list[Any] = [("append", {"keys": "order-0"}), "dispatch", ("append", {"keys": "order-", "count": 14})]


def test_actions_by_mouse_and_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    xray = log_xray(ACTIONS)
    page = live_page(chromium, xray, tmp_path)
    status = page.get_by_role("status")

    # 1. By mouse: the rest of the controls is folded; append, dispatch, look at a message, lose a page.
    assert not page.get_by_label("Topic").is_visible()
    page.get_by_text("More settings", exact=True).click()
    page.get_by_label("Topic").fill("payments")
    page.get_by_role("button", name="Append").click()
    status.filter(has_text="Step 4 of 4: SEND_OK: payments 0, queue offset 0").wait_for()
    page.get_by_role("region", name="Commit log").get_by_role("button", name="byte 0,").click()
    assert page.locator("button.mq-lit").count() == 5  # log, queue, two index entries, page
    assert xray.state["selected"] == 0
    page.get_by_role("button", name="page 1: dirty").first.click()
    page.get_by_role("button", name="lose marked pages only").click()
    status.filter(has_text="lost: 1 page").wait_for()
    page.get_by_role("button", name="Recover").click()
    status.filter(has_text="Step 6 of 6").wait_for()
    assert 0 < len(xray.units()) < 16

    # 2. By keyboard alone: undo, scrub, go from unit to unit, cut the power in the past.
    page.get_by_role("button", name="Undo").focus()
    page.keyboard.press("Enter")
    status.filter(has_text="Step 5 of 5").wait_for()
    page.get_by_role("slider", name="Step").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    status.filter(has_text="Step 1 of 5").wait_for()
    page.wait_for_timeout(100)
    assert xray.state["position"] == 1
    page.keyboard.press("End")
    status.filter(has_text="Step 5 of 5").wait_for()
    page.keyboard.press("ArrowLeft")
    status.filter(has_text="Step 4 of 5").wait_for()
    page.get_by_role("region", name="Commit log").get_by_role("button", pressed=True).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.wait_for_timeout(200)
    assert xray.state["selected"] == xray.units()[1].place
    page.get_by_role("button", name="Power cut", exact=True).focus()
    page.keyboard.press("Space")
    page.keyboard.press("Space")  # it is not lost, although the first press is not answered yet
    status.filter(has_text="Step 6 of 6: the machine is off; lost: 0 pages").wait_for()

    # 3. A refusal is told, other settings do the steps again.
    page.get_by_role("button", name="Append").click()
    page.get_by_role("alert").filter(has_text="the broker is down").wait_for()
    page.get_by_label("Flush policy").select_option(label="SYNC_FLUSH")
    status.filter(has_text="SYNC_FLUSH").wait_for()
    assert unnamed_controls(page) == [] and page.problems == []


def test_next_stores_messages_and_writes_their_entries(chromium: Any, tmp_path: Path) -> None:
    xray = log_xray([])
    page = live_page(chromium, xray, tmp_path)
    assert page.get_by_role("button").filter(visible=True).all_inner_texts()[:2] == ["Next", "Undo"]
    status = page.get_by_role("status")
    for step, words in (
        (1, "queue offset 0"),
        (2, "1 unit dispatched"),
        (3, "queue offset 1"),
        (4, "1 unit dispatched"),
    ):
        page.get_by_role("button", name="Next").click()
        status.filter(has_text=f"Step {step} of {step}: ").filter(has_text=words).wait_for()
    assert [unit.keys for unit in xray.units()] == ["order-0", "order-1"]
    page.get_by_text("More settings", exact=True).click()
    page.get_by_role("button", name="Kill").click()
    status.filter(has_text="Step 5 of 5").wait_for()
    page.get_by_role("button", name="Next").click()  # a broker that is down is started again
    status.filter(has_text="Step 6 of 6").filter(has_text="The broker is running").wait_for()


def test_without_a_kernel_it_is_scrubbed_and_read(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, log_xray([*ACTIONS, "power_cut", "recover"]), tmp_path, dark=True)
    assert page.get_by_role("button", name="Append").count() == 0
    status = page.get_by_role("status")
    page.get_by_role("slider", name="Step").focus()
    page.keyboard.press("Home")
    status.filter(has_text="Step 0 of 5: an empty store").wait_for()
    page.get_by_role("slider", name="Step").fill("3")
    status.filter(has_text="Step 3 of 5").wait_for()
    page.get_by_role("region", name="Consume queues").get_by_role("button", name="entry 0").click()
    page.get_by_text("The unit at byte 0").wait_for()
    assert fits(page) and unnamed_controls(page) == [] and page.problems == []
