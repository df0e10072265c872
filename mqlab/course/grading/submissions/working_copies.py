"""Fresh copies of a lab to work in. Work that is there is never overwritten.

``mqlab start`` and ``mqlab restore``.

    start 01a     01a-what-the-broker-writes-2026-03-05.ipynb      the first copy in this folder
    restore 01a   01a-what-the-broker-writes-2026-03-05-2.ipynb    another one; answers can be carried over

Where a lab has parts, each part is copied on its own: ``start 01b`` copies one, ``start 01`` all of them.
Only answers are carried over; text cells are not merged.
"""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any

from mqlab.course.grading.submissions.lab_files import CourseLab, Part, marked_exercise
from mqlab.course.grading.submissions.notebook_file import named_notebook
from mqlab.course.grading.submissions.rebuild import transplant


def copies(part: Part, folder: Path) -> list[Path]:
    """The working copies of one notebook of a lab in a folder, oldest first."""
    stem = part.path.stem
    paths = folder.glob(f"{stem}-[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*.ipynb")
    return sorted(paths, key=lambda path: (path.stem[: len(stem) + 11], len(path.stem), path.stem))


def fresh_copy(
    lab: CourseLab, part: Part, folder: Path, today: datetime.date, answers_of: Path | None = None
) -> tuple[Path, list[str]]:
    """Write a copy of a part under a new name. Returns its path and the exercises whose answers were carried over."""
    content: dict[str, Any] = json.loads(part.notebook.data)
    carried = _carry(content, lab, answers_of) if answers_of is not None else []
    data = json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True).encode() + b"\n"
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    # O_EXCL creates only a new file, so that work of the same day is never overwritten.
    while True:
        suffix = "" if number == 1 else f"-{number}"
        path = folder / f"{part.path.stem}-{today.isoformat()}{suffix}.ipynb"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            number += 1
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return path, carried


def _carry(content: dict[str, Any], lab: CourseLab, answers_of: Path) -> list[str]:
    answers = transplant(lab, named_notebook(answers_of)).answers
    carried = []
    for cell in content["cells"]:
        source = cell.get("source", "")
        exercise = marked_exercise("".join(source) if isinstance(source, list) else source)
        if exercise in answers:
            cell["source"] = answers[exercise].splitlines(keepends=True)
            carried.append(exercise)
    return carried
