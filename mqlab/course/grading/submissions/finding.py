"""Finds who handed in what, in a folder of notebooks or student folders, or in a download from Moodle or Canvas.

The first thing ``mqlab grade`` does.

    SUBMISSIONS/anna.ipynb                                   student anna
    SUBMISSIONS/anna/01a-what-the-broker-writes.ipynb         student anna, lab 01, first part
    SUBMISSIONS/Anna Ek_1234_assignsubmission_file_/x.ipynb  student "Anna Ek 1234" (Moodle)
    SUBMISSIONS/ekanna_5_6_01a-what-the-broker-writes.ipynb   student "ekanna 5" (Canvas)
    SUBMISSIONS/anna_01a.ipynb, SUBMISSIONS/anna_01b.ipynb   student anna, where lab 01 has these parts

A notebook belongs to a lab by its answer cells, else by the number in its name. Where a lab has parts, a student hands
in one file per part; together they are one submission. A folder ``mybroker`` in a student's folder belongs to it. Those
who are on a roster and handed in nothing get an empty submission. Files of two people never become one student's: the
second gets a mark, ann~1f40fc92.
Archives and documents are not opened, and named: unpack them first. Links are reported and not followed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mqlab.course.grading.running.attempts import FILE_NAME
from mqlab.course.grading.submissions.kept_files import kept_files
from mqlab.course.grading.submissions.lab_files import CourseLab, Part
from mqlab.course.grading.submissions.notebook_file import NotANotebook, read_notebook
from mqlab.course.grading.submissions.parts import answers_of, ids_in_file, main_part
from mqlab.course.grading.submissions.rebuild import transplant
from mqlab.errors import UsageError

MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_.*", re.DOTALL)
ENDING = re.compile(r"\.(ipynb|zip|7z|rar|(tar\.)?(gz|xz|bz2)|tgz|tar|docx?|odt|pdf|html?)$", re.IGNORECASE)
"""What people hand in: a notebook, or what is not opened. Files that a system has named count with any ending."""
CANVAS = re.compile(r"(?P<name>[^_]+)(?:_LATE)?_(?P<user>\d+)_(?P<file>\d+)_(?P<rest>.+)")
LAB_NUMBER = re.compile(r"(?:^|\D)(\d\d[a-z]?)-")
OF_A_PART = re.compile(r"(?P<name>.+?)[-_ ](?P<part>\d\d[a-z])(?:[-_ ].*)?\.ipynb", re.IGNORECASE)
"""One student's file for one part in a folder of notebooks: anna_01a.ipynb, anna-01a-what-the-broker-writes.ipynb."""
SKIPPED_FOLDERS = {".ipynb_checkpoints", "__MACOSX", "__pycache__"}
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that turn a line's direction: a name with them shows as another one."""

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Submission:
    """What one student handed in for one lab: a notebook, none, or one for each part of the lab.

    ``path`` is the first of them. ``name`` names all of them; ``note`` is the reason for choosing them. ``kept`` are
    files next to them that may be answers.
    """

    student: str
    lab: str
    path: Path | None
    name: str = ""
    note: str = ""
    other_parts: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """Its notebooks, in the order of the lab's parts."""
        return () if self.path is None else (self.path, *self.other_parts)


