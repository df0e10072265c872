"""What an answer may use is processor time, measured from outside; the clock bounds one that sleeps."""

from __future__ import annotations

import importlib
import time

import pytest

from mqlab.course.grading.judging.budget import Budget
from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.loaded import AnswerStopped
from mqlab.course.grading.sandbox.limits import Limits
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.lab_files import open_lab
from mqlab.course.material import course_folder
from mqlab.course.teach.exercises import exercise
from tests.course.grading.court import Court

SLOW_MACHINE = Limits(seconds=0.5, total_seconds=1, clock_times=60)


def stopped_by(desk: Desk, source: str, limits: Limits, calls: int = 1) -> str:
    ask = desk.load("lab.a", source, ["ask"], limits)["ask"]
    with pytest.raises(AnswerStopped) as stopped:
        for _ in range(calls):
            ask()
    assert stopped.value.kind == "timeout"
    return str(stopped.value)


def test_time_on_the_clock_is_not_what_an_answer_has_used(desk: Desk) -> None:
    waiting = "import time\ndef ask():\n    time.sleep(0.6)\n    return 1\n"
    limits = Limits(seconds=0.3, total_seconds=0.5, clock_times=60)
    assert desk.load("lab.a", waiting, ["ask"], limits)["ask"]() == 1


def test_processor_time_is_what_an_answer_has_used(desk: Desk) -> None:
    endless = "def ask():\n    while True: pass\n"
    assert stopped_by(desk, endless, SLOW_MACHINE) == "lab.a: one call used more than 0.5 s of processor time"


def test_what_the_answers_processes_use_counts(desk: Desk) -> None:
    child = "import os\ndef ask():\n    if os.fork() == 0:\n        while True: pass\n    os.wait()\n"
    assert "of processor time" in stopped_by(desk, child, SLOW_MACHINE)


def test_the_limit_that_is_used_up_is_the_one_that_is_named(desk: Desk) -> None:
    a_little = (
        "import time\ndef ask():\n    end = time.process_time() + 0.15\n    while time.process_time() < end: pass\n"
    )
    limits = Limits(seconds=60, total_seconds=0.5)
    words = stopped_by(desk, a_little, limits, calls=20)
    assert words == "lab.a: its calls together used more than 0.5 s of processor time"
    asleep = "import time\ndef ask():\n    time.sleep(60)\n"
    began = time.monotonic()
    assert stopped_by(desk, asleep, Limits(seconds=0.25, clock_times=2)) == "lab.a: it gave no answer within 0.5 s"
    assert time.monotonic() - began < 30  # it sleeps for 60


def test_short_calls_are_charged_together(desk: Desk) -> None:
    short = "def ask():\n    return sum(range(200_000))\n"
    assert "its calls together used more than 0.5 s" in stopped_by(
        desk, short, Limits(seconds=60, total_seconds=0.5), calls=5_000
    )


@pytest.mark.long
@pytest.mark.parametrize("exercise_id", ["lab05.poisoned", "lab05.lanes", "lab09.brake"])
def test_the_reference_needs_a_tenth_of_its_budget(exercise_id: str, walls: Sandbox) -> None:
    lab = open_lab(course_folder(), exercise_id[3:5])
    references = importlib.import_module("solutions.wrong").references(exercise_id[3:5])
    limits = next(answer.limits for answer in lab.answers if answer.exercise.id == exercise_id)
    budget, before = Budget(exercise_id, limits), limits.lab_seconds
    court = Court(exercise(exercise_id), lab, walls)
    with budget.charged():
        results = list(court.results(references[exercise_id]))
    spent = court._judge.desk._loaded[exercise_id].spent
    court.close()
    assert all(result.passed for result in results)
    assert spent.processor < limits.total_seconds / 10 and before - budget.seconds_left < before / 10
