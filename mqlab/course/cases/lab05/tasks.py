"""Lab 05's your-turn tasks: what is right is counted in the learner's own world, or on his board.

    fewest  refusals  lost      the first part: a board without overtaking, a batch that comes again, work that is gone
    goodbye  alone  enough_queues   the second part: a member that goes properly, an order that no other waits for,
                                    the fewest queues for a rate

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mqlab.counts import counted
from mqlab.course.cases.lab05.events import GROUP, TOPIC
from mqlab.course.teach.tasks import Task

ORDERS = 6  # of the lanes board, each in a queue of its own
LEAVES, RATE = "billing-1", 55
AGAIN, KILLED_AFTER_MS = 5, 1_000


def _rows(lab: Any) -> list[Any]:
    return list(lab.deliveries(GROUP, absences=False))


def _keys(lab: Any) -> dict[str, str]:
    return {message.msg_id: message.keys for message in lab.store().messages()}


def _nothing_overtakes(board: Any) -> str:
    now = board.settings
    if now.mode != "concurrent" or now.queues != 1 or now.batch != 1:
        return "The question is about a concurrent listener, one queue and a batch of 1: set those on the board."
    if board.overtaken:
        return f"On your board {counted(board.overtaken, 'events overtake', 'event overtakes')}: take fewer threads."
    return ""


def _seconds(board: Any) -> int:
    return round(board.done_s or 0)


def _come_again(lab: Any) -> list[int]:
    keys = _keys(lab)
    return sorted(int(keys[row.msg_id].removeprefix("order-")) for row in _rows(lab) if row.reconsume_times == 1)


def _five_come_again(lab: Any) -> str:
    count = len(_come_again(lab))
    if count == AGAIN:
        return ""
    return f"In your last run {count} are redelivered: change REFUSED and run the cell again, until it is {AGAIN}."


def _killed_after_one(lab: Any, finished: Any) -> str:
    sent_ms = max(message.store_timestamp for message in lab.store().messages(TOPIC))
    after_ms = lab.journal.of("fault.killed")[0].now_ms - sent_ms
    if abs(after_ms - KILLED_AFTER_MS) < 500:
        return ""
    return (
        f"Your last run kills billing {after_ms // 1000} s after the last order: one second passes anyway, so set "
        'KILL_AFTER to "0s" and run it again.'
    )


def _lost(lab: Any, finished: Sequence[str]) -> int:
    return len(set(_keys(lab).values()) - set(finished))


FIRST_PART = (
    Task(
        "lab05.fewest",
        right=_seconds,
        wrong={"parallel": lambda board: 1, "four": lambda board: 2},
        unready=_nothing_overtakes,
    ),
    Task(
        "lab05.refusals",
        right=lambda lab: _come_again(lab)[0],
        wrong={"next": lambda lab: _come_again(lab)[0] + 1, "behind": lambda lab: AGAIN},
        unready=_five_come_again,
    ),
    Task(
        "lab05.lost",
        right=_lost,
        wrong={"none": lambda lab, finished: 0, "eight": lambda lab, finished: 8},
        unready=_killed_after_one,
    ),
)


def _order_one_fails(board: Any) -> str:
    now = board.settings
    if now.mode == "orderly" and now.failing:
        return ""
    return "The question is about an orderly listener and an order-1 that can never be created: set both on the board."


def _only_order_one_waits(board: Any) -> int:
    """The queues of the board, if only order-1 waits on it."""
    waiting = {event.split()[0] for event in board.held()}
    return int(board.settings.queues) if waiting == {"order-1"} else ORDERS


def _went_properly(lab: Any) -> str:
    return "Set KILLED to False and run the cell again." if lab.journal.of("fault.killed") else ""


def _reads_on_s(lab: Any) -> int:
    """From the last call of the member that went to the first one for a queue of it, in seconds, rounded up."""
    rows = _rows(lab)
    mine = [row for row in rows if row.client == LEAVES]
    queues, last_ms = {row.message_queue for row in mine}, mine[-1].started_ms
    taken: list[int] = [
        row.started_ms
        for row in rows
        if row.client != LEAVES and row.started_ms > last_ms and row.message_queue in queues
    ]
    return math.ceil((min(taken) - int(last_ms)) / 1_000)


def _fewest_for_rate(rates: Mapping[int, float]) -> int:
    return min((queues for queues, rate in rates.items() if rate >= RATE), default=0)


def _fewer_were_measured(rates: Mapping[int, float]) -> str:
    fewest = _fewest_for_rate(rates)
    if not fewest:
        return f"None of the numbers that you measured does {RATE} a second: measure more queues."
    missing = [queues for queues in range(max(1, fewest - 1), fewest) if queues not in rates]
    return f"Put {missing[0]} into TRY as well: it may also do {RATE} a second." if missing else ""


SECOND_PART = (
    Task(
        "lab05.goodbye",
        right=_reads_on_s,
        wrong={"lock": lambda lab: 53, "renewal": lambda lab: 20},
        unready=_went_properly,
    ),
    Task(
        "lab05.alone",
        right=_only_order_one_waits,
        wrong={"one": lambda board: 1, "three": lambda board: 3},
        unready=_order_one_fails,
    ),
    Task(
        "lab05.enough_queues",
        right=_fewest_for_rate,
        wrong={"eight": lambda rates: 8, "five": lambda rates: 5},
        unready=_fewer_were_measured,
    ),
)
TASKS = (*FIRST_PART, *SECOND_PART)
