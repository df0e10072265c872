"""What grading writes is for its owner's eyes only; what is wrong in it is told before a class is graded."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.course.grading.judging.verdict import GRADED, GradeRecord
from mqlab.course.grading.reports import write_predictions, write_reports
from mqlab.course.grading.reports.overrides import add_override, check_overrides, read_overrides
from mqlab.course.grading.running.execute import write_record
from mqlab.course.grading.running.gradebook import GradingPlan, fingerprint, open_gradebook
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.finding import Submission
from mqlab.course.grading.submissions.lab_files import open_lab
from mqlab.errors import UsageError
from tests.course.grading.course import save, untouched


def test_records_grades_and_feedback_are_private(tmp_path: Path) -> None:
    out = tmp_path / "grades"
    open_gradebook(out)
    made = GradeRecord("anna", "lab99", GRADED)
    write_record(made, out / "records" / "anna.lab99.json")
    write_predictions(out, [])
    write_reports(out, [made], seed="autumn", show_hidden="name")
    add_override(out, "anna", "lab99.total", 3, "why")
    files = [path for path in out.rglob("*") if path.name != "gradebook.json"]
    assert len(files) > 10
    assert {oct(path.stat().st_mode & 0o777) for path in files if path.is_file()} == {"0o600"}
    assert {oct(path.stat().st_mode & 0o777) for path in (out, *files) if path.is_dir()} == {"0o700"}


def test_overrides_are_checked_before_a_class_is_graded(tmp_path: Path) -> None:
    open_gradebook(tmp_path / "grades")
    add_override(tmp_path / "grades", "anna", "lab99.total", 30, "typo")
    lines = read_overrides(tmp_path / "grades")
    check_overrides(lines, {"lab01.unit": 3})
    with pytest.raises(UsageError, match=r"gives anna 30 points for lab99\.total, which has 3"):
        check_overrides(lines, {"lab99.total": 3})


def test_a_class_that_was_moved_resumes(course: Path, tmp_path: Path) -> None:
    lab, marks = open_lab(course, "99"), set()
    for place in (tmp_path / "here", tmp_path / "there"):
        path = save(untouched(course), place / "in" / "anna.ipynb")
        walls = Sandbox("bwrap", readable=(str(place / "datasets"),), hidden=(str(place / "in"), str(place / "out")))
        marks.add(fingerprint(GradingPlan(course, place / "out", "autumn", walls), lab, Submission("anna", "99", path)))
    assert len(marks) == 1
