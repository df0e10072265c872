"""Lab 07's your-turn tasks: what is right is counted in the learner's own world, or read from the table of levels.

    ten_minutes  two_hours  asks                 the first part: limits and levels of retries
    limit  sweep  others  send_ok                the second part: a queue's head, a sweep, a crash, a lost answer

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from typing import Any

from mqlab.course.cases.lab07.days import GROUP
from mqlab.course.teach.tasks import Task
from mqlab.rocketmq.store.config import StoreConfig, parse_delay_levels

TEN_MINUTES_MS, TWO_HOURS_MS = 600_000, 7_200_000
LONG_SWEEP_S = 900
FIRST_RETRY_LEVEL = 3


def _calls(lab: Any) -> list[Any]:
    return list(lab.deliveries(GROUP, absences=False))


def _retries_within_ten_minutes(_lab: Any) -> int:
    """How many retries an order that always fails has had when ten minutes are over."""
    waited = retries = 0
    for delay_ms in parse_delay_levels(StoreConfig().message_delay_level)[FIRST_RETRY_LEVEL - 1 :]:
        waited += delay_ms
        if waited > TEN_MINUTES_MS:
            break
        retries += 1
    return retries


def _number_of_the_paid_delivery(clock: Any) -> int:
    return int(next(row["number"] for row in clock.deliveries().to_dicts() if row["status"] == "CONSUME_SUCCESS"))


def _bank_is_away_for_two_hours(clock: Any) -> str:
    away = (clock.settings.down_from_ms, clock.settings.down_to_ms)
    if away == (0, TWO_HOURS_MS):
        return ""
    return "The clock has not played this day yet: write 2h into its field *to* (next to 0s) and press Play."


def _deliveries_of_the_first(lab: Any) -> int:
    calls = _calls(lab)
    return sum(row.msg_id == calls[0].msg_id for row in calls)


def _seconds_until_again(lab: Any) -> float:
    """From the call that never returned to the first delivery that is a retry."""
    calls = _calls(lab)
    hung = next(row for row in calls if row.status == "RUNNING")
    again = next(row for row in calls if row.reconsume_times == 1)
    return float(again.started_ms - hung.started_ms) / 1000


def _sweep_is_short(lab: Any) -> str:
    if _seconds_until_again(lab) > LONG_SWEEP_S:
        return 'Your last run still has the timeout of 15 minutes: set CONSUME_TIMEOUT to "1m" and run it again.'
    return ""


def _deliveries_of_the_last(lab: Any) -> int:
    calls = _calls(lab)
    last = max(row.queue_offset for row in calls)
    return sum(row.queue_offset == last for row in calls)


def _has_others(lab: Any) -> str:
    alone = len({row.queue_offset for row in _calls(lab)}) == 1
    return "The killer is alone in your last run: set OTHERS to 1 or more and run it again." if alone else ""


def _copies_of_order_1(lab: Any) -> int:
    return sum(unit.keys == "order-1" for unit in lab.store().messages("orders"))


def _an_answer_came(lab: Any) -> str:
    lost = len(list(lab.journal.changes("frame.dropped")))
    if 0 < lost < _copies_of_order_1(lab):
        return ""
    return "In your last run every answer was lost, so the shop got no SEND_OK. Make LOST smaller."


def _close(number: object, other: object) -> bool:
    return isinstance(number, int | float) and isinstance(other, int | float) and abs(number - other) <= 2


def _both_negative(number: object, other: object) -> bool:
    return all(isinstance(value, int) and value < 0 for value in (number, other))


TASKS = (
    Task(
        "lab07.ten_minutes",
        right=_retries_within_ten_minutes,
        wrong={"one_more": lambda lab: _retries_within_ten_minutes(lab) + 1, "default": lambda lab: 16},
    ),
    Task(
        "lab07.two_hours",
        right=_number_of_the_paid_delivery,
        wrong={
            "last_failure": lambda clock: _number_of_the_paid_delivery(clock) - 1,
            "retries_after": lambda clock: _number_of_the_paid_delivery(clock) + 1,
        },
        unready=_bank_is_away_for_two_hours,
    ),
    Task(
        "lab07.asks",
        right=lambda lab: -1,
        wrong={"zero": lambda lab: 0, "eighteen": lambda lab: 18},
        same=lambda number, other: number == other or _both_negative(number, other),
    ),
    Task(
        "lab07.limit",
        right=_deliveries_of_the_first,
        wrong={
            "retries": lambda lab: _deliveries_of_the_first(lab) - 1,
            "both": lambda lab: len(_calls(lab)),
        },
    ),
    Task(
        "lab07.sweep",
        right=_seconds_until_again,
        wrong={
            "one_minute": lambda lab: 60,
            "without_level": lambda lab: _seconds_until_again(lab) - 10,
        },
        unready=_sweep_is_short,
        same=_close,
    ),
    Task(
        "lab07.others",
        right=_deliveries_of_the_last,
        wrong={"once": lambda lab: 1, "all_rows": lambda lab: len(_calls(lab))},
        unready=_has_others,
    ),
    Task(
        "lab07.send_ok",
        right=_copies_of_order_1,
        wrong={"once": lambda lab: 1, "three": lambda lab: 3},
        unready=_an_answer_came,
    ),
)
