"""lab11.slow_when: how long orders waited until a group had done them, by the minute in which they were stored.

    minute   orders   waiting   p50_ms   p99_ms
    00:02    31       0         21       30054      stored in this minute; done whenever
    00:07    28       0.5       312      640        half of them are not done: the numbers tell of the others

From the first time that the order was stored to the end of its first successful call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab11.days import day
from mqlab.course.cases.lab11.life import Same, StoreFacts, facts, same_message
from mqlab.course.given.lab11 import trace_tables as trace
from mqlab.course.given.lab11.played_day import BILLING, MAIL, READS
from mqlab.course.given.lab11.trace_tables import Row
from mqlab.course.kit import Rows, Slip
from mqlab.course.teach.exercises import Call
from mqlab.scales import MINUTE

TIMES = "the times from the first storing to the end of the first success"
COLUMNS = ("minute_ms", "orders", "waiting", "p50_ms", "p99_ms")


def percentile(values: Sequence[float], share: float) -> float | None:
    """As Spark's percentile: between two values it goes in a straight line; None of no values.

    >>> percentile([10, 20], 0.5), percentile([], 0.5)
    (15.0, None)
    """
    if not values:
        return None
    ordered = sorted(values)
    rank = share * (len(ordered) - 1)
    low = int(rank)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (ordered[high] - ordered[low]) * (rank - low))


def done_at(known: StoreFacts, group: str) -> dict[Same, int]:
    """When the first call that succeeded was over."""
    done: dict[Same, int] = {}
    for call in known.calls:
        if call["group_name"] == group and call["status"] == trace.SUCCESS:
            same = same_message(call)
            done[same] = min(done.get(same, call["ended_ms"]), call["ended_ms"])
    return done


def slow_when(
    known: StoreFacts,
    group: str,
    tags: Sequence[str],
    *,
    begins: Callable[[Row, Sequence[Row]], int] = lambda first, copies: first["stored_ms"],
    stretch: Callable[[Row, int | None], int | None] = lambda first, done: first["stored_ms"],
    survivors: bool = False,
    of_queues: bool = False,
) -> list[Row]:
    """The rows; the arguments are where an answer may err."""
    done, copies = done_at(known, group), dict[Same, list[Row]]()
    for unit in known.units:
        copies.setdefault(same_message(unit), []).append(unit)
    minutes: dict[int, list[tuple[Row, int | None]]] = {}
    for same, first in known.orders().items():
        end = done.get(same)
        at_ms = stretch(first, end)
        if first["tags"] in tags and at_ms is not None and (end is not None or not survivors):
            late = None if end is None else end - begins(first, copies[same])
            minutes.setdefault(at_ms // MINUTE * MINUTE, []).append((first, late))
    return [_row(minute, orders, of_queues) for minute, orders in sorted(minutes.items())]


def _row(minute: int, orders: Sequence[tuple[Row, int | None]], of_queues: bool) -> Row:
    late = [ms for _, ms in orders if ms is not None]
    p99 = percentile(late, 0.99)
    if of_queues:
        queues: dict[tuple[str, int], list[float]] = {}
        for first, ms in orders:
            if ms is not None:
                queues.setdefault((first["broker_name"], first["queue_id"]), []).append(ms)
        percentiles = [of_queue for values in queues.values() if (of_queue := percentile(values, 0.99)) is not None]
        p99 = sum(percentiles) / len(percentiles) if percentiles else None
    waiting = (len(orders) - len(late)) / len(orders)
    return {
        "minute_ms": minute,
        "orders": len(orders),
        "waiting": waiting,
        "p50_ms": percentile(late, 0.5),
        "p99_ms": p99,
    }


def _last_copy(first: Row, copies: Sequence[Row]) -> int:
    return max(int(unit["stored_ms"]) for unit in copies)


def _wrongly(**how: Any) -> Callable[[Call], list[Row]]:
    return lambda call: slow_when(facts(call["messages"]), call["calls"], call["tags"], **how)


def asked(seed: int) -> list[Call]:
    """Two groups of one day: billing fails sometimes, mail does not get all."""
    stores = day(seed)
    known = facts(stores)
    return [
        Call(
            messages=stores,
            calls=group,
            tags=READS[group].split(" || "),
            about=f"{stores.about}, {group}",
            right=slow_when(known, group, READS[group].split(" || ")),
        )
        for group in (BILLING, MAIL)
    ]


SLOW_WHEN = Rows(
    "lab11.slow_when",
    "slow_when(messages, calls, tags)",
    points=4,
    about="two groups",
    through="rows_of_group",
    forbids=FORBIDS["lab11.slow_when"],
    calls=asked,
    columns=COLUMNS,
    by=("minute_ms",),
    seeds=(1,),
    slips=[
        Slip("when it was done", _wrongly(stretch=lambda first, done: done), belief="lab11.done_when_slow"),
        Slip("survivors", _wrongly(survivors=True), belief="lab11.done_ones_tell"),
        Slip("mean of queues", _wrongly(of_queues=True), belief="lab11.percentiles_add"),
        Slip("from birth", _wrongly(begins=lambda first, copies: first["born_ms"]), belief="lab11.born_starts_clock"),
        Slip("from the last copy", _wrongly(begins=_last_copy), belief="lab11.copy_starts_clock"),
    ],
    rules={
        "missing": "Each minute in which an order with one of the tags was stored has a row. minute_ms is its "
        "beginning in ms, a multiple of 60,000",
        "extra": "A minute is that in which the order was stored first",
        "orders": "orders is the number of orders with one of the tags that were stored first in this minute",
        "waiting": "waiting is the share of these orders, from 0 to 1, without a successful call",
        "p50_ms": f"p50_ms is functions.percentile(…, 0.5) of {TIMES}",
        "p99_ms": f"p99_ms is functions.percentile(…, 0.99) of {TIMES}",
    },
)
