"""The boards over a day's tables in Chromium: moved with a kernel, and alone in a narrow dark page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets import echo_chart, percentile_board, watermark_board
from tests.course.browser.live_boards import fits, live_page, still_page, unnamed_controls, words_without_room
from tests.course.widgets.test_biography_board import board as biography
from tests.course.widgets.test_day_boards import CALLS, FAST, LATE, SLOW

pytestmark = pytest.mark.browser


def test_sizes_are_moved_and_a_cell_reads_them(chromium: Any, tmp_path: Path) -> None:
    board = percentile_board({"fast": FAST, "slow": SLOW}, first_size=1_000, second_size=20)
    page = live_page(chromium, board, tmp_path)
    page.get_by_text("Of all 1,020 messages together: 549 ms.").wait_for()
    page.get_by_role("slider", name="Messages of the second").focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_text("Of all 1,010 messages together: 100 ms.").wait_for()
    page.get_by_label("Percentile", exact=True).select_option(label="p50")
    page.get_by_text("p50 of fast: 50 ms").wait_for()
    assert board.state["second_size"] == 10 and board.state["percent"] == 50 and board.together == 51
    assert unnamed_controls(page) == [] and page.problems == []


def test_the_calls_of_an_echo_are_listed(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, echo_chart(CALLS, group="audit", stretch_s=60), tmp_path, dark=True)
    page.get_by_text("4 calls of audit: 2 within the 1 min in which their message was stored, 2 later.").wait_for()
    page.get_by_role("button", name="Show what was stored in 1 and called in 3: 1").click()
    page.get_by_role("list", name="Calls of the cell").get_by_text(
        "k-3, stored 00:11:01, called 00:13:06, late"
    ).wait_for()
    page.get_by_label("Group").select_option(label="billing")
    page.get_by_label("Stretch", exact=True).select_option(label="10 s")
    page.get_by_text("3 calls of billing: 1 within the 10 s").wait_for()
    assert fits(page) and unnamed_controls(page) == [] and page.problems == []


def test_the_page_reckons_a_watermark_as_python_does(chromium: Any, tmp_path: Path) -> None:
    board = watermark_board(LATE)
    page = live_page(chromium, board, tmp_path)
    page.get_by_text("✗ 2 are in no count.").wait_for()
    page.get_by_text(
        "2 messages of 2 groups dropped: their windows ended before the watermark of the batch before, 09:42:00"
    ).wait_for()
    for mode, delay, window in (
        ("append", "0 min", "10 min"),
        ("complete", "0 min", "5 min"),
        ("update", "60 min", "1 min"),
    ):
        page.get_by_label("Mode").select_option(label=mode)
        page.get_by_label("Delay").select_option(label=delay)
        page.get_by_label("Window", exact=True).select_option(label=window)
        page.get_by_text("is counted." if board.dropped == 0 else f"✗ {board.dropped} are in no count.").wait_for()
        bars = page.locator(".wm-batch").all_text_contents()
        assert [bar.partition(" kept")[0].split()[-1][1:] for bar in bars] == [str(one.kept) for one in board.batches()]
    page.get_by_role("slider", name="Batch").focus()
    page.keyboard.press("Home")
    page.get_by_text("Batch 0: 3 new messages, no watermark, ").wait_for()
    assert board.state["batch"] == 0 and unnamed_controls(page) == [] and page.problems == []


def test_one_message_that_is_dropped_is_told_as_one(chromium: Any, tmp_path: Path) -> None:
    rows = [[{"store_timestamp": 60_000 * at, "broker_name": "broker-a"}] for at in (0, 20, 40, 5)]
    page = still_page(chromium, watermark_board(rows), tmp_path)
    page.get_by_text("In the log 4 messages, counted 3: ✗ 1 is in no count.").wait_for()
    page.get_by_text(
        "1 new message, watermark 00:30:00, 1 row kept, 0 given to the sink, 1 message of 1 group dropped: its window"
    ).wait_for()
    assert page.problems == []


def test_a_biography_is_found_by_its_key_and_its_events_are_looked_at(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, biography(key="k-3"), tmp_path, dark=True)
    page.get_by_text("Event 1 of 4").wait_for()
    page.get_by_label("Key", exact=True).fill("k-1")
    page.keyboard.press("Enter")
    page.get_by_text("Event 1 of 9").wait_for()
    page.get_by_role("slider", name="Event").focus()
    page.keyboard.press("End")
    page.get_by_text("Event 9 of 9: 12:00:10.400 no result by billing: called at a member, try 2").wait_for()
    page.get_by_role("list", name="What became of it").get_by_text("billing: pending after 2 calls").wait_for()
    page.get_by_label("Key", exact=True).fill("K-1")
    page.keyboard.press("Enter")
    page.get_by_role("alert").get_by_text("No message has the key K-1.").wait_for()
    assert fits(page) and unnamed_controls(page) == [] and page.problems == []


def test_the_event_looked_at_is_in_view_with_the_names_of_the_lanes(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, biography(key="k-1"), tmp_path)
    page.get_by_role("slider", name="Event").focus()
    page.keyboard.press("End")
    page.get_by_text("Event 9 of 9").wait_for()
    box, lit, name = (
        page.locator(selector).bounding_box()
        for selector in (".bi-scroll", ".bi-event rect[fill*=light]", "text:text-is('billing')")
    )
    assert (
        box["x"] <= name["x"]
        and name["x"] + name["width"] < lit["x"] < lit["x"] + lit["width"] <= box["x"] + box["width"]
    )


def test_what_was_dropped_has_its_sign_in_a_narrow_page(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, watermark_board(LATE), tmp_path, width=330)
    assert words_without_room(page) == []
    dropped = page.locator("rect[stroke='var(--mq-4)']")
    assert 0 < dropped.count() == page.locator(".wm-picture text", has_text=re.compile("^✕( [0-9]+)?$")).count()
