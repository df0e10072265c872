"""Who is to blame when a case ends with an exception: the answer, or the case that failed before it asked."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path

import pytest

from mqlab import play
from mqlab.course.grading.judging.cases import judge, raised, short, shown
from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.verdict import (
    FAILED,
    HIDDEN,
    NOT_JUDGED,
    PASSED,
    PUBLIC,
    RAISED,
    CaseResult,
    GradeRecord,
    settle,
)
from mqlab.course.grading.reports import write_reports
from mqlab.course.grading.running import kernel
from mqlab.course.grading.running.gradebook import Grader, GradingPlan, open_gradebook, record_path
from mqlab.course.grading.running.job import Answer, Job
from mqlab.course.grading.sandbox.limits import Limits
from mqlab.course.grading.sandbox.values import NotPlain
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.finding import Submission
from mqlab.course.grading.submissions.lab_files import open_lab
from mqlab.course.kit.calls import marked
from mqlab.course.teach.exercises import Answers, Call, Case, Finding, manifest
from tests.course.grading.course import RIGHT, save, untouched, with_answers


def fails_before(answers: Answers) -> None:
    raise OSError("диск полон")


def fails_after(answers: Answers) -> None:
    answers["size"]("订单🙂")
    raise TypeError("no such thing")


def cases(desk: Desk, *runs: object) -> list[CaseResult]:
    answers = desk.load("lab.a", "def size(text):\n    return len(text)\n", ["size"])
    return judge([Case(run.__name__, run) for run in runs], answers, PUBLIC, lambda: desk.asked)  # type: ignore[attr-defined]


def test_a_case_that_fails_before_it_asked_is_not_the_answers_doing(desk: Desk) -> None:
    before, after = cases(desk, fails_before, fails_after)
    assert before.state == NOT_JUDGED and "before it called the answer (OSError: диск полон)" in before.rule
    assert after.state == RAISED and after.rule.startswith("your answer gave something the check cannot use")


def test_what_a_finding_carries_reaches_the_record_as_plain_text_and_numbers(desk: Desk) -> None:
    call = Call(levels="1s 5s", log=bytes(5_000), right=[3], about="a short table")
    with play(lambda lab: lab.run_for("1s"), seed=1) as lab:

        def found(answers: Answers) -> Finding:
            answers["size"]("x")
            return Finding("a rule", "here", 3, 4, step=17, call=call, lab=lab, belief="lab.a.belief", share=0.5)

        def raised_in_a_call(answers: Answers) -> None:
            with marked(call):
                answers["size"](5)

        answers = desk.load("lab.a", "def size(text):\n    return len(text)\n", ["size"])
        results = judge([Case("one", found, weight=2.0), Case("two", raised_in_a_call)], answers, PUBLIC)
    one, two = [CaseResult(**json.loads(json.dumps(dataclasses.asdict(result)))) for result in results]
    assert (one.step, one.belief, one.share, one.weight) == (17, "lab.a.belief", 0.5, 2.0)
    assert one.call.startswith("(levels='1s 5s', log=b'") and len(one.call) < 300
    assert two.state == RAISED and two.call == one.call and two.step is None


def test_an_exception_that_pretends_to_carry_a_call_carries_none(desk: Desk) -> None:
    source = (
        "from mqlab.errors import NotGiven, UsageError\n"
        "def size(text):\n    error = UsageError('x')\n    error.mqlab_call = 'forged'\n    raise error\n"
        "def other(text):\n    raise NotGiven.__new__(NotGiven)\n"
    )
    answers = desk.load("lab.a", source, ["size", "other"])
    results = judge([Case(name, lambda given, name=name: given[name]("x")) for name in answers], answers, PUBLIC)
    assert [(one.state, one.call) for one in results] == [(RAISED, "")] * 2


def test_what_is_wrong_outweighs_what_could_not_be_judged() -> None:
    own, wrong = CaseResult("a", PUBLIC, NOT_JUDGED, "a disk"), CaseResult("b", HIDDEN, FAILED, "a rule")
    assert settle([CaseResult("c", PUBLIC, PASSED), own], []) == (NOT_JUDGED, "a disk")
    assert settle([own], [wrong]) == (FAILED, "a rule")


def graded(course: Path, folder: Path, hidden: str, walls: Sandbox) -> GradeRecord:
    """One right submission, graded with ``--resume`` and a hidden file of this text."""
    save(hidden.encode(), course / "solutions" / "grading" / "lab99.py")
    submission = Submission("ольга", "99", save(with_answers(untouched(course), RIGHT), folder / "in" / "ольга.ipynb"))
    open_gradebook(folder / "out")
    plan = GradingPlan(course, folder / "out", "autumn", walls, resume=True)
    (record,) = Grader(plan, [open_lab(course, "99")]).grade([submission])
    assert record_path(folder / "out", submission).is_file()
    return record


BROKEN = """
import os
from mqlab.course.teach.exercises import Case
def needs_a_disk(answers):
    if not os.path.exists({flag!r}):
        raise OSError("диск полон")
