"""A lab in parts: one notebook per part, and one submission, one row and one sum per student."""

from __future__ import annotations

import copy
import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mqlab.cli import main
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.finding import Submission, find_submissions
from mqlab.course.grading.submissions.lab_files import CourseLab, lab_numbers, open_lab, part_names, parts_of
from mqlab.course.grading.submissions.own_work import lab_of
from mqlab.course.grading.submissions.parts import together
from mqlab.course.grading.submissions.rebuild import rebuilt, transplant
from mqlab.errors import UsageError
from tests.course.grading.course import RIGHT, make_course, save, with_answers

A, B = "99a-add.ipynb", "99b-boxes.ipynb"
Notebook = dict[str, Any]


@pytest.fixture(scope="session")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny course with its lab in two parts: 99a has the total, 99b the box. Some ids are in both."""
    course = make_course(tmp_path_factory.mktemp("parts") / "course")
    whole = json.loads((course / "labs" / "99-tiny.ipynb").read_text("utf-8"))
    (course / "labs" / "99-tiny.ipynb").unlink()
    cut = next(n for n, cell in enumerate(whole["cells"]) if "lab99.box" in "".join(cell["source"]))
    head = whole["cells"][:2]
    save({**whole, "cells": whole["cells"][:cut]}, course / "labs" / A)
    save({**whole, "cells": [*head, *whole["cells"][cut:]]}, course / "labs" / B)
    return course


@pytest.fixture
def lab(split: Path) -> CourseLab:
    return open_lab(split, "99")


def part(split: Path, name: str, answers: dict[str, str] | None = None) -> Notebook:
    made: Notebook = json.loads((split / "labs" / name).read_text("utf-8"))
    return with_answers(made, answers or {})


def mqlab(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_a_number_names_all_parts_and_a_letter_one(split: Path, lab: CourseLab) -> None:
    assert (part_names(split), lab_numbers(split)) == (["99a", "99b"], ["99"])
    assert parts_of(split, "99") == ["99a", "99b"] and parts_of(split, "99b") == ["99b"]
    assert [one.id for one in lab.exercises] == ["lab99.total", "lab99.box"] and lab.is_in_parts
    box = open_lab(split, "99b")
    assert (box.id, box.manifest_id) == ("lab99b", "lab99") and [one.id for one in box.exercises] == ["lab99.box"]
    with pytest.raises(UsageError, match="there is no lab '99c'"):
        parts_of(split, "99c")


def test_a_lab_that_is_there_whole_and_in_parts_is_refused(tmp_path: Path) -> None:
    for name in ("99-tiny.ipynb", A):
        save({"cells": []}, tmp_path / "labs" / name)
    with pytest.raises(UsageError, match="as a whole and in parts: 99, 99a"):
        parts_of(tmp_path, "99")


def test_every_way_to_hand_in_two_parts_gives_one_submission(split: Path, lab: CourseLab, tmp_path: Path) -> None:
    for file, name in {
        "anna/99a-add-2026-03-05.ipynb": A,
        "anna/deep/final.ipynb": B,
        "boris_99a.ipynb": A,
        "boris-99b-boxes.ipynb": B,
        "ek_1_5_99a-add.ipynb": A,
        "ek_LATE_1_6_99b-boxes.ipynb": B,
        "Li 李_7_assignsubmission_file_/x.ipynb": A,
        "Li 李_7_assignsubmission_file_/y.ipynb": B,
    }.items():
        save(part(split, name), tmp_path / file)
    found = find_submissions(tmp_path, [lab])
    assert [one.student for one in found] == ["Li 李 7", "anna", "boris", "ek 1"]
    assert all(len(one.files) == 2 and not one.note for one in found), found


def test_of_a_part_that_was_handed_in_twice_one_is_judged(split: Path, lab: CourseLab, tmp_path: Path) -> None:
    for file, name in {"a/99a-1.ipynb": A, "a/99a-2.ipynb": A, "a/99b.ipynb": B}.items():
        save(part(split, name), tmp_path / file)
    (one,) = find_submissions(tmp_path, [lab])
    assert [path.name for path in one.files] == ["99a-2.ipynb", "99b.ipynb"]
    assert one.note == "2 notebooks of part 99a; 99a-2.ipynb was judged"


def test_parts_of_two_students_stay_apart(split: Path, lab: CourseLab, tmp_path: Path) -> None:
    save(part(split, A), tmp_path / "anna" / "x.ipynb")
    save(part(split, B), tmp_path / "boris" / "x.ipynb")
    found = find_submissions(tmp_path, [lab], ["chen"])
    assert [(one.student, len(one.files), one.note) for one in found] == [
        ("anna", 1, "part 99b was not handed in"),
        ("boris", 1, "part 99a was not handed in"),
        ("chen", 0, ""),
    ]


def test_one_part_alone_is_graded_alone(split: Path, tmp_path: Path) -> None:
    save(part(split, A), tmp_path / "anna" / "x.ipynb")
    save(part(split, B), tmp_path / "anna" / "y.ipynb")
    (one,) = find_submissions(tmp_path, [open_lab(split, "99b")])
    assert (one.lab, one.name) == ("99b", "anna/y.ipynb")


def test_an_older_notebook_with_the_whole_lab_serves_both_parts(
    split: Path, course: Path, lab: CourseLab, tmp_path: Path
) -> None:
    whole = json.loads((course / "labs" / "99-tiny.ipynb").read_text("utf-8"))
    save(with_answers(whole, RIGHT), tmp_path / "anna.ipynb")
    (one,) = find_submissions(tmp_path, [lab])
    notebook, notes = together(lab, one.files)
    assert len(one.files) == 1 and set(transplant(lab, notebook).answers) == set(RIGHT) and not notes


def test_an_answer_pasted_into_another_part_does_not_replace_the_original(
    split: Path, lab: CourseLab, tmp_path: Path
) -> None:
    guest = part(split, B, RIGHT)
    guest["cells"].append({**part(split, A)["cells"][2], "source": "# exercise: lab99.total\ndef total(n): return 1"})
    save(guest, tmp_path / "anna" / "99b.ipynb")
    save(part(split, A, RIGHT), tmp_path / "anna" / "99a.ipynb")
    (one,) = find_submissions(tmp_path, [lab])
    notebook, _ = together(lab, one.files)
    taken = transplant(lab, notebook)
    assert "sum(numbers)" in taken.answers["lab99.total"] and not one.note
    assert [note.kind for note in taken.notes] == ["duplicate"]


def with_helper(notebook: Notebook, text: str) -> Notebook:
    made = copy.deepcopy(notebook)
    made["cells"].insert(1, {"cell_type": "code", "source": text, "metadata": {}, "outputs": []})
    return made


HELPED = {
    "lab99.total": "def total(numbers):\n    return helper(numbers)\n",
    "lab99.box": RIGHT["lab99.box"].replace("self.bodies.append(body)", "helper(self.bodies, body)"),
}


@pytest.fixture(scope="module")
def graded(split: Path, walls: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A class: both parts, helpers of one name, one part missing, one part unreadable, one part a link."""
    folder = tmp_path_factory.mktemp("parts-class")
    a, b = part(split, A, HELPED), part(split, B, HELPED)
    save(with_helper(a, "def helper(numbers):\n    return sum(numbers)"), folder / "in" / "anna" / A)
    save(with_helper(b, "def helper(bodies, body):\n    bodies.append(body)"), folder / "in" / "anna" / B)
    save(part(split, A, RIGHT), folder / "in" / "boris" / A)
    save(part(split, A, RIGHT), folder / "in" / "chen" / A)
    save("no notebook", folder / "in" / "chen" / B)
    save(part(split, A, RIGHT), folder / "in" / "dora" / A)
    (folder / "in" / "dora" / B).symlink_to(folder / "in" / "anna" / B)
    out = folder / "out"
    words = ("grade", folder / "in", "--lab", "99", "--course", split, "--out", out, "--seed", "autumn", "-j", "2")
    return out, mqlab(*words)


