"""Hidden cases of lab 16: by how many seeds each part is judged. A seed makes a day for each promise of the part.

The known-wrong answers are in wrong/lab16.*.diff, one file per exercise.
"""

from __future__ import annotations

from mqlab.course.teach.exercises import Case

SEEDED = {
    "lab16.next_place": 4,
    "lab16.holds": 4,
    "lab16.store": 2,
    "lab16.pulls": 3,
    "lab16.groups": 2,
    "lab16.retries": 2,
    "lab16.handlers": 2,
}
HIDDEN: dict[str, tuple[Case, ...]] = {}
