"""Lab 14 as a student meets it: run to its end, another day in its time machine, an answer with a wrong belief."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.course.browser.conftest import JupyterLab
from tests.course.browser.live_boards import open_more_settings
from tests.course.browser.pages import TOLD, open_and_run_all, ran_to_its_end, write_and_check

pytestmark = [pytest.mark.browser, pytest.mark.long]

TWO_CALLS = """def first_wrong_step(rows):
    for row in rows:
        if row['what'] == 'message.dead' and row['retries'] > 2:
            return 'tried', row['step']
    return None, None"""


@pytest.mark.parametrize("jupyterlab", ["JupyterLab Light"], indirect=True)
def test_lab14_is_run_searched_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, "labs/14-find-the-bug.ipynb")
    ran_to_its_end(page, exercises=4)

    machine = page.locator(".jp-CodeCell", has_text="machine = hunt(bern")
    machine.scroll_into_view_if_needed()
    stop = machine.get_by_role("status").filter(has_text="stop ")
    stop.filter(has_text=re.compile(r"stop [1-9]\d* of \d+, .* step \d+: .*stored at byte")).wait_for()
    machine.get_by_text("Message 9", exact=True).first.wait_for()
    open_more_settings(machine)
    machine.get_by_label("seed", exact=True).fill("2")
    machine.get_by_label("follow", exact=True).fill("4")
    machine.get_by_role("button", name="Play again").click()
    stop.filter(has_text=re.compile(r"stop 0 of \d+")).wait_for()
    machine.get_by_role("button", name="End", exact=True).click()
    machine.get_by_text("Message 4", exact=True).first.wait_for()

    check = write_and_check(page, "lab14.first_wrong_step", TWO_CALLS)
    told = check.locator(TOLD, has_text="✗ lab14.first_wrong_step: Here no rule is broken")
    told.wait_for()
    assert re.search(r"a short history.*: step \d+, message\.dead of broker-a", told.inner_text())
