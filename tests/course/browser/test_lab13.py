"""Lab 13 as a student meets it: run to its end, a finding noted in the war room, an answer that is told its mistake."""

from __future__ import annotations

from typing import Any

import pytest

from tests.course.browser.conftest import JupyterLab
from tests.course.browser.pages import TOLD, open_and_run_all, ran_to_its_end, write_and_check

pytestmark = pytest.mark.browser

FIRST, SECOND = "labs/13a-what-went-wrong.ipynb", "labs/13b-what-now.ipynb"


@pytest.mark.long
@pytest.mark.parametrize("jupyterlab", ["JupyterLab Dark"], indirect=True)
def test_lab13_is_run_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, FIRST)
    ran_to_its_end(page, exercises=4)
    room = page.locator(".mqlab-board").first
    room.get_by_label("Group").select_option(label="notification")
    room.get_by_label("Finding at the cursor").fill("some letters are never called")
    page.keyboard.press("Enter")
    room.get_by_role("list", name="Findings").get_by_text("some letters are never called").wait_for()

    head = "def when(facts, harmed):\n    life = only(facts.life, harmed)\n"
    check = write_and_check(page, "lab13.when", f'{head}    return min(life["stored_ms"]), max(life["stored_ms"])')
    check.locator(TOLD, has_text="When the cause is gone, messages still wait").wait_for()


@pytest.mark.long
@pytest.mark.parametrize("jupyterlab", ["JupyterLab Dark"], indirect=True)
def test_the_second_part_is_run_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, SECOND)
    ran_to_its_end(page, exercises=2)
    rings = '    return any(row["lag"] > 100 for row in so_far[-1])'
    check = write_and_check(page, "lab13.alarm", f"def alarm(so_far):\n{rings}")
    check.locator(TOLD, has_text="analytics leaves its messages").wait_for()
