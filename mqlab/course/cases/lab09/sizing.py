"""lab09.size: instances, threads and batch for traffic, a goal and a budget; the day is played with the answer.

    a day       two minutes of traffic in a Lab (mqlab.course.widgets.boards.backlog.runs): cores and waiting apart
    the goal    99 of 100 messages are done within goal_ms after they were stored
    the bill    20 for an instance, 1 for each of its threads; a batch costs nothing but time

Nothing is judged by a formula: any size that keeps goal and budget passes. A size that does not is shown what the peak
needs of each limit, and what there is.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import Pure
from mqlab.course.kit.shapes import Difference, tuple_of
from mqlab.course.teach.exercises import Call
from mqlab.course.widgets.boards.backlog.limits import CORES, NOTHING, QUEUES, THREADS, limits, per_call
from mqlab.course.widgets.boards.backlog.runs import MOST, TankRun, TankSettings, play_tank

INSTANCE_COST, THREAD_COST = 20, 1
SIZE_OF_GROUP = tuple_of("size", instances=int, threads=int, batch=int)
SLOW_CALL = "slow call"
RULES = {
    "": (
        "size returns (instances, threads, batch): the number of instances, threads per instance, and "
        "messages per call at most"
    ),
    "range": (
        f"A group here has 1 to {MOST['instances']} instances with 1 to {MOST['threads']} threads each, and a batch of "
        f"1 to {MOST['batch']}"
    ),
    SLOW_CALL: (
        "The goal is missed, and no limit binds: the calls themselves take too long. A call computes for its messages "
        "one after another, and none of them is done before the whole call is"
    ),
    "budget": (
        f"The bill, {INSTANCE_COST} per instance and {THREAD_COST} per thread, must be within the budget: leave out "
        "what no message needs"
    ),
    CORES: (
        "The goal is missed, and the busiest instance has no core free: its cores have less time than its share of the "
        "peak needs. More threads do not help there, more instances do"
    ),
    THREADS: (
        "The goal is missed, and all threads of an instance are in calls: a call of n messages keeps its thread for "
        "n * T1 + T2, and at the peak there are rate / n such calls per second. n is what one pull brought, "
        "at most batch"
    ),
    QUEUES: (
        "The goal is missed, and one instance has too much to do while another is idle: a queue belongs to one "
        "instance, so the busiest one gets a whole number of queues"
    ),
    NOTHING: "The goal is missed: 99 of 100 messages must be done in time",
}


def bill(instances: int, threads: int) -> int:
    """What a group costs."""
    return instances * (INSTANCE_COST + THREAD_COST * threads)


def needs(call: Call, size: tuple[int, int, int]) -> list[tuple[str, float, float]]:
    """What the peak needs of each limit of the busiest instance, and what there is: (limit, needed, available)."""
    instances, threads, batch = size
    peak, queues, interval_ms = max(call["traffic"]), call["queues"], call["pull_interval_ms"]
    share = peak * -(-queues // min(instances, queues)) / queues
    pulled = max(1, -(-peak * interval_ms // (1000 * queues)))
    calls_a_second = share / pulled * -(-pulled // batch)
    call_ms = min(batch, pulled) * call["compute_ms"] + call["wait_ms"]
    return [
        ("ms of cores per second", share * call["compute_ms"], 1000 * call["cores"]),
        ("threads", calls_a_second * call_ms / 1000, threads),
        ("ms from pull to end", interval_ms + call_ms, call["goal_ms"]),
        ("money", bill(instances, threads), call["budget"]),
    ]


def _needed(call: Call, size: tuple[int, int, int]) -> str:
    rows = needs(call, size)
    return "needed at the peak: " + ", ".join(f"{round(need, 1):,} of {there:,} {limit}" for limit, need, there in rows)


def within_ms(run: TankRun) -> int | None:
    """99 of 100 messages are done within this time; None if more than one of 100 is not done at the end."""
    index = -(-99 * (len(run.took_ms) + run.left) // 100) - 1
    return run.took_ms[index] if index < len(run.took_ms) else None


def played(call: Call, size: tuple[int, int, int]) -> TankRun:
    """The day with a group of this size."""
    return play_tank(
        TankSettings(
            traffic=tuple(call["traffic"]),
            instances=size[0],
            threads=size[1],
            cores=call["cores"],
            compute_ms=call["compute_ms"],
            wait_ms=call["wait_ms"],
            queues=call["queues"],
            batch=size[2],
            pull_interval_ms=call["pull_interval_ms"],
        )
    )


def _seen(call: Call, size: Any) -> Difference | None:
    instances, threads, batch = size
    # 1. What is paid for.
    if not all(1 <= value <= MOST[name] for name, value in zip(("instances", "threads", "batch"), size, strict=True)):
        most = ", ".join(f"1 to {MOST[name]} {name}" for name in ("instances", "threads", "batch"))
        return Difference(("the size",), "range", most, tuple(size))
    cost = bill(instances, threads)
    if cost > call["budget"]:
        return Difference(
            ("the bill",), "budget", f"at most {call['budget']}", f"{tuple(size)} costs {cost}; {_needed(call, size)}"
        )
    # 2. What it does.
    run = played(call, (instances, threads, batch))
    took_ms = within_ms(run)
    if took_ms is not None and took_ms <= call["goal_ms"]:
        return None
    binds = next((str(row["limit"]) for row in limits(run) if row["binds"]), NOTHING)
    if binds == NOTHING and any(listener_call.messages > 1 for listener_call in run.calls):
        binds = SLOW_CALL
    done = f"within {took_ms:,} ms" if took_ms is not None else f"{run.left} messages not done at all"
    actual = f"{tuple(size)}: {done}; what binds: {NOTHING if binds == SLOW_CALL else binds}"
    actual += f"; {per_call(run)} messages per call" if call["pull_interval_ms"] else ""
    actual += f"; {_needed(call, size)}"
    return Difference(("99 of 100 messages",), binds, f"done within {call['goal_ms']:,} ms", actual)


def _threads(per_second: float, call_ms: int) -> int:
    """Threads for so many calls a second, and a fifth more."""
    return int(per_second * call_ms * 1.2 / 1000) + 1


def days(seed: int) -> list[Call]:
    """Two days: messages that come one by one, and messages in bundles; for odd seeds the calls of both compute.

    Peaks, times, queues and instances differ from day to day.
    """
    rng = random.Random(f"lab09.size {seed}")
    kinds = (_computing, _bundles_that_compute) if seed % 2 else (_waiting, _bundles_that_wait)
    return [kind(rng) for kind in kinds]


def _call(about: str, right: tuple[int, int, int], *, spare: float = 1.2, **settings: Any) -> Call:
    call_ms = right[2] * settings["compute_ms"] + settings["wait_ms"]
    # The order is that of size's arguments.
    settings.setdefault("pull_interval_ms", 0)
    settings.setdefault("goal_ms", settings["pull_interval_ms"] + 2 * call_ms + 500)
    settings["budget"] = int(bill(*right[:2]) * spare)
    return Call(**settings, right=right, about=about)


def _waiting(rng: random.Random) -> Call:
    """One instance with enough threads will do."""
    few, peak, wait_ms = rng.randint(1, 2), rng.randint(8, 28), rng.randint(30, 150) * 10
    return _call(
        "calls that wait",
        (1, _threads(peak, wait_ms + 20), 1),
        traffic=[few, few, peak, peak, *[few] * 8],
        compute_ms=20,
        wait_ms=wait_ms,
        cores=2,
        queues=rng.choice((4, 6)),
    )


def with_a_queue_each(seed: int) -> list[Call]:
    """A day on which one instance less could do the work if the queues could be cut: one would get two of them."""
    return [_computing(random.Random(f"lab09.size queues {seed}"), (5, 6), (1,))]


def _computing(
    rng: random.Random, numbers: Sequence[int] = (2, 3, 4, 5, 6), queues_each: Sequence[int] = (1, 2)
) -> Call:
    """So many instances are needed, with so many queues each."""
    few, cores, instances = rng.randint(1, 2), rng.choice((1, 2)), rng.choice(numbers)
    peak, queues = instances * rng.randint(50, 55) // 10, instances * rng.choice(queues_each)
    compute_ms, wait_ms = cores * rng.randint(23, 25) * 5, rng.randint(20, 70) * 10
    return _call(
        "calls that compute",
        (instances, _threads(peak / instances, compute_ms + wait_ms), 1),
        traffic=[few, peak, peak, *[few] * 9],
        compute_ms=compute_ms,
        wait_ms=wait_ms,
        cores=cores,
        queues=queues,
    )


def _bundles_that_wait(rng: random.Random) -> Call:
    """Each pull brings several messages, and there is no money for a thread for each of them."""
    few, peak, wait_ms = rng.randint(1, 2), rng.randint(5, 7) * 4, rng.randint(80, 150) * 10
    batch = peak // 4
    return _call(
        "messages in bundles, calls that wait",
        (1, _threads(4, batch * 20 + wait_ms) + 1, batch),
        traffic=[few, few, peak, peak, *[few] * 8],
        compute_ms=20,
        wait_ms=wait_ms,
        cores=2,
        queues=4,
        pull_interval_ms=1_000,
        spare=1.1,
    )


def _bundles_that_compute(rng: random.Random) -> Call:
    """Each pull brings several messages; one call for all of them computes longer than the goal allows."""
    few, peak, compute_ms = rng.randint(1, 2), rng.randint(4, 5) * 4, rng.randint(28, 32) * 10
    return _call(
        "messages in bundles, calls that compute",
        (1, _threads(peak, compute_ms + 100) + 2, 1),
        traffic=[few, peak, peak, *[few] * 9],
        compute_ms=compute_ms,
        wait_ms=100,
        cores=8,
        queues=4,
        pull_interval_ms=1_000,
        goal_ms=1_000 + 2 * compute_ms + 400,
    )


SIZE = Pure(
    "lab09.size",
    "size(traffic, compute_ms, wait_ms, cores, queues, pull_interval_ms, goal_ms, budget)",
    points=4,
    about="a day, played",
    calls=days,
    returns=SIZE_OF_GROUP,
    rules=RULES,
    compares=_seen,
    seeds=(1, 2),
    explain=lambda call, value, seen: RULES.get(seen.part, RULES[""]),
    forbids=FORBIDS["lab09.size"],
)
