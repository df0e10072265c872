"""A your-turn task: a question about the world that the learner made, answered with one value. It gives no points.

The words of a task (question, what is said to each wrong answer, note) are in the lab's source; the rule is in its
manifest, next to its exercises. What is right is computed from what the learner's cell gives to ``answer``.

    Task("lab00.unindexed", right=stored_not_yet_indexed, wrong={"all": stored, "none": lambda lab: 0})
    answer("lab00.unindexed", 2, lab)      right(lab) == 2: well done; wrong["all"](lab) == 2: told what was counted
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


def _ready(*_given: object) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Task:
    """One task. All functions get what the learner's cell gave to ``answer`` after the value.

    ``right`` gives the right value. ``wrong`` maps the name of a wrong answer to the value of such an answer;
    it is asked only when the answer is not right. ``unready`` says why the question does not fit what was given yet
    ("Change PAUSE first: …"), "" if it does. ``same`` compares two values, for answers that need not be exact.
    """

    id: str
    right: Callable[..., object]
    wrong: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    unready: Callable[..., str] = _ready
    same: Callable[[object, object], bool] = lambda value, other: value == other
