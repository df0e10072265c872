"""How much of a hidden case a student may see: nothing, its name, its message, or everything.

Used by every report that a student may see.

    none      "2 of 4 hidden cases pass"
    name      + which
    message   + the rule that was broken, as the case states it
    full      + the first wrong thing, expected, found, and what the answer itself wrote

Public cases are always shown in full. Below "full", no text that comes from an answer is shown of a hidden case: an
exception's text, an exit code or a broken line could contain what the answer was asked.
It does not judge which text is harmless.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mqlab.course.grading.judging.cases import OWN_FAILURE, UNUSABLE
from mqlab.course.grading.judging.verdict import (
    FAILED,
    HIDDEN,
    NOT_JUDGED,
    PASSED,
    PUBLIC,
    RAISED,
    STOPPED,
    CaseResult,
    ExerciseResult,
    GradeRecord,
    settle,
)

RAISED_RULE = "your code raised an exception"
STOPPED_RULES = {
    "timeout": "it took too long and was stopped",
    "died": "its process ended",
    "garbled": "it wrote something other than an answer",
    "lost": "its process had ended before",
}

NOTHING: dict[str, Any] = {"first_wrong": "", "expected": "", "found": "", "trace": "", "call": "", "step": None}
"""What shows a hidden case's values."""


def told_cases(exercise: ExerciseResult, show_hidden: str) -> list[CaseResult]:
    """The cases of an exercise as a student may see them; with "none" the hidden ones are left out."""
    return list(_told(exercise, show_hidden))


def _told(exercise: ExerciseResult, show_hidden: str) -> Iterator[CaseResult]:
    for case in exercise.cases:
        if case.kind != HIDDEN or show_hidden == "full":
            yield case
        elif show_hidden == "message":
            yield replace(case, rule=_own_rule(case), **NOTHING)
        elif show_hidden == "name":
            yield replace(case, rule="", **NOTHING)


def _own_rule(case: CaseResult) -> str:
    """The rule that the case itself reports, without any text of the answer."""
    if case.state == STOPPED:
        return STOPPED_RULES.get(case.cause, "it was stopped")
    if case.state == NOT_JUDGED:
        return OWN_FAILURE
    if case.state == RAISED:
        return UNUSABLE if case.rule.startswith(UNUSABLE) else RAISED_RULE
    return case.rule


def told_reason(exercise: ExerciseResult, show_hidden: str) -> str:
    """Why an exercise has no points, without showing more of a hidden case than is allowed."""
    if not exercise.cases or show_hidden == "full":
        return exercise.reason
    public = [case for case in exercise.cases if case.kind == PUBLIC]
    # A public failure explains it all, and then nothing about hidden cases is shown.
    if not all(case.passed for case in public):
        return settle(public, [])[1]
    passed, count = exercise.count(HIDDEN)
    if passed == count:
        return "" if exercise.state in (PASSED, FAILED) else "its hidden cases gave no result"
    if show_hidden == "message":
        return settle([], [case for case in told_cases(exercise, show_hidden) if case.kind == HIDDEN])[1]
    return f"{count - passed} of {count} hidden cases fail"


def told_status(record: GradeRecord, show_hidden: str) -> str:
    """Why a record has its status; what it quotes of an exercise is shown as in ``told_reason``."""
    reason = record.reason
    for exercise in record.exercises:
        if exercise.reason and exercise.reason in reason:
            reason = reason.replace(exercise.reason, told_reason(exercise, show_hidden) or exercise.state)
    return reason
