"""Hidden cases of lab 04: how many seeded days each exercise is judged by, and days that are special.

The known-wrong answers are in wrong/lab04.*.diff, one file per exercise.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from mqlab.course.cases.lab04 import crash_cost, offsets, resets
from mqlab.course.kit import Variant, variants
from mqlab.course.teach.exercises import Call, Case

SEEDED = {
    "lab04.committed": 3,
    "lab04.crash_cost": 2,
    "lab04.process_queue": 2,
    "lab04.plan_reset": 2,
    "lab04.once": 2,
    "lab04.rescue": 4,
}


def _early(dies: str) -> Callable[[int], list[Call]]:
    """A crash after the first report and before the broker has written its file."""
    return lambda seed: [crash_cost.crashed(random.Random(f"lab04 early {dies} {seed}"), dies, (10_300, 11_900))]


FROM_SEED = {
    "lab04.committed": variants(
        offsets.COMMITTED,
        Variant("nothing reported yet", offsets.nothing_reported),
        Variant("two pulls", offsets.two_pulls),
    ),
    "lab04.crash_cost": variants(
        crash_cost.CRASH_COST,
        Variant("the consumer dies", _early(crash_cost.CONSUMER_DIES)),
        Variant("the broker dies", _early(crash_cost.BROKER_DIES)),
        Variant("both die", _early(crash_cost.BOTH_DIE)),
    ),
    "lab04.plan_reset": variants(resets.PLAN_RESET, Variant("the oldest are deleted", resets.after_retention)),
}
HIDDEN: dict[str, tuple[Case, ...]] = {}
