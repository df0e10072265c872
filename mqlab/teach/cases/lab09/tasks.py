"""Lab 09's your-turn tasks: what is right is read from the learner's own run.

    slower    how many calls can end in a second when each waits longer
    fewest    the fewest of the measured threads with which the rate is at its top
    idle      how many instances own no queue

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqlab.teach.tasks import Task

INSTANCES, WAIT_MS = 5, 1_950
NEAR = 0.97


def _longer_wait(tank: Any) -> str:
    return "" if tank.settings.wait_ms == WAIT_MS else 'Set WAIT to "1950ms" and run the cell first.'


def _at_most(tank: Any) -> int:
    """How many calls can end in a second: threads by the time of a call."""
    settings = tank.settings
    return int(1000 * settings.threads) // int(settings.compute_ms + settings.wait_ms)


def _was_measured(rates: Mapping[int, float]) -> str:
    if len(rates) < 2:
        return "Measure more than one number of threads first."
    fewest = _fewest(rates)
    if fewest == 1 or fewest - 1 in rates:
        return ""
    lower = max((threads for threads in rates if threads < fewest), default=0)
    return f"Measure the numbers between {lower} and {fewest} as well: one of them may do as much as {fewest}."


def _fewest(rates: Mapping[int, float]) -> int:
    top = max(rates.values())
    return min(threads for threads, rate in rates.items() if rate >= NEAR * top)


def _has_five(tank: Any) -> str:
    return "" if tank.settings.instances == INSTANCES else f"Set INSTANCES to {INSTANCES} and run the cell first."


def _idle(tank: Any) -> int:
    return sum(count == 0 for count in tank.run.owned.values())


TASKS = (
    Task("lab09.slower", right=_at_most, wrong={"same": lambda tank: 10, "threads": lambda tank: 20},
         unready=_longer_wait),
    Task("lab09.fewest", right=_fewest, wrong={"largest": lambda rates: max(rates)}, unready=_was_measured),
    Task("lab09.idle", right=_idle, wrong={"none": lambda tank: 0, "working": lambda tank: 4}, unready=_has_five),
)  # fmt: skip
