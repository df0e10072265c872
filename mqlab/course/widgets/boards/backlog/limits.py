"""Which limit of a group binds: how busy threads, cores, database slots and instances were while messages waited.

    limit             its capacity                    busy while messages waited     waited for it, ms a call
    database slots    slots                           time in a slot                 for a slot
    cores             cores of the busiest instance   computing                      for a core
    threads           threads of that instance        calls                          in the queue or the client
    queues            instances that own one          -                              -

The binding limit is the first of these rows that is busy: calls that wait for a slot keep their threads busy, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mqlab.counts import counted
from mqlab.course.widgets.boards.backlog.runs import BatchCall, TankRun, TankSettings

BUSY, UNEVEN = 0.9, 0.8
LEAST_SECONDS = 3
DATABASE, CORES, THREADS, QUEUES, NOTHING = "database slots", "cores", "threads", "queues", "nothing"


def limits(run: TankRun) -> list[dict[str, Any]]:
    """Rows of limit, capacity, busy (share, None: no such limit), wait_ms (mean of all calls), binds.

    ``busy`` counts the seconds in which a message waited for its call; with fewer than three of them nothing binds.
    """
    settings, waiting = run.settings, waiting_seconds(run)
    overlap = _overlap(waiting, len(run.seconds))
    span_ms = len(waiting) * 1000
    enough = len(waiting) >= LEAST_SECONDS

    # 1. How much of its time each part was in use while messages waited.
    def share(
        calls: Sequence[BatchCall], begin: Callable[[BatchCall], int], end: Callable[[BatchCall], int], capacity: int
    ) -> float:
        return sum(overlap(begin(call), end(call)) for call in calls) / (capacity * span_ms) if enough else 0.0

    by_instance = [[call for call in run.calls if call.instance == name] for name in run.owned]
    threads = [share(calls, lambda c: c.begun_ms, lambda c: c.ended_ms, settings.threads) for calls in by_instance]
    cores = [
        share(calls, lambda c: computes_from(c, settings), lambda c: c.computed_ms, settings.cores)
        for calls in by_instance
    ]
    slots = share(run.calls, lambda c: c.entered_ms, lambda c: c.ended_ms, settings.slots) if settings.slots else None
    owners = sum(count > 0 for count in run.owned.values())

    # 2. The first that is busy binds; a busy instance next to an idle one says that queues do not reach all.
    binding = NOTHING
    if slots is not None and slots >= BUSY:
        binding = DATABASE
    elif max(threads) >= BUSY or max(cores) >= BUSY:
        uneven = owners < len(threads) or min(threads) < UNEVEN * max(threads)
        binding = QUEUES if uneven else CORES if max(cores) >= BUSY else THREADS
    rows = [
        (DATABASE, settings.slots or "no limit", slots, _mean(c.entered_ms - c.computed_ms for c in run.calls)),
        (CORES, settings.cores, max(cores), _mean(computes_from(c, settings) - c.begun_ms for c in run.calls)),
        (THREADS, settings.threads, max(threads), _mean(c.begun_ms - c.stored_ms for c in run.calls)),
        (
            QUEUES,
            f"{settings.queues}, read by {owners} of {counted(len(threads), 'instances')}",
            owners / len(threads),
            None,
        ),
    ]
    return [
        {
            "limit": name,
            "capacity": capacity,
            "busy": busy and round(busy, 3),
            "wait_ms": wait_ms,
            "binds": name == binding,
        }
        for name, capacity, busy, wait_ms in rows
    ]


def computes_from(call: BatchCall, settings: TankSettings) -> int:
    """The ms in which a call's computation began, if nothing interrupted it."""
    return call.computed_ms - settings.compute_ms * call.messages


def per_call(run: TankRun) -> float:
    """How many messages a call had, on average; 0.0 when there was none."""
    return round(sum(call.messages for call in run.calls) / len(run.calls), 1) if run.calls else 0.0


def waiting_seconds(run: TankRun) -> list[int]:
    """The seconds at whose end at least one message was stored whose call had not begun."""
    waiting, at_end = [], 0
    arrived = {row["second"]: row["arrived"] for row in run.seconds}
    begun: dict[int, int] = {}
    for call in run.calls:
        begun[call.begun_ms // 1000 + 1] = begun.get(call.begun_ms // 1000 + 1, 0) + call.messages
    for second in range(1, len(run.seconds) + 1):
        at_end += arrived[second] - begun.get(second, 0)
        if at_end > 0:
            waiting.append(second - 1)
    return waiting


def _overlap(seconds: Sequence[int], length: int) -> Callable[[int, int], int]:
    """A function of two times in ms: how much of the time between them lies in these seconds."""
    inside = [0] * (length + 1)
    chosen = set(seconds)
    for second in range(length):
        inside[second + 1] = inside[second] + 1000 * (second in chosen)

    def until(ms: int) -> int:
        second, rest = divmod(min(max(ms, 0), length * 1000), 1000)
        return inside[second] + (rest if second in chosen else 0)

    return lambda begin_ms, end_ms: until(end_ms) - until(begin_ms)


def _mean(values: Any) -> float | None:
    numbers = list(values)
    return round(sum(numbers) / len(numbers), 1) if numbers else None
