"""An answer's cell is run anew for each life of its process: in a kernel, with the same words as in grading."""

from __future__ import annotations

import linecache
from itertools import count
from typing import Any

import pytest

from mqlab.course.grading.judging.cases import judge_one
from mqlab.course.grading.judging.verdict import PUBLIC, CaseResult
from mqlab.course.grading.running.job import Answer, Job
from mqlab.course.grading.running.kernel import Judge
from mqlab.course.grading.sandbox.limits import Limits
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.lab_files import open_lab
from mqlab.course.grading.submissions.notebook_file import parse_notebook
from mqlab.course.grading.submissions.rebuild import transplant
from mqlab.course.teach.exercises import Answers, exercise
from mqlab.course.teach.lives import anew, cell_is_run_anew, elsewhere, fresh
from tests.course.grading.test_known_wrong import COURSE, KNOWN_WRONG, wrong_module

CELLS = count()
MEMORIES = ("in_memory", "counts_in_a_closure", "counts_in_a_global", "reads_the_deliveries")


def run_cell(source: str, names: dict[str, Any]) -> None:
    """As IPython runs a cell: its text is kept under the name of a file that is not there."""
    name = f"/nowhere/cell-{next(CELLS)}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), names)


def in_a_notebook(source: str) -> Answers:
    """What a cell defines below the lab's own cells, which are one cell here."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in (transplant_of_lab07(), source):
        run_cell(cell, names)
    return names


def transplant_of_lab07() -> str:
    lab = open_lab(COURSE, "07b")
    return transplant(lab, parse_notebook(lab.notebook.data)).set_up[0]


def behind_the_wall(source: str) -> tuple[Judge, Answers]:
    sandbox = Sandbox("process", limits=Limits(seconds=20, total_seconds=100))
    answers = {"lab07.killer": Answer(source, ("never_again",), sandbox.limits)}
    court = Judge(Job("lab07", "autumn", sandbox, answers, (transplant_of_lab07(),)))
    court.give("lab07.killer", {})
    return court, court.answers["lab07.killer"]


def words_of(result: CaseResult) -> str:
    return f"{result.state} {result.rule} {result.first_wrong} {result.expected} {result.found}"


@pytest.mark.parametrize("memory", MEMORIES)
def test_what_only_a_process_remembers_fails_with_the_same_words_in_both_places(memory: str) -> None:
    source = next(wrong.source() for wrong in KNOWN_WRONG if wrong.id == f"lab07.killer.{memory}")
    case = exercise("lab07.killer").case(1)
    here = words_of(judge_one(case, in_a_notebook(source), PUBLIC))
    court, answers = behind_the_wall(source)
    there = words_of(judge_one(case, answers, PUBLIC))
    court.desk.close()
    assert here == there and here.startswith("failed ")
    assert (
        "cannot use LabDatabases.deliveries" if memory == "reads_the_deliveries" else "only what is written"
    ) in here


def test_the_reference_passes_in_a_notebook() -> None:
    names = in_a_notebook(wrong_module.references("07")["lab07.killer"])
    assert judge_one(exercise("lab07.killer").case(1), names, PUBLIC).passed


def test_a_cell_is_run_among_variables_that_remember_nothing() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    run_cell(
        "from collections import Counter\nLIMIT, seen, total = 3, {}, Counter()\ndef twice(x):\n    return x * LIMIT\n",
        names,
    )
    run_cell("kept = []\ndef answer():\n    kept.append(twice(1))\n    return kept, 'seen' in globals()\n", names)
    assert names["answer"]() == ([3], True)
    again = anew(names["answer"], "answer")
    assert again() == ([3], False) and anew(again, "answer")() == ([3], False)
    assert names["kept"] == [3] and set(fresh(names)) >= {"Counter", "LIMIT", "twice", "answer"}


def test_a_class_and_an_object_are_made_anew_too() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    run_cell(
        "class Count:\n    n = 0\n    def __call__(self):\n        Count.n += 1\n        return Count.n\n"
        "obj = Count()\n",
        names,
    )
    assert names["obj"]() == 1 and anew(names["obj"], "obj")() == 1 and anew(names["Count"], "Count")()() == 1


def test_in_another_process_a_text_has_another_hash_and_everything_else_is_the_same() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    run_cell("seen = [1]\ndef number(x):\n    return hash(x)\ndef answer(x):\n    return number(x), seen\n", names)
    there = elsewhere(names["answer"])
    assert names["answer"]("a") == (hash("a"), [1])
    assert there("a") == there("a") and there("a")[0] != hash("a") and there("a")[1] is names["seen"]
    assert there(7)[0] == 7
    names["hash"] = len  # the notebook's own function of that name
    assert elsewhere(names["answer"])("abc")[0] == 3


def test_a_check_inside_the_cell_does_not_begin_again(capsys: pytest.CaptureFixture[str]) -> None:
    from mqlab.course import check

    names: dict[str, Any] = {"__name__": "__main__", "check": check}
    run_cell("def answer():\n    return said\nprint('loud')\nsaid = check('lab07.killer')\n", names)
    capsys.readouterr()
    assert anew(names["answer"], "answer")().state == "open" and not cell_is_run_anew()
    assert capsys.readouterr().out == ""


def test_what_stands_in_a_file_is_left_alone() -> None:
    assert anew(behind_the_wall, "behind_the_wall") is behind_the_wall and anew(len, "len") is len


def test_each_life_has_a_hash_of_texts_of_its_own() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    run_cell("def answer(x):\n    return hash(x)\n", names)
    lives = [anew(names["answer"], "answer") for _ in range(3)]
    assert len({life("a") for life in (names["answer"], *lives)}) == 4 and lives[0]("a") == lives[0]("a")
    assert {life(7) for life in lives} == {7}
