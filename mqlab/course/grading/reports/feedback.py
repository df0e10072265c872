"""A page for one student: points, what passed, what did not and why, and the answers that were judged.

Reports of mqlab.course.grading; safe to hand out (it shows as much of hidden cases as the instructor chose).

    lab01: 7 of 10 points
      lab01.unit   3 of 3   ✓
      lab01.queue  0 of 4   ✗ Entry n of a queue is at byte 20 * n ..   first wrong, expected, found

Other students do not appear in it.
"""

from __future__ import annotations

from typing import Any

from mqlab.course.grading.judging.verdict import FAILED, GRADED, HIDDEN, PUBLIC, ExerciseResult, GradeRecord
from mqlab.course.grading.reports.page import filled
from mqlab.course.grading.reports.redaction import told_cases, told_reason, told_status
from mqlab.course.grading.reports.tables import points

REMARKS = ("duplicate", "split", "unmarked", "not code", "files", "marker")


def page(record: GradeRecord, show_hidden: str) -> str:
    """The student's page."""
    return str(
        filled(
            "feedback.html",
            title=f"{record.lab}: {record.student}",
            record=record,
            status="" if record.status == GRADED else told_status(record, show_hidden) or "no reason was noted",
            parts=[_exercise(exercise, show_hidden) for exercise in record.exercises],
            notes=[note for note in record.notes if note.kind in REMARKS],
            points=points,
        )
    )


def _exercise(exercise: ExerciseResult, show_hidden: str) -> dict[str, Any]:
    """What the page shows of an exercise; only the first public failure is open, the one to repair first."""
    cases = told_cases(exercise, show_hidden)
    opened = next((case for case in cases if not case.passed and case.kind == PUBLIC), None)
    # Of hidden cases, how many pass may be all that a student sees.
    counts = [
        f"{passed} of {count} {kind} cases pass"
        for kind in (PUBLIC, HIDDEN)
        for passed, count in [exercise.count(kind)]
        if count
    ]
    return {
        "exercise": exercise,
        "reason": told_reason(exercise, show_hidden),
        "has_hint": exercise.state == FAILED and opened is not None,
        "counts": counts,
        "cases": cases,
        "opened": opened,
    }
