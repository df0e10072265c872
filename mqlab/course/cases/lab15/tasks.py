"""Lab 15's your-turn tasks: what is right is counted in the learner's own world.

    shortest  stuck_for  joined          the first part: a lease that is just long enough, a call that is too long,
                                         and what a member gets that joins
    poll  third_wait  killed_later       the second: a held pop, a client's steps, a broker killed later

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from mqlab.counts import counted
from mqlab.course.teach.tasks import Task
from mqlab.rocketmq.wire.pop import pop_retry_topic

GROUP, TOPIC = "billing", "orders"
SHORTEST_S, WORK_S = 6, 8  # a revival comes two seconds after the end
HANGS_MS, POLL_MS, RETRIES, KILLED_AFTER_MS = 25_000, 40_000, 4, 12_000
BEFORE, MORE = 21, 8  # orders that were sold before a member joins, and after it


def _pops(lab: Any) -> list[tuple[Any, dict[str, Any]]]:
    return [(step, values) for step, values in lab.journal.changes("message.popped") if values["group"] == GROUP]


def _received_once(lab: Any) -> str:
    count = len(_pops(lab))
    return "" if count == 1 else f"In your last run it was received {count} times: change LEASE until it is one."


def _calls(lab: Any) -> list[Any]:
    return list(lab.deliveries(GROUP, absences=False).rows)


def _hung_for(lab: Any) -> str:
    longest_ms = max((row["ended_ms"] or lab.now_ms) - row["started_ms"] for row in _calls(lab))
    near = abs(longest_ms - HANGS_MS) < 1_000
    return "" if near else f'In your last run the longest call took {longest_ms // 1000} s: set HANGS to "25s".'


def _repeated(lab: Any) -> int:
    return sum(count > 1 for count in Counter(row["msg_id"] for row in _calls(lab)).values())


def _sold_more(lab: Any) -> str:
    more = len(list(lab.store().messages(TOPIC))) - BEFORE
    sold = counted(more, "more orders were sold", "more order was sold")
    return "" if more == MORE else f"In your last run {sold}: set MORE to {MORE}."


def _of_the_second(lab: Any) -> int:
    return len({row["msg_id"] for row in _calls(lab) if row["client"] == "billing-2"})


def _held_long(lab: Any) -> str:
    waits = [values["expires_ms"] - step.now_ms for step, values in lab.journal.changes("pop.held")]
    near = waits and abs(max(waits) - POLL_MS) < 1_000
    return "" if near else 'In your last run a receive waited for another time: set WAITS to "40s".'


def _in_the_retry_topic_s(lab: Any) -> int:
    (copy,) = list(lab.store().messages(pop_retry_topic(TOPIC, GROUP)))[:1]
    return int(_received_ms(lab) - copy.store_timestamp) // 1000


def _received_ms(lab: Any) -> int:
    return int(_pops(lab)[1][0].now_ms)


def _waits_s(lab: Any, number: int) -> int:
    starts = [row["started_ms"] for row in _calls(lab)]
    return int(starts[number + 1] - starts[number]) // 1000


def _allowed(lab: Any) -> str:
    count = len(_calls(lab))
    return "" if count == RETRIES + 1 else f"Your last run had {counted(count, 'calls')}: set MOST to {RETRIES}."


def _killed_ms(lab: Any) -> int:
    return int(lab.journal.of("fault.killed")[0].now_ms)


def _killed_later(lab: Any) -> str:
    after_ms = _killed_ms(lab) - lab.began_ms
    near = abs(after_ms - KILLED_AFTER_MS) < 1_000
    return "" if near else f'In your last run the broker was killed after {after_ms // 1000} s: set AFTER to "12s".'


def _came_again(lab: Any) -> int:
    return sum(
        len(values["messages"])
        for step, values in lab.journal.changes("message.polled")
        if step.now_ms > _killed_ms(lab)
    )


def _a_second_apart(answer: Any, right: Any) -> bool:
    return isinstance(answer, int | float) and isinstance(right, int | float) and abs(answer - right) <= 1


TASKS = (
    Task(
        "lab15.shortest",
        right=lambda lab: SHORTEST_S,
        wrong={"work": lambda lab: WORK_S, "longer": lambda lab: WORK_S + 1},
        unready=_received_once,
    ),
    Task(
        "lab15.stuck_for",
        right=_repeated,
        wrong={"none": lambda lab: 0, "all": lambda lab: 41},
        unready=_hung_for,
    ),
    Task(
        "lab15.joined",
        right=_of_the_second,
        wrong={"none": lambda lab: 0, "new": lambda lab: MORE},
        unready=_sold_more,
    ),
    Task(
        "lab15.poll",
        right=_in_the_retry_topic_s,
        wrong={"none": lambda lab: 0, "whole": lambda lab: (_received_ms(lab) - lab.began_ms) // 1000},
        unready=_held_long,
        same=_a_second_apart,
    ),
    Task(
        "lab15.third_wait",
        right=lambda lab: _waits_s(lab, 1),
        wrong={"push": lambda lab: 30, "first": lambda lab: _waits_s(lab, 0)},
        unready=_allowed,
        same=_a_second_apart,
    ),
    Task(
        "lab15.killed_later",
        right=_came_again,
        wrong={"six": lambda lab: 6, "none": lambda lab: 0},
        unready=_killed_later,
    ),
)
