"""Points given by hand: with a comment, shown as such, kept when a class is graded again, never lost from the file."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mqlab.cli import main
from mqlab.course.grading.judging.verdict import (
    FAILED,
    GRADED,
    MISSING,
    NOT_JUDGED,
    PASSED,
    ExerciseResult,
    GradeRecord,
)
from mqlab.course.grading.reports import feedback, gradescope, write_reports
from mqlab.course.grading.reports.overrides import FILE, add_override, in_force, overridden, read_overrides
from mqlab.errors import UsageError
from tests.course.grading.course import save, untouched, with_answers

COMMENT = "Right idea; the check <was> wrong"


def anna() -> GradeRecord:
    exercises = (
        ExerciseResult("lab01.unit", "Unit", 3, FAILED, "a rule"),
        ExerciseResult("lab01.queue", "Queue", 4, PASSED),
        ExerciseResult("lab01.tags", "Tags", 2, NOT_JUDGED, "a disk"),
    )
    return GradeRecord("anna", "lab01", GRADED, exercises=exercises)


def mqlab(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_the_last_line_holds_and_all_lines_stay(tmp_path: Path) -> None:
    add_override(tmp_path, "anna", "lab01.unit", 2, "half")
    add_override(tmp_path, "anna", "lab01.unit", 2.5, "a \n bit, more")
    add_override(tmp_path, "boris", "lab01.unit", 1, "late")
    add_override(tmp_path, "boris", "lab01.unit", None, "withdrawn")
    lines = read_overrides(tmp_path)
    assert [(line.student, line.points, line.comment) for line in lines] == [
        ("anna", 2, "half"),
        ("anna", 2.5, "a bit, more"),
        ("boris", 1, "late"),
        ("boris", None, "withdrawn"),
    ]
    assert all(line.at and line.by for line in lines)
    assert {key: line.points for key, line in in_force(lines).items()} == {("anna", "lab01.unit"): 2.5}


def test_lines_may_be_typed_in_an_editor(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('at,by,student,exercise,points,comment\n,,李雷,lab01.unit,"2,5",gut', "utf-8-sig")
    add_override(tmp_path, "anna", "lab01.unit", 3, "right")
    assert [(line.student, line.points) for line in read_overrides(tmp_path)] == [("李雷", 2.5), ("anna", 3)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("student,points\n", "the first line"),
        ("at,by,student,exercise,points,comment\n,,anna,lab01.unit,3\n", "line 2: 5 columns instead of 6"),
        ("at,by,student,exercise,points,comment\n,,anna,lab01.unit,3,\n", "line 2: .*comment must not be empty"),
        ("at,by,student,exercise,points,comment\n,,anna,lab01.unit,many,x\n", "'many' is not a number"),
        ("at,by,student,exercise,points,comment\n,,anna,lab01.unit,-1,x\n", "-1 points cannot be given"),
        ("at,by,student,exercise,points,comment\n,,anna,lab01.unit,nan,x\n", "nan points cannot be given"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / FILE).write_text(text, "utf-8")
    with pytest.raises(UsageError, match=told):
        read_overrides(tmp_path)


def test_points_given_by_hand_count_and_are_shown_as_such(tmp_path: Path) -> None:
    add_override(tmp_path, "anna", "lab01.unit", 2.5, COMMENT)
    add_override(tmp_path, "anna", "lab01.tags", 0, "not begun")
    add_override(tmp_path, "zoe", "lab01.unit", 1, "nobody")
    (record,), unused = overridden([anna()], read_overrides(tmp_path))
    assert (record.scored, record.points, record.not_judged) == (6.5, 9, ()) and [line.student for line in unused] == [
        "zoe"
    ]
    write_reports(tmp_path, [record], seed="s", show_hidden="message")
    (row,) = csv.DictReader((tmp_path / "grades.csv").read_text("utf-8").splitlines())
    assert (row["score"], row["lab01.unit"], row["lab01.tags"]) == ("6.5", "2.5", "0")
    assert row["changed_by_hand"].startswith(f"lab01.unit: 2.5 instead of 0: {COMMENT}")
    (student,) = json.loads((tmp_path / "grades.json").read_text("utf-8"))["students"]
    first = student["labs"][0]["exercises"][0]
    assert (first["score"], first["judged"], first["override"]["comment"]) == (2.5, 0, COMMENT)
    index = (tmp_path / "index.html").read_text("utf-8")
    assert "6.5 of 9*" in index and "Points given by hand" in index and "&lt;was&gt;" in index
    page = feedback.page(record, "none")
    assert "Your instructor gave <b>2.5</b> instead of 0: Right idea; the check &lt;was&gt; wrong" in page
    assert (
        f"your instructor gave 2.5 instead of 0: {COMMENT}"
        in json.loads(gradescope.results(record, "none"))["tests"][0]["output"]
    )


def test_more_points_than_there_are_cannot_be_given(tmp_path: Path) -> None:
    add_override(tmp_path, "anna", "lab01.unit", 4, "x")
    with pytest.raises(UsageError, match=r"gives anna 4 points for lab01\.unit, which has 3"):
        overridden([anna()], read_overrides(tmp_path))


def test_who_handed_in_nothing_can_be_given_points(tmp_path: Path) -> None:
    absent = GradeRecord("anna", "lab01", MISSING, exercises=(ExerciseResult("lab01.unit", "Unit", 3, MISSING),))
    add_override(tmp_path, "anna", "lab01.unit", 3, "shown in class")
    (record,), _ = overridden([absent], read_overrides(tmp_path))
    assert record.scored == 3


def test_the_verb_and_grading_again(course: Path, tmp_path: Path) -> None:
    wrong = {"lab99.total": "def total(numbers):\n    return 1\n"}
    save(with_answers(untouched(course), wrong), tmp_path / "in" / "anna.ipynb")
    out = tmp_path / "out"
    words = ("grade", tmp_path / "in", "--lab", "99", "--course", course, "--out", out, "--unsafe-no-sandbox")
    assert mqlab(*words).stdout.split()[-3:] == ["0", "of", "7"]
    record = next((out / "records").iterdir()).read_bytes()
    for line, told in {
        ("zoe", "lab99.total", 2): "zoe has no exercise lab99.total",
        ("anna", "lab99.sum", 2): "there are: lab99.total, lab99.box",
        ("anna", "lab99.total", 8): "lab99.total has 3 points, not 8",
    }.items():
        refused = mqlab("override", out, *line, "--comment", "x")
        assert refused.exit_code == 2 and told in refused.output
    assert "holds no grades" in mqlab("override", tmp_path, "anna", "lab99.total", 2, "--comment", "x").output
    given = mqlab("override", out, "anna", "lab99.total", 2, "--comment", "good idea")
    assert given.exit_code == 0 and "anna lab99.total: 2 of 3 points" in given.stdout
    again = mqlab(*words, "--resume")
    assert again.stdout.split()[-3:] == ["2", "of", "7"]
    assert next((out / "records").iterdir()).read_bytes() == record
    assert mqlab("override", out, "anna", "lab99.total", "--comment", "no").stdout == (
        "anna lab99.total: the judge's points count again\n"
    )
    assert mqlab(*words, "--resume").stdout.split()[-3:] == ["0", "of", "7"]


def test_only_predictions_judges_nothing(course: Path, tmp_path: Path) -> None:
    save(untouched(course), tmp_path / "in" / "anna.ipynb")
    words = ("grade", tmp_path / "in", "--lab", "99", "--course", course, "--out", tmp_path / "out")
    result = mqlab(*words, "--only-predictions")
    assert result.exit_code == 0 and result.stdout == "" and (tmp_path / "out" / "predictions.html").is_file()
    assert not list((tmp_path / "out" / "records").iterdir()) and not (tmp_path / "out" / "index.html").exists()
