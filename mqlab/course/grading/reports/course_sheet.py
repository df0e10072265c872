"""A course system's own sheet with the grades filled in: Moodle's grading worksheet, Canvas's gradebook export.

Written by ``mqlab grade --sheet FILE``; the instructor's guide says where to get FILE.

    Moodle   Identifier "Participant 4711"   Full name   ..  Grade          folder  Anna Ek_4711_assignsubmission_file_
    Canvas   Student   ID 55   SIS Login ID  ..  Lab 01 (998)               file    ekanna_55_1203_01-what-the-..ipynb

A row is found by the number in a submission's name, else by the name itself. Rows and columns stay as they were.
A sheet is filled for one lab at a time, and points are not scaled.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from mqlab.course.grading.judging.verdict import MISSING, GradeRecord
from mqlab.course.grading.reports.tables import points
from mqlab.errors import UsageError

NUMBER_COLUMNS = ("Identifier", "ID")
NAME_COLUMNS = ("Full name", "Email address", "Username", "Student", "SIS Login ID")
MOODLE_GRADE = "Grade"
Row = dict[str, str]


def filled(path: Path, records: Sequence[GradeRecord]) -> tuple[str, list[str]]:
    """The sheet's text with grades, and the students who are not in it.

    The cell of a student who handed in nothing, or could not be judged, stays as it was. UsageError as must_fit.
    """
    column = must_fit(path, sorted({record.lab for record in records}))
    head, rows = _read(path)
    lost = []
    for record in records:
        # An empty cell can still be graded by hand; a 0 would look like a result.
        by_hand = any(exercise.override for exercise in record.exercises)
        if (record.status == MISSING and not by_hand) or record.not_judged:
            continue
        own = [row for row in rows if _is_of(row, record.student)]
        if len(own) == 1:
            own[0][column] = points(record.scored)
        else:
            lost.append(record.student)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")  # the system's own cells, as they were
    writer.writerows([head, *([row[name] for name in head] for row in rows)])
    return text.getvalue(), lost


def must_fit(path: Path, labs: Sequence[str]) -> str:
    """The column that the grades of a lab go to. UsageError if there is no such column, or for several labs."""
    if len(labs) != 1:
        raise UsageError(f"a sheet is for one lab, not for {', '.join(labs) or 'none'}", hint="grade with one --lab")
    return _grade_column(_read(path)[0], labs[0])


def _read(path: Path) -> tuple[list[str], list[Row]]:
    try:
        head, *lines = csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""))
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        raise UsageError(f"the sheet {path} cannot be read: {error}", hint="give the CSV as it was exported") from error
    return head, [dict(zip(head, [*line, *[""] * len(head)], strict=False)) for line in lines]


def _grade_column(head: list[str], lab: str) -> str:
    """Moodle's column of grades, or Canvas's column of an assignment that is named like the lab."""
    if "Identifier" in head and MOODLE_GRADE in head:
        return MOODLE_GRADE
    pattern = re.compile(rf"\blab[\s_-]*{lab.removeprefix('lab')}\b", re.IGNORECASE)
    named = [name for name in head if pattern.search(name)]
    if "ID" not in head or len(named) != 1:
        raise UsageError(
            f"the sheet has no column for {lab}; it has {', '.join(head[:12])}",
            hint=f'wanted: Moodle\'s "Identifier" and "Grade" (exported in English), or Canvas\'s "ID" and one '
            f'column named like "Lab {lab[3:]}"',
        )
    return named[0]


def _is_of(row: Row, student: str) -> bool:
    name, _, number = student.rpartition(" ")
    # Two students may share a name, so the number is preferred.
    if name and number.isdigit():
        return any(re.findall(r"\d+", row.get(column, ""))[-1:] == [number] for column in NUMBER_COLUMNS)
    return any(_same_name(row.get(column, ""), student) for column in NAME_COLUMNS)


def _same_name(name: str, other: str) -> bool:
    """Whether two names are one, however their accents are spelled."""
    return unicodedata.normalize("NFC", name).strip().lower() == unicodedata.normalize("NFC", other).lower()
