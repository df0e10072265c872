"""Who handed in what: folders of notebooks, of students, of Moodle and Canvas; no student is forgotten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mqlab.course.grading.running.gradebook import file_name
from mqlab.course.grading.submissions.finding import find_submissions, read_roster, student_of
from mqlab.course.grading.submissions.lab_files import CourseLab, open_lab
from mqlab.errors import UsageError
from tests.course.grading.course import RIGHT, save, untouched, with_answers


@pytest.fixture
def lab(course: Path) -> CourseLab:
    return open_lab(course, "99")


def test_notebooks_and_student_folders_may_stand_side_by_side(lab: CourseLab, course: Path, tmp_path: Path) -> None:
    pristine = untouched(course)
    save(pristine, tmp_path / "anna.ipynb")
    save(pristine, tmp_path / "boris" / "deep" / "99-tiny.ipynb")
    save(pristine, tmp_path / "chen" / ".ipynb_checkpoints" / "99-tiny-checkpoint.ipynb")
    save(b"", tmp_path / ".DS_Store")
    save(b"", tmp_path / "readme.txt")
    found = {one.student: one.path for one in find_submissions(tmp_path, [lab])}
    assert sorted(found) == ["anna", "boris", "chen"]
    assert found["anna"] == tmp_path / "anna.ipynb" and found["chen"] is None


@pytest.mark.parametrize(
    ("name", "student"),
    [
        ("Анна Ек_4711_assignsubmission_file_", "Анна Ек 4711"),
        ("Anna Ek_4711_assignsubmission_file", "Anna Ek 4711"),
        ("ekanna_LATE_12_34_01-what-the-broker-writes.ipynb", "ekanna 12"),
        ("ekanna_12_34_01-what-the-broker-writes-1.ipynb", "ekanna 12"),
        ("anna_ek.ipynb", "anna_ek"),
        ("陈.ipynb", "陈"),
    ],
)
def test_students_are_named_as_their_system_names_them(name: str, student: str) -> None:
    assert student_of(name) == student


def test_of_several_notebooks_the_one_with_the_labs_answers_is_taken(
    lab: CourseLab, course: Path, tmp_path: Path
) -> None:
    save(untouched(course), tmp_path / "anna" / "final.ipynb")
    save({"cells": [{"cell_type": "code", "source": "x"}]}, tmp_path / "anna" / "99-notes.ipynb")
    save({"cells": []}, tmp_path / "anna" / "01-other.ipynb")
    (one,) = find_submissions(tmp_path, [lab])
    assert one.name == "anna/final.ipynb" and "2 notebooks of this lab" in one.note


def test_of_two_copies_the_later_name_is_taken(lab: CourseLab, course: Path, tmp_path: Path) -> None:
    for day in ("01", "02"):
        save(with_answers(untouched(course), RIGHT), tmp_path / "anna" / f"99-tiny-2026-03-{day}.ipynb")
    (one,) = find_submissions(tmp_path, [lab])
    assert one.name == "anna/99-tiny-2026-03-02.ipynb"


def test_a_roster_names_those_who_handed_in_nothing(lab: CourseLab, course: Path, tmp_path: Path) -> None:
    save(untouched(course), tmp_path / "in" / "anna.ipynb")
    roster = save("student,email\nanna,a@x\n李雷,l@x\n\n".encode(), tmp_path / "roster.csv")
    found = find_submissions(tmp_path / "in", [lab], read_roster(roster))
    assert [(one.student, one.path is None) for one in found] == [("anna", False), ("李雷", True)]
    assert read_roster(save(b"anna\nboris\n", tmp_path / "plain.txt")) == ["anna", "boris"]


def test_folders_that_are_none_are_refused(lab: CourseLab, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "nowhere", tmp_path / "empty"):
        with pytest.raises(UsageError):
            find_submissions(folder, [lab])
    with pytest.raises(UsageError, match="cannot be read"):
        read_roster(tmp_path / "nowhere.csv")


def test_links_are_submissions_that_are_not_followed(lab: CourseLab, course: Path, tmp_path: Path) -> None:
    save(untouched(course), tmp_path / "elsewhere" / "99-tiny.ipynb")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "anna").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in" / "boris.ipynb").symlink_to(tmp_path / "elsewhere" / "99-tiny.ipynb")
    found = find_submissions(tmp_path / "in", [lab])
    assert [(one.student, one.path is not None and one.path.is_symlink()) for one in found] == [
        ("anna", True),
        ("boris", True),
    ]


def test_names_that_are_no_text_are_made_readable(lab: CourseLab, course: Path, tmp_path: Path) -> None:
    strange = os.fsdecode(b"ann\xff.ipynb")
    try:
        save(untouched(course), tmp_path / strange)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    (one,) = find_submissions(tmp_path, [lab])
    assert (one.student, one.name) == ("ann\\xff", "ann\\xff.ipynb") and one.path == tmp_path / strange


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b"ann\\xff.ipynb", b"ann\xff.ipynb"),
        (b"anna 12.ipynb", b"anna_12_5_99-tiny.ipynb"),
        ("Анна_12_assignsubmission_file_".encode(), "Анна_12_5_99-tiny.ipynb".encode()),
        (b"ann\x01.ipynb", b"ann\\x01.ipynb"),
    ],
)
def test_files_of_two_people_never_become_one_student(
    lab: CourseLab, course: Path, tmp_path: Path, first: bytes, second: bytes
) -> None:
    for name in map(os.fsdecode, (first, second)):
        save(untouched(course), tmp_path / name if name.endswith(".ipynb") else tmp_path / name / "99-tiny.ipynb")
    one, two = find_submissions(tmp_path, [lab])
    assert one.student != two.student and one.path != two.path
    assert two.student.startswith(f"{one.student}~") and "the same name" in two.note and not one.note


def test_files_of_one_person_stay_together(lab: CourseLab, course: Path, tmp_path: Path) -> None:
    for name in (
        "anna/99-tiny.ipynb",
        "anna.ipynb",
        "ek_LATE_1_2_99-tiny.ipynb",
        "ek_1_3_99-tiny.ipynb",
        "Li_7_assignsubmission_file_/a.ipynb",
        "Li_7_assignsubmission_onlinetext_/b.ipynb",
    ):
        save(untouched(course), tmp_path / name)
    assert [one.student for one in find_submissions(tmp_path, [lab])] == ["Li 7", "anna", "ek 1"]


def test_control_characters_of_a_name_are_spelled_out(lab: CourseLab, course: Path, tmp_path: Path) -> None:
    save(untouched(course), tmp_path / "an\x1b[2J\r\u202ena.ipynb")
    (one,) = find_submissions(tmp_path, [lab])
    assert one.student == "an\\x1b[2J\\r\\u202ena" and one.name == f"{one.student}.ipynb"


def test_file_names_of_students_never_meet() -> None:
    names = ["anna", "Anna", "anna ", "../anna", "an/na", "", ".", "..", "анна", "a" * 300, "a" * 301, "a~b", "nul\0"]
    files = [file_name(name).lower() for name in names]
    assert len(set(files)) == len(names)
    assert all("~" in file or ("/" not in file and not file.startswith(".")) for file in files)
    assert all(len(file) < 100 and "\0" not in file for file in files)
