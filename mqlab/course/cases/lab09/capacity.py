"""lab09.threads: the fewest threads that keep every core busy, and how many calls a second end then.

cores, compute_ms (T1), wait_ms (T2)     ─▶     (threads, per_second), the first rounded up, the second down
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from mqlab.course.kit import Pure
from mqlab.course.kit.shapes import tuple_of
from mqlab.course.kit.slips import Slip
from mqlab.course.teach.exercises import Call

KNEE = tuple_of("knee", threads=int, per_second=int)
THREADS_RULE = (
    "A thread computes for T1 of each T1 + T2: it keeps that part of a core busy. All cores are busy with "
    "cores * (T1 + T2) / T1 threads, rounded up"
)
RATE_RULE = "Every core ends 1000 / T1 computations per second, and each call has one: 1000 * cores / T1, rounded down"


NOT_EXACT = ((3, 30, 100), (3, 60, 200), (3, 90, 300), (6, 30, 100), (6, 60, 200))
"""Cores and times whose 1 + T2 / T1 has no exact float: times the cores it is a little more than a whole number."""


def knee(cores: int, compute_ms: int, wait_ms: int) -> tuple[int, int]:
    """The fewest threads that keep all cores busy, and the calls that end in a second with them."""
    return -(-cores * (compute_ms + wait_ms) // compute_ms), 1000 * cores // compute_ms


def kinds_of_calls(seed: int) -> list[Call]:
    """Calls that divide without a rest and that do not, one that only computes, one that mostly waits.

    The last one divides without a rest, and its quotient has no exact float.
    """
    rng = random.Random(f"lab09.threads {seed}")
    sixteenth = rng.choice((20, 40, 50))
    asked = [
        (rng.choice((2, 4)), sixteenth, 3 * sixteenth),
        (rng.choice((2, 3)), rng.choice((30, 70)), 100),
        (rng.choice((2, 4, 8)), rng.choice((20, 50)), 0),
        (rng.choice((4, 8)), 7, rng.choice((500, 900))),
        rng.choice(NOT_EXACT),
    ]
    return [
        Call(
            cores=cores,
            compute_ms=compute,
            wait_ms=wait,
            right=knee(cores, compute, wait),
            about=f"{cores} cores, {compute} ms of computing and {wait} ms of waiting",
        )
        for cores, compute, wait in asked
    ]


def _by_floats(cores: int, compute_ms: int, wait_ms: int) -> tuple[int, int]:
    return math.ceil(cores * (1 + wait_ms / compute_ms)), 1000 * cores // compute_ms


def _wrongly(other: Callable[[int, int, int], tuple[int, int]]) -> Callable[[Call], tuple[int, int]]:
    return lambda call: other(call["cores"], call["compute_ms"], call["wait_ms"])


THREADS = Pure(
    "lab09.threads",
    "threads(cores, compute_ms, wait_ms)",
    points=2,
    about="cores and the times of a call",
    calls=kinds_of_calls,
    returns=KNEE,
    rules={"": THREADS_RULE, "threads": THREADS_RULE, "per_second": RATE_RULE},
    slips=[
        Slip("rounded down", _wrongly(lambda c, t1, t2: (c * (t1 + t2) // t1, 1000 * c // t1)), belief="lab09.down"),
        Slip("by floats", _wrongly(_by_floats), belief="lab09.float_is_exact"),
        Slip("waits only", _wrongly(lambda c, t1, t2: (-(-c * t2 // t1), 1000 * c // t1)), belief="lab09.waits_only"),
        Slip("one each", _wrongly(lambda c, t1, t2: (c, 1000 * c // t1)), belief="lab09.one_a_core"),
        Slip(
            "by the threads",
            _wrongly(lambda c, t1, t2: (knee(c, t1, t2)[0], 1000 * knee(c, t1, t2)[0] // (t1 + t2))),
            belief="lab09.by_threads",
        ),
        Slip(
            "by the call",
            _wrongly(lambda c, t1, t2: (knee(c, t1, t2)[0], 1000 * c // (t1 + t2))),
            belief="lab09.core_waits",
        ),
    ],
)
