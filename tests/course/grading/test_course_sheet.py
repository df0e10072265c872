"""A course system's sheet comes back with the grades in it and everything else as it was."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mqlab.course.grading.judging.verdict import GRADED, MISSING, NOT_JUDGED, PASSED, ExerciseResult, GradeRecord
from mqlab.course.grading.reports.course_sheet import filled
from mqlab.course.grading.reports.tables import grades_csv
from mqlab.errors import UsageError

MOODLE = """\ufeffIdentifier,"Full name","Email address",Status,Grade,"Maximum Grade","Last modified (grade)"
"Participant 4711","Chen Wei",chen@example.org,"Submitted for grading - ",,20.00,-
"Participant 47","Дарья Ким",d@example.org,"Submitted for grading - ",,20.00,-
"Participant 12","李雷",li@example.org,"No submission",3.00,20.00,-
"""
CANVAS = """Student,ID,SIS Login ID,Section,Lab 00 (997),"Lab 01: the broker's files (998)"
    Points Possible,,,,10,20
"Ek, Anna",55,ekanna,A,9,
"Ek, Anna",56,ekanna2,B,8,
"""


def record(student: str, points: int, status: str = GRADED) -> GradeRecord:
    return GradeRecord(student, "lab01", status, exercises=(ExerciseResult("lab01.unit", "Decode", points, PASSED),))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_moodles_worksheet_is_filled_by_the_number_in_the_folders_name(tmp_path: Path) -> None:
    (tmp_path / "sheet.csv").write_text(MOODLE, "utf-8")
    records = [record("Chen Wei 4711", 9), record("Дарья Ким 47", 20), record("李雷", 0, MISSING), record("Eva 5", 1)]
    text, lost = filled(tmp_path / "sheet.csv", records)
    assert [row["Grade"] for row in rows(text)] == ["9", "20", "3.00"] and lost == ["Eva 5"]
    before = rows(MOODLE.lstrip("\ufeff"))
    assert [{**row, "Grade": ""} for row in rows(text)] == [{**row, "Grade": ""} for row in before]


def test_who_could_not_be_judged_keeps_what_the_sheet_says(tmp_path: Path) -> None:
    (tmp_path / "sheet.csv").write_text(MOODLE, "utf-8")
    own = GradeRecord("李雷 12", "lab01", GRADED, exercises=(ExerciseResult("lab01.unit", "Decode", 4, NOT_JUDGED),))
    assert [row["Grade"] for row in rows(filled(tmp_path / "sheet.csv", [own])[0])] == ["", "", "3.00"]
    assert grades_csv([own]).splitlines()[1] == '"李雷 12","graded","0","4","graded","0","4","","4",""'


def test_canvas_knows_two_people_of_one_name_apart(tmp_path: Path) -> None:
    (tmp_path / "sheet.csv").write_text(CANVAS, "utf-8")
    text, lost = filled(tmp_path / "sheet.csv", [record("ekanna 55", 9), record("ekanna2", 7)])
    column = "Lab 01: the broker's files (998)"
    assert [row[column] for row in rows(text)] == ["20", "9", "7"] and lost == []
    assert [row["Lab 00 (997)"] for row in rows(text)] == ["10", "9", "8"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "cannot be read"), ("a,b\n1,2\n", "no column for lab01; it has a, b"), ("ID,Lab 010\n1,2\n", "no column")],
)
def test_a_file_that_is_no_sheet_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "sheet.csv").write_text(text, "utf-8")
    with pytest.raises(UsageError, match=words):
        filled(tmp_path / "sheet.csv", [record("anna", 1)])


def test_a_sheet_is_for_one_lab(tmp_path: Path) -> None:
    both = [record("anna", 1), GradeRecord("anna", "lab00", GRADED)]
    with pytest.raises(UsageError, match="one lab, not for lab00, lab01"):
        filled(tmp_path / "sheet.csv", both)
