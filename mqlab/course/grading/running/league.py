"""The league of lab 16: how many promises each student's kept parts keep, and how many messages a second they carry.

What ``mqlab league`` calls.

    anna/mybroker/store.py ─▶ behind the wall ─▶ a day for each promise of the part, of one seed for the class
    all parts together     ─▶ behind the wall ─▶ one day of many orders, by the clock

A file of ``mybroker`` has all that its part needs, so notebooks are not opened. What is not there is mqlab's own.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mqlab.course.cases.lab16.form import BrokerPromise
from mqlab.course.cases.lab16.handlers import HANDLERS
from mqlab.course.cases.lab16.manifest import EXERCISES
from mqlab.course.cases.lab16.orders import all_are_done, day_of, once_each, orders_of, reads, sends
from mqlab.course.grading.judging.budget import Budget
from mqlab.course.grading.judging.cases import hidden_seeds, judge
from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.loaded import AnswerStopped
from mqlab.course.grading.judging.verdict import HIDDEN, STOPPED, CaseResult
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.finding import Submission
from mqlab.course.kit.days import Played
from mqlab.course.kit.form import case_of
from mqlab.course.teach.exercises import Answers, Exercise
from mqlab.course.teach.keeping import is_filled
from mqlab.lab.parts import ANSWERS
from mqlab.lab.views import Table

ORDERS = 200
PROMISES = sum(len(asked.form.promises) for asked in EXERCISES)
NOTHING_KEPT = "no part of lab 16 is in a folder mybroker"


@dataclass(frozen=True, slots=True)
class Standing:
    """One student: parts handed in, promises kept of PROMISES, messages a second, and what is wrong first.

    ``per_second`` is None where the day of many orders did not end well.
    """

    student: str
    parts: tuple[str, ...] = ()
    kept: int = 0
    per_second: float | None = None
    why: str = ""


def table(standings: Sequence[Standing]) -> Table:
    """One row per student, best first: by promises, then by messages a second."""
    return Table(
        {
            "student": row.student,
            "parts": len(row.parts),
            "promises": f"{row.kept} of {PROMISES}",
            "messages a second": None if row.per_second is None else round(row.per_second),
            "wrong first": row.why,
        }
        for row in sorted(standings, key=lambda row: (-row.kept, -(row.per_second or 0), row.student))
    )


def standing(submission: Submission, sandbox: Sandbox, seed: str) -> Standing:
    """Judge and time what one student has kept; ``seed`` is the class's."""
    desk = Desk(sandbox)
    desk.new_processes = True  # each life of a part is a new process, as in grading
    try:
        own, failures = _loaded(desk, submission.kept)
        results = [result for asked, answers in own for result in _judged(desk, sandbox, asked, answers, seed)]
        per_second, stopped_by = _carried(desk, sandbox, own, seed) if own else (None, NOTHING_KEPT)
    finally:
        desk.close()
    failures += [result.name for result in results if not result.passed]
    parts = tuple(asked.form.file for asked, _ in own)
    kept = sum(result.passed for result in results)
    return Standing(submission.student, parts, kept, per_second, failures[0] if failures else stopped_by)


def _loaded(desk: Desk, files: Sequence[Path]) -> tuple[list[tuple[Exercise, Answers]], list[str]]:
    """The parts that can be loaded, with the names they define, and why others cannot."""
    paths = {path.stem: path for path in files}
    own: list[tuple[Exercise, Answers]] = []
    failures = []
    for asked in EXERCISES:
        path = paths.get(ANSWERS[asked.id].file)
        if path is None or is_filled(path):
            continue
        try:
            answers = desk.load(asked.id, path.read_text("utf-8"), asked.defines)
        except (AnswerStopped, Exception) as error:
            failures.append(f"{path.name} cannot be run: {error}")
            continue
        if asked.form.name in answers:
            own.append((asked, answers))
        else:
            failures.append(f"{path.name} does not define {asked.form.name}")
    return own, failures


def _judged(desk: Desk, sandbox: Sandbox, asked: Exercise, answers: Answers, seed: str) -> list[CaseResult]:
    """One result per promise of a part."""
    (of_the_day,) = hidden_seeds(asked, seed, 1)
    cases = [
        case_of(replace(asked.form, promises=(promise,)), f"{asked.form.file}: {promise.name}", lambda: of_the_day)
        for promise in asked.form.promises
    ]
    desk.begin(asked.id)
    try:
        with Budget(asked.id, sandbox.limits).charged():
            return judge(cases, answers, HIDDEN, lambda: desk.asked)
    except AnswerStopped as stopped:
        return [CaseResult(asked.form.file, HIDDEN, STOPPED, str(stopped))]


def _carried(
    desk: Desk, sandbox: Sandbox, own: Sequence[tuple[Exercise, Answers]], seed: str
) -> tuple[float | None, str]:
    """How many messages a second all parts carry together; None and the reason if they break a rule."""
    asked, answers = own[0]
    parts = {part.form.file: names[part.form.name] for part, names in own}
    together = replace(asked.form, promises=(MANY,), others={**HANDLERS.form.others, **parts})
    began = time.perf_counter()
    (result,) = _judged(desk, sandbox, replace(asked, form=together), answers, seed)
    seconds = time.perf_counter() - began
    return (ORDERS / seconds, "") if result.passed else (None, f"{MANY.name}: {result.rule}")


def _many(played: Played, rng: random.Random) -> None:
    reads(played, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    sends(played, orders_of(rng, ORDERS))
    played.lab.run_for("10s")


MANY = BrokerPromise("many orders", day_of(_many, "lab16.league"), (all_are_done(), once_each()))
"""The day that is timed."""
