"""Partial credit: an exercise that weighs its cases gives a share of its points, any other all or nothing."""

from __future__ import annotations

import pytest

from mqlab.course.cases.lab07.retries import SCHEDULE
from mqlab.course.grading.judging.cases import judge
from mqlab.course.grading.judging.verdict import FAILED, HIDDEN, PASSED, PUBLIC, STOPPED, CaseResult, ExerciseResult
from mqlab.course.kit.form import Variant, variants
from mqlab.course.teach.exercises import Answers, Case, Finding


def result(state: str, *cases: CaseResult) -> ExerciseResult:
    return ExerciseResult("lab99.total", "", 4, state, cases=cases)


def case(state: str, weight: float, share: float = 0.0) -> CaseResult:
    return CaseResult("a case", HIDDEN, state, weight=weight, share=share)


@pytest.mark.parametrize(
    ("state", "cases", "points"),
    [
        (FAILED, [case(PASSED, 0), case(FAILED, 0)], 0),
        (FAILED, [case(PASSED, 1), case(FAILED, 3)], 1),
        (FAILED, [case(PASSED, 1), case(FAILED, 3, share=1 / 3)], 2),
        (FAILED, [case(PASSED, 0), case(FAILED, 2)], 0),
        (PASSED, [case(PASSED, 1), case(PASSED, 3)], 4),
        (STOPPED, [case(PASSED, 3), case(STOPPED, 1)], 0),
    ],
)
def test_points_are_what_the_passed_cases_weigh(state: str, cases: list[CaseResult], points: float) -> None:
    assert result(state, *cases).scored == points


def test_a_result_has_the_weight_of_its_case_and_the_share_of_its_finding() -> None:
    def half_right(answers: Answers) -> Finding:
        return Finding("a rule", "here", 1, 2, share=0.5)

    passed, failed = judge([Case("a", lambda answers: None, 1.0), Case("b", half_right, 2.0)], {}, PUBLIC)
    assert (passed.weight, failed.weight, failed.share) == (1.0, 2.0, 0.5)
    assert result(FAILED, passed, failed).share == pytest.approx(2 / 3)


def test_weights_name_variants_and_seeded_cases() -> None:
    assert SCHEDULE.case(5).weight == 1
    (short, other) = variants(SCHEDULE, Variant("a short table", SCHEDULE.form.make), Variant("?", SCHEDULE.form.make))(
        3
    )
    assert (short.weight, other.weight) == (2, 0)
