"""One submission in Gradescope's results.json form, to be handed out by an autograder that calls mqlab.

Reports of mqlab.course.grading; the form is Gradescope's "autograder specifications".

    {"score": 7, "max_score": 10, "output": "..", "tests": [{"name", "score", "max_score", "status", "output"}]}

Leaderboards and extra data are not written.
"""

from __future__ import annotations

import json

from mqlab.course.grading.judging.verdict import HIDDEN, PASSED, ExerciseResult, GradeRecord
from mqlab.course.grading.reports.redaction import told_cases, told_reason, told_status
from mqlab.course.grading.reports.tables import given_by_hand, number, points


def results(record: GradeRecord, show_hidden: str) -> str:
    """The text of results.json."""
    words = f"{record.lab}: {points(record.scored)} of {record.points} points ({record.status})"
    # Without ``status``, Gradescope would derive it from the score.
    content = {
        "score": number(record.scored),
        "max_score": record.points,
        "output": f"{words}\n{told_status(record, show_hidden)}".strip(),
        "output_format": "text",
        "visibility": "visible",
        "tests": [
            {
                "name": f"{exercise.id} {exercise.title}".strip(),
                "score": number(exercise.scored),
                "max_score": exercise.points,
                "status": "passed" if exercise.state == PASSED else "failed",
                "output": _words(exercise, show_hidden),
                "output_format": "text",
                "visibility": "visible",
            }
            for exercise in record.exercises
        ],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _words(exercise: ExerciseResult, show_hidden: str) -> str:
    lines = [f"{exercise.state}: {told_reason(exercise, show_hidden)}".rstrip(": ")]
    for case in told_cases(exercise, show_hidden):
        lines.append(f"{'✓' if case.passed else '✗'} {case.kind} case {case.name}: {case.rule or case.state}")
    if exercise.override is not None:
        lines.insert(0, f"your instructor gave {given_by_hand(exercise)}")
    passed, count = exercise.count(HIDDEN)
    if count:
        lines.append(f"{passed} of {count} hidden cases pass")
    return "\n".join(lines)
