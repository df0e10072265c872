"""Lab 16's your-turn tasks of its last two parts: what is right is counted in the learner's own world.

    both_die  quick_death  down_for             the third part: groups and retries after a crash
    fewer_reports  answers_zero  how_small      the fourth: requests counted, one answer changed, a day made small

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from mqlab.counts import counted
from mqlab.course.teach.tasks import Task
from mqlab.rocketmq.store.config import parse_delay_levels

WORST_OF_BOTH, FAILED_RETRIES = 9, 3
THIRD_RETRY_MS = (50_000, 60_000)
DOWN_MS = 25_000
YOUNG_ORDERS = 5


def _calls(lab: Any) -> list[Any]:
    return list(lab.deliveries("billing", absences=False))


def _twice(lab: Any) -> int:
    return sum(count > 1 for count in Counter(row.msg_id for row in _calls(lab)).values())


def _not_worst(lab: Any) -> str:
    twice = _twice(lab)
    paid = counted(twice, "orders were paid", "order was paid")
    return "" if twice >= WORST_OF_BOTH else f"In your last run {paid} twice; another second costs more."


def _delays_s(clock: Any) -> list[int]:
    return [delay_ms // 1000 for delay_ms in parse_delay_levels(clock.settings.levels)]


def _not_within_a_minute(clock: Any) -> str:
    calls, (least_ms, most_ms) = clock.deliveries().rows, THIRD_RETRY_MS
    if len(_delays_s(clock)) < 5 or len(calls) != FAILED_RETRIES + 1:
        return "Keep five levels in LEVELS, and max_retries=3."
    third_s = calls[FAILED_RETRIES]["at_ms"] / 1000
    return (
        "" if least_ms <= third_s * 1000 <= most_ms else f"Your third retry comes after {third_s:.0f} s: change LEVELS."
    )


def _again_after_s(lab: Any) -> int:
    first, second = _calls(lab)[:2]
    return int((second.started_ms - first.started_ms) // 1000)


def _was_up(lab: Any) -> str:
    return (
        "" if _again_after_s(lab) * 1000 > DOWN_MS else 'In your last run the broker was back too early: DOWN = "30s".'
    )


def _requests(lab: Any) -> Counter[str]:
    frames = (row for row in lab.journal.of("frame") if row.node == "broker-a")
    return Counter(row.about_text.split(" #")[0] for row in frames)


def _reports(lab: Any) -> int:
    return _requests(lab)["UPDATE_CONSUMER_OFFSET"]


def _more_than_pulls(lab: Any) -> str:
    requests = _requests(lab)
    if requests["UPDATE_CONSUMER_OFFSET"] < requests["PULL_MESSAGE"]:
        return ""
    reports, pulls = counted(_reports(lab), "reports"), counted(requests["PULL_MESSAGE"], "pulls")
    return f"In your last run there are {reports} and {pulls}: increase PERSIST."


TASKS_OF_CRASHES = (
    Task("lab16.both_die", right=_twice, wrong={"one": lambda lab: 1}, unready=_not_worst),
    Task(
        "lab16.quick_death",
        right=lambda clock: _delays_s(clock)[4],
        wrong={"level3": lambda clock: _delays_s(clock)[2], "sum": lambda clock: sum(_delays_s(clock)[2:5])},
        unready=_not_within_a_minute,
    ),
    Task(
        "lab16.down_for",
        right=_again_after_s,
        wrong={"delay": lambda lab: 10, "sum": lambda lab: 40},
        unready=_was_up,
    ),
)

TASKS_ON_THE_WIRE = (
    Task(
        "lab16.fewer_reports",
        right=_reports,
        wrong={"pulls": lambda lab: _requests(lab)["PULL_MESSAGE"]},
        unready=_more_than_pulls,
    ),
    Task("lab16.answers_zero", right=lambda count: YOUNG_ORDERS, wrong={"none": lambda count: 0}),
    Task(
        "lab16.how_small",
        right=lambda day, left: len(left.events),
        wrong={"all": lambda day, left: len(day.events)},
        unready=lambda day, left: "" if left is not None else "In your last run no promise was broken: change DEFECT.",
    ),
)
