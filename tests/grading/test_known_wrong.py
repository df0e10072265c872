"""Every exercise of every lab, judged behind the wall: the reference passes, each known-wrong answer fails."""

from __future__ import annotations

import functools
import importlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqlab.errors import UsageError
from mqlab.grading.job import Answer, Job
from mqlab.grading.judging import hidden_seeds, judge
from mqlab.grading.kernel import Judge
from mqlab.grading.lab_files import Lab, course_folder, lab_numbers, open_lab
from mqlab.grading.rebuild import transplant
from mqlab.grading.sandbox import Sandbox
from mqlab.grading.verdict import FAILED, HIDDEN, PUBLIC, RAISED, CaseResult
from mqlab.teach.cases.lab13 import alarm as lab13_alarm
from mqlab.teach.cases.lab13 import days as lab13_days
from mqlab.teach.cases.lab13 import repair as lab13_repair
from mqlab.teach.exercises import Call, Case, Exercise
from mqlab.teach.kit import form
from mqlab.teach.kit.form import Form
from mqlab.teach.kit.values import Values

COURSE = course_folder()
wrong_module = importlib.import_module("solutions.wrong")
Wrong = wrong_module.Wrong
KNOWN_WRONG = wrong_module.wrong_answers()
SPARK = ("10", "11", "12")  # in test_known_wrong_spark
LABS = [number for number in lab_numbers(COURSE) if number not in SPARK]
ALL_WRONG = [wrong for wrong in KNOWN_WRONG if wrong.exercise[3:5] in LABS]
EXERCISES = [(number, exercise.id) for number in LABS for exercise in open_lab(COURSE, number).exercises]


def judge_of(lab: Lab, sources: dict[str, str], sandbox: Sandbox) -> Judge:
    """A judge for some answers, as the trusted kernel would open it."""
    cells = {answer.exercise.id: answer for answer in lab.answers}
    taken = transplant(lab, lab.notebook)
    answers = {
        one: Answer(source, cells[one].names, sandbox.limits, cells[one].cell.part) for one, source in sources.items()
    }
    job = Job(
        lab.id, "autumn", sandbox, answers, taken.set_up, hidden_file=str(lab.hidden_file or ""),
        later_set_up=taken.later_set_up,
    )  # fmt: skip
    return Judge(job)


class Court:
    """The judge of one exercise: the lab's own cells are run once, and values are made once, for all its answers."""

    def __init__(self, exercise: Exercise, lab: Lab, sandbox: Sandbox) -> None:
        self._exercise = exercise
        self._judge = judge_of(lab, {exercise.id: ""}, sandbox)
        self._cases: list[tuple[str, Case]] = []

    def results(self, source: str) -> Iterator[CaseResult]:
        """The results of an answer's cases, each judged when it is asked for; hidden ones follow the first public."""
        one, answers = self._exercise.id, self._judge.job.answers
        answers[one] = replace(answers[one], source=source)
        self._judge.give(one, {})
        given = self._judge.answers[one]
        if not self._cases:
            first, *others = [(PUBLIC, case) for case in self._exercise.public_cases()]
            hidden = [(HIDDEN, case) for case in self._judge.hidden_cases(self._exercise)]
            self._cases = [first, *hidden, *others]  # most answers are told all in the first two
        for kind, case in self._cases:
            yield from judge([case], given, kind)

    def close(self) -> None:
        self._judge.desk.close()


def made_once(make: Callable[[], list[Call]]) -> Callable[[], list[Call]]:
    """Calls that serve all wrong answers; calls are made anew where an argument counts how often it is used."""
    calls: list[Call] = []

    def made() -> list[Call]:
        found = calls or make()
        if not any(callable(value) for call in found for value in call.arguments.values()):
            calls[:] = found
        return found

    return made


def lasting(
    case_of: Callable[..., Case], asked: Form, name: str, make: Callable[[], Any], weight_of: str | None = None
) -> Case:
    """A case that makes its values once; each answer that plays in a day gets a new day."""
    return case_of(asked, name, made_once(make) if isinstance(asked, Values) else make, weight_of)


