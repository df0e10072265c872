""" "Not judged" is the grader's own failure: no answer gets it by what it does to the next one, or to the time."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.loaded import AnswerStopped
from mqlab.course.grading.judging.verdict import NOT_JUDGED, PASSED, PUBLIC, STOPPED, CaseResult, ExerciseResult
from mqlab.course.grading.running import execute
from mqlab.course.grading.running.nbval_engine import CellRun
from mqlab.course.grading.submissions.lab_files import open_lab
from mqlab.course.grading.submissions.notebook_file import parse_notebook
from mqlab.course.grading.submissions.rebuild import transplant
from tests.course.grading.conftest import PATIENT
from tests.course.grading.course import RIGHT, untouched, with_answers

LEAVES_A_BOMB = "import builtins\ndef ask():\n    builtins.__import__ = None\n    return 1\n"
IS_A_BOMB = "import builtins\nbuiltins.__import__ = None\ndef ask():\n    return 1\n"


def test_what_a_call_left_behind_does_not_reach_the_next_cell(desk: Desk) -> None:
    assert desk.load("lab.a", LEAVES_A_BOMB, ["ask"])["ask"]() == 1
    desk.load_given("set-up 1", "import json\n", PATIENT)
    assert desk.load("lab.b", "import csv\ndef ask():\n    return 2\n", ["ask"])["ask"]() == 2


def test_an_answer_that_breaks_the_labs_own_cells_is_over_and_no_other(desk: Desk) -> None:
    good = desk.load("lab.good", "def good():\n    return 1\n", ["good"])["good"]
    bad = desk.load("lab.bad", IS_A_BOMB, ["ask"])["ask"]
    desk.load_given("set-up 1", "import json\n", PATIENT)
    with pytest.raises(AnswerStopped, match="breaks the lab's own cells"):
        bad()
    assert good() == 1


def test_a_cell_of_the_lab_that_fails_by_itself_costs_no_answer(desk: Desk) -> None:
    good = desk.load("lab.good", "def good():\n    return 1\n", ["good"])["good"]
    with pytest.raises(ZeroDivisionError):
        desk.load_given("set-up 1", "1 / 0\n", PATIENT)
    assert good() == 1


def verdict_of(course: Path, runs: list[CellRun], time_over: str) -> ExerciseResult:
    lab = open_lab(course, "99")
    taken = transplant(lab, parse_notebook(json.dumps(with_answers(untouched(course), RIGHT)).encode()))
    return execute._result(lab, taken, runs, "lab99.box", ("check", "hidden"), time_over)


def test_cells_that_are_not_run_because_the_time_is_over_are_lost(course: Path) -> None:
    lost = verdict_of(course, [], "6 s")
    assert (lost.state, lost.cause) == (STOPPED, "timeout") and lost.reason.startswith("the 6 s for the whole notebook")
    assert verdict_of(course, [], "").state == NOT_JUDGED


def test_public_cases_alone_earn_nothing_where_the_hidden_ones_were_not_run(course: Path) -> None:
    case = asdict(CaseResult("three letters", PUBLIC, PASSED))
    ran = CellRun("check", "lab99.box", verdicts=[{"exercise": "lab99.box", "kind": PUBLIC, "cases": [case]}])
    assert verdict_of(course, [ran], "").state == NOT_JUDGED
    assert verdict_of(course, [ran], "6 s").state == STOPPED
