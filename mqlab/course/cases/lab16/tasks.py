"""Lab 16's your-turn tasks of its first two parts: what is right is counted in the learner's own world.

    blank  halvings  pause  hole       the first part: a log's files, a search by time, what a power cut takes
    far_away  three  own_scope         the second: pulls that never wait, how many are needed, the scope on MyPulls

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from typing import Any

from mqlab.counts import counted
from mqlab.course.teach.tasks import Task

FILE_BYTES, IN_A_FILE = 2048, 4
MOST_LOOKS = 10
PAGE_BYTES = 4096
FAR_MS, THREE_PULLS = 10, 3
RATE, RARE, EMPTY_IN_ROCKETMQ = 4, 20, 6  # of lab 06b's scope


def _in_first_file(lab: Any) -> list[Any]:
    return [order for order in lab.store().messages("orders") if order.physical_offset < FILE_BYTES]


def _four_to_a_file(lab: Any) -> str:
    count = len(_in_first_file(lab))
    orders = counted(count, "orders are", "order is")
    return "" if count == IN_A_FILE else f"In your last run {orders} in the first file: change BODY."


def _blank(lab: Any) -> int:
    last = _in_first_file(lab)[-1]
    return int(FILE_BYTES - last.physical_offset - last.store_size)


def _most_lost(matrix: Any) -> int:
    return max(int(cell.outcome.split()[0]) for cell in matrix.cells())


def _smallest_pause(paused: Any) -> str:
    less, pause = sorted(paused)
    if (lost := _most_lost(paused[pause])) > 1:
        return f"In your last run a power cut lost {counted(lost, 'orders')}: increase PAUSE."
    if (lost := _most_lost(paused[less])) <= 1:
        return f"In your last run no power cut lost more than {lost} with {less} ms either: decrease PAUSE."
    return ""


def _ten_and_eleven(looks: Any) -> str:
    (count, needed), (more, needed_more) = sorted(looks.items())
    if (needed, needed_more) == (MOST_LOOKS, MOST_LOOKS + 1):
        return ""
    return f"In your last run {count:,} messages need {needed} looks and {more:,} need {needed_more}: change COUNT."


def _last_page(lab: Any) -> int:
    last = [stored for _, stored in lab.journal.changes("message.stored")][-1]
    return int((last["physical_offset"] + last["size"] - 1) // PAGE_BYTES)


def _pulls(lab: Any) -> int:
    return sum(pull.topic == "orders" for pull in lab.pulls("billing"))


def _is_far(lab: Any) -> str:
    first, second = [pull for pull in lab.pulls("billing") if pull.topic == "orders"][:2]
    near = second.asked_ms - first.asked_ms < 2 * FAR_MS
    return 'In your last run a frame was faster: set LATENCY to "10ms".' if near else ""


def _given(rows: Any) -> list[int]:
    return [int(row["given"]) for row in rows]


def _a_third(rows: Any) -> int:
    return -(-sum(_given(rows)) // THREE_PULLS)


def _three_pulls(rows: Any) -> str:
    return "" if len(rows) == THREE_PULLS else f"Your last run needed {counted(len(rows), 'pulls')}: change MOST."


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
        right=min,
        wrong={"one_more": max, "half": lambda looks: min(looks) // 2},
        unready=_ten_and_eleven,
    ),
    Task(
        "lab16.pause",
        right=max,
        wrong={"less": min},
        unready=_smallest_pause,
    ),
    Task("lab16.hole", right=_last_page, wrong={"first": lambda lab: 0}),
    Task("lab16.far_away", right=_pulls, wrong={"near": lambda lab: 4_250}, unready=_is_far),
    Task("lab16.three", right=_a_third, wrong={"all": lambda rows: sum(_given(rows))}, unready=_three_pulls),
    Task(
        "lab16.own_scope",
        right=lambda scope: scope.requests()[0].empty,
        wrong={"asking": lambda scope: scope.requests()[1].empty, "mqlab": lambda scope: EMPTY_IN_ROCKETMQ},
        unready=_rare_ones,
    ),
)