@pytest.fixture(scope="module")
def walls_with_files(walls: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Walls behind which an answer sees the files that a case hands over, as in grading."""
    folder, before = tmp_path_factory.mktemp("handing"), tempfile.tempdir
    folder.chmod(0o755)
    for made in (lab13_days.day, lab13_days.days_of, lab13_repair.repairs, lab13_alarm.watched_day):
        made.cache_clear()
    tempfile.tempdir = str(folder)
    yield replace(walls, handing=str(folder.resolve()))
    tempfile.tempdir = before


@pytest.fixture(scope="module")
def court_of(walls_with_files: Sandbox) -> Iterator[Callable[[str], Court]]:
    """``court_of(exercise)``: one is open at a time, and wrong answers come exercise by exercise."""
    opened: dict[str, Court] = {}

    def of(one: str) -> Court:
        if one not in opened:
            for court in opened.values():
                court.close()
            opened.clear()
            lab = open_lab(COURSE, one[3:5])
            asked = next(exercise for exercise in lab.exercises if exercise.id == one)
            opened[one] = Court(asked, lab, walls_with_files)
        return opened[one]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(form, "case_of", functools.partial(lasting, form.case_of))
        yield of
    for court in opened.values():
        court.close()


@pytest.mark.parametrize("number", LABS)
def test_the_reference_passes_a_day_of_each_kind_behind_the_wall(
    number: str, walls_with_files: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One public day, one hidden one, and all that the lab's hidden file makes."""
    one_day_and_one_to_make_others = slice(-2, None)
    monkeypatch.setattr(
        "mqlab.grading.kernel.hidden_seeds", lambda *given: hidden_seeds(*given)[one_day_and_one_to_make_others]
    )
    the_reference_passes(number, walls_with_files, slice(1))


@pytest.mark.long
@pytest.mark.parametrize("number", LABS)
def test_the_reference_passes_every_case_behind_the_wall(number: str, walls_with_files: Sandbox) -> None:
    the_reference_passes(number, walls_with_files, slice(None))


def the_reference_passes(number: str, walls_with_files: Sandbox, public: slice) -> None:
    lab = open_lab(COURSE, number)
    court = judge_of(lab, wrong_module.references(number), walls_with_files)
    for exercise in lab.exercises:
        court.give(exercise.id, {})
        given, hidden = court.answers[exercise.id], court.hidden_cases(exercise)
        cases = [*judge(exercise.public_cases()[public], given, PUBLIC), *judge(hidden, given, HIDDEN)]
        assert [case for case in cases if not case.passed] == [], exercise.id
        assert {case.kind for case in cases} == {PUBLIC, HIDDEN}
    court.desk.close()


def loses(wrong: Wrong, results: Iterable[CaseResult], *, whole: bool) -> None:
    """An answer is told what helps, loses a hidden case, and no case blames another belief.

    The cases are judged until both have happened; ``whole`` judges all of them.
    """
    told, lost_hidden = "", False
    for case in results:
        if case.state not in (FAILED, RAISED):
            continue
        assert case.belief in ("", wrong.belief), "a finding blames another belief"
        told += f"{case.rule} {case.first_wrong} {case.trace}\n"
        lost_hidden = lost_hidden or case.kind == HIDDEN
        if wrong.says in told and lost_hidden and not whole:
            break
    assert told, f"believing that {wrong.belief} passes"
    assert wrong.says in told
    assert lost_hidden


@pytest.mark.parametrize("wrong", ALL_WRONG, ids=lambda wrong: wrong.id)
def test_a_known_wrong_answer_loses_with_the_message_that_helps(wrong: Wrong, court_of: Callable[[str], Court]) -> None:
    loses(wrong, court_of(wrong.exercise).results(wrong.source()), whole=False)


@pytest.mark.long
@pytest.mark.parametrize("wrong", ALL_WRONG, ids=lambda wrong: wrong.id)
def test_no_case_of_a_known_wrong_answer_blames_another_belief(wrong: Wrong, court_of: Callable[[str], Court]) -> None:
    loses(wrong, court_of(wrong.exercise).results(wrong.source()), whole=True)


@pytest.mark.parametrize(("number", "exercise"), EXERCISES)
def test_every_exercise_has_at_least_three_known_wrong_answers(number: str, exercise: str) -> None:
    assert len([wrong for wrong in ALL_WRONG if wrong.exercise == exercise]) >= 3


def test_known_wrong_answers_belong_to_exercises_that_exist() -> None:
    there_are = {exercise.id for number in lab_numbers(COURSE) for exercise in open_lab(COURSE, number).exercises}
    assert {wrong.exercise for wrong in KNOWN_WRONG} <= there_are


@pytest.mark.parametrize("wrong", KNOWN_WRONG, ids=lambda wrong: wrong.id)
def test_a_known_wrong_answer_is_a_change_of_todays_reference(wrong: Wrong) -> None:
    source = wrong.source()
    compile(source, wrong.id, "exec")
    assert source != wrong_module.references(wrong.exercise[3:5])[wrong.exercise]


def test_a_change_that_does_not_fit_the_reference_any_more_is_named() -> None:
    stale = Wrong("lab01.tags", "stale", "?", "?", "-    data = tags\n+    data = None\n")
    with pytest.raises(UsageError, match=r"lab01\.tags\.stale: these lines are 0 times"):
        stale.source()


def test_a_file_of_another_form_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrong_module, "FOLDER", tmp_path)
    for text in ("=== a\nbelief: x\n-y\n", "=== a\nbelief: x\nsays: y\nz\n", "=== a\nbelief: x\nsays: y\n"):
        (tmp_path / "lab01.tags.diff").write_text(text, "utf-8")
        with pytest.raises(UsageError, match="cannot read"):
            wrong_module.wrong_answers("lab01.tags")


def test_hidden_seeds_follow_from_the_class_seed_and_are_not_public() -> None:
    for number in LABS:
        for exercise in open_lab(COURSE, number).exercises:
            seeds = hidden_seeds(exercise, "autumn", 5)
            assert seeds == hidden_seeds(exercise, "autumn", 5) != hidden_seeds(exercise, "spring", 5)
            assert not set(seeds) & set(exercise.public_seeds) and len(set(seeds)) == 5
