"""Lab 13's your-turn tasks: what is right follows from the day that the learner has chosen.

another_night   whom the most harmful incident of a day of one's own harmed
false_claims    how many of six claims are false
"""

from __future__ import annotations

from typing import Any

from mqlab.counts import counted
from mqlab.course.teach.tasks import Task

FIRST_NIGHT = "night 2410"
FALSE = 4
FIRST_RESET = "12:30"

Night = tuple[Any, Any]  # the sealed day, and its tables


def _harms(night: Night) -> list[int]:
    return [len(incident["harmed"]) for incident in night[0].truth()["incidents"]]


def _same_night(_night: Night, name: str) -> str:
    return f"it is still {FIRST_NIGHT}: change NAME first" if name == FIRST_NIGHT else ""


def _unjudged(board: Any) -> str:
    left = len(board.claims) - len(board.verdicts)
    return f"{counted(left, 'claims have', 'claim has')} no verdict yet: ask and judge them first" if left else ""


def _same_moment(_shown: Any, moment: str) -> str:
    return f"it is still {FIRST_RESET}: change MOMENT first" if moment == FIRST_RESET else ""


TASKS = (
    Task(
        "lab13.another_night",
        right=lambda night, _: max(_harms(night)),
        unready=_same_night,
        wrong={"all": lambda night, _: sum(_harms(night))},
    ),
    Task(
        "lab13.false_claims",
        right=lambda board: FALSE,
        unready=_unjudged,
        wrong={"five": lambda board: FALSE + 1, "planned": lambda board: FALSE - 1},
    ),
    Task(
        "lab13.again",
        right=lambda shown, _: shown.again,
        unready=_same_moment,
        wrong={"first": lambda shown, _: shown.first, "all": lambda shown, _: shown.first + shown.again},
    ),
)
