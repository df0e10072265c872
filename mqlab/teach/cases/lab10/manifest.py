"""What lab 10 asks: predictions about a day of traffic, and six exercises over the DataFrames of a broker's store.

    lab10.fullest    all messages               ─▶ the fullest queue of each topic
    lab10.options    what a query uses          ─▶ the options of a read that decodes no more
    lab10.busiest    all messages               ─▶ the customers with the most events
    lab10.cost       all messages, some tags    ─▶ what each queue costs a group that wants them
    lab10.parts      all messages               ─▶ even parts of whole orders
    lab10.failures   all messages               ─▶ messages and copies that came back, for each group

The answers are functions DataFrame -> DataFrame; the lab's own ``rows_of`` reads a store, calls one and collects its
rows. The stores are in days, judging is in judges and reads, your-turn tasks in tasks. Reference and known-wrong
answers are not in this package. Questions, titles, hints and notes are in the lab's sources.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.teach.cases.forbids import FORBIDS
from mqlab.teach.cases.lab10 import judges, reads
from mqlab.teach.cases.lab10.days import day
from mqlab.teach.cases.lab10.tasks import TASKS
from mqlab.teach.exercises import Case, Exercise, Manifest
from mqlab.teach.predictions import predictions_of
from mqlab.teach.words import words_of

PARTS = 16
PUBLIC_SEEDS = (1, 2)
WORDS = words_of("lab10").exercises


def _fullest_case(seed: int) -> Case:
    return Case(f"a day, seed {seed}", lambda answers: judges.judge_fullest(answers, day(seed)))


def _options_case(seed: int) -> Case:
    name = f"three queries of a day, seed {seed}"
    return Case(name, lambda answers: reads.judge_options(answers, day(seed), reads.wanted(day(seed), seed)))


def _busiest_case(seed: int) -> Case:
    most = 3 + seed % 5
    return Case(f"a day, seed {seed}: {most}", lambda answers: judges.judge_busiest(answers, day(seed), most))


TAGS = (["paid", "created"], ["refunded"], ["shipped", "cancelled"])


def _cost_case(seed: int) -> Case:
    tags = TAGS[seed % len(TAGS)]
    name = f"a day, seed {seed}: {' || '.join(tags)}"
    return Case(name, lambda answers: judges.judge_cost(answers, day(seed), "orders", tags))


def _parts_case(seed: int) -> Case:
    return Case(f"a day, seed {seed}", lambda answers: judges.judge_parts(answers, day(seed), PARTS))


def _failures_case(seed: int) -> Case:
    return Case(f"a day, seed {seed}", lambda answers: judges.judge_failures(answers, day(seed)))


def _exercise(name: str, points: int, defines: tuple[str, ...], case: Callable[[int], Case]) -> Exercise:
    words, identity = WORDS[f"lab10.{name}"], f"lab10.{name}"
    return Exercise(
        identity, words.title, points, defines, case, PUBLIC_SEEDS, words.hints, words.note, forbids=FORBIDS[identity]
    )


EXERCISES = (
    _exercise("options", 2, ("read_options",), _options_case),
    _exercise("fullest", 3, ("fullest", "rows_of"), _fullest_case),
    _exercise("busiest", 3, ("busiest", "rows_of"), _busiest_case),
    _exercise("cost", 3, ("cost", "rows_of"), _cost_case),
    _exercise("parts", 4, ("in_parts", "rows_of"), _parts_case),
    _exercise("failures", 3, ("failures", "rows_of"), _failures_case),
)

MANIFEST = Manifest("lab10", predictions_of("lab10"), EXERCISES, tasks=TASKS)
