"""A lab as it was handed out: its pristine notebook, its exercises, its hidden cases.

Everything that needs an exercise's text or points asks here.

    course folder ─┬─ labs/00-a-messages-day.ipynb              untouched (or originals/, where labs/ was worked in)
                   ├─ labs/01a-….ipynb, labs/01b-….ipynb        a lab in parts: one manifest, one row per student
                   ├─ solutions/grading/lab01.py                SEEDED, HIDDEN, FROM_SEED, FROM_OWN
                   └─ cases/lab20.py, cases/lab20/              exercises of a course's own lab

"01" names a whole lab, "01a" one part of it.
Submissions are in mqlab.course.grading.submissions.finding.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import mqlab.course.cases
from mqlab.course.grading.sandbox.limits import SPARK, Limits
from mqlab.course.grading.submissions.notebook_file import CellText, Notebook, parse_notebook
from mqlab.course.material import LABS, ORIGINALS, hidden_cases
from mqlab.course.teach.exercises import Exercise, manifest
from mqlab.errors import UsageError

FIRST_SPARK_LAB, FIRST_OWN_LAB = "10", "14"
ANSWER_MARK = "# exercise: "
NAME = re.compile(r"(?P<lab>\d\d)(?P<part>[a-z]?)-")
"""How the name of a lab's notebook begins: 00-, 01a-."""
COPY = re.compile(r"-\d{4}-\d\d-\d\d(-\d+)?\.ipynb$|-Copy\d*\.ipynb$")
"""Names of working copies: those that ``mqlab start`` and JupyterLab make."""


@dataclass(frozen=True, slots=True)
class AnswerCell:
    """One pristine answer cell and its exercise."""

    exercise: Exercise
    cell: CellText
    names: tuple[str, ...]
    limits: Limits


@dataclass(frozen=True, slots=True)
class Part:
    """One notebook of a lab: "00" where the lab is a single notebook, else "01a", "01b" and so on."""

    name: str
    path: Path
    notebook: Notebook


@dataclass(frozen=True, slots=True)
class CourseLab:
    """A lab of a course, or one part of a lab. ``number`` is "01" or "01a", ``id`` "lab01" or "lab01a".

    ``notebook`` has the cells of all its parts, one part after the other.
    """

    number: str
    parts: tuple[Part, ...]
    notebook: Notebook
    answers: tuple[AnswerCell, ...]
    hidden_file: Path | None
    cases_folder: Path | None

    @property
    def id(self) -> str:
        return f"lab{self.number}"

    @property
    def manifest_id(self) -> str:
        """The lab whose manifest holds its exercises: "lab01", also for part "01a"."""
        return f"lab{self.number[:2]}"

    @property
    def has_own_days(self) -> bool:
        """Whether its hidden file makes cases for each student alone."""
        return self.hidden_file is not None and "FROM_OWN" in top_level_names(self.hidden_file.read_text("utf-8"))

    @property
    def is_in_parts(self) -> bool:
        """Whether its notebooks are parts (01a, 01b) and not one notebook."""
        return self.parts[0].name != self.number[:2]

    @property
    def exercises(self) -> list[Exercise]:
        return [answer.exercise for answer in self.answers]

    def __repr__(self) -> str:
        return f"<lab {self.number}: {len(self.answers)} exercises>"


def part_names(course: Path) -> list[str]:
    """The notebooks of a course's labs by name, in order: "00", "01a", "01b" …"""
    matches = (NAME.match(path.name) for path in (course / LABS).glob("[0-9][0-9]*-*.ipynb"))
    return sorted({name["lab"] + name["part"] for name in matches if name is not None})


def lab_numbers(course: Path) -> list[str]:
    """The numbers of all labs of a course, in order; a lab in parts has one number."""
    return sorted({name[:2] for name in part_names(course)})


def parts_of(course: Path, number: str) -> list[str]:
    """The notebooks of a lab: ["00"] of "00", ["01a", "01b"] of "01", ["01b"] of "01b".

    UsageError lists the existing labs.
    """
    names = part_names(course)
    chosen = [name for name in names if number in (name, name[:2])]
    if not chosen:
        meant = f"{number:0>2}"
        is_known = any(name.startswith(meant) for name in names)
        hint = f"did you mean {meant}?" if is_known else f"there are: {', '.join(names) or 'none'}"
        raise UsageError(f"there is no lab {number!r}", hint=hint)
    if number in chosen and len(chosen) > 1:
        raise UsageError(f"lab {number} is in {course / LABS} as a whole and in parts: {', '.join(chosen)}")
    return chosen


