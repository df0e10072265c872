"""Three hints per exercise, shown one at a time: where to look, how to think about it, almost the answer.

Every exercise of every lab has them.

    hint("lab00.find")       the next hint
    hint("lab00.find", 2)    the second hint

Asking for a hint costs no points.
"""

from __future__ import annotations

from mqlab.course.teach.exercises import exercise
from mqlab.course.teach.said import AskedWrongly, Said

_given: dict[str, int] = {}


def hint(exercise_id: str, number: int | None = None) -> Said:
    """The next hint of an exercise, or hint ``number`` (1 to 3). UsageError for another number."""
    hints = exercise(exercise_id).hints
    if number is None:
        number = min(_given.get(exercise_id, 0) + 1, len(hints))
    if not 1 <= number <= len(hints):
        raise AskedWrongly(f"{exercise_id} has hints 1 to {len(hints)}, not {number}")
    _given[exercise_id] = max(number, _given.get(exercise_id, 0))
    more = f"Run the cell again for hint {number + 1}." if number < len(hints) else "That was the last hint."
    return Said("note", f"{exercise_id}, hint {number} of {len(hints)}: {hints[number - 1]}", note=more)
