"""Hidden cases of lab 14: clusters whose names come from the class's seed, each with another defect
than the three that the learner examines.

    lab14.first_wrong_step   a day for each of the four rules, and one of a sound cluster
    lab14.follow             messages of other days of Bern
    lab14.shrink             other schedules
    lab14.finding            the same three clusters for everybody

The known-wrong answers are in wrong/lab14.*.diff, one file per exercise.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from mqlab.course.cases.lab14 import findings, first_step
from mqlab.course.cases.lab14.worlds import PATIENTS, day_that_breaks, sound_day
from mqlab.course.kit import Variant, variants
from mqlab.course.teach.exercises import Call

SEEDED = {"lab14.follow": 1, "lab14.shrink": 3, "lab14.first_wrong_step": 2, "lab14.finding": 0}


def _days_that_break(rules: Sequence[str], seed: int) -> list[Call]:
    return [first_step.call_of(*day_that_breaks(rule, seed), about=f"a day that breaks {rule}") for rule in rules]


def _sound(seed: int) -> list[Call]:
    return [first_step.call_of(*sound_day(seed), about="a day of a sound cluster")]


def _of(name: str, _seed: int) -> list[Call]:
    return [findings.call_of(name)]


FROM_SEED = {
    "lab14.first_wrong_step": variants(
        first_step.FIRST_WRONG_STEP,
        Variant("a broken rule of the store", functools.partial(_days_that_break, ["acknowledged"])),
        Variant("a broken rule of the broker", functools.partial(_days_that_break, ["committed", "tried"])),
        Variant("a broken rule of the client", functools.partial(_days_that_break, ["pulled"])),
        Variant("a sound cluster", _sound),
    ),
    "lab14.finding": variants(findings.FINDING, *(Variant(name, functools.partial(_of, name)) for name in PATIENTS)),
}
