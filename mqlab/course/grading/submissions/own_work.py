"""Checks a learner's own notebook on the command line, with the public cases.

``mqlab check``.

    notebook ─▶ which lab? ─▶ the same rebuild and run as in grading, without walls and without hidden cases ─▶ Record

It gives no points: these come from grading.
"""

from __future__ import annotations

from pathlib import Path

from mqlab.course.grading.judging.verdict import GradeRecord
from mqlab.course.grading.running.execute import GradingOrder, grade
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.finding import LAB_NUMBER
from mqlab.course.grading.submissions.kept_files import kept_files
from mqlab.course.grading.submissions.lab_files import CourseLab, marked_exercise, open_lab, part_names
from mqlab.course.grading.submissions.notebook_file import named_notebook
from mqlab.course.grading.submissions.parts import ids_in, main_part
from mqlab.course.material import course_folder
from mqlab.errors import UsageError

SECONDS = 3_600.0


def check_notebook(path: Path, course: str | Path | None = None) -> GradeRecord:
    """The record of a notebook's public cases. UsageError if it is not a notebook of a lab."""
    folder = course_folder(course)
    lab = lab_of(path, folder)
    order = GradingOrder(
        student="",
        file=path.name,
        submission=str(path.absolute()),
        course=str(folder),
        lab=lab.number,
        seed="public",
        sandbox=Sandbox("process"),
        hidden=False,
        seconds=SECONDS,
        kept=tuple(map(str, kept_files(path.absolute().parent, lab))),
    )
    return grade(order)


def lab_of(path: Path, course: Path) -> CourseLab:
    """The lab, or its part, that a notebook belongs to: by its answer cells, else by the number in its name."""
    cells = named_notebook(path).cells
    marks = [mark for cell in cells if (mark := marked_exercise(cell.source))]
    number = LAB_NUMBER.search(path.name)
    wanted = marks[0].partition(".")[0].removeprefix("lab") if marks else number[1] if number else ""
    names = part_names(course)
    if wanted not in (*names, *(name[:2] for name in names)):
        raise UsageError(f"{path} belongs to no lab", hint=f"there are: {', '.join(names)}")
    lab = open_lab(course, wanted, False)
    part = main_part(lab, ids_in(cells), path.name)
    return open_lab(course, part, False) if part and part != lab.number else lab
