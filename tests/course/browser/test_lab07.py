"""Lab 07 as a student meets it: run to its end, answered wrongly, without end and then better."""

from __future__ import annotations

from typing import Any

import pytest

from tests.course.browser.conftest import JupyterLab
from tests.course.browser.pages import TOLD, interrupt_until, open_and_run_all, ran_to_its_end, write_and_check
from tests.course.labs.notebooks import ROOT, read, write

pytestmark = pytest.mark.browser

FIRST, SECOND = "labs/07a-failure-takes-time.ipynb", "labs/07b-stop-in-time.ipynb"


def told(cell: Any, headline: str) -> list[str]:
    """The lines of a failed check: the headline, then a line for each fact."""
    box = cell.locator(TOLD, has_text=headline)
    box.wait_for()
    lines = box.inner_text().splitlines()
    assert lines[0].startswith(headline)
    return lines  # type: ignore[no-any-return]


@pytest.mark.long
@pytest.mark.parametrize("jupyterlab", ["JupyterLab Light"], indirect=True)
def test_the_first_part_is_run_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, FIRST)
    ran_to_its_end(page, exercises=3)

    wrong = "def give_back(message, group, limit, level):\n    return 'SCHEDULE_TOPIC_XXXX', level, 1, {}"
    check = write_and_check(page, "lab07.rewrite", wrong)
    lines = told(check, "✗ lab07.rewrite: A message waits in queue level - 1")
    assert any("17" in line.split() for line in lines)
    check.get_by_role("button", name="Hint").wait_for()


@pytest.mark.long
@pytest.mark.parametrize("jupyterlab", ["JupyterLab Dark"], indirect=True)
def test_the_second_part_is_run_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, SECOND)
    ran_to_its_end(page, exercises=3)
    is_told_what_hangs_and_what_is_right(page)


@pytest.mark.parametrize("jupyterlab", ["JupyterLab Dark"], indirect=True)
def test_an_exercise_of_the_second_part_is_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    write(with_one_exercise(read(ROOT / SECOND), "lab07.stuck"), jupyterlab.folder / "labs" / "stuck.ipynb")
    page = open_and_run_all(chromium, jupyterlab, "labs/stuck.ipynb")
    ran_to_its_end(page, exercises=1)
    is_told_what_hangs_and_what_is_right(page)


def with_one_exercise(lab: Any, exercise_id: str) -> Any:
    """A notebook without the cells that one of its exercises does not need."""
    needed = [cell for cell in lab.cells if exercise_id in cell.source or "setup" in cell.metadata.get("tags", [])]
    lab.cells = [next(cell for cell in lab.cells if cell.cell_type == "code"), *needed]  # the first one imports
    return lab


def is_told_what_hangs_and_what_is_right(page: Any) -> None:
    endless = "def pay(messages, context):\n    print('платёж')\n    while True: pass"
    check = write_and_check(page, "lab07.stuck", endless)
    check.get_by_text("платёж").wait_for()
    interrupt_until(page, check.locator(TOLD, has_text="✗ lab07.stuck: "))
    assert told(check, "✗ lab07.stuck: stopped before it ended")[1].endswith("line 4 of pay: while True: pass")

    right = "def pay(messages, context):\n    ask_bank(messages[0], context, 5000)\n    return CONSUME_SUCCESS"
    check = write_and_check(page, "lab07.stuck", right)
    check.get_by_text("2 of 2 public checks pass; hidden checks run at grading").wait_for()
