"""A lab's cases may be one module or a folder, mqlab's and a course's own; a record depends on all of their files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import mqlab.course.cases
from mqlab.course.grading.running.gradebook import GradingPlan, fingerprint
from mqlab.course.grading.sandbox import wall_probe
from mqlab.course.grading.sandbox.wall_probe import _judges
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.finding import Submission
from mqlab.course.grading.submissions.lab_files import open_lab
from mqlab.course.material import home
from mqlab.course.teach.exercises import manifest
from mqlab.errors import UsageError
from tests.course.grading.course import make_course, save


@pytest.fixture(params=["one module", "a folder"])
def own_course(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A course with a lab of its own, whose cases are a module labNN.py or a folder labNN."""
    course = make_course(tmp_path / "course")
    if request.param == "a folder":
        folder = course / "cases" / "lab99"
        folder.mkdir()
        shutil.move(course / "cases" / "lab99.py", folder / "manifest.py")
        save("from mqlab.course.cases.lab99.manifest import MANIFEST\n", folder / "__init__.py")
        save("", folder / "judges.py")
    return course


def test_a_courses_own_cases_are_found(own_course: Path) -> None:
    assert open_lab(own_course, "99").cases_folder == own_course / "cases"


def test_a_changed_judge_means_a_new_record(own_course: Path) -> None:
    lab = open_lab(own_course, "99")
    plan = GradingPlan(own_course, own_course, "autumn", Sandbox("process"))
    work = Submission("anna", "99", save("a notebook", own_course / "anna.ipynb"))
    first = fingerprint(plan, lab, work)
    assert fingerprint(plan, lab, work) == first
    for file in sorted((own_course / "cases").rglob("*.py")):
        save(file.read_bytes() + b"# changed\n", file)
        changed = fingerprint(plan, lab, work)
        assert changed != first, file
        first = changed


def test_the_modules_of_mqlabs_own_labs_are_part_of_the_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "mqlab"
    shutil.copytree(Path(mqlab.__file__).parent / "course" / "cases", package / "course" / "cases")
    monkeypatch.setattr(mqlab, "__file__", str(package / "__init__.py"))
    lab = open_lab(home(), "07", with_hidden=False)
    plan = GradingPlan(home(), home(), "autumn", Sandbox("process"))
    work = Submission("anna", "07", save("a notebook", tmp_path / "anna.ipynb"))
    first = fingerprint(plan, lab, work)
    for name in ("lab07/listeners.py", "lab07/bank.py", "story_parts.py"):
        file = package / "course" / "cases" / name
        save(file.read_bytes() + b"# changed\n", file)
        changed = fingerprint(plan, lab, work)
        assert changed != first, name
        first = changed


def test_a_folder_of_judges_without_an_init_file_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(wall_probe, "PACKAGE", tmp_path / "mqlab")
    monkeypatch.setattr("sys.path", [])
    save("", tmp_path / "mqlab" / "course" / "cases" / "lab20" / "judges.py")
    assert _judges() == ["lab20"]


def test_a_module_without_a_manifest_is_not_a_lab() -> None:
    with pytest.raises(UsageError, match="there is no lab 'story_parts'"):
        manifest("story_parts")
