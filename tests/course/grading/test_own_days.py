"""`mqlab grade --secret`: each student of lab 13 is judged by a day of their own, which nothing tells beforehand."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from mqlab.cli import main
from mqlab.course.cases.lab13.days import OWN, own_day
from mqlab.course.cases.lab13.manifest import EXERCISES
from mqlab.course.grading.running.job import Job
from mqlab.course.grading.running.kernel import Judge
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.lab_files import open_lab
from mqlab.course.grading.submissions.notebook_file import Notebook, parse_notebook
from mqlab.course.grading.submissions.rebuild import transplant
from mqlab.course.material import home
from mqlab.data.traffic.trouble.capstone import capstone, day_of_ticket
from mqlab.errors import UsageError
from solutions.wrong import references

SECRET = b"a secret of the course"
SIZE = "8_000/2"
SOLUTIONS = sorted((home() / "solutions").glob("13?-*.ipynb"))
CLASS = ("anna", "Борис", "Chen Wei 4711", "dilnoza", "Émile", "fatou", "Göksel", "hiroshi", "ines", "王芳")
WITH_OWN = ("lab13.when", "lab13.whom", "lab13.why", "lab13.triage")


def ticket(student: str) -> str:
    return capstone(student, SECRET, messages=8_000, brokers=2).ticket


@pytest.fixture(scope="module")
def hidden() -> ModuleType:
    path = home() / "solutions" / "grading" / "lab13.py"
    spec = importlib.util.spec_from_file_location("hidden_lab13", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    """What the solution's answer cells define, after what the lab gives them."""
    lab = open_lab(home(), "13")
    solution = Notebook(tuple(cell for path in SOLUTIONS for cell in parse_notebook(path.read_bytes()).cells), b"")
    names: dict[str, Any] = {}
    for source in (*transplant(lab, solution).set_up, *(references("13")[each] for each in WITH_OWN)):
        exec(compile(source, "<cell>", "exec"), names)
    return names


def test_a_ticket_makes_the_day_and_tells_no_name() -> None:
    made = capstone("anna", SECRET, messages=3_000, brokers=1)
    again = day_of_ticket(made.ticket)
    assert again.asked == made.asked and again.calendar == made.calendar
    assert "anna" not in made.ticket and SECRET.decode() not in made.ticket
    for wrong in ("", "ff 1", "not hexadecimal 3000 1", "ff many 1"):
        with pytest.raises(UsageError, match="not the ticket of a day"):
            day_of_ticket(wrong)


def test_a_ticket_adds_a_case_of_the_student_alone() -> None:
    asked = next(one for one in EXERCISES if one.id == "lab13.whom")
    lab = open_lab(home(), "13")
    assert lab.has_own_days and not open_lab(home(), "07").has_own_days

    def names(own: str) -> list[str]:
        job = Job("lab13", "seed", Sandbox("process"), {}, hidden_file=str(lab.hidden_file), own=own)
        return [case.name for case in Judge(Job.from_json(json.loads(json.dumps(job.to_json())))).hidden_cases(asked)]

    assert names(ticket("anna")) == [*names(""), OWN]


@pytest.mark.parametrize("student", [CLASS[0], pytest.param("all ten", marks=pytest.mark.long)])
def test_the_days_of_a_class_differ_and_a_reference_solves_them(
    student: str, hidden: ModuleType, reference: dict[str, Any]
) -> None:
    students = CLASS if student == "all ten" else (student,)
    happened = {name: str(day_of_ticket(ticket(name)).asked.model.incidents) for name in students}
    assert len(set(happened.values())) == len(students)
    for name in students:
        for exercise_id in WITH_OWN:
            (case,) = hidden.FROM_OWN[exercise_id](ticket(name))
            assert case.run(reference) is None, (name, exercise_id)
        own_day.cache_clear()


def test_an_answer_for_another_ones_day_is_refused(hidden: ModuleType, reference: dict[str, Any]) -> None:
    # The student knows the exact truth of another student's day, and writes it down.
    mine = own_day(ticket("anna"))
    found = {group: [one for g, one in mine.harmed if g == group] for group in {g for g, _ in mine.harmed}}
    (case,) = hidden.FROM_OWN["lab13.whom"](ticket("dilnoza"))
    wrong = case.run({**reference, "whom": lambda facts, calendar: found})
    assert wrong is not None and "an id of the day" in wrong.rule


def grade(*words: str) -> Any:
    return CliRunner().invoke(main, ["grade", *words])


def test_a_secret_for_a_lab_without_days_of_students_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "in" / "anna").mkdir(parents=True)
    shutil.copy(next((home() / "labs").glob("07a-*.ipynb")), tmp_path / "in" / "anna")
    words = [str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--secret", str(tmp_path / "secret")]
    refused = grade(*words, "--lab", "07")
    assert refused.exit_code and "lab 07 has no days of students" in refused.output
    refused = grade(*words, "--lab", "13", "--day", "many")
    assert refused.exit_code and "MESSAGES/BROKERS" in refused.output
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_two_students_are_graded_by_their_own_days(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    for student in CLASS[:2]:
        folder = tmp_path / "in" / student
        folder.mkdir(parents=True)
        shutil.copy(next((home() / "solutions").glob("13a-*.ipynb")), folder)
    run = grade(
        str(tmp_path / "in"),
        "--lab",
        "13a",
        "--out",
        str(tmp_path / "out"),
        "--seed",
        "autumn",
        "--secret",
        str(tmp_path / "secret"),
        "--day",
        SIZE,
        "--show-hidden",
        "full",
    )
    assert run.exit_code == 0, run.output
    records = [json.loads(path.read_text("utf-8")) for path in sorted((tmp_path / "out" / "records").glob("*.json"))]
    assert len(records) == 2
    for record in records:
        cases = [case for result in record["exercises"] for case in result["cases"]]
        own = [case for case in cases if case["name"] == OWN]
        assert len(own) == len(WITH_OWN) and all(case["state"] == "passed" for case in cases), record
    everything = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert SECRET not in everything and all(ticket(one).split()[0].encode() not in everything for one in CLASS[:2])
