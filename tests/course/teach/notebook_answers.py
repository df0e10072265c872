"""Runs the cells that answers need, and an answer's cell, in this process: what a notebook's kernel would hold."""

from __future__ import annotations

import functools
import importlib
import linecache
import zlib
from collections.abc import Callable
from types import CodeType
from typing import Any

from mqlab.course.grading.submissions.lab_files import AnswerCell, CourseLab, open_lab
from mqlab.course.grading.submissions.rebuild import transplant
from mqlab.course.material import course_folder
from mqlab.course.teach.exercises import Finding, manifest

wrong_module = importlib.import_module("solutions.wrong")


@functools.cache
def _lab(number: str) -> CourseLab:
    return open_lab(course_folder(), number)


@functools.cache
def _set_up(exercise_id: str) -> tuple[str, ...]:
    lab = _lab(exercise_id[3:5])
    made = transplant(lab, lab.notebook)
    part = _answer(exercise_id).cell.part
    return tuple(made.later_set_up.get(part, made.set_up))


def _answer(exercise_id: str) -> AnswerCell:
    return next(one for one in _lab(exercise_id[3:5]).answers if one.exercise.id == exercise_id)


@functools.cache
def _references(number: str) -> dict[str, str]:
    return dict(wrong_module.references(number))


@functools.cache
def _compiled(cell: str, exercise_id: str) -> CodeType:
    """A cell's code. Its text is kept as IPython keeps it, so that the next life of an answer can run it again."""
    name = f"<{exercise_id} {zlib.crc32(cell.encode()):08x}>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    return compile(cell, name, "exec")


def names_after(exercise_id: str, source: str) -> dict[str, Any]:
    """What the lab's own cells and this cell define."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in (*_set_up(exercise_id), source):
        exec(_compiled(cell, exercise_id), names)
    return names


def reference(exercise_id: str) -> dict[str, Any]:
    """The names of a notebook that holds the reference answer."""
    return names_after(exercise_id, _references(exercise_id[3:5])[exercise_id])


def starter(exercise_id: str) -> dict[str, Any]:
    """The names of a notebook in which the answer's cell was run as it was handed out."""
    return names_after(exercise_id, _answer(exercise_id).cell.source)


def finding_of(lab: str, exercise: str, seed: int = 1, **answers: Callable[..., Any]) -> Finding:
    """What an exercise says about answers, which must be wrong; the reference stands for those that are not given."""
    asked = next(one for one in manifest(lab).exercises if one.id == f"{lab}.{exercise}")
    names = reference(asked.id)
    finding = asked.case(seed).run({one: answers.get(one, names[one]) for one in asked.defines})
    assert finding is not None
    return finding
