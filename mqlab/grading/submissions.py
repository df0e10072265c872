"""Finds who handed in what: a folder of notebooks, of student folders, or of what Moodle and Canvas pack.

Mirrors: nothing in RocketMQ. The first thing ``mqlab grade`` does.

    SUBMISSIONS/anna.ipynb                                   student anna
    SUBMISSIONS/anna/01-what-the-broker-writes.ipynb         student anna, lab 01
    SUBMISSIONS/Anna Ek_1234_assignsubmission_file_/x.ipynb  student "Anna Ek 1234" (Moodle)
    SUBMISSIONS/ekanna_5_6_01-what-the-broker-writes.ipynb   student "ekanna 5" (Canvas)

A notebook belongs to a lab by its answer cells, else by the number in its name. Those who are on a roster and handed in
nothing get an empty submission.
Left out: archives (unpack them first) and links (they are named, not followed).
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mqlab.errors import UsageError
from mqlab.grading.attempts import FILE_NAME
from mqlab.grading.lab_files import Lab, grade_id, marked_exercise
from mqlab.grading.notebook_file import NotANotebook, read_notebook

MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_\w*")
CANVAS = re.compile(r"(?P<name>[^_]+)(?:_LATE)?_(?P<user>\d+)_(?P<file>\d+)_(?P<rest>.+)")
LAB_NUMBER = re.compile(r"(?:^|\D)(\d\d)-")
SKIPPED_FOLDERS = {".ipynb_checkpoints", "__MACOSX", "__pycache__"}
LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Submission:
    """One notebook (or none) of one student for one lab. ``note`` says why this file and not another."""

    student: str
    lab: str
    path: Path | None
    name: str = ""
    note: str = ""


def find_submissions(folder: Path, labs: Sequence[Lab], roster: Iterable[str] = ()) -> list[Submission]:
    """One submission for each student and lab, sorted. UsageError when the folder is none or holds nobody."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="give the folder that holds the submitted notebooks")
    handed_in: dict[str, list[Path]] = {student: [] for student in roster}
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.startswith(".") or path.name in SKIPPED_FOLDERS:
            continue
        if path.is_dir() and not path.is_symlink() and path.suffix != ".ipynb":
            handed_in.setdefault(student_of(readable(path.name)), []).extend(_notebooks(path))
        elif path.suffix == ".ipynb" or path.is_symlink():
            handed_in.setdefault(student_of(readable(path.name)), []).append(path)
    if not handed_in:
        raise UsageError(f"{folder} holds no notebooks and no student folders")
    return [_chosen(student, lab, paths, labs, folder) for student, paths in sorted(handed_in.items()) for lab in labs]


def readable(name: str) -> str:
    """A file's name as text that can be printed, whatever bytes it is made of."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def attempt_logs(folder: Path) -> dict[str, list[Path]]:
    """The attempt logs that students handed in with their work, student by student."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            logs = [log for log in sorted(path.rglob(FILE_NAME)) if log.is_file()]
            if logs:
                found.setdefault(student_of(readable(path.name)), []).extend(logs)
    return found


def student_of(name: str) -> str:
    """Whose folder or file this is, by its name.

    >>> student_of("anna.ipynb"), student_of("ekanna_5_6_01-what.ipynb")
    ('anna', 'ekanna 5')
    >>> student_of("Anna Ek_12_assignsubmission_file_")
    'Anna Ek 12'
    """
    name = name.removesuffix(".ipynb")
    moodle, canvas = MOODLE.fullmatch(name), CANVAS.fullmatch(name)
    if moodle:
        return f"{moodle['name']} {moodle['number']}"
    return f"{canvas['name']} {canvas['user']}" if canvas else name  # two people may share a name


def read_roster(path: Path) -> list[str]:
    """The students of a class list: a name a line, or the first column of a CSV with a heading line."""
    try:
        rows = [row for row in csv.reader(path.read_text("utf-8-sig").splitlines()) if row and row[0].strip()]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"the roster {path} cannot be read: {error}") from error
    with_heading = bool(rows) and (len(rows[0]) > 1 or rows[0][0].strip().lower() in ("student", "name", "id"))
    return list(dict.fromkeys(row[0].strip() for row in rows[with_heading:]))


def _notebooks(folder: Path) -> list[Path]:
    found = []
    for path in sorted(folder.rglob("*.ipynb")):
        inside = path.relative_to(folder).parts
        if not SKIPPED_FOLDERS & set(inside):
            found.append(path)
        if len(found) > LIMIT:
            raise UsageError(f"{folder} holds more than {LIMIT} notebooks")
    return found


def _chosen(student: str, lab: Lab, paths: list[Path], labs: Sequence[Lab], folder: Path) -> Submission:
    """The student's notebook for a lab; of several the one with most answers, then the newest name."""
    scored = [(score, path.name, path) for path in paths if (score := _belongs(path, lab, labs, len(paths)))]
    if not scored:
        others = f"{len(paths)} other notebooks were handed in" if paths else ""
        return Submission(student, lab.number, None, note=others)
    best = max(scored, key=lambda item: (item[0], item[1]))[2]
    note = "" if len(scored) == 1 else f"{len(scored)} notebooks of this lab; {best.name} was judged"
    return Submission(student, lab.number, best, readable(str(best.relative_to(folder))), readable(note))


def _belongs(path: Path, lab: Lab, labs: Sequence[Lab], count: int) -> int:
    """How surely a notebook belongs to a lab: 0 not, 1 by its name or for want of another, more by its answers."""
    try:
        cells = read_notebook(path).cells
    except NotANotebook:
        cells = ()
    ours = {name for exercise in lab.exercises for name in (exercise.id, grade_id(exercise.id))}
    hits = {marked_exercise(cell.source) for cell in cells} | {cell.grade_id for cell in cells} | {c.id for c in cells}
    if ours & hits:
        return 1 + len(ours & hits)
    number = LAB_NUMBER.search(path.name)
    if number:
        return 1 if number[1] == lab.number else 0
    return 1 if count == 1 and len(labs) == 1 else 0