def pristine(course: Path, name: str) -> tuple[Path, Notebook]:
    """The path and content of a notebook as handed out: of a part ("01a"), or of a lab without parts ("00").

    If it was worked in (it has outputs) and ``originals/`` has no copy, the version in git is used. UsageError if it
    does not exist or stands there twice.
    """
    for folder in (ORIGINALS, LABS):
        paths = [path for path in sorted((course / folder).glob(f"{name}-*.ipynb")) if not COPY.search(path.name)]
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise UsageError(f"there are {len(paths)} notebooks of lab {name} in {course / folder}: {names}")
        if paths:
            # Outputs mean that the file was run, so its text may have been changed too.
            data = paths[0].read_bytes()
            return paths[0], parse_notebook(_kept_by_git(paths[0]) if _has_outputs(data) else data)
    raise UsageError(f"there is no lab {name!r}", hint=f"there are: {', '.join(part_names(course)) or 'none'}")


def _has_outputs(data: bytes) -> bool:
    try:
        cells = json.loads(data)["cells"]
        return any(cell.get("outputs") or cell.get("execution_count") is not None for cell in cells)
    except (ValueError, KeyError, TypeError, AttributeError):
        return True


def _kept_by_git(path: Path) -> bytes:
    try:
        shown = subprocess.run(
            ["git", "-C", str(path.parent), "show", f"HEAD:./{path.name}"], capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        raise UsageError(
            f"{path} was worked in, and there is no untouched copy of it",
            hint=f"unpack the release again, or put the untouched notebook into {path.parent.parent / ORIGINALS}",
        ) from None
    return shown.stdout


@functools.lru_cache(maxsize=32)
def open_lab(course: Path, number: str, with_hidden: bool = True) -> CourseLab:
    """A lab ("01") or one part of it ("01a"). UsageError if its notebooks and its exercises do not match."""
    # 1. Its notebooks. The cells of a part are marked with its name.
    parts = tuple(Part(name, *pristine(course, name)) for name in parts_of(course, number))
    number_alone = number[:2]
    marks = ["" if part.name == number_alone else part.name for part in parts]
    notebook = Notebook(
        tuple(
            replace(cell, part=mark) for part, mark in zip(parts, marks, strict=True) for cell in part.notebook.cells
        ),
        b"".join(part.notebook.data for part in parts),
    )
    # 2. Its manifest. The course's manifests are imported as if they were part of mqlab.course.cases.
    cases = course / "cases"
    own = (cases / f"lab{number_alone}.py", cases / f"lab{number_alone}" / "__init__.py")
    cases_folder = cases if any(path.is_file() for path in own) else None
    if cases_folder is not None and str(cases_folder) not in mqlab.course.cases.__path__:
        mqlab.course.cases.__path__.append(str(cases_folder))
    exercises = manifest(f"lab{number_alone}").exercises
    # 3. A whole lab has every exercise of its manifest; a part has those whose answer cells are in it.
    if number != number_alone:
        marked = {marked_exercise(cell.source) for cell in notebook.code}
        exercises = tuple(exercise for exercise in exercises if exercise.id in marked)
    return CourseLab(
        number,
        parts,
        notebook,
        _answers(notebook, exercises, ", ".join(part.path.name for part in parts)),
        hidden_cases(course, number_alone) if with_hidden else None,
        cases_folder,
    )


def grade_id(exercise_id: str) -> str:
    """The nbgrader-shaped name of an exercise's answer cell; also its cell id."""
    return exercise_id.replace(".", "-")


def marked_exercise(source: str) -> str:
    """The exercise that a cell's first line names, "" without one.

    >>> marked_exercise("# exercise: lab04.commit\\ndef commit(): ...")
    'lab04.commit'
    """
    first = source.lstrip().partition("\n")[0].strip()
    return first.removeprefix(ANSWER_MARK).strip() if first.startswith(ANSWER_MARK) else ""


def _answers(notebook: Notebook, exercises: tuple[Exercise, ...], where: str) -> tuple[AnswerCell, ...]:
    cells = {marked_exercise(cell.source): cell for cell in notebook.code if marked_exercise(cell.source)}
    lacking = [exercise.id for exercise in exercises if exercise.id not in cells]
    if lacking:
        raise UsageError(f"{where} has no answer cell for {', '.join(lacking)}", hint="build the labs: make labs")
    order = list(cells)
    return tuple(
        AnswerCell(
            exercise,
            cells[exercise.id],
            tuple(dict.fromkeys((*exercise.defines, *top_level_names(cells[exercise.id].source)))),
            _limits(exercise),
        )
        for exercise in sorted(exercises, key=lambda exercise: order.index(exercise.id))
    )


def _limits(exercise: Exercise) -> Limits:
    """The exercise's own limits over those of its kind of lab."""
    ordinary = SPARK if FIRST_SPARK_LAB <= exercise.id[3:5] < FIRST_OWN_LAB else Limits()
    return Limits.of({**asdict(ordinary), **exercise.limits})


def top_level_names(source: str) -> list[str]:
    """The names that a cell's text binds at its top: functions, classes, simple assignments.

    >>> top_level_names("import os\\nLIMIT = 3\\ndef find(data): ...\\nclass Queue: ...")
    ['LIMIT', 'find', 'Queue']
    """
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names: list[str] = []
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(statement.name)
        elif isinstance(statement, ast.Assign):
            names += [target.id for target in statement.targets if isinstance(target, ast.Name)]
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.append(statement.target.id)
    return names
