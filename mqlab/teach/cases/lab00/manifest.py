"""What lab 00 asks: four predictions about a message's day, three exercises over real files and real timelines.

    lab00.after_ack  lab00.known_when  lab00.audit  lab00.again        predictions
    lab00.find       two files and an offset table  ->  where a message is, and who is past it
    lab00.timeline   rows of a timeline             ->  stored, first seen, known to be done
    lab00.crash      rows up to a crash             ->  what each group reads next

Every case plays a day of its own, made from its seed; the right answer is read from that day.
The days are in days, the replies to a wrong answer in judges. Reference and known-wrong answers are not in this
package. Questions, titles, hints and notes are in the lab's source (mqlab.teach.words).
"""

from __future__ import annotations

import random

from mqlab.teach.cases.forbids import FORBIDS
from mqlab.teach.cases.lab00 import days, judges
from mqlab.teach.exercises import Case, Exercise, Manifest
from mqlab.teach.predictions import predictions_of
from mqlab.teach.words import words_of


def _find_case(seed: int) -> Case:
    name = f"orders between letters, seed {seed}"
    return Case(name, lambda answers: judges.judge_find(answers, days.half_read(seed)))


def _timeline_case(seed: int) -> Case:
    name = f"a working day, seed {seed}"
    return Case(name, lambda answers: judges.judge_timeline(answers, days.working_day(seed, 26_000)))


def _crash_case(seed: int) -> Case:
    end_ms = random.Random(f"lab00.crash {seed}").randint(12_000, 24_000)
    name = f"both consumers killed, seed {seed}"
    return Case(name, lambda answers: judges.judge_crash(answers, days.working_day(seed, end_ms)))


WORDS = words_of("lab00").exercises

EXERCISES = tuple(
    Exercise(
        name, WORDS[name].title, points, defines, case, seeds, WORDS[name].hints, WORDS[name].note,
        forbids=FORBIDS.get(name, ()),
    )
    for name, points, defines, case, seeds in (
        ("lab00.find", 3, ("find",), _find_case, (1, 2, 3)),
        ("lab00.timeline", 3, ("read_day",), _timeline_case, (1, 2)),
        ("lab00.crash", 4, ("stand",), _crash_case, (1, 2, 3)),
    )
)  # fmt: skip

MANIFEST = Manifest("lab00", predictions_of("lab00"), EXERCISES)
