"""lab09.catch_up: the largest lag of a curve of traffic, and the second at whose end it is gone for good.

traffic      messages a second, one number for each step of ten seconds; the last rate goes on for ever, and is
             not above the capacity
capacity     messages a second that the group can do     ─▶     (largest lag, second), None if it never ends
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from mqlab.course.kit import Pure
from mqlab.course.kit.shapes import tuple_of
from mqlab.course.kit.slips import Slip
from mqlab.course.teach.exercises import Call

STEP_S, LONGEST_S = 10, 100_000
BEHIND = tuple_of("backlog", largest_lag=int, second=int | None)
LAG_RULE = (
    "In each second, add the arrivals, then process at most capacity messages. The rest is the lag, and it "
    "is never below 0"
)
SECOND_RULE = (
    "The second is the first at whose end the lag is 0 and stays 0: 0 without any lag, None if the lag never ends. "
    "The last rate continues"
)
Answer = tuple[int, int | None]


def _lags(traffic: Sequence[int], capacity: int, floor: bool = True) -> list[int]:
    """The lag at the end of each second, until it is 0 after the last step or stays for ever."""
    lags, lag = [], 0
    for second in range(LONGEST_S):
        rate = traffic[min(second // STEP_S, len(traffic) - 1)]
        lag = max(0, lag + rate - capacity) if floor else lag + rate - capacity
        lags.append(lag)
        if second + 1 >= len(traffic) * STEP_S and (lag <= 0 or rate >= capacity):
            break
    return lags


def behind(traffic: Sequence[int], capacity: int, floor: bool = True) -> Answer:
    """The largest lag, and the second at whose end it is gone for good."""
    lags = _lags(traffic, capacity, floor)
    if lags[-1] > 0:
        return max(lags), None
    late = [index for index, lag in enumerate(lags, 1) if lag > 0]
    return max(0, *lags), late[-1] + 1 if late else 0


def _by_the_lag(traffic: Sequence[int], capacity: int) -> Answer:
    """Lag divided by the capacity, as if nothing came meanwhile."""
    right, lags = behind(traffic, capacity), _lags(traffic, capacity)
    if not right[0]:
        return right
    return right[0], lags.index(right[0]) + 1 + -(-right[0] // capacity)


def _first_time(traffic: Sequence[int], capacity: int) -> Answer:
    right, lags = behind(traffic, capacity), _lags(traffic, capacity)
    late = next((index for index, lag in enumerate(lags) if lag > 0), None)
    ends = [] if late is None else [index for index, lag in enumerate(lags, 1) if index > late and lag == 0]
    return right[0], ends[0] if ends else right[1]


def _within_the_curve(traffic: Sequence[int], capacity: int) -> Answer:
    right = behind(traffic, capacity)
    over = right[1] is None or right[1] > len(traffic) * STEP_S
    return right[0], None if over else right[1]


def curves(seed: int) -> list[Call]:
    """One peak, a quiet night before it, two peaks, traffic that is never too much, and a lag that stays; a rate that
    is the capacity without a lag, and one that hardly leaves room for a long one.
    """
    rng = random.Random(f"lab09.catch_up {seed}")
    few, capacity = rng.randint(3, 5), rng.randint(8, 11)
    many = capacity + rng.randint(5, 9)
    asked = [
        ([few, many, many, *[few] * 6], "one peak"),
        ([0] * 4 + [many] * 3 + [few] * 2, "a quiet night, a peak, and then the last rate for ever"),
        ([few, many, *[few] * 3, many, many, *[few] * 6], "two peaks"),
        ([few, capacity, few], "never too much"),
        ([few, many, many, capacity], "a peak, and then exactly the capacity"),
        ([few, many, *[few] * 6, capacity], "a peak that is over, and then exactly the capacity"),
        ([*[many] * 22, capacity - 1], "a long peak, and then one message a second less than the capacity"),
    ]
    return [
        Call(traffic=list(rates), capacity=capacity, right=behind(rates, capacity), about=about)
        for rates, about in asked
    ]


def _wrongly(other: Callable[[Sequence[int], int], Answer]) -> Callable[[Call], Answer]:
    return lambda call: other(call["traffic"], call["capacity"])


CATCH_UP = Pure(
    "lab09.catch_up",
    "catch_up(traffic, capacity)",
    points=3,
    about="curves of traffic",
    calls=curves,
    returns=BEHIND,
    rules={"": LAG_RULE, "largest_lag": LAG_RULE, "second": SECOND_RULE},
    slips=[
        Slip("lag by capacity", _wrongly(_by_the_lag), belief="lab09.lag_by_rate"),
        Slip("saved up", _wrongly(lambda traffic, capacity: behind(traffic, capacity, False)), belief="lab09.saved_up"),
        Slip("first time", _wrongly(_first_time), belief="lab09.first_time"),
        Slip("ends with the curve", _wrongly(_within_the_curve), belief="lab09.curve_ends"),
    ],
)
