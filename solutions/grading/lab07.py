"""Hidden cases of lab 07: how many seeded days each exercise is judged by, and days that are special.

The known-wrong answers are in wrong/lab07.*.diff, one file per exercise.
"""

from __future__ import annotations

import random

from mqlab.teach.cases.lab07 import days, judges
from mqlab.teach.exercises import Case

SEEDED = {
    "lab07.rewrite": 3, "lab07.schedule": 2, "lab07.redrive": 3, "lab07.three": 3, "lab07.stuck": 2, "lab07.killer": 2,
}  # fmt: skip


def _every_table(seed: int) -> tuple[Case, ...]:
    """A table shorter than the first retry's level, one that ends on the way, no limit, no retry at all."""
    rng = random.Random(f"lab07 tables {seed}")
    short, middle = rng.choice(("2s 9s", "7s", "4s 30s")), rng.choice(("1s 2s 3s 20s 2m", "9s 1m 5s 12s 3s 50s"))
    return (
        _planned("a short table", short, rng.randint(2, 4)),
        _planned("a table that ends on the way", middle, rng.randint(6, 9)),
        _planned("no limit set", middle, -1),
        _planned("no retry at all", middle, 0),
    )


def _planned(name: str, levels: str, most: int) -> Case:
    return Case(name, lambda answers: judges.judge_schedule(answers, days.planned(levels, most)))


FROM_SEED = {"lab07.schedule": _every_table}
HIDDEN: dict[str, tuple[Case, ...]] = {}
