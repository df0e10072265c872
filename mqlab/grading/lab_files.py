"""A lab as it was handed out: its pristine notebook, its exercises, its hidden cases.

Everything that needs an exercise's text or points asks here.

    course folder ─┬─ labs/01-what-the-broker-writes.ipynb      pristine (or originals/, where labs/ was worked in)
                   ├─ solutions/grading/lab01.py                SEEDED, HIDDEN, WRONG
                   └─ cases/lab01.py, cases/lab01/              exercises of a course's own lab

Submissions are in mqlab.grading.submissions.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

import mqlab.teach.cases
from mqlab.errors import UsageError
from mqlab.grading.limits import SPARK, Limits
from mqlab.grading.notebook_file import CellText, Notebook, parse_notebook
from mqlab.teach.exercises import Exercise, manifest

FIRST_SPARK_LAB, FIRST_OWN_LAB = "10", "14"
CLONE = Path(__file__).resolve().parents[2]
ANSWER_MARK = "# exercise: "
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
class Lab:
    """One lab of a course. ``number`` is "01", ``id`` "lab01"."""

    number: str
    path: Path
    notebook: Notebook
    answers: tuple[AnswerCell, ...]
    hidden_file: Path | None
    cases_folder: Path | None

    @property
    def id(self) -> str:
        return f"lab{self.number}"

    @property
    def exercises(self) -> list[Exercise]:
        return [answer.exercise for answer in self.answers]

    def __repr__(self) -> str:
        return f"<lab {self.number}: {len(self.answers)} exercises>"


def course_folder(given: str | Path | None = None) -> Path:
    """The course's folder: the one given, or mqlab's own. UsageError if it has no labs."""
    folder = Path(given).absolute() if given is not None else CLONE
    if not (folder / "labs").is_dir():
        raise UsageError(f"there is no labs folder in {folder}", hint="name the course's folder with --course DIR")
    return folder


def lab_numbers(course: Path) -> list[str]:
    """The numbers of all labs of a course, in order."""
    return sorted({path.name[:2] for path in (course / "labs").glob("[0-9][0-9]-*.ipynb")})


def pristine(course: Path, number: str) -> tuple[Path, Notebook]:
    """The path and content of the notebook as handed out. UsageError lists the existing labs.

    If the lab was worked in (it has outputs) and ``originals/`` has no copy, the version in git is used.
    """
    for folder in ("originals", "labs"):
        found = [path for path in sorted((course / folder).glob(f"{number}-*.ipynb")) if not COPY.search(path.name)]
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise UsageError(f"there are {len(found)} notebooks of lab {number} in {course / folder}: {names}")
        if found:
            # Outputs mean that somebody ran the file, so its text may have been changed too.
            data = found[0].read_bytes()
            return found[0], parse_notebook(_kept_by_git(found[0]) if _has_outputs(data) else data)
    raise UsageError(f"there is no lab {number!r}", hint=f"there are: {', '.join(lab_numbers(course)) or 'none'}")


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
            hint=f"unpack the release again, or put the untouched notebook into {path.parent.parent / 'originals'}",
        ) from None
    return shown.stdout


@functools.lru_cache(maxsize=32)
def open_lab(course: Path, number: str, with_hidden: bool = True) -> Lab:
    """A lab with its exercises. UsageError if its notebook and its exercises do not match."""
    path, notebook = pristine(course, number)
    cases = course / "cases"
    own = (cases / f"lab{number}.py", cases / f"lab{number}" / "__init__.py")
    cases_folder = cases if any(path.is_file() for path in own) else None
    # The course's manifests are imported as if they were part of mqlab.teach.cases.
    if cases_folder is not None and str(cases_folder) not in mqlab.teach.cases.__path__:
        mqlab.teach.cases.__path__.append(str(cases_folder))
    hidden = course / "solutions" / "grading" / f"lab{number}.py"
    return Lab(
        number, path, notebook, _answers(notebook, manifest(f"lab{number}").exercises, path),
        hidden if with_hidden and hidden.is_file() else None, cases_folder,
    )  # fmt: skip


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


def _answers(notebook: Notebook, exercises: tuple[Exercise, ...], path: Path) -> tuple[AnswerCell, ...]:
    cells = {marked_exercise(cell.source): cell for cell in notebook.code if marked_exercise(cell.source)}
    lacking = [exercise.id for exercise in exercises if exercise.id not in cells]
    if lacking:
        raise UsageError(f"{path.name} has no answer cell for {', '.join(lacking)}", hint="build the labs: make labs")
    order = list(cells)
    return tuple(
        AnswerCell(
            exercise, cells[exercise.id],
            tuple(dict.fromkeys((*exercise.defines, *top_level_names(cells[exercise.id].source)))),
            _limits(exercise),
        )
        for exercise in sorted(exercises, key=lambda exercise: order.index(exercise.id))
    )  # fmt: skip


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
