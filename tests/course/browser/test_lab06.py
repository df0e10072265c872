"""Lab 06 as a student meets it: run to its end, the board by keyboard, answers that are wrong and then right."""

from __future__ import annotations

from typing import Any

import pytest

from tests.course.browser.conftest import JupyterLab
from tests.course.browser.pages import TOLD, open_and_run_all, ran_to_its_end, write_and_check

pytestmark = [pytest.mark.browser, pytest.mark.long]

FIRST, SECOND = "labs/06a-two-tags-in-one-group.ipynb", "labs/06b-what-a-filter-passes-over.ipynb"


@pytest.mark.parametrize("jupyterlab", ["JupyterLab Dark"], indirect=True)
def test_lab06_is_run_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, FIRST)
    ran_to_its_end(page, exercises=3)
    board = page.locator(".mqlab-board").first
    board.get_by_label("billing subscribes to").fill("Aa")
    board.get_by_label("shipping subscribes to").fill("BB")
    page.keyboard.press("Enter")
    board.get_by_text("Nobody received 4.").wait_for()

    check = write_and_check(page, "lab06.collide", "def collide(tag):\n    return tag[::-1]")
    check.locator(TOLD, has_text="The code is not a sum of letters").wait_for()


@pytest.mark.parametrize("jupyterlab", ["JupyterLab Dark"], indirect=True)
def test_the_second_part_is_run_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, SECOND)
    ran_to_its_end(page, exercises=3)
    head = "def migrate(lab, members, listener):\n    for one in members:\n"
    at_once = head + "        one.subscribe('orders', 'paid || shipped')"
    check = write_and_check(page, "lab06.migrate", at_once)
    check.locator(TOLD, has_text="is filtered by the client with the tags of that time").wait_for()
    check = write_and_check(page, "lab06.migrate", at_once + "\n    lab.run_for('30s')")
    check.get_by_text("2 of 2 public checks pass; hidden checks run at grading").wait_for()
