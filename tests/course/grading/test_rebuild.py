"""From a submission only answers come: found by grade_id, id or first line; everything else is the lab's own."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path

import pytest

from mqlab.course.grading.submissions.lab_files import CourseLab, open_lab, pristine, top_level_names
from mqlab.course.grading.submissions.notebook_file import NotANotebook, Notebook, parse_notebook, read_notebook
from mqlab.course.grading.submissions.rebuild import ROLE, rebuilt, transplant
from mqlab.course.grading.submissions.tampering import suspicions
from tests.course.grading.course import RIGHT, save, untouched, with_answers


@pytest.fixture
def lab(course: Path) -> CourseLab:
    return open_lab(course, "99")


def parsed(notebook: dict[str, object]) -> Notebook:
    return parse_notebook(json.dumps(notebook).encode())


def test_a_lab_knows_its_exercises_names_and_limits(lab: CourseLab) -> None:
    assert [(a.exercise.id, a.names, a.limits.seconds) for a in lab.answers] == [
        ("lab99.total", ("total",), 10),
        ("lab99.box", ("Box",), 60),
    ]
    assert lab.hidden_file is not None and lab.hidden_file.name == "lab99.py"


def test_an_untouched_lab_has_no_answers(lab: CourseLab, course: Path) -> None:
    taken = transplant(lab, parsed(untouched(course)))
    assert (taken.answers, taken.untouched, taken.missing) == ({}, ("lab99.total", "lab99.box"), ())


def test_comments_and_blank_lines_alone_are_no_answer(lab: CourseLab, course: Path) -> None:
    notebook = untouched(course)
    for cell in notebook["cells"]:
        if "".join(cell["source"]).startswith("# exercise"):
            cell["source"] = "".join(cell["source"]) + "\n\n# I do not know\n"
    assert transplant(lab, parsed(notebook)).answers == {}


@pytest.mark.parametrize("kept", ["everything", "grade_id", "id", "mark", "mark and format 3"])
def test_answers_are_found_by_whatever_an_editor_kept(lab: CourseLab, course: Path, kept: str) -> None:
    notebook = with_answers(untouched(course), RIGHT)
    for number, cell in enumerate(notebook["cells"]):
        if kept not in ("everything", "grade_id"):
            cell["metadata"] = {}
        if kept not in ("everything", "id"):
            cell["id"] = f"new-{number}"
        if kept in ("grade_id", "id"):
            cell["source"] = "".join(cell["source"]).partition("\n")[2]
        if kept == "mark and format 3":
            cell["input"] = cell.pop("source")
            del cell["id"]
    if kept == "mark and format 3":
        notebook = {"nbformat": 3, "metadata": {}, "worksheets": [{"cells": notebook["cells"]}]}
    assert sorted(transplant(lab, parsed(notebook)).answers) == ["lab99.box", "lab99.total"]


def test_of_two_answers_the_original_wins_with_a_note(lab: CourseLab, course: Path) -> None:
    notebook = with_answers(untouched(course), RIGHT)
    (original,) = [cell for cell in notebook["cells"] if cell["id"] == "lab99-total"]
    second = copy.deepcopy(original) | {"id": "another", "source": "# exercise: lab99.total\ntotal = 1"}
    for place in (0, len(notebook["cells"])):
        both = copy.deepcopy(notebook)
        both["cells"].insert(place, second)
        taken = transplant(lab, parsed(both))
        assert taken.answers["lab99.total"].endswith(RIGHT["lab99.total"])
        assert [note.kind for note in taken.notes] == ["duplicate"]


def test_a_deleted_answer_is_missing(lab: CourseLab, course: Path) -> None:
    notebook = untouched(course)
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] != "lab99-box"]
    assert transplant(lab, parsed(notebook)).missing == ("lab99.box",)


def test_imports_and_added_helpers_go_along_and_nothing_else(lab: CourseLab, course: Path) -> None:
    notebook = untouched(course)
    notebook["cells"][1]["source"] = "import json, struct\nfrom __future__ import annotations\nprint('changed')"
    notebook["cells"].append(
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "id": "mine",
            "source": "%time\nimport os.path\nHELD = 1\ndef helper():\n    return 7\nwhile True: pass\n",
        }
    )
    text = "\n".join(transplant(lab, parsed(notebook)).set_up)
    assert "import json, struct" in text and "import os.path" in text and "def helper()" in text
    assert "HELD" not in text and "while" not in text and "print" not in text and "__future__" not in text
    assert "from mqlab.course import check" in text
    compile(text, "set-up", "exec")


def test_the_rebuilt_notebook_is_the_pristine_one_with_calls_for_answers(lab: CourseLab) -> None:
    made = rebuilt(lab, {"lab99.total", "lab99.box"}, "job.json", hidden=True)
    roles = [(cell["metadata"][ROLE]["role"], cell["metadata"][ROLE]["exercise"]) for cell in made["cells"]]
    assert roles == [
        ("desk", ""),
        ("demo", ""),
        ("answer", "lab99.total"),
        ("check", "lab99.total"),
        ("answer", "lab99.box"),
        ("check", "lab99.box"),
        ("hidden", "lab99.box"),
        ("hidden", "lab99.total"),
    ]
    sources = [cell["source"] for cell in made["cells"]]
    assert "give_answer('lab99.total'" in sources[2] and sources[3] == 'check("lab99.total")'
    assert not any(cell["outputs"] for cell in made["cells"])


def test_what_stands_behind_the_last_begun_exercise_is_not_run(lab: CourseLab) -> None:
    roles = [cell["metadata"][ROLE]["role"] for cell in rebuilt(lab, {"lab99.total"}, "j", hidden=True)["cells"]]
    assert roles == ["desk", "demo", "answer", "check", "hidden"]
    made = rebuilt(lab, {"lab99.box"}, "j", hidden=False)["cells"]
    assert [cell["metadata"][ROLE]["role"] for cell in made] == ["desk", "demo", "demo", "check", "answer", "check"]
    assert "def total" in made[2]["source"]


def test_what_the_lab_itself_does_is_no_suspicion(course: Path, lab: CourseLab) -> None:
    notebook = untouched(course)
    notebook["cells"][1]["metadata"]["tags"] = ["nbval-skip"]
    notebook["cells"][1]["source"] = "import subprocess"
    own = dataclasses.replace(lab, notebook=parsed(notebook))
    assert suspicions(own, parsed(notebook)) == []
    kinds = [note.kind for note in suspicions(lab, parsed(notebook))]
    assert kinds == ["marker", "worth a look"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"x = 1", "not JSON"),
        (b"[]", "not a notebook"),
        (b"{}", "no list of cells"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"cells": {}}', "no list of cells"),
        (b"[" * 100_000, "nested too deep|not JSON"),
        (b"\0\0", "not JSON"),
    ],
)
def test_what_is_no_notebook_is_told(data: bytes, words: str) -> None:
    with pytest.raises(NotANotebook, match=words):
        parse_notebook(data)


def test_a_notebook_cut_at_any_byte_is_a_notebook_or_told(course: Path) -> None:
    data = json.dumps(with_answers(untouched(course), RIGHT)).encode()
    for end in range(0, len(data), 7):
        with pytest.raises(NotANotebook):
            parse_notebook(data[:end])


def test_files_that_are_none_are_told(tmp_path: Path) -> None:
    (tmp_path / "link.ipynb").symlink_to(save({"cells": []}, tmp_path / "real.ipynb"))
    for name in ("link.ipynb", "nowhere.ipynb", "."):
        with pytest.raises(NotANotebook):
            read_notebook(tmp_path / name)
    assert read_notebook(tmp_path / "real.ipynb").cells == ()


def test_a_lab_that_was_worked_in_is_not_taken_for_pristine(course: Path, tmp_path: Path) -> None:
    notebook = untouched(course)
    notebook["cells"][1]["execution_count"] = 3
    save(notebook, tmp_path / "labs" / "99-tiny.ipynb")
    with pytest.raises(ValueError, match="was worked in"):
        pristine(tmp_path, "99")
    save(untouched(course), tmp_path / "originals" / "99-tiny.ipynb")
    assert pristine(tmp_path, "99")[0].parent.name == "originals"


def test_copies_beside_a_lab_are_not_labs(course: Path, tmp_path: Path) -> None:
    for name in ("99-tiny.ipynb", "99-tiny-2026-03-05.ipynb", "99-tiny-2026-03-05-2.ipynb", "99-tiny-Copy1.ipynb"):
        save(untouched(course), tmp_path / "labs" / name)
    assert pristine(tmp_path, "99")[0].name == "99-tiny.ipynb"


def test_names_are_read_from_the_top_of_a_cell() -> None:
    assert top_level_names("a = b = 1\nc: int = 2\nif 1:\n    d = 1\nasync def e(): ...") == ["a", "b", "c", "e"]
    assert top_level_names("def broken(:") == []


@pytest.mark.parametrize(
    ("source", "kind", "grave"),
    [
        ("def check(x): ...", "redefines", True),
        ("check = print", "redefines", True),
        ("from os import system as check", "redefines", True),
        ("import mqlab.course.teach as t\nt.check = 1", "patches", True),
        ("from mqlab.course import teach\nsetattr(teach, 'check', 1)", "patches", True),
        ("import builtins\nbuiltins.sum = len", "patches", True),
        ("__builtins__.sum = len", "patches", True),
        ("import IPython\nIPython.core.x = 1", "patches", True),
        ("# NBVAL_SKIP", "marker", False),
        ("import sys\nsys._getframe(1)", "worth a look", False),
        ("def broken(: _getframe", "worth a look", False),
    ],
)
def test_what_looks_like_an_attempt_is_noted(lab: CourseLab, course: Path, source: str, kind: str, grave: bool) -> None:
    notebook = with_answers(untouched(course), {"lab99.total": source})
    assert (kind, grave) in [(note.kind, note.grave) for note in suspicions(lab, parsed(notebook))]


def test_an_ordinary_submission_is_not_suspected(lab: CourseLab, course: Path) -> None:
    assert suspicions(lab, parsed(with_answers(untouched(course), RIGHT))) == []
