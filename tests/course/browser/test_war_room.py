"""The war room in Chromium: moved by mouse and keyboard, findings noted and removed, dark, narrow, without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.widgets.boards.war_room import war_room
from mqlab.data.traffic import write
from mqlab.data.traffic.day_facts import DayFacts, facts_of
from tests.course.browser.live_boards import fits, live_page, still_page, unnamed_controls

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> DayFacts:
    folder = tmp_path_factory.mktemp("war-room") / "day"
    write(folder, messages=6_000, seed=5, incidents=("wrong_reset",), commit_log_bytes=1 << 20)
    return facts_of(folder)


def test_findings_are_noted_where_the_cursor_is_and_a_cell_reads_them(
    chromium: Any, tmp_path: Path, facts: DayFacts
) -> None:
    room = war_room(facts)
    page = live_page(chromium, room, tmp_path)
    page.get_by_text("billing at 12:00 UTC").wait_for()
    page.get_by_label("Group").select_option(label="shipping")
    page.get_by_role("slider", name="Moment").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("shipping at 12:05 UTC").wait_for()
    page.get_by_label("Finding at the cursor").fill("всё тихо")
    page.keyboard.press("Enter")
    page.get_by_role("list", name="Findings").get_by_text("всё тихо").wait_for()
    assert room.state["notes"] == [{"minute": 725, "group": "shipping", "words": "всё тихо"}]
    picture = page.locator(".wr-day").bounding_box()
    page.mouse.click(picture["x"] + picture["width"] * 0.7, picture["y"] + 60)
    page.wait_for_function("!document.querySelector('[role=status]').textContent.includes('12:05')")
    assert room.state["minute"] > 800 and room.state["minute"] % 5 == 0
    assert unnamed_controls(page) == [] and page.problems == []
    page.get_by_role("button", name="Remove finding 1").click()
    page.get_by_text("nothing noted yet").wait_for()
    assert room.state["notes"] == []


@pytest.mark.parametrize("dark", [False, True])
def test_a_narrow_page_without_a_kernel_shows_it(chromium: Any, tmp_path: Path, facts: DayFacts, dark: bool) -> None:
    page = still_page(chromium, war_room(facts, at="14:35"), tmp_path, dark=dark)
    page.get_by_text("billing at 14:35 UTC").wait_for()
    page.get_by_label("Group").select_option(label="notification")
    page.get_by_text("notification at 14:35 UTC").wait_for()
    assert fits(page) and page.problems == []
