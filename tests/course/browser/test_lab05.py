"""Lab 05 as a student meets it: run to its end, the board by mouse, answers that are wrong and then right."""

from __future__ import annotations

from typing import Any

import pytest

from tests.course.browser.conftest import JupyterLab
from tests.course.browser.pages import TOLD, open_and_run_all, ran_to_its_end, write_and_check

pytestmark = [pytest.mark.browser, pytest.mark.long]

FIRST, SECOND = "labs/05a-many-at-a-time.ipynb", "labs/05b-one-at-a-time.ipynb"


@pytest.mark.parametrize("jupyterlab", ["JupyterLab Dark"], indirect=True)
def test_lab05_is_run_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, FIRST)
    ran_to_its_end(page, exercises=1)
    board = page.locator(".mqlab-board").first
    board.get_by_label("Listener").select_option(label="orderly: one thread per queue at a time")
    board.get_by_text("Nothing overtook.").wait_for()

    head = "def partial(charged):\n"
    check = write_and_check(page, "lab05.partial", head + "    return CONSUME_SUCCESS, sum(charged) - 1")
    check.locator(TOLD, has_text="neither a count nor the last good one").wait_for()
    right = "    good = (charged + [False]).index(False)\n    return CONSUME_SUCCESS, good - 1"
    check = write_and_check(page, "lab05.partial", head + right)
    check.get_by_text("2 of 2 public checks pass; hidden checks run at grading").wait_for()


@pytest.mark.parametrize("jupyterlab", ["JupyterLab Dark"], indirect=True)
def test_the_second_part_is_run_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, SECOND)
    ran_to_its_end(page, exercises=4)
    head = (
        "def lanes(handle):\n    def listener(messages, context):\n"
        "        works = [context.start(handle, one, context) for one in messages]\n"
    )
    check = write_and_check(page, "lab05.lanes", f"{head}        return SUCCESS\n    return listener")
    check.locator(TOLD, has_text="Both begin at once").wait_for()
