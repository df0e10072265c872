"""Lab 05's design: many orders of one queue at once, the order of each kept, and an offset that is right.

    the queue    eight events at a time, in order, under the queue's lock
    lanes        one per order: within a lane one after the other, lanes next to each other

Judged by the warehouse (an event begins after the one before it has ended), by the offset (it passes nothing that is
not handled), by the clock (not one after the other), and by a death before every line.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from mqlab.course.cases.lab05.events import (
    GROUP,
    LIFE,
    MANY_LIVES,
    NODE,
    ORDERLY_ERRORS,
    TOPIC,
    EventDay,
    MadeWith,
    OrderEvent,
    ReadsInOrder,
    SendsEvents,
    WarehouseCall,
    moment,
    moved_too_far,
    not_done,
    out_of_order,
)
from mqlab.course.kit.crashing import EveryCrash
from mqlab.course.kit.days import Day, Topics, Waits
from mqlab.course.kit.promises import broken, no_surprise
from mqlab.course.teach.exercises import Finding
from mqlab.course.words import refutation

BATCH = 8
SHARE = 0.6
"""Of the time that one after another would take."""
LEFT_OUT_RULE = (
    "A lane handles each event of its order, in order. This one was left out: a list that holds one event for each "
    "order, or a function that sees the last value of a loop's variable, does that"
)
STUCK_RULE = "Every event is handled in the end, and the queue continues after a failure: return SUCCESS or suspend"
MADE = MadeWith("lanes", lambda today, _: (today.handle,), "(handle)")
SETTINGS = {"consume_message_batch_max_size": BATCH}


def _lives(rng: random.Random, orders: Sequence[str], times: Sequence[int]) -> list[OrderEvent]:
    """Lives that are interleaved, each in its own order."""
    waiting = {order: list(LIFE) for order in orders}
    events = []
    while waiting:
        order = rng.choice(sorted(waiting))
        step = waiting[order].pop(0)
        events.append(OrderEvent(order, step, rng.choice(times)))
        if not waiting[order]:
            del waiting[order]
    return events


def day(seed: int) -> Day:
    """Eight orders, 24 events, all there when billing starts; nothing fails."""
    rng = random.Random(f"lab05.lanes {seed}")
    first = rng.randint(100, 900)
    events = _lives(rng, [f"order-{first + number}" for number in range(8)], (400, 600, 800))
    return _read(events, "40s")


def busy_day(seed: int) -> Day:
    """The warehouse refuses the first try of two events; others of their batch are under way for much longer."""
    rng = random.Random(f"lab05.lanes busy {seed}")
    first = rng.randint(100, 900)
    busy, *others, late = (f"order-{first + number}" for number in range(4))

    def three(step: str) -> list[OrderEvent]:
        slow = rng.choice((2_300, 2_600)) if step == LIFE[1] else 200
        own = [
            OrderEvent(busy, step, 200, 1 if step == LIFE[1] else 0),
            *(OrderEvent(order, step, slow) for order in others),
        ]
        return rng.sample(own, len(own))

    # An answer that waits for one lane after the other meets the busy one first; all its events are in the first batch.
    created, shipped = (sorted(three(step), key=lambda event: event.order != busy) for step in (LIFE[0], LIFE[2]))
    own = [OrderEvent(late, step, 200, 1 if step == LIFE[1] else 0) for step in LIFE]
    return _read([*created, *three(LIFE[1]), *shipped, *own], "40s")


def short_day(seed: int) -> Day:
    """Three orders in small: it is played once per line."""
    rng = random.Random(f"lab05.lanes lines {seed}")
    first = rng.randint(100, 900)
    events = _lives(rng, [f"order-{first + number}" for number in range(3)], (30, 60))[:7]
    return _read(events, "9s")


def _read(events: Sequence[OrderEvent], wait: str) -> Day:
    acts = (Topics((TOPIC,)), SendsEvents(events), ReadsInOrder(MADE, dict(SETTINGS)), Waits(wait))
    return Day(acts, kind=EventDay)


def _in_order(today: EventDay) -> Finding | None:
    pair = out_of_order(today)
    if pair is None:
        return None
    work, before = pair
    done_ms = today.done_ms(before)
    failed = [call for call in today.works if call.event is before and call.ended_ms is not None and not call.succeeded]
    if failed and failed[0].began_ms <= work.began_ms:
        belief = "lab05.lane_goes_on" if _in_one_call(today, failed[0], work) else "lab05.success_means_started"
        what = "failed"
    elif not any(call.event is before for call in today.works):
        return Finding(LEFT_OUT_RULE, moment(today, work), f"after {before.key}", f"{before.key} was never handled")
    else:
        belief = "lab05.start_waits"
        what = "was never handled" if done_ms is None else f"ended {done_ms - work.began_ms} ms later"
    return broken(today, moment(today, work), f"after {before.key}", f"{before.key} {what}", belief=belief)


def _in_one_call(today: EventDay, work: WarehouseCall, other: WarehouseCall) -> bool:
    """Whether two events were in the warehouse during one call of the listener."""
    return any(
        row.started_ms <= work.began_ms and (row.ended_ms is None or other.began_ms <= row.ended_ms)
        for row in today.deliveries(GROUP)
        if today.sent.get(row.msg_id) is work.event
    )


def _never_twice_at_once(today: EventDay) -> Finding | None:
    """No event is in the warehouse twice at a time: an old lane that still runs, and the same batch again."""
    for index, work in enumerate(today.works):
        for other in today.works[:index]:
            ends = other.ended_ms if other.ended_ms is not None else today.lab.now_ms
            died = any(other.began_ms <= ms <= work.began_ms for ms in _deaths(today))
            if other.event is work.event and ends > work.began_ms and not died:
                belief = "lab05.first_failure_ends"
                actual = f"its earlier call, begun {work.began_ms - other.began_ms} ms before, is still under way"
                return broken(today, moment(today, work), "one call at a time", actual, belief=belief)
    return None


def _deaths(today: EventDay) -> list[int]:
    return [record.now_ms for record in today.lab.journal.of("fault.killed")]


def _offset_is_right(today: EventDay) -> Finding | None:
    return moved_too_far(today, refutation("lab05.success_means_started"))


def _handled(today: EventDay) -> Finding | None:
    event = not_done(today)
    if event is None:
        return None
    said = [
        row.status for row in today.deliveries(GROUP) if row.msg_id in today.sent and today.sent[row.msg_id] is event
    ]
    return Finding(STUCK_RULE, f"{event.key}: its deliveries", "handled in the end", said[:6] or "none", lab=today.lab)


def _lanes_are_beside_each_other(today: EventDay) -> Finding | None:
    if len(today.events) < 24:
        return None  # few events are done soon with any listener
    one_by_one = sum(event.takes_ms for event in today.events)
    took = max(today.done_ms(event) or 0 for event in today.events) - today.works[0].began_ms
    if took <= SHARE * one_by_one:
        return None
    belief = "lab05.orderly_is_slow"
    where = f"24 events of 8 orders, which take {one_by_one:,} ms one after another"
    return broken(today, where, f"at most {round(SHARE * one_by_one):,} ms", f"{took:,} ms", belief=belief)


PROMISES = (
    no_surprise(GROUP, ("ConnectionError",), ORDERLY_ERRORS),
    _in_order,
    _never_twice_at_once,
    _offset_is_right,
    _handled,
    _lanes_are_beside_each_other,
)

LANES = EveryCrash(
    "lab05.lanes",
    "lanes(handle)",
    points=5,
    about="lanes, a busy warehouse, and a crash at every line",
    days=[day, busy_day],
    crash_day=short_day,
    node=NODE,
    at="line",
    most=90,
    promises=PROMISES,
    limits=MANY_LIVES,
)