HIDDEN = {{"lab99.total": (Case("a full disk", needs_a_disk),)}}
"""


def test_what_could_not_be_judged_is_said_and_graded_again(tmp_path: Path, walls: Sandbox) -> None:
    from tests.course.grading.course import make_course

    course, flag = make_course(tmp_path / "course"), tmp_path / "mended"
    hidden = BROKEN.format(flag=str(flag))
    record = graded(course, tmp_path, hidden, walls)
    assert record.not_judged == ("lab99.total",) and record.scored == 4
    assert record.status == "graded" and "диск полон" in record.reason
    write_reports(tmp_path / "out", [record], seed="autumn", show_hidden="message")
    assert "could not be judged" in (tmp_path / "out" / "index.html").read_text("utf-8")
    flag.touch()
    assert graded(course, tmp_path, hidden, walls).scored == 7


def test_a_value_that_cannot_be_shown_has_a_text() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "a list that cannot be shown" and shown("订单🙂") == "'订单🙂'"


def test_where_an_object_was_in_memory_is_not_told() -> None:
    texts = {short(f"TypeError: <__main__.Box object at 0x7f{number:010x}>") for number in (1, 2)}
    assert texts == {"TypeError: <__main__.Box object at 0x…>"}
    assert short("magic code at 0xdaa320a7") == "magic code at 0xdaa320a7"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("%timeit total([1])\n", "'%timeit total([1])' (line 1)"),
        ("x = 1\nfiles = !ls\n", "'files = !ls' (line 2)"),
        ("x = 1\n\n!pip install numpy\n", "'!pip install numpy' (line 3)"),
        ("len?\n", "'len?' (line 1)"),
    ],
)
def test_a_notebook_command_in_an_answer_gets_a_sentence(desk: Desk, source: str, shown: str) -> None:
    with pytest.raises(SyntaxError) as error:
        desk.load("lab.a", source, ["total"])
    result = raised("the cell itself", PUBLIC, error.value)
    assert shown in result.rule and "judged as plain Python" in result.rule and "SyntaxError" not in result.rule
    assert not result.trace


def test_other_bad_syntax_stays_what_it_is(desk: Desk) -> None:
    with pytest.raises(SyntaxError) as error:
        desk.load("lab.a", "def broken(:\n", ["broken"])
    assert "your code raised SyntaxError" in raised("the cell itself", PUBLIC, error.value).rule


def results_of_lab99(source: str, added: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[CaseResult]]:
    """What the trusted kernel says of an answer to lab99.total and a right one to lab99.box, with a cell added."""
    told: dict[str, list[CaseResult]] = {}
    monkeypatch.setattr(kernel, "publish", lambda exercise, kind, results: told.setdefault(exercise, results))
    monkeypatch.setattr(kernel, "SET_UP_SECONDS", 2.0)
    sandbox = Sandbox("process", limits=Limits(seconds=2, total_seconds=10, clock_times=1))
    answers = {
        "lab99.total": Answer(source, ("total",), sandbox.limits),
        "lab99.box": Answer(RIGHT["lab99.box"], ("Box",), sandbox.limits),
    }
    court = kernel.Judge(Job("lab99", "autumn", sandbox, answers, ("", added)))
    for asked in manifest("lab99").exercises:
        with contextlib.suppress(NotPlain):  # the answer's cell shows it too
            court.give(asked.id, {})
        court.judge(asked, PUBLIC)
    court.desk.close()
    return told


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("total = 5\n", "total is bound to an int, which cannot be called"),
        ("total = [1, 2]\n", "total is bound to a list, which cannot be called"),
        ("class Total: pass\ntotal = Total()\n", "object is not callable"),
        ("total = (n for n in [1])\n", "cannot be handed over"),
    ],
)
def test_a_name_bound_to_what_cannot_be_called_is_a_wrong_answer(
    course: Path, source: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = results_of_lab99(source, "", monkeypatch)
    assert {case.state for case in results["lab99.total"]} <= {FAILED, RAISED}
    assert words in results["lab99.total"][0].rule
    assert all(case.passed for case in results["lab99.box"])


def test_a_callable_object_has_its_points(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "class Total:\n    def __call__(self, numbers):\n        return sum(numbers)\ntotal = Total()\n"
    results = results_of_lab99(source, "", monkeypatch)
    assert all(case.passed for case in results["lab99.total"])


@pytest.mark.parametrize(
    ("added", "words"),
    [
        ("import os\nclass Helper:\n    os._exit(3)\n", "exit code 3"),
        ("import sys\nclass Helper:\n    sys.exit(3)\n", "name 'Helper' is not defined"),
        ("import time\nclass Helper:\n    time.sleep(60)\n", "no answer within 2 s"),
    ],
)
def test_a_helper_that_exits_costs_those_that_need_it(
    course: Path, added: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = results_of_lab99("def total(numbers):\n    return Helper(numbers)\n", added, monkeypatch)
    case = results["lab99.total"][0]
    assert case.state == RAISED and "NameError" in case.rule and words in case.rule
    assert all(case.passed for case in results["lab99.box"])