def find_submissions(folder: Path, labs: Sequence[CourseLab], roster: Iterable[str] = ()) -> list[Submission]:
    """One submission for each student and lab, sorted. UsageError if the folder does not exist or has no submission."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="give the folder that holds the submitted notebooks")
    # 1. Whose files are these? Several files of one student come together.
    handed_in: dict[str, list[Path]] = {student: [] for student in roster}
    marked: set[str] = set()
    homes: dict[str, Path] = {}
    parts = {part.name for lab in labs if lab.is_in_parts for part in lab.parts}
    for path, student in _students(folder, marked, parts):
        if _is_students_folder(path):
            homes.setdefault(student, path)
        handed_in.setdefault(student, []).extend(_files(path) if _is_students_folder(path) else [path])
    if not handed_in:
        raise UsageError(
            f"{folder} holds no notebooks and no student folders",
            hint="a submission is NAME.ipynb, or a folder NAME with notebooks in it",
        )
    # 2. Which of a student's files are the submission for which lab?
    chosen = []
    for student, paths in sorted(handed_in.items()):
        ids = {path: ids_in_file(path) for path in paths if _is_notebook(path) or path.is_symlink()}
        closed = [path for path in paths if path not in ids]
        for lab in labs:
            submission = _with_closed(_chosen(student, lab, ids, labs, folder), closed, [*ids], folder)
            chosen.append(replace(submission, kept=kept_files(homes[student], lab)) if student in homes else submission)
    same = "the files of another student have the same name"
    return [
        replace(submission, note=f"{submission.note}; {same}".lstrip("; "))
        if submission.student in marked
        else submission
        for submission in chosen
    ]


def _students(folder: Path, marked: set[str], parts: Collection[str] = ()) -> list[tuple[Path, str]]:
    """What was handed in, and whose it is, in the order of names; students of one name go into ``marked``.

    ``parts`` are the parts that a file's name may mention after the student's.
    """
    owners: dict[str, tuple[str, ...]] = {}
    entries = []
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.startswith(".") or path.name in SKIPPED_FOLDERS:
            continue
        named_by_a_system = CANVAS.fullmatch(path.name) or MOODLE.fullmatch(path.name)
        is_closed = path.is_file() and (named_by_a_system or ENDING.search(path.name))
        if not (_is_students_folder(path) or _is_notebook(path) or path.is_symlink() or is_closed):
            continue
        name = _without_part(path.name, parts)
        student, owner = student_of(readable(name)), _owner(name)
        if owners.setdefault(student, owner) != owner:
            student += "~" + hashlib.sha256("/".join(owner).encode("utf-8", "surrogateescape")).hexdigest()[:8]
            marked.add(student)
        entries.append((path, student))
    return entries


def _without_part(name: str, parts: Collection[str]) -> str:
    """A file's name without the part of the lab that it mentions, so that the files of one student come together."""
    match = OF_A_PART.fullmatch(name)
    if match is None or match["part"] not in parts or CANVAS.fullmatch(name) or MOODLE.fullmatch(name):
        return name
    return f"{match['name']}.ipynb"


def _is_students_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not _is_notebook(path)


def _is_notebook(path: Path) -> bool:
    return path.suffix.lower() == ".ipynb"


def _owner(name: str) -> tuple[str, ...]:
    """The source of a file, according to its name: the system that named it, and the student."""
    name = unicodedata.normalize("NFC", name)
    name = ENDING.sub("", name)
    moodle, canvas = MOODLE.fullmatch(name), CANVAS.fullmatch(name)
    if moodle:
        return "moodle", moodle["name"], moodle["number"]
    return ("canvas", canvas["name"], canvas["user"]) if canvas else ("folder", name)


def readable(name: str) -> str:
    """A file's name as text that can be printed, whatever bytes it is made of; accents as rosters have them (NFC).

    >>> readable("an\\x1b[2Jna"), readable("Ли 李")
    ('an\\\\x1b[2Jna', 'Ли 李')
    """
    text = unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "backslashreplace"))
    return UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def attempt_logs(folder: Path) -> dict[str, list[Path]]:
    """The attempt logs that students handed in with their work, student by student."""
    by_student: dict[str, list[Path]] = {}
    for path, student in _students(folder, set()):
        logs = [log for log in sorted(path.rglob(FILE_NAME)) if log.is_file()] if _is_students_folder(path) else []
        if logs:
            by_student.setdefault(student, []).extend(logs)
    return by_student


def student_of(name: str) -> str:
    """Whose folder or file this is, by its name.

    >>> student_of("anna.ipynb"), student_of("ekanna_5_6_01-what.ipynb")
    ('anna', 'ekanna 5')
    >>> student_of("Anna Ek_12_assignsubmission_file_")
    'Anna Ek 12'
    """
    name = ENDING.sub("", name)
    moodle, canvas = MOODLE.fullmatch(name), CANVAS.fullmatch(name)
    if moodle:
        return f"{moodle['name']} {moodle['number']}"
    return f"{canvas['name']} {canvas['user']}" if canvas else name  # two people may share a name


def read_roster(path: Path) -> list[str]:
    """The students of a class list: one name per line, or the first column of a CSV with a heading line."""
    try:
        data = path.read_bytes()
        text = data.decode("utf-16" if data[:2] in UTF_16 else "utf-8-sig")
        head = io.StringIO(text).readline()
        # Excel separates by semicolons where the comma is in numbers, and by tabs in its "Unicode text".
        mark = max(",;\t", key=lambda mark: len(next(csv.reader([head], delimiter=mark), [])))
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
        rows = [row for row in reader if row and row[0].strip()]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"the roster {path} cannot be read: {error}") from error
    with_heading = bool(rows) and (len(rows[0]) > 1 or rows[0][0].strip().lower() in ("student", "name", "id"))
    return list(dict.fromkeys(unicodedata.normalize("NFC", row[0].strip()) for row in rows[with_heading:]))


