"""A learner who has done labs 00, 01, 04, 06 and 07 gets through lab 16 in one go, wrong at every question at first."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlab.course.teach.checking import check
from mqlab.course.teach.keeping import keepable, written
from mqlab.course.words import words_of
from solutions.wrong import references, wrong_answers
from tests.course.browser.conftest import PATIENCE_MS, JupyterLab
from tests.course.browser.pages import RED
from tests.course.browser.test_lab16 import without_mark
from tests.course.teach.notebook_answers import reference

pytestmark = [pytest.mark.browser, pytest.mark.long]

BEFORE = ("00", "01", "04", "06", "07")
NOTEBOOKS = ("16a-a-log-and-its-queues", "16b-pull-and-hold", "16c-groups-offsets-retries", "16d-on-the-wire")
PARTS = ("groups", "handlers", "process_queue", "pulls", "retries", "store")
CELL_MS = 600_000
SOURCES = "() => jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.sharedModel.getSource())"
RUN = """async number => {
  jupyterapp.shell.currentWidget.content.activeCellIndex = number;
  await jupyterapp.commands.execute("notebook:run-cell");
}"""
WRITE = """([number, source]) =>
  jupyterapp.shell.currentWidget.content.widgets[number].model.sharedModel.setSource(source)"""


@pytest.fixture
def mybroker(jupyterlab: JupyterLab) -> Iterator[Path]:
    """The folder of the kept parts, as the labs before leave it: each solution is checked, and kept if it is a part."""
    home = jupyterlab.folder / "labs"
    shutil.rmtree(home / "mybroker", ignore_errors=True)
    with contextlib.chdir(home):
        for exercise in (exercise for number in BEFORE for exercise in references(number)):
            names = reference(exercise)
            assert check(exercise, names).state == "good", exercise
            if keepable(exercise):
                written(exercise, names)
    yield home / "mybroker"
    shutil.rmtree(home / "mybroker")


class Walk:
    """One notebook, cell by cell from its top."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.sources: list[str] = page.evaluate(SOURCES)
        self.refutations: dict[str, str] = {}

    def cell(self, number: int) -> Any:
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def to_the_end(self) -> None:
        for number, source in enumerate(self.sources):
            self.page.evaluate(RUN, number)
            if named := re.match(r'predict\("(lab16\.\w+)"', source):
                self.choose(number, named[1])
            elif named := re.match(r'check\("(lab16\.\w+)"', source):
                self.answer(number, named[1])
            elif named := re.search(r'^reveal\("(lab16\.\w+)"', source, re.MULTILINE):
                assert self.refutations.pop(named[1]) in self.cell(number).inner_text(), named[1]
        assert not self.refutations
        assert [alarm.inner_text() for alarm in self.page.locator(RED).all()] == []

    def choose(self, number: int, prediction: str) -> None:
        """The first choice that is wrong."""
        asked = words_of("lab16").predictions[prediction]
        place, choice = next((n, choice) for n, choice in enumerate(asked.choices) if choice[0] != asked.right)
        self.cell(number).get_by_role("radio").nth(place).check()
        self.cell(number).get_by_text("Noted.").wait_for()
        self.refutations[prediction] = re.sub(r"[`*]", "", choice[2])

    def answer(self, number: int, exercise: str) -> None:
        """A wrong answer, which is refused with its rule; then the right one, which is kept if it is a part."""
        home = next(place for place, text in enumerate(self.sources) if text.startswith(f"# exercise: {exercise}\n"))
        wrong = wrong_answers(exercise)[0]
        for source, says in (
            (wrong.source(), wrong.says),
            (references("16")[exercise], "hidden checks run at grading"),
        ):
            self.page.evaluate(WRITE, [home, f"# exercise: {exercise}\n{without_mark(source)}"])
            self.page.evaluate(RUN, home)
            self.page.evaluate(RUN, number)
            self.cell(number).get_by_text(says).first.wait_for()
        if keepable(exercise):
            self.cell(number).get_by_role("button", name="Keep it for my broker").click()
            self.cell(number).get_by_text("is a part of your broker").first.wait_for()


@pytest.mark.parametrize("jupyterlab", ["JupyterLab Light"], indirect=True)
def test_a_learner_of_the_labs_before_gets_through_lab_16(
    chromium: Any, jupyterlab: JupyterLab, mybroker: Path
) -> None:
    for notebook in NOTEBOOKS:
        page = jupyterlab.open(chromium, f"labs/{notebook}.ipynb")
        page.set_default_timeout(CELL_MS)
        Walk(page).to_the_end()
    page.set_default_timeout(PATIENCE_MS)
    assert all(", kept " in (mybroker / f"{part}.py").read_text("utf-8").partition("\n")[0] for part in PARTS)
