"""lab15.invisible_for: how long a lease should be, from measured work and what repeats and waits cost.

repeats   every call that took as long as the lease or longer is done twice
waits     every message whose process died waits until the lease is over
"""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import mean

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import Pure, Slip
from mqlab.course.teach.exercises import Call

COST_RULE = (
    "The cost of a choice is repeat_cost for each work time that is as long or longer, plus wait_cost for each of "
    "its seconds and each death. Return the choice with the lowest cost; of equal ones the shorter"
)


def best(
    work_ms: list[int],
    deaths: int,
    choices: list[int],
    repeat_cost: int,
    wait_cost: int,
    *,
    in_time: Callable[[int, int], bool] = lambda took_ms, choice: took_ms < choice,
) -> int:
    """The choice that costs least."""

    def cost(choice: int) -> tuple[float, int]:
        repeats = sum(not in_time(took_ms, choice) for took_ms in work_ms)
        return repeats * repeat_cost + deaths * wait_cost * choice / 1_000, choice

    return min(choices, key=cost)


def months_of_work(seed: int) -> list[Call]:
    """Listeners with a long tail: repeats are dear, waits are dear, nobody dies, and a call ends just in time."""
    rng = random.Random(f"lab15.invisible_for {seed}")
    choices = [5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000]
    calls = []
    for deaths, repeat_cost, wait_cost in ((3, 40, 1), (40, 5, 3), (0, 9, 7), (12, 9, 2), (5, 33, 3)):
        rng.shuffle(choices)
        usual = rng.randint(3_000, 6_000)
        work = [rng.randint(usual // 2, usual) for _ in range(90)]
        work += [10_000] * rng.randint(20, 30)  # exactly a choice
        work += [rng.randint(31_000, 110_000) for _ in range(rng.randint(4, 6))]
        work.append(400_000 + rng.randrange(1_000))  # one that hung: no choice is as long
        rng.shuffle(work)
        right = best(work, deaths, choices, repeat_cost, wait_cost)
        about = f"{deaths} deaths, a repeat costs {repeat_cost}, a second of waiting {wait_cost}"
        calls.append(
            Call(
                work_ms=work,
                deaths=deaths,
                choices=list(choices),
                repeat_cost=repeat_cost,
                wait_cost=wait_cost,
                right=right,
                about=about,
            )
        )
    return [*calls, _within_a_second()]


def _within_a_second() -> Call:
    """Two choices that differ by less than a second, which forty deaths make dearer than one repeat."""
    work, choices = [1_000] * 30 + [5_300], [5_400, 5_100]  # both are 5 seconds, rounded down or to the nearest
    about = "two choices of 5 seconds and some ms"
    right = best(work, 40, choices, 9, 2)
    return Call(work_ms=work, deaths=40, choices=choices, repeat_cost=9, wait_cost=2, right=right, about=about)


def _at_least(call: Call, wanted_ms: float) -> int:
    fitting: list[int] = [choice for choice in call["choices"] if choice > wanted_ms]
    return min(fitting, default=max(call["choices"]))


def _best(call: Call, **other: Callable[[int, int], bool]) -> int:
    names = ("work_ms", "deaths", "choices", "repeat_cost", "wait_cost")
    return best(*(call[name] for name in names), **other)  # type: ignore[arg-type]


INVISIBLE_FOR = Pure(
    "lab15.invisible_for",
    "invisible_for(work_ms, deaths, choices, repeat_cost, wait_cost)",
    points=2,
    about="a month of work times",
    calls=months_of_work,
    returns=int,
    rules=COST_RULE,
    slips=[
        Slip("the mean", lambda call: _at_least(call, mean(call["work_ms"])), belief="lab15.mean_is_enough"),
        Slip("the longest", lambda call: _at_least(call, max(call["work_ms"])), belief="lab15.longest_work"),
        Slip("short", lambda call: min(call["choices"]), belief="lab15.short_is_safe"),
        Slip(
            "in time at the end",
            lambda call: _best(call, in_time=lambda took, to: took <= to),
            belief="lab15.just_in_time",
        ),
        Slip(
            "nobody dies",
            lambda call: best(call["work_ms"], 0, call["choices"], call["repeat_cost"], call["wait_cost"]),
            belief="lab15.nobody_dies",
        ),
    ],
    forbids=FORBIDS["lab15.invisible_for"],
)