def test_each_student_has_one_row_and_one_sum(graded: tuple[Path, Result]) -> None:
    out, result = graded
    assert result.exit_code == 0, result.output
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["anna", "lab99", "graded", "7", "of", "7"],
        ["boris", "lab99", "graded", "3", "of", "7"],
        ["chen", "lab99", "graded", "3", "of", "7"],
        ["dora", "lab99", "tampered", "3", "of", "7"],
    ]
    rows = list(csv.DictReader((out / "grades.csv").read_text("utf-8").splitlines()))
    assert [(row["student"], row["lab99.total"], row["lab99.box"]) for row in rows][:2] == [
        ("anna", "3", "4"),
        ("boris", "3", "0"),
    ]


def test_what_is_missing_is_said_with_its_part(graded: tuple[Path, Result]) -> None:
    records = {path.name[:4]: json.loads(path.read_text("utf-8")) for path in (graded[0] / "records").iterdir()}
    box = records["bori"]["exercises"][1]
    assert (box["state"], box["reason"]) == ("missing", "the notebook of part 99b was not handed in")
    assert [note["text"] for note in records["bori"]["notes"]] == ["part 99b was not handed in"]
    assert "the notebook of part 99b cannot be read: it is not JSON" in records["chen"]["notes"][0]["text"]
    assert f"{B}: it is a link to" in records["dora"]["reason"]


