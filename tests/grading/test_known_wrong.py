"""Every exercise of every lab, judged behind the wall: the reference passes, each known-wrong answer fails."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from mqlab.errors import UsageError
from mqlab.grading.job import Answer, Job
from mqlab.grading.judging import hidden_seeds, judge
from mqlab.grading.kernel import Judge
from mqlab.grading.lab_files import Lab, course_folder, lab_numbers, open_lab
from mqlab.grading.rebuild import transplant
from mqlab.grading.sandbox import Sandbox
from mqlab.grading.verdict import FAILED, HIDDEN, PUBLIC, RAISED, CaseResult

COURSE = course_folder()
wrong_module = importlib.import_module("solutions.wrong")
Wrong = wrong_module.Wrong
KNOWN_WRONG = wrong_module.wrong_answers()
LABS = [number for number in lab_numbers(COURSE) if number < "10"]  # Spark's are in test_known_wrong_spark
ALL_WRONG = [wrong for wrong in KNOWN_WRONG if wrong.exercise[3:5] in LABS]
EXERCISES = [(number, exercise.id) for number in LABS for exercise in open_lab(COURSE, number).exercises]


def judged(lab: Lab, sources: dict[str, str], sandbox: Sandbox) -> dict[str, list[CaseResult]]:
    """All cases of some answers, as the trusted kernel would run them."""
    cells = {answer.exercise.id: answer for answer in lab.answers}
    taken = transplant(lab, lab.notebook)
    answers = {
        one: Answer(source, cells[one].names, sandbox.limits, cells[one].cell.part) for one, source in sources.items()
    }
    job = Job(
        lab.id, "autumn", sandbox, answers, taken.set_up, hidden_file=str(lab.hidden_file or ""),
        later_set_up=taken.later_set_up,
    )  # fmt: skip
    court = Judge(job)
    results = {}
    for exercise in lab.exercises:
        if exercise.id in sources:
            court.give(exercise.id, {})
            given = court.answers[exercise.id]
            hidden = court.hidden_cases(exercise)
            results[exercise.id] = [
                *judge(exercise.public_cases(), given, PUBLIC),
                *judge(hidden, given, HIDDEN),
            ]
    court.desk.close()
    return results


@pytest.mark.parametrize("number", LABS)
def test_the_reference_passes_every_case_behind_the_wall(number: str, walls: Sandbox) -> None:
    lab = open_lab(COURSE, number)
    for exercise, cases in judged(lab, wrong_module.references(number), walls).items():
        assert [case for case in cases if not case.passed] == [], exercise
        assert {case.kind for case in cases} == {PUBLIC, HIDDEN}


@pytest.mark.parametrize("wrong", ALL_WRONG, ids=lambda wrong: wrong.id)
def test_a_known_wrong_answer_loses_with_the_message_that_helps(wrong: Wrong, walls: Sandbox) -> None:
    lab = open_lab(COURSE, wrong.exercise[3:5])
    cases = judged(lab, {wrong.exercise: wrong.source()}, walls)[wrong.exercise]
    failed = [case for case in cases if case.state in (FAILED, RAISED)]
    assert failed, f"believing that {wrong.belief} passes"
    told = "\n".join(f"{case.rule} {case.first_wrong} {case.trace}" for case in failed)
    assert wrong.says in told
    assert any(case.kind == HIDDEN for case in failed)


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
