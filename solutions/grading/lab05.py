"""Hidden cases of lab 05: how many seeded days each exercise is judged by.

The known-wrong answers are in wrong/lab05.*.diff, one file per exercise.
"""

from __future__ import annotations

from mqlab.course.teach.exercises import Case

SEEDED = {
    "lab05.partial": 3,
    "lab05.life_of_an_order": 3,
    "lab05.manual": 3,
    "lab05.poisoned": 2,
    "lab05.lanes": 2,
}
HIDDEN: dict[str, tuple[Case, ...]] = {}
