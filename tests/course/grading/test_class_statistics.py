"""The class in numbers: distribution, difficulty and wrong ideas, each with a class whose numbers are known."""

from __future__ import annotations

import csv
import statistics as reference

import pytest

from mqlab.course.grading.judging.cases import UNUSABLE, judge_one
from mqlab.course.grading.judging.verdict import (
    FAILED,
    GRADED,
    HIDDEN,
    MISSING,
    NOT_JUDGED,
    PASSED,
    PUBLIC,
    RAISED,
    STOPPED,
    CaseResult,
    ExerciseResult,
    GradeRecord,
)
from mqlab.course.grading.reports.beliefs import met
from mqlab.course.grading.reports.statistics import correlation, csv_text, difficulties, distribution, ideas_csv, page
from mqlab.course.teach.exercises import Case, Finding


def exercise(name: str, points: int, state: str = PASSED, *cases: CaseResult) -> ExerciseResult:
    return ExerciseResult(f"lab01.{name}", name.title(), points, state, cases=cases)


def student(number: int, *exercises: ExerciseResult, status: str = GRADED) -> GradeRecord:
    return GradeRecord(f"s{number:02d}", "lab01", status, exercises=exercises)


@pytest.fixture
def ten() -> list[GradeRecord]:
    """Ten students: all solve ``easy``, six solve ``middle``, and the same six solve ``same``."""
    return [
        student(
            number,
            exercise("easy", 1),
            exercise("middle", 2, PASSED if number < 6 else FAILED),
            exercise("same", 3, PASSED if number < 6 else FAILED),
        )
        for number in range(10)
    ]


def test_points_are_distributed(ten: list[GradeRecord]) -> None:
    assert [(step.text, step.students) for step in distribution(ten)] == [
        ("0", 0),
        ("1", 4),
        ("2", 0),
        ("3", 0),
        ("4", 0),
        ("5", 0),
        ("6", 6),
    ]
    large = [student(number, exercise("all", 95, PASSED if number else FAILED)) for number in range(3)]
    steps = distribution(large)
    assert sum(step.students for step in steps) == 3 and len(steps) == 10 and steps[-1].text == "90 to 95"


def test_difficulty_is_the_share_solved_and_the_item_rest_correlation(ten: list[GradeRecord]) -> None:
    easy, middle, same = difficulties(ten)
    assert (easy.solved, easy.tells_apart) == (1.0, None)
    assert (middle.solved, middle.students) == (0.6, 10)
    assert middle.tells_apart == same.tells_apart == 1.0
    assert correlation([1, 1, 0, 0, 1], [4, 2, 1, 3, 5]) == round(
        reference.correlation([1, 1, 0, 0, 1], [4, 2, 1, 3, 5]), 2
    )
    assert correlation([1, 0, 1, 0], [1, 2, 3, 4]) is None


def test_what_was_not_judged_and_who_handed_in_nothing_are_left_out(ten: list[GradeRecord]) -> None:
    absent = student(11, exercise("easy", 1, MISSING), status=MISSING)
    broken = student(12, exercise("easy", 1, NOT_JUDGED))
    rows = list(csv.DictReader(csv_text([*ten, absent, broken]).splitlines()))
    assert [row["students"] for row in rows] == ["10", "10", "10"]


def ideas() -> list[GradeRecord]:
    believed = CaseResult("a", PUBLIC, FAILED, "Entry 7 is at byte 140", belief="lab01.bytes")
    rule = CaseResult("b", HIDDEN, FAILED, "Entry n is at byte 20 * n")
    name, other = (CaseResult("c", PUBLIC, RAISED, f"your code raised NameError: name {x!r}") for x in ("a", "b"))
    late = CaseResult("d", HIDDEN, STOPPED, "lab01.unit: it gave no answer within 10 s", cause="timeout")
    odd = CaseResult("e", HIDDEN, RAISED, f"{UNUSABLE} (NotPlain: a generator)")
    return [
        student(1, exercise("unit", 3, FAILED, believed, believed, rule)),
        student(2, exercise("unit", 3, FAILED, believed, name)),
        student(3, exercise("unit", 3, FAILED, other, late)),
        student(4, exercise("unit", 3, FAILED, odd)),
    ]


def test_ideas_are_counted_by_belief_by_rule_and_by_kind_of_exception() -> None:
    assert [(one.students, one.text, one.belief) for one in met(ideas())] == [
        (2, "Entry 7 is at byte 140", "lab01.bytes"),
        (2, "the code raised NameError", ""),
        (1, "Entry n is at byte 20 * n", ""),
        (1, "it took too long and was stopped", ""),
        (1, UNUSABLE, ""),
    ]
    assert "lab01.bytes" in ideas_csv(ideas())


def test_a_finding_s_belief_reaches_the_case() -> None:
    case = Case("one", lambda answers: Finding("rule", "first", 1, 2, belief="lab01.bytes"))
    assert judge_one(case, {}, PUBLIC).belief == "lab01.bytes"


def test_the_page_warns_of_small_classes(ten: list[GradeRecord]) -> None:
    text = page([*ten, *ideas()])
    assert "10 students handed in" in text and "Small classes" in text and "the code raised NameError" in text
    assert "No answer was wrong." in page(ten[:1]) and "0 students" in page([])
