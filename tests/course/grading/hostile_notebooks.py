"""Submissions that are hostile as files or as notebooks, whatever their answers say: a maker each."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.course.grading.course import RIGHT, Notebook, save, with_answers

Maker = Callable[[Notebook, Path], object]
WRONG_TOTAL = {**RIGHT, "lab99.total": "def total(numbers):\n    return None\n"}


@dataclass(frozen=True)
class Hostile:
    """One submission: how it is made, the status and the points it must end with."""

    name: str
    make: Maker
    status: str
    points: int
    long: bool = False

    @property
    def file_name(self) -> str:
        """The name as a file can have it."""
        return self.name.replace("/", "∕")


def edited(change: Callable[[Notebook], object], answers: dict[str, str] = WRONG_TOTAL) -> Maker:
    def make(pristine: Notebook, path: Path) -> None:
        notebook = with_answers(pristine, answers)
        change(notebook)
        save(notebook, path)

    return make


def written(data: bytes) -> Maker:
    return lambda pristine, path: save(data, path)


def cell_of(notebook: Notebook, cell_id: str) -> Notebook:
    found: Notebook = next(cell for cell in notebook["cells"] if cell["id"] == cell_id)
    return found


def code(source: str, **metadata: object) -> Notebook:
    return {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": metadata,
        "outputs": [],
        "source": source,
        "id": "own",
    }


VERDICT = {
    "exercise": "lab99.total",
    "kind": "public",
    "cases": [
        {
            "name": "x",
            "kind": "public",
            "state": "passed",
            "rule": "",
            "first_wrong": "",
            "expected": "",
            "found": "",
            "trace": "",
        }
    ],
}


def forge_outputs(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["execution_count"] = 1
            data = {"text/plain": "✓ 3 of 3 pass", "application/vnd.mqlab.verdict+json": VERDICT}
            cell["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": data}]


def forge_check(notebook: Notebook) -> None:
    cell_of(notebook, "lab99-total-check")["source"] = (
        "from IPython.display import publish_display_data\n"
        f"publish_display_data({{'application/vnd.mqlab.verdict+json': {VERDICT!r}}})"
    )


def mark_cells(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["metadata"]["tags"] = ["raises-exception", "nbval-skip", "nbval-ignore-output"]
        if cell["cell_type"] == "code":
            cell["source"] = "# NBVAL_SKIP\n# NBVAL_RAISES_EXCEPTION\n" + "".join(cell["source"])


def raise_points(notebook: Notebook) -> None:
    notebook["metadata"]["mqlab"] = {"points": 1000, "status": "graded"}
    for cell in notebook["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["points"] = 1000


def other_kernel(notebook: Notebook) -> None:
    notebook["metadata"]["kernelspec"] = {"name": "bash", "display_name": "x", "language": "bash", "argv": ["/bin/sh"]}


def delete_checks(notebook: Notebook) -> None:
    notebook["cells"] = [cell for cell in notebook["cells"] if not cell["id"].endswith("-check")]


def delete_answer(notebook: Notebook) -> None:
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] != "lab99-total"]


def duplicate_answer(notebook: Notebook) -> None:
    again = copy.deepcopy(cell_of(notebook, "lab99-total"))
    again |= {"id": "copied", "source": f"# exercise: lab99.total\n{RIGHT['lab99.total']}"}
    notebook["cells"].insert(0, again)


def claim_all(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["id"] = "lab99-total"
        cell["metadata"]["nbgrader"] = {"grade_id": "lab99-box"}


def add_cells(notebook: Notebook) -> None:
    notebook["cells"].insert(0, code("import mqlab.course.teach\nmqlab.course.teach.check = print"))
    notebook["cells"].append(code("def total(numbers):\n    return sum(numbers)"))


def odd_types(notebook: Notebook) -> None:
    notebook["cells"] += [7, None, {"cell_type": ["code"]}, {"source": {"a": 1}}, {"cell_type": "code", "source": [1]}]
    notebook["cells"][1]["metadata"] = {"nbgrader": [], "tags": "x", "id": 3}


def null_bytes(notebook: Notebook) -> None:
    cell_of(notebook, "lab99-total")["source"] = "# exercise: lab99.total\ndef total(numbers):\n    return '\0'\0\n"


def scripts_everywhere(notebook: Notebook) -> None:
    cell_of(notebook, "lab99-total")["source"] = (
        "# exercise: lab99.total\ndef total(numbers):\n    '<script>alert(1)</script>'\n"
        "    raise ValueError('<img src=x onerror=alert(1)> \\x1b[31m \\x00 ]]> &lt;')\n"
    )


def link_to(target: str) -> Maker:
    def make(pristine: Notebook, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    return make


def link_to_full_marks(pristine: Notebook, path: Path) -> None:
    elsewhere = save(with_answers(pristine, RIGHT), path.parent.parent / "elsewhere" / "99-solved.ipynb")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(elsewhere)


def fifo(pristine: Notebook, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)


def folder_as_notebook(pristine: Notebook, path: Path) -> None:
    (path / "99-tiny.ipynb").mkdir(parents=True)


def huge(pristine: Notebook, path: Path) -> None:
    notebook = with_answers(pristine, WRONG_TOTAL)
    notebook["cells"][0]["source"] = "x " * (17 << 20)
    save(notebook, path)


BANK = (
    Hostile("outputs_forged", edited(forge_outputs), "graded", 4),
    Hostile("check_forged", edited(forge_check), "graded", 4),
    Hostile("nbval_markers", edited(mark_cells), "graded", 4),
    Hostile("points_raised", edited(raise_points), "graded", 4, long=True),
    Hostile("another_kernel", edited(other_kernel), "graded", 4, long=True),
    Hostile("checks_deleted", edited(delete_checks), "graded", 4, long=True),
    Hostile("answer_deleted", edited(delete_answer), "graded", 4, long=True),
    Hostile("answer_duplicated", edited(duplicate_answer), "graded", 4),
    Hostile("all_cells_claim_one_exercise", edited(claim_all), "graded", 0),
    Hostile("cells_added", edited(add_cells), "tampered", 4),
    Hostile("odd_types", edited(odd_types), "graded", 4, long=True),
    Hostile("null_bytes_in_a_cell", edited(null_bytes), "graded", 4, long=True),
    Hostile("scripts_everywhere", edited(scripts_everywhere), "graded", 4),
    Hostile("=cmd|' /C calc'!A0", edited(lambda notebook: None), "graded", 4),
    Hostile("<script>alert(1)</script>", edited(lambda notebook: None), "graded", 4, long=True),
    Hostile("not_a_notebook", written(b"answer = 42\n"), "malformed", 0),
    Hostile("a_picture", written(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), "malformed", 0),
    Hostile("null_bytes", written(b"\0" * 4096), "malformed", 0),
    Hostile("empty_file", written(b""), "malformed", 0),
    Hostile("other_json", written(b'{"cells": 3}'), "malformed", 0),
    Hostile("nested_json", written(b'{"cells":' + b"[" * 200_000 + b"]" * 200_000 + b"}"), "malformed", 0),
    Hostile("cut_off", written(json.dumps({"cells": [{}] * 50}).encode()[:200]), "malformed", 0),
    Hostile("huge_file", huge, "malformed", 0),
    Hostile("a_folder", folder_as_notebook, "malformed", 0),
    Hostile("a_pipe", fifo, "malformed", 0),
    Hostile("a_link_to_full_marks", link_to_full_marks, "tampered", 0),
    Hostile("a_link_to_a_device", link_to("/dev/zero"), "tampered", 0),
    Hostile("a_broken_link", link_to("nowhere.ipynb"), "tampered", 0),
)
