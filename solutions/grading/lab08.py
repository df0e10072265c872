"""Hidden cases of lab 08: how many seeded days each exercise is judged by.

The known-wrong answers are in wrong/lab08.*.diff, one file per exercise.
"""

from __future__ import annotations

from mqlab.course.teach.exercises import Case

SEEDED = {
    "lab08.due": 4,
    "lab08.any_delay": 2,
    "lab08.cancel_unpaid": 3,
    "lab08.outbox_or_half": 4,
    "lab08.transaction": 1,
    "lab08.due_at": 4,
    "lab08.rebuild": 4,
}
HIDDEN: dict[str, tuple[Case, ...]] = {}
