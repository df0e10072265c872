"""What could keep the judge's own side busy, or fill its memory: each ends soon, for its exercise only."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from mqlab import play
from mqlab.course.cases.lab07.bank import TABLES, BadDay
from mqlab.course.cases.lab07.days import GROUP
from mqlab.course.grading.judging.budget import Budget
from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.loaded import AnswerStopped
from mqlab.course.grading.running.execute import GradingOrder
from mqlab.course.grading.running.gradebook import GradingPlan, fingerprint
from mqlab.course.grading.sandbox.limits import Limits
from mqlab.course.grading.sandbox.values import Codec, Malformed
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.finding import Submission
from mqlab.course.grading.submissions.lab_files import open_lab
from mqlab.course.grading.submissions.notebook_file import MAX_READ_BYTES, NotANotebook, parse_notebook, read_notebook
from mqlab.course.grading.submissions.rebuild import transplant
from mqlab.course.grading.submissions.tampering import suspicions
from mqlab.errors import UsageError
from mqlab.lab.runtime.sim import SimWorld
from mqlab.lab.views.table import Table
from tests.course.grading.course import RIGHT, make_course, save, untouched, with_answers

SPARSE_BYTES = 300 << 20


@pytest.fixture
def traced() -> Iterator[None]:
    """The memory that Python takes, counted."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


def peak_mb() -> float:
    return tracemalloc.get_traced_memory()[1] / (1 << 20)


def test_blank_lines_cost_no_time(course: Path) -> None:
    notebook = with_answers(untouched(course), {**RIGHT, "lab99.total": "\n" * 40_000 + "x = 1\n# NBVAL_SKIP\n"})
    began = time.process_time()
    notes = suspicions(open_lab(course, "99"), parse_notebook(json.dumps(notebook).encode()))
    assert time.process_time() - began < 2
    assert [note.text for note in notes] == ["carries the marker NBVAL_SKIP, which is ignored"]


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([{"dict": []}] * 2_000, [f"c{n}" for n in range(2_000)]),
        ([{"dict": [["a", 1]]}] * 2_000, ["a"] * 2_000),
        ([{"dict": [["a", 1]]}], [["a"]]),
        ([7], ["a"]),
        ({"dict": []}, []),
    ],
)
def test_a_table_does_not_grow_when_it_is_decoded(traced: None, rows: Any, columns: Any) -> None:
    with pytest.raises(Malformed):
        Codec().decode({"table": [rows, columns, ""]})
    assert peak_mb() < 20


def test_a_table_crosses_as_it_was() -> None:
    table = Table([{"topic": "订单", "lag": 1}, {"topic": "b"}], title="Lag")
    again = Codec().decode(Codec().encode(table))
    assert (again.columns, again.to_dicts(), again.title) == (table.columns, table.to_dicts(), "Lag")


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE for_a_human; CREATE VIEW for_a_human AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
        "FROM n WHERE x < 100000) SELECT x AS msg_id, zeroblob(5000) AS body FROM n",
        "DROP TABLE for_a_human; CREATE TABLE for_a_human (msg_id, body AS (zeroblob(900000))); "
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 500) "
        "INSERT INTO for_a_human (msg_id) SELECT x FROM n",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000) "
        "INSERT INTO for_a_human SELECT x, x'00' FROM n",
    ],
)
def test_what_an_answer_made_of_the_table_is_read_within_bounds(traced: None, change: str) -> None:
    lab = play(lambda lab: None, seed=1)
    with sqlite3.connect(lab.database(GROUP).path) as connection:
        connection.executescript(TABLES)
        connection.execute("INSERT INTO for_a_human VALUES ('id', x'01')")
    assert BadDay(lab, {}).for_a_human() == {"id": b"\x01"}
    with sqlite3.connect(lab.database(GROUP).path) as connection:
        connection.executescript(change)
    with pytest.raises(UsageError, match="for_a_human"):
        BadDay(lab, {}).for_a_human()
    assert peak_mb() < 20


ENDLESS = "def story(lab):\n    lab.producer('shop')\n    lab.run_for('100000d')\n"


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(lab_steps=5_000), "its Lab took more than 5,000 steps"),
        (Limits(lab_seconds=0.3), r"its checks took more than 0\.3 s of processor time"),
    ],
)
def test_a_story_without_end_is_stopped_by_steps_or_by_processor_time(limits: Limits, words: str) -> None:
    desk = Desk(Sandbox("process", limits=limits))
    story = desk.load("lab.a", ENDLESS, ["story"])["story"]
    budget = Budget("lab.a", limits)
    began = time.process_time()
    for _ in ("public", "hidden"):
        with pytest.raises(AnswerStopped, match=words) as stopped, budget.charged():
            play(story, seed=1)
        assert stopped.value.kind == "timeout"
    assert time.process_time() - began < 10
    assert SimWorld.on_step is None
    desk.close()


