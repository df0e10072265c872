"""Lab 09's your-turn tasks: what is right is read from the learner's own run.

    slower    how many calls can end in a second when each waits longer
    fewest    the fewest of the measured threads with which the rate is at its top
    idle      how many instances own no queue
    most_threads   the most of the measured threads with which no call is too late
    second_brake   what a client holds at most with a wider brake
    more_queues    the fewest queues with which a group catches up from the disk

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mqlab.course.teach.tasks import Task

INSTANCES, WAIT_MS, WIDER = 5, 1_950, 100
CAUGHT_UP, CAUGHT_UP_S = 50, 40
SOME_THREADS = (8, 16, 24, 32, 40)
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


def _too_few_tried(too_late: Mapping[int, int]) -> str:
    missing = [str(threads) for threads in SOME_THREADS if threads not in too_late]
    return f"Put {', '.join(missing)} into TRIED also and run the cell first." if missing else ""


def _most_threads(too_late: Mapping[int, int]) -> int:
    """The largest of the numbers that are asked for, whatever else was tried."""
    return max((threads for threads in SOME_THREADS if too_late[threads] == 0), default=0)


def _wide_enough(threshold: int, held: Sequence[tuple[float, int]]) -> str:
    return "" if threshold == WIDER and held else f"Set THRESHOLD to {WIDER} and run the cell first."


def _most_held(threshold: int, held: Sequence[tuple[float, int]]) -> int:
    return max(count for _, count in held)


def _fewest_queues(lags: Mapping[int, Mapping[int, int]]) -> int:
    return min((queues for queues, lag in lags.items() if lag[CAUGHT_UP_S] < CAUGHT_UP), default=0)


def _queues_tried(lags: Mapping[int, Mapping[int, int]]) -> str:
    fewest = _fewest_queues(lags)
    if not fewest:
        return "With none of those in QUEUES it catches up. Also try a larger number."
    return "" if fewest == 1 or fewest - 1 in lags else f"Also try {fewest - 1}: it may do as much."


TASKS = (
    Task(
        "lab09.slower",
        right=_at_most,
        wrong={"same": lambda tank: 10, "threads": lambda tank: 20},
        unready=_longer_wait,
    ),
    Task("lab09.fewest", right=_fewest, wrong={"largest": lambda rates: max(rates)}, unready=_was_measured),
    Task("lab09.idle", right=_idle, wrong={"none": lambda tank: 0, "working": lambda tank: 4}, unready=_has_five),
    Task(
        "lab09.most_threads",
        right=_most_threads,
        unready=_too_few_tried,
        wrong={"slots": lambda too_late: 8, "largest": lambda too_late: max(too_late)},
    ),
    Task(
        "lab09.second_brake", right=_most_held, unready=_wide_enough, wrong={"exactly": lambda threshold, held: WIDER}
    ),
    Task(
        "lab09.more_queues",
        right=_fewest_queues,
        unready=_queues_tried,
        wrong={"one": lambda lags: 1, "most": lambda lags: max(lags)},
    ),
)
