"""Hidden cases of lab 13: how many sets of days each exercise is judged by, and the day that a student was given.

The known-wrong answers are in wrong/lab13.*.diff, one file per exercise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mqlab.course.cases.lab13 import triage, when, whom, why
from mqlab.course.cases.lab13.days import OWN, JudgedDay, own_day
from mqlab.course.kit.form import case_of
from mqlab.course.teach.exercises import Call, Case, Exercise

SEEDED = {
    "lab13.when": 2,
    "lab13.whom": 2,
    "lab13.why": 2,
    "lab13.triage": 2,
    "lab13.repair": 1,
    "lab13.alarm": 1,
}


def _own(
    asked: Exercise, calls_of: Callable[[Iterable[JudgedDay]], Iterator[Call]]
) -> Callable[[str], tuple[Case, ...]]:
    """The case of a student's own day, from its ticket; it counts as much as a set of days."""
    return lambda ticket: (case_of(asked.form, OWN, lambda: list(calls_of([own_day(ticket)])), ""),)


FROM_OWN = {
    "lab13.when": _own(when.WHEN, when.calls_of),
    "lab13.whom": _own(whom.WHOM, whom.calls_of),
    "lab13.why": _own(why.WHY, why.calls_of),
    "lab13.triage": _own(triage.TRIAGE, triage.calls_of),
}
