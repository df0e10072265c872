"""Hidden cases of lab 10: how many seeded days each exercise is judged by, and the stores full of exceptions.

The known-wrong answers are in wrong/lab10.*.diff, one file per exercise.
"""

from __future__ import annotations

from mqlab.course.cases.lab10 import counting
from mqlab.course.cases.lab10 import questions as count
from mqlab.course.cases.lab10.counting import asked
from mqlab.course.cases.lab10.days import day, mixed_keys, odd_day
from mqlab.course.cases.lab10.parts import IN_PARTS, parts_of
from mqlab.course.kit import Variant, variants

SEEDED = {
    "lab10.fullest": 1,
    "lab10.options": 4,
    "lab10.busiest": 1,
    "lab10.cost": 1,
    "lab10.parts": 1,
    "lab10.failures": 1,
}
TAGS = ["paid", "已付款"]

FROM_SEED = {
    "lab10.fullest": variants(
        counting.FULLEST, Variant("a store whose first file is gone", lambda seed: asked(count.fullest, odd_day()))
    ),
    "lab10.busiest": variants(
        counting.BUSIEST, Variant("keys of all kinds", lambda seed: asked(count.busiest, odd_day(), most=3))
    ),
    "lab10.cost": variants(
        counting.COST,
        Variant("tags of all kinds", lambda seed: asked(count.cost, odd_day(), topic="orders", tags=TAGS)),
        Variant("tags nobody used", lambda seed: asked(count.cost, odd_day(), topic="letters", tags=["paid"])),
    ),
    # Another number of parts, on the day of a public case; and orders whose messages carry different texts of keys.
    "lab10.parts": variants(
        IN_PARTS,
        Variant("five parts", lambda seed: parts_of(day(1), 5)),
        Variant("keys in any order", lambda seed: parts_of(mixed_keys(), 4)),
    ),
    "lab10.failures": variants(
        counting.FAILURES, Variant("several copies", lambda seed: asked(count.failures, odd_day()))
    ),
}
