"""A life of an answer in hidden cases is a process that nothing of the life before has touched."""

from __future__ import annotations

import pytest

from mqlab.course.grading.judging import desk as desk_module
from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.verdict import HIDDEN, PUBLIC
from mqlab.course.grading.running import kernel
from mqlab.course.grading.running.job import Answer, Job
from mqlab.course.grading.sandbox.limits import Limits
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.teach.exercises import exercise
from mqlab.course.teach.lives import anew
from tests.course.grading.conftest import PATIENT
from tests.course.grading.course import RIGHT

KEEPS = """
import mmap, os, sys
shared = mmap.mmap(-1, 4096)
def keep():
    shared[0] = 1
    sys.kept = True
    with open("/tmp/kept", "w") as file:
        file.write("x")
    real = os.fork
    os.fork = lambda: real()
def kept():
    return [shared[0] == 1, hasattr(sys, "kept"), os.path.exists("/tmp/kept"), hash("order-1")]
"""


def test_nothing_of_a_life_reaches_the_next_one(walls: Sandbox) -> None:
    desk = Desk(walls)
    desk.new_processes = True
    answer = desk.load("lab.a", KEEPS, ["keep", "kept"])
    answer["keep"]()
    *before, its_hash = answer["kept"]()
    assert before == [True, True, True]
    again = anew(answer["kept"], "kept")
    *after, other_hash = again()
    assert after == [False, False, False] and other_hash != its_hash
    answer["keep"]()
    assert anew(answer["kept"], "kept")()[:3] == [False, False, False]
    desk.close()


def test_of_many_lives_some_are_new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process is ten times as dear as a copy; what an answer hides in a life is lost at each of them."""
    monkeypatch.setattr(desk_module, "NEW_AT_FIRST", 2)
    monkeypatch.setattr(desk_module, "NEW_AFTERWARDS", 3)
    desk = Desk(Sandbox("process"))
    desk.new_processes = True
    answer = desk.load("lab.a", "import os\ndef parent():\n    return os.getpid(), os.getppid()\n", ["parent"])
    first, lives = answer["parent"](), []
    for _ in range(9):
        lives.append(anew(answer["parent"], "parent")())
    own = [first[0], *(process for process, _ in lives)]
    assert len(set(own)) == len(own), "no life goes on in the process of another"
    parents = [parent for _, parent in lives]
    assert parents[0] == parents[1] == first[1], "made by the judge"
    copied = [len(set(parents[begin:end])) for begin, end in ((2, 5), (5, 8), (8, 9))]
    assert copied == [1, 1, 1] and len(set(parents[2:])) == 3
    desk.begin("lab.a")
    assert anew(answer["parent"], "parent")()[1] == first[1], "each exercise begins with new processes"
    desk.close()


def test_cells_that_are_run_again_for_a_life_are_not_charged_again() -> None:
    desk = Desk(Sandbox("process"))
    desk.new_processes = True
    busy = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    busy += "def ask():\n    return 1\n"
    ask = desk.load("lab.a", busy, ["ask"], Limits(seconds=30, total_seconds=1))["ask"]
    for _ in range(6):
        assert anew(ask, "ask")() == 1
    desk.close()


@pytest.mark.parametrize(("kind", "new"), [(PUBLIC, False), (HIDDEN, True)])
def test_hidden_cases_have_such_lives(course: object, kind: str, new: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "publish", lambda *_: None)
    answers = {"lab99.total": Answer(RIGHT["lab99.total"], ("total",), PATIENT)}
    court = kernel.Judge(Job("lab99", "autumn", Sandbox("process"), answers))
    court.give("lab99.total", {})
    court.judge(exercise("lab99.total"), kind)
    assert court.desk.new_processes is new
    court.desk.close()
