"""Hidden cases of lab 11: how many seeded bodies and days each exercise is judged by.

The known-wrong answers are in wrong/lab11.*.diff, one file per exercise.
"""

from __future__ import annotations

SEEDED = {
    "lab11.entries": 6,
    "lab11.calls": 2,
    "lab11.life": 2,
    "lab11.slow_when": 2,
    "lab11.why_again": 2,
    "lab11.storm": 2,
}
FROM_SEED: dict[str, object] = {}