def _files(folder: Path) -> list[Path]:
    """Notebooks of a student's folder, and the files that are not opened."""
    files = []
    for path in sorted(path for path in folder.rglob("*") if ENDING.search(path.name)):
        inside = path.relative_to(folder).parts
        if not SKIPPED_FOLDERS & set(inside):
            files.append(path)
        if len(files) > LIMIT:
            raise UsageError(f"{folder} holds more than {LIMIT} notebooks")
    return files


def _with_closed(submission: Submission, closed: Sequence[Path], notebooks: Sequence[Path], folder: Path) -> Submission:
    """A submission whose note names what was not opened: files of another kind, and notebooks that cannot be read."""
    notes = [submission.note] if submission.note else []
    if closed:
        names = ", ".join(str(path.relative_to(folder)) for path in closed)
        notes.append(readable(f"not opened, because not a notebook: {names}"))
    for path in notebooks:
        if path not in submission.files and (reason := _unreadable(path)):
            notes.append(readable(f"{path.relative_to(folder)} cannot be read: {reason}"))
    return replace(submission, note="; ".join(notes))


def _unreadable(path: Path) -> str:
    """Why a file cannot be read as a notebook; "" if it can."""
    try:
        read_notebook(path)
    except NotANotebook as error:
        return error.text
    return ""


def _chosen(
    student: str, lab: CourseLab, ids: dict[Path, frozenset[str]], labs: Sequence[CourseLab], folder: Path
) -> Submission:
    """A student's notebooks for a lab; ``ids`` are the ids of the cells in each of the student's files.

    Of several for the same part, the one with most begun answers is taken, then the one with the latest name.
    """
    files: list[Path] = []
    notes: list[str] = []
    for part in lab.parts:
        scored = [
            (_begun(lab, path), score, path.name, path)
            for path in ids
            if (score := _belongs(path, ids[path], lab, part, labs, ids))
        ]
        what = f"part {part.name}" if lab.is_in_parts else "this lab"
        if not scored:
            notes.append(f"{what} was not handed in")
            continue
        begun, _, _, best = max(scored, key=lambda item: (len(item[0]), *item[1:3]))
        # Work that was begun in another copy only is taken from there.
        others = [path for more, _, _, path in sorted(scored, key=lambda item: item[2]) if more - begun]
        files += [path for path in (best, *others) if path not in files]
        if len(scored) > 1:
            more = f", with what was begun only in {', '.join(path.name for path in others)}" if others else ""
            notes.append(f"{len(scored)} notebooks of {what}; {best.name} was judged{more}")
    if not files:
        return Submission(student, lab.number, None, note=f"{len(ids)} other notebooks were handed in" if ids else "")
    names = ", ".join(str(path.relative_to(folder)) for path in files)
    return Submission(student, lab.number, files[0], readable(names), readable("; ".join(notes)), tuple(files[1:]))


def _begun(lab: CourseLab, path: Path) -> frozenset[str]:
    """The exercises whose answer was begun in a file; none in a file that is not a notebook."""
    try:
        return frozenset(transplant(lab, read_notebook(path)).answers)
    except NotANotebook:
        return frozenset()


def _belongs(
    path: Path,
    ids: frozenset[str],
    lab: CourseLab,
    part: Part,
    labs: Sequence[CourseLab],
    all_ids: dict[Path, frozenset[str]],
) -> int:
    """How surely a notebook belongs to a part: 0 it does not, 1 by its name or as the only one, more by its answers."""
    hits = answers_of(lab, part, ids)
    if hits:
        # An answer that was pasted into another part's notebook counts only where the part has no notebook of its own.
        is_guest = main_part(lab, ids, path.name) not in ("", part.name)
        hosts = (other for other in all_ids if main_part(lab, all_ids[other], other.name) == part.name)
        return 0 if is_guest and any(hosts) else 1 + hits
    if any(answers_of(lab, other, ids) for other in lab.parts):
        return 0
    number = LAB_NUMBER.search(path.name)
    if number:
        return 1 if number[1] in (part.name, lab.number) and (number[1] == part.name or part is lab.parts[0]) else 0
    return 1 if len(all_ids) == 1 and len(labs) == 1 and part is lab.parts[0] else 0
