"""Hidden cases of lab 15: how many seeded days each exercise is judged by.

The known-wrong answers are in wrong/lab15.*.diff, one file per exercise.
"""

from __future__ import annotations

from mqlab.course.teach.exercises import Case

SEEDED = {"lab15.out_now": 4, "lab15.lease_table": 3, "lab15.invisible_for": 4, "lab15.revive": 4}
HIDDEN: dict[str, tuple[Case, ...]] = {}
