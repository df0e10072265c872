"""Hidden cases of lab 02: how many seeded days each exercise is judged by.

The known-wrong answers are in wrong/lab02.*.diff, one file per exercise.
"""

from __future__ import annotations

from mqlab.teach.exercises import Case

SEEDED = {
    "lab02.believes": 6, "lab02.strategy": 4, "lab02.outbox": 2, "lab02.selector": 4, "lab02.scale_in": 4,
}  # fmt: skip
HIDDEN: dict[str, tuple[Case, ...]] = {}
