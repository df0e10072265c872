"""Hidden cases of lab 09: how many seeded days each exercise is judged by.

The known-wrong answers are in wrong/lab09.*.diff, one file per exercise.
"""

from __future__ import annotations

from mqlab.teach.exercises import Case

SEEDED = {"lab09.threads": 4, "lab09.catch_up": 4, "lab09.size": 4}
HIDDEN: dict[str, tuple[Case, ...]] = {}
