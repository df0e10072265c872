"""How far a learner is, read from the saved notebooks of a folder as data; nothing in them is run.

``mqlab progress`` shows it, and draws it on the index.

    predicted     answers kept in the outputs, or written in the cells     mqlab.course.grading.submissions.predictions
    tried         exercises whose check has found something or passed      the check's saved output
    passed        exercises whose last saved check passed                  the same
    knew, knows   predictions that were right at first; those that are right now, by the record of old questions
    your turn     questions about the learner's own world, answered right  application/vnd.mqlab.answer+json

Several copies of a notebook count together: what one of them has is there. Hidden checks and points are not known here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqlab.course.grading.submissions.notebook_file import NotANotebook, read_notebook
from mqlab.course.grading.submissions.predictions import predicted
from mqlab.course.teach.answering import ANSWER_MIME
from mqlab.course.teach.exercises import manifest
from mqlab.course.teach.record import AnswerNoted, answers_in
from mqlab.course.words import words_of
from mqlab.course.words.parts import parts
from mqlab.course.words.paths import PATHS, path_parts
from mqlab.errors import UsageError
from mqlab.lab.views import Table

LAB = re.compile(r"\b(lab\d\d)\.\w+")
CHECKED = re.compile(r'\bcheck\("(lab\d\d\.\w+)"')
PASSED, FAILED = "✓", "✗"


@dataclass(slots=True)
class WorkFound:
    """What the notebooks of one lab hold: the files, and ids of what was tried, passed and answered right."""

    files: list[Path] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class LabProgress:
    """One lab: pairs of how many are done and how many there are."""

    lab: str
    predicted: tuple[int, int]
    tried: tuple[int, int]
    passed: tuple[int, int]
    your_turn: tuple[int, int]
    knew: tuple[int, int]  # right at first, of those that were answered
    knows: tuple[int, int]  # right in the last answer
    minutes: int


def progress(folder: Path) -> list[LabProgress]:
    """The progress in each lab that has a notebook in a folder, in the order of the labs."""
    work, record = _done_in(folder), answers_in(folder)
    return [counted for lab, done in sorted(work.items()) if (counted := _counted(lab, done, record)) is not None]


def asked_again(folder: Path) -> Table:
    """The old questions that were answered in a folder: what was known at first, and what is known now."""
    record = answers_in(folder)
    first = {answered.question: _mark(answered.right) for answered in record if answered.is_first}
    again = [answered for answered in record if not answered.is_first]
    now = {answered.question: _mark(answered.right) for answered in again}
    return Table(
        {"question": name, "at first": first.get(name, ""), "now": mark, "asked again": _times(again, name)}
        for name, mark in sorted(now.items())
    )


def _mark(right: bool) -> str:
    return PASSED if right else FAILED


def _times(again: Sequence[AnswerNoted], name: str) -> int:
    return sum(answered.question == name for answered in again)


def progress_on_paths(folder: Path) -> dict[str, tuple[int, int]]:
    """Path -> how much of what its notebooks ask is done, and how much they ask."""
    done = {
        name for work in _done_in(folder).values() for name in (*work.passed, *work.answered, *predicted(work.files))
    }
    counts = {}
    for path in PATHS:
        asked = {name for part in path_parts(path) for name in part.asked}
        counts[path.name] = (len(asked & done), len(asked))
    return counts


def table(labs: Sequence[LabProgress]) -> Table:
    """The progress as a table: "3 of 4" in each column, "" where a lab has none of the kind."""
    return Table(
        {
            "lab": row.lab.removeprefix("lab"),
            "predicted": _of(row.predicted),
            "knew at first": _of(row.knew),
            "knows now": _of(row.knows),
            "exercises tried": _of(row.tried),
            "public checks pass": _of(row.passed),
            "your turn": _of(row.your_turn),
            "minutes": row.minutes or "",
        }
        for row in labs
    )


def _done_in(folder: Path) -> dict[str, WorkFound]:
    by_lab: dict[str, WorkFound] = {}
    for path in sorted(folder.glob("*.ipynb")):
        for lab, cells in _labs_of(path):
            done = by_lab.setdefault(lab, WorkFound())
            done.files.append(path)
            for cell in cells:
                _note(cell, done)
    return by_lab


def _of(pair: tuple[int, int]) -> str:
    return f"{pair[0]} of {pair[1]}" if pair[1] else ""


def _labs_of(path: Path) -> Iterator[tuple[str, list[Any]]]:
    """The lab of a notebook with its cells; nothing for what cannot be read or names no lab."""
    try:
        cells = json.loads(read_notebook(path).data.decode("utf-8-sig")).get("cells")
    except (NotANotebook, ValueError, RecursionError):
        return
    code = [cell for cell in cells or () if isinstance(cell, dict) and cell.get("cell_type") == "code"]
    # A lab may speak of another one; its own name comes most often.
    names = LAB.findall("\n".join(_source(cell) for cell in code))
    if names:
        yield max(sorted(set(names)), key=names.count), code


def _source(cell: dict[str, Any]) -> str:
    return _text(cell.get("source"))


def _text(value: Any) -> str:
    if isinstance(value, list):
        value = "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _note(cell: dict[str, Any], done: WorkFound) -> None:
    """Take what a cell's saved outputs say."""
    checked = CHECKED.search(_source(cell))
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if not isinstance(output, dict):
            continue
        held = output.get("data")
        data: dict[str, Any] = held if isinstance(held, dict) else {}
        kept = data.get(ANSWER_MIME)
        if isinstance(kept, dict) and kept.get("right") is True and isinstance(kept.get("task"), str):
            done.answered.add(kept["task"])
        if checked is None:
            continue
        said = _text(data.get("text/plain")).lstrip()
        if said.startswith(PASSED):
            done.passed.add(checked[1])
        if said.startswith((PASSED, FAILED)) or output.get("ename") == "CheckFailed":
            done.tried.add(checked[1])


def _counted(lab: str, done: WorkFound, record: Sequence[AnswerNoted]) -> LabProgress | None:
    try:
        asked = manifest(lab)
    except (UsageError, ModuleNotFoundError):  # a course's own lab, none, or one of Spark's where its extra is missing
        return None
    exercises = {exercise.id for exercise in asked.exercises}
    tasks = {task.id for task in asked.tasks}
    questions = {prediction.id for prediction in asked.predictions}
    chosen = {name: str(answer.answer) for name, answer in predicted(done.files).items() if name in questions}
    first = {name: answer == words_of(lab).predictions[name].right for name, answer in chosen.items()}
    first |= {answered.question: answered.right for answered in record if answered.is_first}
    now = first | {answered.question: answered.right for answered in record}
    minutes = sum(part.minutes for name, part in parts().items() if f"lab{name[:2]}" == lab)
    return LabProgress(
        lab,
        (len(chosen), len(questions)),
        _pair(done.tried, exercises),
        _pair(done.passed, exercises),
        _pair(done.answered, tasks),
        (sum(first[name] for name in chosen), len(chosen)),
        (sum(now[name] for name in chosen), len(chosen)),
        minutes,
    )


def _pair(done: Iterable[str], of: set[str]) -> tuple[int, int]:
    return len(of.intersection(done)), len(of)
