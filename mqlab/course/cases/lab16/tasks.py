"""Lab 16's your-turn tasks of its first two parts: what is right is counted in the learner's own world.

    blank  halvings  pause  hole       the first part: a log's files, a search by time, what a power cut takes
    far_away  three  own_scope         the second: pulls that never wait, how many are needed, the scope on MyPulls

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from typing import Any

from mqlab.course.teach.tasks import Task

FILE_BYTES, IN_A_FILE = 2048, 4
MOST_LOOKS, LOOKS_REACH = 10, 1023
FLUSH_MS, STEP_MS = 500, 100
LAST_PAGE = 11
FAR_MS, THREE_PULLS, MOST_OF_THREE = 10, 3, 4
RATE, RARE, EMPTY_IN_ROCKETMQ = 4, 20, 6  # of lab 06b's scope


def _in_first_file(lab: Any) -> list[Any]:
    return [order for order in lab.store().messages("orders") if order.physical_offset < FILE_BYTES]


def _four_to_a_file(lab: Any) -> str:
    count = len(_in_first_file(lab))
    return "" if count == IN_A_FILE else f"In your last run {count} orders are in the first file: change BODY."


def _blank(lab: Any) -> int:
    last = _in_first_file(lab)[-1]
    return int(FILE_BYTES - last.physical_offset - last.store_size)


def _most_lost(matrix: Any) -> int:
    return max(int(cell.outcome.split()[0]) for cell in matrix.cells())


def _one_at_most(matrix: Any) -> str:
    lost = _most_lost(matrix)
    return "" if lost <= 1 else f"In your last run a power cut lost {lost} orders: increase PAUSE."


def _pulls(lab: Any) -> int:
    return sum(pull.topic == "orders" for pull in lab.pulls("billing"))


def _is_far(lab: Any) -> str:
    first, second = [pull for pull in lab.pulls("billing") if pull.topic == "orders"][:2]
    near = second.asked_ms - first.asked_ms < 2 * FAR_MS
    return 'In your last run a frame was faster: set LATENCY to "10ms".' if near else ""


def _three_pulls(rows: Any) -> str:
    return "" if len(rows) == THREE_PULLS else f"Your last run needed {len(rows)} pulls: change MOST."


def _rare_ones(scope: Any) -> str:
    asked = (scope.settings.rate, scope.settings.rare) == (RATE, RARE)
    return "" if asked else "Set Messages a second to 4 and Rare tag to 20 first."


TASKS = (
    Task(
        "lab16.blank",
        right=_blank,
        wrong={"unit": lambda lab: _in_first_file(lab)[0].store_size},
        unready=_four_to_a_file,
    ),
    Task(
        "lab16.halvings",
        right=lambda: LOOKS_REACH,
        wrong={"one_more": lambda: LOOKS_REACH + 1, "half": lambda: LOOKS_REACH // 2},
    ),
    Task(
        "lab16.pause",
        right=lambda matrix: FLUSH_MS,
        wrong={"less": lambda matrix: FLUSH_MS - STEP_MS},
        unready=_one_at_most,
    ),
    Task("lab16.hole", right=lambda lab: LAST_PAGE, wrong={"first": lambda lab: 0}),
    Task("lab16.far_away", right=_pulls, wrong={"near": lambda lab: 4_250}, unready=_is_far),
    Task("lab16.three", right=lambda rows: MOST_OF_THREE, wrong={"all": lambda rows: 32}, unready=_three_pulls),
    Task(
        "lab16.own_scope",
        right=lambda scope: scope.requests()[0].empty,
        wrong={"asking": lambda scope: scope.requests()[1].empty, "mqlab": lambda scope: EMPTY_IN_ROCKETMQ},
        unready=_rare_ones,
    ),
)
