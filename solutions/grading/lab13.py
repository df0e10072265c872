"""Hidden cases of lab 13: how many sets of days each exercise is judged by.

The known-wrong answers are in wrong/lab13.*.diff, one file per exercise.
"""

from __future__ import annotations

SEEDED = {
    "lab13.when": 2, "lab13.whom": 2, "lab13.why": 2, "lab13.triage": 2, "lab13.repair": 1, "lab13.alarm": 1,
}  # fmt: skip
