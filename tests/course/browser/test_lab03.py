"""Lab 03 as a student meets it: its three parts run to their end, a wrong and a right answer are told so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.course.browser.conftest import JupyterLab
from tests.course.browser.pages import TOLD, open_and_run_all, ran_to_its_end, runs_to_its_end, write_and_check

pytestmark = [pytest.mark.browser, pytest.mark.long]

FIRST, SECOND, THIRD = (
    f"labs/{name}.ipynb" for name in ("03a-who-reads-which-queue", "03b-what-a-change-moves", "03c-when-queues-move")
)
DEALT = (
    "def average(queues, members, me):\n    return queues[members.index(me) :: len(members)] if me in members else []"
)
SHARED = (
    "def two_owners(lab):\n    lab.create_topic('orders', read_queue_nums=1, write_queue_nums=1)\n"
    "    start(lab, 'billing-1')\n    lab.run_for('5s')\n    lab.producer('shop').send(Message('orders', b'x'))\n"
    "    lab.run_for('1s')\n    start(lab, 'billing-2')\n    lab.run_for('60s')"
)


@pytest.mark.parametrize("jupyterlab", ["JupyterLab Light"], indirect=True)
def test_lab03_is_run_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, FIRST)
    ran_to_its_end(page, exercises=3)
    check = write_and_check(page, "lab03.average", DEALT)
    check.locator(TOLD, has_text="dealt one by one, which is AVG_BY_CIRCLE").wait_for()


@pytest.mark.parametrize("jupyterlab", ["JupyterLab Light"], indirect=True)
def test_the_other_parts_are_run_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    runs_to_its_end(chromium, jupyterlab, SECOND, exercises=3)
    page = open_and_run_all(chromium, jupyterlab, THIRD)
    ran_to_its_end(page, exercises=2)
    check = write_and_check(page, "lab03.two_owners", SHARED)
    check.locator(TOLD, has_text="The second member was given nothing").wait_for()
