"""lab09.size: instances and threads for a curve of traffic, a goal and a budget; the day is played with the answer.

    a day       two minutes of traffic in a Lab (mqlab.widgets.backlog.runs): cores and waiting apart
    the goal    99 of 100 messages are done within goal_ms after they were stored
    the bill    20 for an instance, 1 for each of its threads

Nothing is judged by a formula: any size that keeps goal and budget passes.
"""

from __future__ import annotations

import random
from typing import Any

from mqlab.teach.cases.forbids import FORBIDS
from mqlab.teach.exercises import Call
from mqlab.teach.kit import Pure
from mqlab.teach.kit.shapes import Difference, tuple_of
from mqlab.widgets.backlog.limits import CORES, NOTHING, QUEUES, THREADS, limits
from mqlab.widgets.backlog.runs import MOST, TankRun, TankSettings, play_tank

INSTANCE_COST, THREAD_COST = 20, 1
SIZE_OF_GROUP = tuple_of("size", instances=int, threads=int)
RULES = {
    "": "size returns (instances, threads): how many instances, and how many threads each of them has",
    "range": f"A group here has 1 to {MOST['instances']} instances with 1 to {MOST['threads']} threads each",
    "budget": (
        f"The bill, {INSTANCE_COST} for each instance and {THREAD_COST} for each of its threads, is within the budget: "
        "what no message needs is left out"
    ),
    CORES: (
        "The goal is missed, and the busiest instance has no core free: its share of the peak computes longer than its "
        "cores have time. More threads do not help there, more instances do"
    ),
    THREADS: (
        "The goal is missed, and all threads of an instance are in calls: a call keeps its thread for T1 + T2, so at "
        "the peak there are rate * (T1 + T2) calls at once"
    ),
    QUEUES: (
        "The goal is missed, and one instance has too much to do while another has time: a queue belongs to one "
        "instance, so the busiest one gets a whole number of queues"
    ),
    NOTHING: "The goal is missed: 99 of 100 messages are to be done in time",
}


def bill(instances: int, threads: int) -> int:
    """What a group costs."""
    return instances * (INSTANCE_COST + THREAD_COST * threads)


def within_ms(run: TankRun) -> int | None:
    """99 of 100 messages are done within this time; None if more than one of 100 is not done at the end."""
    took = sorted(call.ended_ms - call.stored_ms for call in run.calls)
    at = -(-99 * (len(took) + run.left) // 100) - 1
    return took[at] if at < len(took) else None


def played(call: Call, size: tuple[int, int]) -> TankRun:
    """The day with a group of this size."""
    return play_tank(TankSettings(
        traffic=tuple(call["traffic"]), instances=size[0], threads=size[1], cores=call["cores"],
        compute_ms=call["compute_ms"], wait_ms=call["wait_ms"], queues=call["queues"],
    ))  # fmt: skip


def _seen(call: Call, size: Any) -> Difference | None:
    instances, threads = size
    # 1. What is paid for.
    if not (1 <= instances <= MOST["instances"] and 1 <= threads <= MOST["threads"]):
        most = f"1 to {MOST['instances']} instances, 1 to {MOST['threads']} threads"
        return Difference(("the size",), "range", most, tuple(size))
    cost = bill(instances, threads)
    if cost > call["budget"]:
        return Difference(("the bill",), "budget", f"at most {call['budget']}", f"{tuple(size)} costs {cost}")
    # 2. What it does.
    run = played(call, (instances, threads))
    took_ms = within_ms(run)
    if took_ms is not None and took_ms <= call["goal_ms"]:
        return None
    binds = next((str(row["limit"]) for row in limits(run) if row["binds"]), NOTHING)
    done = f"within {took_ms:,} ms" if took_ms is not None else f"{run.left} messages not done at all"
    found = f"{tuple(size)}: {done}; what binds: {binds}"
    return Difference(("99 of 100 messages",), binds, f"done within {call['goal_ms']:,} ms", found)


def _threads(per_second: float, call_ms: int) -> int:
    """Threads for so many calls a second, and a fifth more."""
    return int(per_second * call_ms * 1.2 / 1000) + 1


def _call(about: str, right: tuple[int, int], **given: Any) -> Call:
    given["budget"] = bill(*right) * 6 // 5
    given["goal_ms"] = 2 * (given["compute_ms"] + given["wait_ms"]) + 500
    return Call(**given, right=right, about=about)


def days(seed: int) -> list[Call]:
    """A day with calls that compute, for which two to six instances are needed; for even seeds, calls that wait.

    Peaks, times, queues and instances differ from day to day: of the first twelve days of each kind, the best single
    size holds on five.
    """
    rng = random.Random(f"lab09.size {seed}")
    few, cores = rng.randint(1, 2), rng.choice((1, 2))
    if seed % 2:
        instances = rng.randint(2, 6)
        peak, queues = instances * rng.randint(50, 55) // 10, instances * rng.choice((1, 2))
        compute_ms, wait_ms = cores * rng.randint(23, 25) * 5, rng.randint(20, 70) * 10
        return [_call(
            "calls that compute", (instances, _threads(peak / instances, compute_ms + wait_ms)),
            traffic=[few, peak, peak, *[few] * 9], compute_ms=compute_ms, wait_ms=wait_ms, cores=cores, queues=queues,
        )]  # fmt: skip
    peak, wait_ms = rng.randint(8, 28), rng.randint(30, 150) * 10
    return [_call(
        "calls that wait", (1, _threads(peak, wait_ms + 20)), traffic=[few, few, peak, peak, *[few] * 8],
        compute_ms=20, wait_ms=wait_ms, cores=2, queues=rng.choice((4, 6)),
    )]  # fmt: skip


SIZE = Pure(
    "lab09.size", "size(traffic, compute_ms, wait_ms, cores, queues, goal_ms, budget)", points=4,
    about="a day, played", calls=days, returns=SIZE_OF_GROUP, rules=RULES, compares=_seen, seeds=(1, 2),
    explain=lambda call, value, seen: RULES.get(seen.part, RULES[""]), forbids=FORBIDS["lab09.size"],
)  # fmt: skip
