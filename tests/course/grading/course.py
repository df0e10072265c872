"""Builds a course's folder for the tests, and submissions to it."""

from __future__ import annotations

import copy
import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import mqlab.course.cases

FIXTURE = Path(__file__).parent / "fixtures" / "course"
CASES = str(FIXTURE / "cases")
Notebook = dict[str, Any]

RIGHT = {
    "lab99.total": "def total(numbers):\n    return sum(numbers)\n",
    "lab99.box": (
        "class Box:\n    def __init__(self):\n        self.bodies = []\n"
        "    def put(self, body):\n        self.bodies.append(body)\n"
        "    def take(self):\n        return self.bodies.pop(0)\n"
        "    @property\n    def count(self):\n        return len(self.bodies)\n"
    ),
}


def make_course(folder: Path) -> Path:
    """The tiny course, its notebook built from its source."""
    if CASES not in mqlab.course.cases.__path__:
        mqlab.course.cases.__path__.append(CASES)
    build = importlib.import_module("solutions.build")
    shutil.copytree(FIXTURE, folder, dirs_exist_ok=True)
    (folder / "labs").mkdir(exist_ok=True)
    made = build.notebook((folder / "99_tiny.txt").read_text("utf-8"), "99_tiny.py", solved=False)
    (folder / "labs" / "99-tiny.ipynb").write_text(build.dumped(made), "utf-8")
    return folder


def untouched(course: Path) -> Notebook:
    """The notebook as a student gets it."""
    made: Notebook = json.loads((course / "labs" / "99-tiny.ipynb").read_text("utf-8"))
    return made


def with_answers(notebook: Notebook, answers: dict[str, str]) -> Notebook:
    """A copy with some answer cells filled; a text without the first-line mark gets it."""
    made = copy.deepcopy(notebook)
    for cell in made["cells"]:
        mark = "".join(cell["source"]).partition("\n")[0].removeprefix("# exercise: ")
        if mark in answers:
            cell["source"] = f"# exercise: {mark}\n{answers[mark]}"
    return made


def save(notebook: Notebook | str | bytes, path: Path) -> Path:
    """Write a submission."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps(notebook) if isinstance(notebook, dict) else notebook
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return path
