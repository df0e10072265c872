"""Lab 08's your-turn tasks: what is right is counted in the learner's own world.

    too_high  worst  wave      the first part: a level beyond the table, the most levels, what comes after a crash

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from typing import Any

from mqlab.teach.cases.lab08.relay import fewest
from mqlab.teach.tasks import Task
from mqlab.wire import names

HIGH_LEVEL, DOWN_S, WITHIN_MS = 40, 120, 2_000


def _asked_level(lab: Any) -> str:
    levels = [int(one.properties["DELAY"]) for one in lab.store().messages(names.SCHEDULE_TOPIC)]
    return "" if levels and levels[0] > 5 else f"Set LEVEL to {HIGH_LEVEL} and run the cell first."


def _came_after_s(lab: Any) -> int:
    (waited,) = lab.store().messages(names.SCHEDULE_TOPIC)
    (came,) = lab.store().messages("orders")
    return int(came.store_timestamp - waited.store_timestamp + 500) // 1000


def _worst() -> int:
    counts = fewest()[:600]
    return counts.index(max(counts))


def _started_ms(lab: Any) -> int:
    return int(lab.journal.of("fault.start")[0].now_ms)


def _was_down(lab: Any) -> str:
    down_s = (_started_ms(lab) - lab.journal.of("fault.killed")[0].now_ms) // 1000
    return "" if down_s == DOWN_S else f"In your last run it was down for {down_s} s: set DOWN to {DOWN_S} first."


def _in_the_wave(lab: Any) -> int:
    start_ms = _started_ms(lab)
    return sum(0 <= one.store_timestamp - start_ms < WITHIN_MS for one in lab.store().messages("orders"))


TASKS = (
    Task(
        "lab08.too_high", right=_came_after_s, wrong={"none": lambda lab: 0, "standard": lambda lab: 7_200},
        unready=_asked_level,
    ),
    Task("lab08.worst", right=_worst, wrong={"longest": lambda: 599}),
    Task("lab08.wave", right=_in_the_wave, wrong={"one_minute": lambda lab: 60}, unready=_was_down),
)  # fmt: skip
