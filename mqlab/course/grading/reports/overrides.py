"""Points that the instructor gives by hand, each with a comment: the file overrides.csv in the folder of the results.

Written by ``mqlab override`` or in an editor; applied whenever reports are made. The records keep what was judged, so
grading again changes no override.

    at,by,student,exercise,points,comment
    2026-03-09T10:12:00+00:00,lee,anna,lab01.unit,3,"Right idea; the check had a bug until 8 March"
    2026-03-10T09:00:00+00:00,lee,anna,lab01.unit,,"Withdrawn: graded again"

Lines are only ever added: the last line for a student's exercise holds, and the lines before it are the history. Empty
points withdraw an override. ``at`` and ``by`` may be empty in a line that was typed in.
"""

from __future__ import annotations

import csv
import datetime
import getpass
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mqlab.course.grading.judging.verdict import ExerciseResult, GradeRecord, Override
from mqlab.errors import UsageError

FILE = "overrides.csv"
HEAD = ["at", "by", "student", "exercise", "points", "comment"]
LONGEST_COMMENT = 1_000
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class OverrideLine:
    """One line of the file. ``points`` is None where it withdraws the override."""

    at: str
    by: str
    student: str
    exercise: str
    points: float | None
    comment: str


def read_overrides(out: Path) -> list[OverrideLine]:
    """All lines of a folder's file, oldest first; none if there is no file. UsageError names a line that is wrong."""
    path = out / FILE
    if not path.exists():
        return []
    try:
        rows = list(csv.reader(io.StringIO(path.read_text("utf-8-sig"))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if not rows or [cell.strip().lower() for cell in rows[0]] != HEAD:
        raise UsageError(f"the first line of {path} is not {','.join(HEAD)}")
    return [_line(row, f"{path}, line {number}") for number, row in enumerate(rows[1:], 2) if any(map(str.strip, row))]


def _line(row: list[str], where: str) -> OverrideLine:
    if len(row) != len(HEAD):
        raise UsageError(
            f"{where}: {len(row)} columns instead of {len(HEAD)}", hint='put a comment with a comma into "quotes"'
        )
    when, by, student, exercise, points, comment = (cell.strip() for cell in row)
    if not student or not exercise or not comment:
        raise UsageError(f"{where}: student, exercise and comment must not be empty")
    try:
        number = float(points.replace(",", ".")) if points else None
    except ValueError:
        raise UsageError(f"{where}: {points!r} is not a number of points") from None
    if number is not None and not 0 <= number < 10_000:
        raise UsageError(f"{where}: {points} points cannot be given")
    return OverrideLine(when, by, student, exercise, number, comment[:LONGEST_COMMENT])


def add_override(out: Path, student: str, exercise: str, points: float | None, comment: str) -> OverrideLine:
    """Add a line with today's time and the user's name. UsageError for an empty comment or for impossible points."""
    read_overrides(out)  # a file that cannot be read is not made longer
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    text = "" if points is None else f"{points:g}"
    row = [now, _user(), student, exercise, text, " ".join(comment.split())]
    line = _line(row, f"override of {student}, {exercise}")
    path = out / FILE
    begun = path.exists()
    old = path.read_bytes() if begun else b""
    with open(path, "a", encoding="utf-8", newline="") as file:
        if old and not old.endswith(b"\n"):
            file.write("\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([row] if begun else [HEAD, row])
    path.chmod(0o600)
    return line


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return f"user {os.getuid()}"


def in_force(lines: Sequence[OverrideLine]) -> dict[Key, OverrideLine]:
    """The last line for each student and exercise, without those that withdraw."""
    last = {(line.student, line.exercise): line for line in lines}
    return {key: line for key, line in last.items() if line.points is not None}


def check_overrides(lines: Sequence[OverrideLine], most: Mapping[str, int]) -> None:
    """UsageError for more points than an exercise has. ``most``: exercise -> its points; others are not looked at."""
    for line in in_force(lines).values():
        if line.points is not None and line.points > most.get(line.exercise, line.points):
            raise UsageError(
                f"{FILE} gives {line.student} {line.points:g} points for {line.exercise}, which has "
                f"{most[line.exercise]}"
            )


def overridden(
    records: Sequence[GradeRecord], lines: Sequence[OverrideLine]
) -> tuple[list[GradeRecord], list[OverrideLine]]:
    """The records with the points given by hand, and the lines that fit no record.

    UsageError for more points than an exercise has.
    """
    wanted = in_force(lines)
    used: set[Key] = set()
    changed = [_with(record, wanted, used) for record in records]
    return changed, [line for key, line in wanted.items() if key not in used]


def _with(record: GradeRecord, wanted: Mapping[Key, OverrideLine], used: set[Key]) -> GradeRecord:
    exercises = []
    for exercise in record.exercises:
        line = wanted.get((record.student, exercise.id))
        if line is not None:
            used.add((record.student, exercise.id))
        exercises.append(exercise if line is None else _given(exercise, line))
    return replace(record, exercises=tuple(exercises))


def _given(exercise: ExerciseResult, line: OverrideLine) -> ExerciseResult:
    assert line.points is not None
    check_overrides([line], {exercise.id: exercise.points})
    return replace(exercise, override=Override(line.points, line.comment, line.by, line.at))
