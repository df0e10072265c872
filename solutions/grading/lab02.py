"""Hidden cases of lab 02: how many seeded days each exercise is judged by.

The known-wrong answers are in wrong/lab02.*.diff, one file per exercise.
"""

from __future__ import annotations

import functools

from mqlab.course.cases.lab02.scale_in import GROUPS, SCALE_IN, backlog_of
from mqlab.course.kit import Variant, variants
from mqlab.course.teach.exercises import Case

SEEDED = {
    "lab02.believes": 6,
    "lab02.strategy": 4,
    "lab02.outbox": 2,
    "lab02.selector": 4,
    "lab02.scale_in": 4,
}
# Who looks at one group only is right on half of the days.
FROM_SEED = {
    "lab02.scale_in": variants(
        SCALE_IN, *(Variant(f"a backlog of {group}", functools.partial(backlog_of, group)) for group in GROUPS)
    ),
}
HIDDEN: dict[str, tuple[Case, ...]] = {}
