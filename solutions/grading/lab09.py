"""Hidden cases of lab 09: how many seeded days each exercise is judged by, and a day with a queue for each instance.

The known-wrong answers are in wrong/lab09.*.diff, one file per exercise.
"""

from __future__ import annotations

from mqlab.course.cases.lab09 import sizing
from mqlab.course.kit import Variant, variants
from mqlab.course.teach.exercises import Case

SEEDED = {
    "lab09.threads": 4,
    "lab09.catch_up": 4,
    "lab09.size": 4,
    "lab09.bottleneck": 3,
    "lab09.safe_async": 2,
    "lab09.brake": 2,
}
FROM_SEED = {
    "lab09.size": variants(sizing.SIZE, Variant("a queue for each instance", sizing.with_a_queue_each)),
}
HIDDEN: dict[str, tuple[Case, ...]] = {}
