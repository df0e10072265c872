"""What lab 07 asks: predictions that five beliefs about failure get wrong, and six exercises over days that go wrong.

    lab07.rewrite   a message that failed         ─▶ the unit that the broker writes for it
    lab07.schedule  a table of levels, a limit    ─▶ level and second of every retry
    lab07.redrive   dead letters, a producer      ─▶ back to their group, once each
    lab07.three     a bank that refuses           ─▶ a listener: three deliveries, then a human
    lab07.stuck     a bank that hangs             ─▶ a listener that holds nobody up
    lab07.killer    an order that kills billing   ─▶ a listener that remembers across its own death

The days are in days and bank, the replies to a wrong answer in judges. Reference and known-wrong answers are not in
this package. Questions, titles, hints and notes are in the lab's sources, your-turn tasks in tasks.
"""

from __future__ import annotations

from mqlab.teach.cases.lab07 import days, judges, listeners, retries
from mqlab.teach.cases.lab07.tasks import TASKS
from mqlab.teach.exercises import Case, Exercise, Manifest
from mqlab.teach.predictions import predictions_of
from mqlab.teach.words import words_of


def _redrive_case(seed: int) -> Case:
    name = f"dead letters of a bad day, seed {seed}"
    return Case(name, lambda answers: judges.judge_redrive(days.redriven(answers, seed)))


WORDS = words_of("lab07").exercises["lab07.redrive"]

EXERCISES = (
    retries.SCHEDULE,
    retries.REWRITE,
    Exercise("lab07.redrive", WORDS.title, 4, ("redrive",), _redrive_case, (1, 2), WORDS.hints, WORDS.note),
    listeners.THREE,
    listeners.STUCK,
    listeners.KILLER,
)

MANIFEST = Manifest("lab07", predictions_of("lab07"), EXERCISES, tasks=TASKS)