def test_virtual_time_and_what_is_not_judged_are_not_charged() -> None:
    budget = Budget("lab.a", Limits(lab_steps=2_000))
    with budget.charged():
        play(lambda lab: None, seed=1)
    left = budget.steps_left
    play(lambda lab: lab.run_for("10m"), seed=1)
    assert 0 < budget.steps_left == left


def test_one_endless_computation_on_the_judges_side_is_stopped() -> None:
    budget = Budget("lab.a", Limits(lab_seconds=0.2))
    with pytest.raises(AnswerStopped, match=r"0\.2 s of processor time"), budget.charged():
        while True:
            pass


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    path = tmp_path / "99-tiny.ipynb"
    with open(path, "wb") as file:
        file.truncate(SPARSE_BYTES)
    return path


def test_a_file_that_is_too_large_is_not_read(traced: None, sparse: Path, course: Path) -> None:
    lab = open_lab(course, "99")
    plan = GradingPlan(course, sparse.parent, "autumn", Sandbox("process"))
    began = time.process_time()
    with pytest.raises(NotANotebook, match="larger than"):
        read_notebook(sparse)
    first = fingerprint(plan, lab, Submission("anna", "99", sparse))
    assert peak_mb() < 8 and time.process_time() - began < 2
    with open(sparse, "ab") as file:
        file.write(b"x")
    assert fingerprint(plan, lab, Submission("anna", "99", sparse)) != first


def test_a_notebook_with_too_many_cells_is_refused() -> None:
    with pytest.raises(NotANotebook, match="more than 10,000 cells"):
        parse_notebook(b'{"cells": [' + b"{}," * 20_000 + b"{}]}")
    assert MAX_READ_BYTES == 32 << 20


def test_a_helper_with_900_terms_is_taken_along(course: Path) -> None:
    desk = Desk(Sandbox("process"))
    terms = "+".join(["x"] * 900)
    source = f"def many(x):\n    '''Многострочная\n  сумма.'''\n    return {terms}\ndef one():\n    return 1\n"
    notebook = with_answers(untouched(course), {**RIGHT, "lab99.total": "def total(numbers):\n    return many(1)\n"})
    notebook["cells"].append({"cell_type": "code", "id": "own", "metadata": {}, "outputs": [], "source": source})
    taken = transplant(open_lab(course, "99"), parse_notebook(json.dumps(notebook).encode()))
    for number, text in enumerate(taken.set_up):
        desk.load(f"set-up {number}", text)
    loaded = desk.load("lab.a", "def ask():\n    return many(1), one(), many.__doc__\n", ["ask"])
    assert loaded["ask"]() == (900, 1, "Многострочная\n  сумма.")
    desk.close()


def test_a_story_without_end_costs_its_exercise_and_no_other(tmp_path: Path, walls: Sandbox) -> None:
    course = make_course(tmp_path / "course")
    cases = course / "cases" / "lab99.py"
    text = cases.read_text("utf-8").replace('answers["total"](numbers)', "_played(answers)")
    text = text.replace('"note", SOON', '"note", {"lab_steps": 3_000, **PATIENT}')
    save(f"{text}\n\n{PLAYED}", cases)
    story = {**RIGHT, "lab99.total": ENDLESS.replace("story", "total")}
    path = save(with_answers(untouched(course), story), tmp_path / "in" / "anna.ipynb")
    order = GradingOrder("anna", path.name, str(path), str(course), "99", "autumn", walls, True, 300.0)
    record = graded_elsewhere(order, tmp_path / "record.json")
    total, box = record["exercises"]
    assert (record["status"], total["state"], total["cause"], box["state"]) == (
        "timeout",
        "stopped",
        "timeout",
        "passed",
    )
    assert "its Lab took more than 3,000 steps" in total["reason"] and total["reason"] == record["reason"]


PLAYED = """
def _played(answers):
    from mqlab import play

    play(answers["total"], seed=1)
"""


def graded_elsewhere(order: GradingOrder, target: Path) -> dict[str, Any]:
    """The record, made by a process of its own: a course's cases are imported once in each."""
    line = json.dumps({**asdict(order), "record": str(target)}).encode()
    process = subprocess.Popen(
        [sys.executable, "-m", "mqlab.course.grading.running.execute"], stdin=subprocess.PIPE, start_new_session=True
    )
    assert process.stdin is not None
    process.stdin.write(line + b"\n")
    process.stdin.flush()
    process.wait(300)
    process.stdin.close()
    made: dict[str, Any] = json.loads(target.read_text("utf-8"))
    return made


TOO_MUCH = """
import resource
from mqlab.course.grading.sandbox.limits import Limits, bind_judge
hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
bind_judge(Limits(lab_memory_mb=300))
assert resource.getrlimit(resource.RLIMIT_DATA)[1] == hard
try:
    bytearray(1 << 30)
except MemoryError:
    print("refused", len(bytearray(1 << 20)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not count so")
def test_the_memory_of_the_judges_process_has_an_end() -> None:
    done = subprocess.run([sys.executable, "-c", TOO_MUCH], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["refused", str(1 << 20)], done.stderr