def test_cells_of_two_parts_have_ids_of_their_own(split: Path, lab: CourseLab) -> None:
    cells = rebuilt(lab, {"lab99.total", "lab99.box"}, "job", hidden=True)["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_a_part_and_its_whole_lab_are_not_graded_together(split: Path, tmp_path: Path) -> None:
    save(part(split, A), tmp_path / "in" / "anna.ipynb")
    words = ("grade", tmp_path / "in", "--course", split, "--out", tmp_path / "out")
    result = mqlab(*words, "--lab", "99", "--lab", "99a")
    assert result.exit_code == 2 and "part 99a would count twice" in result.stderr


def test_start_copies_one_part_or_all(split: Path, tmp_path: Path) -> None:
    words = ("--course", split, "--to", tmp_path / "work")
    first = mqlab("start", "99b", *words)
    assert [Path(line).name[:9] for line in first.stdout.splitlines()] == ["99b-boxes"]
    both = mqlab("start", "99", *words)
    assert [Path(line).name[:3] for line in both.stdout.splitlines()] == ["99a", "99b"]
    assert "you have started 99b already" in both.stderr and "99a" not in both.stderr
    assert len(list((tmp_path / "work").iterdir())) == 2


def test_restore_carries_answers_into_the_parts(split: Path, course: Path, tmp_path: Path) -> None:
    whole = json.loads((course / "labs" / "99-tiny.ipynb").read_text("utf-8"))
    old = save(with_answers(whole, RIGHT), tmp_path / "old.ipynb")
    words = ("restore", "99", "--course", split, "--to", tmp_path / "work", "--answers-of", old)
    result = mqlab(*words)
    assert "answers carried over: lab99.total, lab99.box" in result.stderr
    texts = [Path(line).read_text("utf-8") for line in result.stdout.splitlines()]
    assert ["sum(numbers)" in text for text in texts] == [True, False]


def test_own_work_is_checked_as_the_part_that_it_is(split: Path, tmp_path: Path) -> None:
    path = save(part(split, B), tmp_path / "mine.ipynb")
    assert lab_of(path, split).number == "99b"


def test_a_submission_without_files_has_none() -> None:
    assert Submission("anna", "99", None).files == ()
