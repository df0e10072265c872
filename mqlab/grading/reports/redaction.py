"""What of a hidden case may be told to a student: nothing, its name, its message, or all.

Mirrors: nothing in RocketMQ. Used by every report that a student may see.

    none      "2 of 4 hidden cases pass"
    name      + which
    message   + the rule that was broken
    full      + the first wrong thing, expected and found

Public cases are always told in full.
Left out: the learner's own traceback of a hidden case below "full": it would show the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mqlab.grading.verdict import HIDDEN, CaseResult, ExerciseResult

UNNAMED = "hidden case"


def told_cases(exercise: ExerciseResult, show_hidden: str) -> list[CaseResult]:
    """The cases of an exercise as a student may see them; with "none" the hidden ones are left out."""
    return list(_told(exercise, show_hidden))


def _told(exercise: ExerciseResult, show_hidden: str) -> Iterator[CaseResult]:
    for case in exercise.cases:
        if case.kind != HIDDEN or show_hidden == "full":
            yield case
        elif show_hidden == "message":
            yield replace(case, first_wrong="", expected="", found="", trace="")
        elif show_hidden == "name":
            yield replace(case, rule="", first_wrong="", expected="", found="", trace="")


def told_reason(exercise: ExerciseResult, show_hidden: str) -> str:
    """Why an exercise has no points, without telling more of a hidden case than is allowed."""
    public_wrong = [case for case in exercise.cases if case.kind != HIDDEN and not case.passed]
    if not exercise.cases or public_wrong or show_hidden in ("message", "full"):
        return exercise.reason
    passed, count = exercise.count(HIDDEN)
    return "" if passed == count else f"{count - passed} of {count} hidden cases fail"
