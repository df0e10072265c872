"""Labs 10, 11 and 12: known-wrong answers lose with their message, and the reference passes behind the wall.

A JVM behind the wall starts once, for all exercises of a submission, as in grading; the known-wrong answers are judged
here, in one session, because a wall of its own for each would cost minutes.
"""

from __future__ import annotations

import functools
import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from mqlab.course.cases.lab10 import days as lab10_days
from mqlab.course.cases.lab11 import days as lab11_days
from mqlab.course.cases.lab11 import storm as lab11_storm
from mqlab.course.cases.lab12 import begin as lab12_begin
from mqlab.course.cases.lab12 import lag as lab12_lag
from mqlab.course.cases.lab12 import no_answer as lab12_no_answer
from mqlab.course.cases.lab12 import per_minute as lab12_per_minute
from mqlab.course.cases.lab12 import repeats as lab12_repeats
from mqlab.course.grading.judging.cases import judge
from mqlab.course.grading.judging.verdict import HIDDEN, PUBLIC
from mqlab.course.grading.running.job import Answer, Job
from mqlab.course.grading.running.kernel import Judge
from mqlab.course.grading.sandbox.limits import SPARK
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.lab_files import open_lab
from mqlab.course.grading.submissions.rebuild import transplant
from mqlab.course.teach.exercises import Case, Exercise, manifest
from tests.course.grading.test_known_wrong import COURSE, KNOWN_WRONG, Wrong, wrong_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LABS = ("10", "11", "12")
FEWEST_WRONG = 3
EXERCISES = {exercise.id: exercise for lab in LABS for exercise in manifest(f"lab{lab}").exercises}
ALL_WRONG = [wrong for wrong in KNOWN_WRONG if wrong.exercise in EXERCISES]
FIRST_OF_EACH = [next(wrong for wrong in ALL_WRONG if wrong.exercise == one) for one in EXERCISES]
"""Judged in `make test`; all are in `make long`."""
CLASS_SEED = 77
PARTITIONS = "spark.sql.shuffle.partitions"
OF_LAB_11 = (
    "FIELDS",
    "FEWEST",
    "NUMBERS",
    "rows_of_calls",
    "rows_of_life",
    "rows_of_group",
    "rows_with_calls",
    "rows_with_trace",
)


@pytest.fixture(scope="module", autouse=True)
def days_folder(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Path]:
    """Where the days of this file's cases are made, for a worker to be shown; an answer runs in the tests' session."""
    folder, before = tmp_path_factory.mktemp("days"), tempfile.tempdir
    folder.chmod(0o755)
    of_lab10 = lab10_days.day, lab10_days.odd_day, lab10_days.mixed_keys
    of_lab12 = lab12_begin.stores, lab12_lag.board
    films = lab12_per_minute.counted, lab12_repeats.copied, lab12_no_answer.traced
    for made in (*of_lab10, lab11_days.day, lab11_storm.stormy, *of_lab12, *films):
        made.cache_clear()
    tempfile.tempdir = str(folder)
    yield folder
    tempfile.tempdir = before


@pytest.fixture(scope="module", autouse=True)
def one_partition_is_enough(spark: SparkSession) -> Iterator[None]:
    before = str(spark.conf.get(PARTITIONS))
    spark.conf.set(PARTITIONS, "1")
    yield
    spark.conf.set(PARTITIONS, before)


@functools.cache
def hidden(lab: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"hidden_{lab}", COURSE / "solutions" / "grading" / f"{lab}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hidden_cases(exercise: Exercise) -> list[Case]:
    made = hidden(exercise.id.partition(".")[0]).FROM_SEED.get(exercise.id)
    return [*(made(CLASS_SEED) if made is not None else ()), exercise.case(CLASS_SEED)]


@functools.cache
def set_up(number: str) -> tuple[str, ...]:
    """What the cells of all parts of a lab define for answers."""
    lab = open_lab(COURSE, number)
    taken = transplant(lab, lab.notebook)
    return (*taken.set_up, *(text for texts in taken.later_set_up.values() for text in texts))


def names_of(wrong: Wrong) -> dict[str, Any]:
    """The names of an answer, run here, with what the lab's own cells import and define."""
    from pyspark.sql import Window, functions

    from mqlab.course.given.lab11 import trace_tables
    from mqlab.course.given.lab11.lag_board import rows_of_board
    from mqlab.course.given.lab12.streams import run_of_film
    from mqlab.data.spark import rows_of

    names: dict[str, Any] = {
        "rows_of": rows_of,
        "rows_of_board": rows_of_board,
        "run_of_film": run_of_film,
        "Window": Window,
        "functions": functions,
        **{name: getattr(trace_tables, name) for name in OF_LAB_11},
    }
    for text in set_up(wrong.exercise[3:5]):
        exec(text, names)
    exec(compile(wrong.source(), wrong.id, "exec"), names)
    return names


@pytest.mark.parametrize(
    "wrong",
    [pytest.param(one, id=one.id, marks=() if one in FIRST_OF_EACH else pytest.mark.long) for one in ALL_WRONG],
)
def test_a_known_wrong_answer_loses_a_hidden_case_with_the_message_that_helps(wrong: Wrong) -> None:
    answers, exercise = names_of(wrong), EXERCISES[wrong.exercise]
    told, lost_hidden = [], False
    for kind, case in [
        *((HIDDEN, case) for case in hidden_cases(exercise)),
        *((PUBLIC, case) for case in exercise.public_cases()),
    ]:
        (result,) = judge([case], answers, kind)
        if not result.passed:
            assert result.belief in ("", wrong.belief), "a finding blames another belief"
            told.append(f"{result.rule} {result.first_wrong} {result.trace}")
            lost_hidden |= kind == HIDDEN
        if lost_hidden and wrong.says in "\n".join(told):
            return
    pytest.fail(f"believing that {wrong.belief}: {told}")


@pytest.mark.parametrize("exercise", EXERCISES)
def test_every_exercise_has_at_least_three_known_wrong_answers(exercise: str) -> None:
    assert len([wrong for wrong in ALL_WRONG if wrong.exercise == exercise]) >= FEWEST_WRONG


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "one_wrong"),
    [("10", "lab10.parts.by_place"), ("11", "lab11.calls.by_request"), ("12", "lab12.once.deleted_first")],
)
def test_behind_the_wall_the_reference_passes_and_a_wrong_answer_does_not(
    number: str, one_wrong: str, walls: Sandbox, days_folder: Path
) -> None:
    lab, sources = open_lab(COURSE, number), wrong_module.references(number)
    wrong = next(wrong for wrong in ALL_WRONG if wrong.id == one_wrong)
    sources[wrong.exercise] = wrong.source()
    cells, taken = {answer.exercise.id: answer for answer in lab.answers}, transplant(lab, lab.notebook)
    answers = {one: Answer(source, cells[one].names, SPARK, cells[one].cell.part) for one, source in sources.items()}
    job = Job(
        lab.id,
        "autumn",
        Sandbox("bwrap", (str(days_folder),), limits=SPARK),
        answers,
        taken.set_up,
        str(lab.hidden_file),
        fresh_workers=False,
        later_set_up=taken.later_set_up,
    )
    court = Judge(job)
    for exercise in lab.exercises:
        court.give(exercise.id, {})
        results = judge([exercise.public_cases()[0], *court.hidden_cases(exercise)], court.answers[exercise.id], HIDDEN)
        if exercise.id == wrong.exercise:
            assert wrong.says in results[0].rule
        else:
            assert [result for result in results if not result.passed] == [], exercise.id
    court.desk.close()
