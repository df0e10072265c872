"""Lab 16 as a student meets it: run to their end, a wrong part, then a right one that is kept and runs."""

from __future__ import annotations

from typing import Any

import pytest

from solutions.wrong import references, wrong_answers
from tests.course.browser.conftest import JupyterLab
from tests.course.browser.pages import open_and_run_all, ran_to_its_end, write_and_check

pytestmark = [pytest.mark.browser, pytest.mark.long]

KEPT = [
    ("labs/16a-a-log-and-its-queues.ipynb", 2, "lab16.store", "numbers_the_store", "store.py"),
    ("labs/16b-pull-and-hold.ipynb", 2, "lab16.pulls", "counts_given", "pulls.py"),
    ("labs/16c-groups-offsets-retries.ipynb", 2, "lab16.retries", "waits_in_memory", "retries.py"),
    ("labs/16d-on-the-wire.ipynb", 1, "lab16.handlers", "alone", "handlers.py"),
]


@pytest.mark.parametrize("jupyterlab", ["JupyterLab Light"], indirect=True)
@pytest.mark.parametrize(("path", "exercises", "exercise", "wrong", "file"), KEPT)
def test_a_part_is_refused_with_its_rule_and_kept_when_it_is_right(
    chromium: Any, jupyterlab: JupyterLab, path: str, exercises: int, exercise: str, wrong: str, file: str
) -> None:
    page = open_and_run_all(chromium, jupyterlab, path)
    ran_to_its_end(page, exercises)
    (believed,) = [answer for answer in wrong_answers(exercise) if answer.name == wrong]
    check = write_and_check(page, exercise, without_mark(believed.source()))
    check.get_by_text(believed.says).first.wait_for()
    check = write_and_check(page, exercise, without_mark(references("16")[exercise]))
    check.get_by_role("button", name="Keep it for my broker").click()
    check.get_by_text(f"mybroker/{file}").first.wait_for()
    kept = jupyterlab.folder / "labs" / "mybroker" / file
    assert kept.read_text("utf-8").startswith(f'"""{exercise}, kept ')


def without_mark(cell: str) -> str:
    """An answer's cell without its first line."""
    return cell.partition("\n")[2]
