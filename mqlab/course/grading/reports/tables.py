"""Grades as tables: a CSV that Moodle, Canvas and a spreadsheet take, and JSON for programs.

Reports of mqlab.course.grading.

    student,status,score,max,lab01.status,lab01.score,lab01.max,lab01.unit,..,lab01.unit.max,..,changed_by_hand

Every cell is quoted. One that a spreadsheet would take for a formula gets a single quote in front, also where it would
begin after a semicolon (the separator of many countries); control characters become blanks.
Letter grades and curves are up to the course.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from mqlab.course.grading.judging.verdict import (
    GRADED,
    HIDDEN,
    NOT_JUDGED,
    PUBLIC,
    STATUSES,
    ExerciseResult,
    GradeRecord,
)
from mqlab.course.grading.running.attempts import Effort

FORMULA_STARTS = "=+-@＝＋－＠﹦﹢﹣﹫"  # the wide ones are taken for the narrow ones in East Asia
STARTS_LATER = re.compile(rf"(;[\s\"']*)(?=[{re.escape(FORMULA_STARTS)}])")
BLANKED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def safe_cell(value: object) -> object:
    """A value that no spreadsheet runs as a formula.

    >>> safe_cell("=1+1"), safe_cell("anna"), safe_cell(-3), safe_cell("a;=1")
    ("'=1+1", 'anna', -3, "a;'=1")
    """
    if not isinstance(value, str):
        return value
    text = STARTS_LATER.sub(r"\1'", BLANKED.sub(" ", value))
    return f"'{text}" if text.lstrip()[:1] in FORMULA_STARTS and text.strip() else text


def csv_of(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([safe_cell(cell) for cell in row] for row in rows)
    return text.getvalue()


def points(value: float) -> str:
    """Points as text: whole ones without a decimal point, parts of a point with at most two decimals.

    >>> points(3), points(2.0), points(3.5), points(8 / 3)
    ('3', '2', '3.5', '2.67')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def number(value: float) -> float:
    """Points as a number for tables and programs: an int where they are whole."""
    return int(value) if value == int(value) else round(value, 2)


def worst(statuses: Iterable[str]) -> str:
    """The worst status of several: ``graded`` only when all are."""
    return max(statuses, key=STATUSES.index, default=GRADED)


def by_student(records: Sequence[GradeRecord]) -> dict[str, list[GradeRecord]]:
    """Records under their students, in order."""
    students: dict[str, list[GradeRecord]] = {}
    for record in records:
        students.setdefault(record.student, []).append(record)
    return students


def labs_of(records: Sequence[GradeRecord]) -> dict[str, list[ExerciseResult]]:
    """Each lab's exercises, as in its first record (all records of a lab have the same)."""
    labs: dict[str, list[ExerciseResult]] = {}
    for record in records:
        labs.setdefault(record.lab, list(record.exercises))
    return dict(sorted(labs.items()))


def grades_csv(records: Sequence[GradeRecord]) -> str:
    """One row per student: for each lab its status, score, maximum and exercises; the exercises' maxima last.

    An exercise that could not be judged is empty, not 0.
    """
    # 1. The heading: every lab, also those that a student did not hand in.
    labs = labs_of(records)
    exercises = [exercise for asked in labs.values() for exercise in asked]
    head: list[object] = ["student", "status", "score", "max"]
    for lab, asked in labs.items():
        head += [f"{lab}.status", f"{lab}.score", f"{lab}.max", *(exercise.id for exercise in asked)]
    rows = [head + [f"{exercise.id}.max" for exercise in exercises] + ["changed_by_hand"]]
    # 2. A student's row begins with the totals over all labs.
    for student, own in by_student(records).items():
        by_lab = {record.lab: record for record in own}
        row: list[object] = [
            student,
            worst(r.status for r in own),
            number(sum(r.scored for r in own)),
            sum(r.points for r in own),
        ]
        for lab, asked in labs.items():
            record = by_lab.get(lab)
            row += ["", "", ""] if record is None else [record.status, number(record.scored), record.points]
            judged = [] if record is None else [exercise for exercise in record.exercises if _has_points(exercise)]
            scored = {exercise.id: number(exercise.scored) for exercise in judged}
            row += [scored.get(exercise.id, "") for exercise in asked]
        by_hand = [
            f"{exercise.id}: {given_by_hand(exercise)}"
            for record in own
            for exercise in record.exercises
            if exercise.override
        ]
        rows.append(row + [exercise.points for exercise in exercises] + ["; ".join(by_hand)])
    return csv_of(rows)


def _has_points(exercise: ExerciseResult) -> bool:
    return exercise.state != NOT_JUDGED or exercise.override is not None


def given_by_hand(exercise: ExerciseResult) -> str:
    """What the instructor changed in an exercise, in words; "" where nothing was changed."""
    if exercise.override is None:
        return ""
    return (
        f"{points(exercise.override.points)} instead of {points(exercise.judged_points)}: {exercise.override.comment}"
    )


def attempts_csv(efforts: Sequence[Effort]) -> str:
    """How often each student checked each exercise, from the logs that students chose to hand in."""
    head: list[object] = ["student", "exercise", "checks", "before_pass", "first_at", "last_at"]
    rows = [
        [e.student, e.exercise, e.checks, "" if e.before_pass is None else e.before_pass, e.first_at, e.last_at]
        for e in efforts
    ]
    return csv_of([head, *rows])


def grades_json(records: Sequence[GradeRecord], seed: str) -> str:
    """Everything but sources and durations."""
    students = [
        {
            "student": student,
            "status": worst(record.status for record in own),
            "score": number(sum(record.scored for record in own)),
            "max": sum(record.points for record in own),
            "labs": [_record(record) for record in own],
        }
        for student, own in by_student(records).items()
    ]
    return json.dumps({"seed": seed, "students": students}, indent=1, ensure_ascii=False) + "\n"


def _record(record: GradeRecord) -> dict[str, Any]:
    return {
        "lab": record.lab,
        "file": record.file,
        "status": record.status,
        "reason": record.reason,
        "score": number(record.scored),
        "max": record.points,
        "notes": [{"kind": note.kind, "text": note.text, "grave": note.grave} for note in record.notes],
        "exercises": [_exercise(exercise) for exercise in record.exercises],
    }


def _exercise(exercise: ExerciseResult) -> dict[str, Any]:
    counts = {kind: dict(zip(("passed", "of"), exercise.count(kind), strict=True)) for kind in (PUBLIC, HIDDEN)}
    failed = [
        {"case": case.name, "kind": case.kind, "state": case.state, "rule": case.rule, "belief": case.belief}
        for case in exercise.cases
        if not case.passed
    ]
    override = dataclasses.asdict(exercise.override) if exercise.override else None
    return {
        "id": exercise.id,
        "title": exercise.title,
        "state": exercise.state,
        "score": number(exercise.scored),
        "max": exercise.points,
        "judged": number(exercise.judged_points),
        "override": override,
        "reason": exercise.reason,
        **counts,
        "failed": failed,
    }
