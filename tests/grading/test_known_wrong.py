"""Every exercise of every lab, judged behind the wall: the reference passes, each known-wrong answer fails."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mqlab.grading.job import Answer, Job
from mqlab.grading.judging import hidden_seeds, judge
from mqlab.grading.kernel import Judge
from mqlab.grading.lab_files import Lab, course_folder, lab_numbers, marked_exercise, open_lab
from mqlab.grading.notebook_file import parse_notebook
from mqlab.grading.rebuild import transplant
from mqlab.grading.sandbox import Sandbox
from mqlab.grading.verdict import FAILED, HIDDEN, PUBLIC, RAISED, CaseResult

COURSE = course_folder()
WRONG = COURSE / "solutions" / "grading" / "wrong"
HEAD = re.compile(r"# exercise: (?P<exercise>\S+)\n# belief: (?P<belief>.+)\n# says: (?P<says>.+)\n")


@dataclass(frozen=True)
class Wrong:
    """A known-wrong answer: the belief behind it, and words of the message it must get."""

    path: Path
    exercise: str
    belief: str
    says: str


def known_wrong() -> Iterator[Wrong]:
    for path in sorted(WRONG.glob("lab*/*.py")):
        head = HEAD.match(path.read_text("utf-8"))
        assert head, f"{path} begins with the lines exercise, belief and says"
        yield Wrong(path, head["exercise"], head["belief"], head["says"])


LABS = [number for number in lab_numbers(COURSE) if number < "10"]  # Spark's are in test_known_wrong_spark
ALL_WRONG = [wrong for wrong in known_wrong() if wrong.exercise[3:5] in LABS]
EXERCISES = [(number, exercise.id) for number in LABS for exercise in open_lab(COURSE, number).exercises]


def judged(lab: Lab, sources: dict[str, str], sandbox: Sandbox) -> dict[str, list[CaseResult]]:
    """All cases of some answers, as the trusted kernel would run them."""
    names = {answer.exercise.id: answer.names for answer in lab.answers}
    submission = parse_notebook(lab.notebook.data)
    answers = {one: Answer(source, names[one], sandbox.limits) for one, source in sources.items()}
    job = Job(
        lab.id, "autumn", sandbox, answers, transplant(lab, submission).set_up, hidden_file=str(lab.hidden_file or "")
    )
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


def solution_sources(lab: Lab) -> dict[str, str]:
    path = COURSE / "solutions" / lab.path.name
    cells = json.loads(path.read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return {marked_exercise(source): source for source in sources if marked_exercise(source)}


@pytest.mark.parametrize("number", LABS)
def test_the_reference_passes_every_case_behind_the_wall(number: str, walls: Sandbox) -> None:
    lab = open_lab(COURSE, number)
    for exercise, cases in judged(lab, solution_sources(lab), walls).items():
        assert [case for case in cases if not case.passed] == [], exercise
        assert {case.kind for case in cases} == {PUBLIC, HIDDEN}


@pytest.mark.parametrize("wrong", ALL_WRONG, ids=lambda wrong: f"{wrong.path.parent.name}-{wrong.path.stem}")
def test_a_known_wrong_answer_loses_with_the_message_that_helps(wrong: Wrong, walls: Sandbox) -> None:
    lab = open_lab(COURSE, wrong.exercise[3:5])
    cases = judged(lab, {wrong.exercise: wrong.path.read_text("utf-8")}, walls)[wrong.exercise]
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
    assert {wrong.exercise for wrong in known_wrong()} <= there_are


def test_hidden_seeds_follow_from_the_class_seed_and_are_not_public() -> None:
    for number in LABS:
        for exercise in open_lab(COURSE, number).exercises:
            seeds = hidden_seeds(exercise, "autumn", 5)
            assert seeds == hidden_seeds(exercise, "autumn", 5) != hidden_seeds(exercise, "spring", 5)
            assert not set(seeds) & set(exercise.public_seeds) and len(set(seeds)) == 5
