"""Hidden cases of lab 07: how many seeded days each exercise is judged by, and days that are special.

The known-wrong answers are in wrong/lab07.*.diff, one file per exercise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from mqlab.course.cases.lab07 import bank, days, listeners, retries
from mqlab.course.kit import Variant, variants
from mqlab.course.kit.days import Day
from mqlab.course.teach.exercises import Call, Case
from mqlab.rocketmq.wire import names

SEEDED = {
    "lab07.rewrite": 3,
    "lab07.schedule": 2,
    "lab07.redrive": 3,
    "lab07.three": 3,
    "lab07.stuck": 2,
    "lab07.killer": 2,
}


def _table(levels: Sequence[str], most: Sequence[int]) -> Callable[[int], list[Call]]:
    """One of these tables with one of these limits, as the class's seed has it."""

    def made(seed: int) -> list[Call]:
        rng = random.Random(f"lab07 tables {seed}")
        return [days.planned(rng.choice(levels), rng.choice(most))]

    return made


def _sent_to(waiting: bool) -> Callable[[int], list[Call]]:
    """The orders that were given back and wait, or those that are dead."""
    return lambda seed: [call for call in days.sent_back(seed) if (call.right[0] == names.SCHEDULE_TOPIC) == waiting]


def _deaths(count: int) -> Callable[[int], tuple[Day, int]]:
    """A day on which billing dies so often."""
    return lambda seed: (bank.three_tries(seed, count), seed)


SHORT, MIDDLE = ("2s 9s", "7s", "4s 30s"), ("1s 2s 3s 20s 2m", "9s 1m 5s 12s 3s 50s")

FROM_SEED = {
    "lab07.schedule": variants(
        retries.SCHEDULE,
        Variant("a short table", _table(SHORT, (2, 3, 4))),
        Variant("a table that ends on the way", _table(MIDDLE, (6, 7, 8, 9))),
        Variant("no limit set", _table(MIDDLE, (-1,))),
        Variant("no retry at all", _table(MIDDLE, (0,))),
    ),
    "lab07.three": variants(
        listeners.THREE, Variant("nobody dies", _deaths(0)), Variant("billing dies twice", _deaths(2))
    ),
    "lab07.rewrite": variants(
        retries.REWRITE,
        Variant("orders that wait", _sent_to(True)),
        Variant("orders that die", _sent_to(False)),
        Variant("no retry at all", lambda seed: days.sent_back(seed, retries=0)),
    ),
}
HIDDEN: dict[str, tuple[Case, ...]] = {}
