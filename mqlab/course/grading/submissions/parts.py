"""Puts the notebooks of one student together where a lab has parts (01a, 01b): one submission, one row, one sum.

Used by mqlab.course.grading.submissions.finding to choose the files, and by mqlab.course.grading.running.execute to
read them.

    anna/01a-units.ipynb   ─┐
    anna/01b-index.ipynb   ─┴─▶ one Notebook; each cell knows its part
    (01c was not handed in)     its exercises are missing, with that reason

A file belongs to the part of which it has most answer cells. So an older notebook with the whole lab serves every part.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from mqlab.course.grading.judging.verdict import Note
from mqlab.course.grading.submissions.lab_files import CourseLab, Part, grade_id, marked_exercise
from mqlab.course.grading.submissions.notebook_file import CellText, NotANotebook, Notebook, read_notebook


def ids_in(cells: Collection[CellText]) -> frozenset[str]:
    """Everything in some cells that may name an exercise: first lines, grade_ids and ids."""
    names = {name for cell in cells for name in (marked_exercise(cell.source), cell.grade_id, cell.id)}
    return frozenset(names - {""})


def ids_in_file(path: Path) -> frozenset[str]:
    """``ids_in`` of a file; nothing for a file that is not a notebook."""
    try:
        return ids_in(read_notebook(path).cells)
    except NotANotebook:
        return frozenset()


def answers_of(lab: CourseLab, part: Part, ids: frozenset[str]) -> int:
    """How many of a part's answer cells these ids name."""
    own = [answer.exercise.id for answer in lab.answers if answer.cell.part in ("", part.name)]
    return len(ids & {name for exercise in own for name in (exercise, grade_id(exercise))})


def main_part(lab: CourseLab, ids: frozenset[str], file_name: str) -> str:
    """The part that a notebook belongs to: by its answer cells, else by its name; "" if neither says so.

    "" also for a lab in one piece.
    """
    if not lab.is_in_parts:
        return ""
    counted = {part.name: answers_of(lab, part, ids) for part in lab.parts}
    most = max(counted.values())
    best = [name for name, count in counted.items() if count == most]
    named = [name for name in best if re.search(rf"(?<!\d){name}(?![a-z\d])", file_name)]
    return (named or (best if most else []) or [""])[0]


def together(lab: CourseLab, files: Sequence[Path]) -> tuple[Notebook, list[Note]]:
    """The cells of all files of a submission, and a note on each file that cannot be read.

    NotANotebook if not one of them can be read.
    """
    cells: list[CellText] = []
    notes: list[Note] = []
    failure: NotANotebook | None = None
    for path in files:
        try:
            notebook = read_notebook(path)
        except NotANotebook as error:
            failure = error
            part = main_part(lab, frozenset(), path.name)
            notes.append(Note("files", f"the notebook of part {part or '?'} cannot be read: {error.text}"))
            continue
        part = _only_part(lab, ids_in(notebook.cells), path.name)
        cells += [replace(cell, part=part) for cell in notebook.cells] if part else notebook.cells
    if failure is not None and len(notes) == len(files):
        raise failure
    return Notebook(tuple(cells), b""), notes


def _only_part(lab: CourseLab, ids: frozenset[str], file_name: str) -> str:
    """The part of a notebook that has answers of one part alone; "" for an older notebook with the whole lab."""
    several = sum(answers_of(lab, part, ids) > 0 for part in lab.parts) > 1
    return "" if several else main_part(lab, ids, file_name)


def parts_not_in(lab: CourseLab, submission: Notebook) -> set[str]:
    """The parts of a lab of which a submission has no notebook."""
    parts = {cell.part for cell in submission.cells}
    return set() if "" in parts or not lab.is_in_parts else {part.name for part in lab.parts} - parts
