"""What may be an attempt to manipulate the grading, for a person to judge. No score depends on it.

Reports of mqlab.course.grading; for the instructor.

    student   lab    grave   kind            what
    boris     lab01  yes     redefines       redefines check; the grader uses its own

It gives no verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from mqlab.course.grading.judging.verdict import TAMPERED, GradeRecord
from mqlab.course.grading.reports.page import frame, table
from mqlab.course.grading.reports.tables import csv_of

HEAD = ("student", "lab", "grave", "kind", "what")
HARMLESS = {"helpers", "demonstration"}


def page(records: Sequence[GradeRecord]) -> str:
    """The report as a page."""
    words = Markup(
        "<p>Nothing here changed a score: answers are judged in a process that they cannot reach. <b>Grave</b> means "
        "that it makes sense only as an attempt to manipulate the grading; the rest may be habit or curiosity. Talk "
        "to the student before you decide.</p>"
    )
    return frame("Possible manipulation", words, table(HEAD, _rows(records)))


def csv_text(records: Sequence[GradeRecord]) -> str:
    """The same as CSV."""
    return csv_of([HEAD, *_rows(records)])


def _rows(records: Sequence[GradeRecord]) -> list[tuple[str, str, str, str, str]]:
    return sorted(_found(records), key=lambda row: (row[2] != "yes", row))


def _found(records: Sequence[GradeRecord]) -> Iterator[tuple[str, str, str, str, str]]:
    for record in records:
        if record.status == TAMPERED and record.reason and not any(note.text == record.reason for note in record.notes):
            yield record.student, record.lab, "yes", "grading", record.reason
        for note in record.notes:
            if note.kind not in HARMLESS:
                yield record.student, record.lab, "yes" if note.grave else "", note.kind, note.text
