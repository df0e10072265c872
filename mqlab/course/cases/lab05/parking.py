"""Lab 05: an event that never succeeds, in a queue that is read in order: tried three times, then parked.

    calm        the poisoned head is tried three times, then it and the later events of its order are in the table
    every line  billing-1 is killed before each line of its listener, and starts in a new process

No other order's events are held back, and nothing that was done is parked because it comes again.
"""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from mqlab.course.cases.lab05.events import (
    FOR_EVER,
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
)
from mqlab.course.kit.crashing import EveryCrash
from mqlab.course.kit.days import DatabaseTables, Day, Topics, Waits
from mqlab.course.kit.promises import broken, no_surprise
from mqlab.course.teach.exercises import Finding
from mqlab.errors import UsageError

TRIES = 3
MOST_ROWS = 1_000
TABLES = """
CREATE TABLE tries (msg_id TEXT PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE parked (msg_id TEXT PRIMARY KEY, order_key TEXT, queue_offset INTEGER, body BLOB);
"""
PARKED_RULE = "What is parked has its row in the table parked: msg_id, order (message.keys), queue_offset and body"
HANDLED_RULE = "The queue continues: events of other orders, and those before the poisoned one, are handled"
SUCCESS_RULE = "What the warehouse has handled is done: return SUCCESS, or it is redelivered and counted as a failure"
INTEGRITY_RULE = (
    "A process may crash after it has parked an event and before the broker knows: then the event is "
    "redelivered, and parking it twice must be harmless"
)
RULES = {"IntegrityError": INTEGRITY_RULE, **ORDERLY_ERRORS}


@dataclass(slots=True)
class ParkingDay(EventDay):
    """A day with a table of parked events."""

    error: Exception = field(default_factory=lambda: ValueError("the warehouse cannot read this"))

    @property
    def head(self) -> OrderEvent:
        """The event that never succeeds."""
        return next(event for event in self.events if event.fails == FOR_EVER)

    def behind(self, event: OrderEvent) -> bool:
        """Whether an event is the poisoned one or a later one of its order."""
        own = [other for other in self.events if other.order == self.head.order]
        return event in own and own.index(event) >= own.index(self.head)

    def parked(self) -> dict[str, tuple[Any, ...]]:
        """msg_id -> order, offset, body. UsageError when the table is not one any more."""
        with closing(sqlite3.connect(self.lab.database(GROUP).path)) as connection:
            kind = connection.execute("SELECT type FROM sqlite_master WHERE name = 'parked'").fetchall()
            if kind != [("table",)]:
                raise UsageError("parked is not a table any more", hint="write rows into the table that is there")
            rows = connection.execute("SELECT msg_id, order_key, queue_offset, body FROM parked").fetchmany(MOST_ROWS)
        return {str(msg_id): tuple(rest) for msg_id, *rest in rows}

    def counts(self) -> int:
        """The number of rows in the table tries."""
        with closing(sqlite3.connect(self.lab.database(GROUP).path)) as connection:
            (rows,) = connection.execute("SELECT count(*) FROM tries").fetchone()
        return int(rows)


LATE_RULE = f"An event is parked after {TRIES} tries that failed: its next delivery parks it without another try"
MADE = MadeWith("poisoned", lambda today, databases: (databases, today.handle), "(lab, handle)")


def day(seed: int) -> Day:
    """Five orders, their lives interleaved; one of them cannot be paid, or not even be created."""
    rng = random.Random(f"lab05.poisoned {seed}")
    first = rng.randint(100, 900)
    orders = [f"order-{first + number}" for number in range(5)]
    sick, sick_step = rng.choice(orders[1:4]), rng.choice(LIFE[:2])
    events = [
        OrderEvent(order, step, rng.choice((40, 80)), FOR_EVER if (order, step) == (sick, sick_step) else 0)
        for step in LIFE
        for order in orders
    ]
    acts = (
        Topics((TOPIC,)),
        DatabaseTables(GROUP, TABLES),
        ReadsInOrder(MADE),
        Waits("2s"),
        SendsEvents(events),
        Waits("40s"),
    )
    return Day(acts, kind=ParkingDay)


def short_day(seed: int) -> Day:
    """The same in small: it is played once per line of the listener."""
    first = random.Random(f"lab05.poisoned lines {seed}").randint(100, 900)
    sick, other = f"order-{first}", f"order-{first + 1}"
    events = [
        OrderEvent(sick, "created", 20),
        OrderEvent(sick, "paid", 20, FOR_EVER),
        OrderEvent(other, "created", 20),
        OrderEvent(sick, "shipped", 20),
    ]
    acts = (Topics((TOPIC,)), DatabaseTables(GROUP, TABLES), SendsEvents(events), ReadsInOrder(MADE), Waits("8s"))
    return Day(acts, kind=ParkingDay)


def _tries_of_the_head(today: ParkingDay) -> Finding | None:
    tries = [work for work in today.works if work.event is today.head]
    if len(tries) > TRIES:
        if not today.lab.journal.of("fault.killed") and today.parked():
            return Finding(LATE_RULE, moment(today, tries[TRIES]), f"{TRIES} tries in all", f"try {TRIES + 1}")
        fallen = bool(today.lab.journal.of("fault.killed"))
        belief = "lab05.gives_up_by_itself"
        if fallen:
            belief = "lab05.count_afterwards" if today.counts() else "lab05.count_comes_along"
        return broken(today, moment(today, tries[TRIES]), f"{TRIES} tries in all", f"try {TRIES + 1}", belief=belief)
    if 0 < len(tries) < TRIES and not today.lab.journal.of("fault.killed"):
        rule = f"An event that fails is tried {TRIES} times before it is parked: the warehouse may only be busy"
        return Finding(rule, f"{today.head.key}: calls of handle", TRIES, len(tries), lab=today.lab)
    return None


def _nothing_behind_it_is_handled(today: ParkingDay) -> Finding | None:
    work: WarehouseCall
    for work in today.works:
        if today.behind(work.event) and work.event is not today.head:
            belief = "lab05.only_the_head"
            return broken(today, moment(today, work), f"parked behind {today.head.key}", "handled", belief=belief)
    return None


def _others_are_not_held(today: ParkingDay) -> Finding | None:
    parked = today.parked()
    for message in today.stored():
        event = today.event_of(message)
        if today.behind(event):
            continue
        suspended = [row.status for row in today.deliveries(GROUP) if row.msg_id == message.msg_id]
        if message.msg_id in parked and "SUSPEND_CURRENT_QUEUE_A_MOMENT" in suspended:
            where = f"{event.key} (entry {message.queue_offset}): table parked, and its deliveries"
            return Finding(SUCCESS_RULE, where, "SUCCESS, and no row", suspended, lab=today.lab)
        if message.msg_id in parked:
            own = event.order == today.head.order
            belief = "lab05.again_is_behind" if own else "lab05.the_queue_is_held"
            where = f"{event.key} (entry {message.queue_offset}): table parked"
            expected = f"no row: it comes before {today.head.key}" if own else "no row: it is another order"
            return broken(today, where, expected, "a row", belief=belief)
        if today.done_ms(event) is None:
            where = f"{event.key} (entry {message.queue_offset}) at the end of the day"
            return Finding(HANDLED_RULE, where, "handled", "not handled", lab=today.lab)
    return None


def _parked_with_its_body(today: ParkingDay) -> Finding | None:
    parked = today.parked()
    for message in today.stored():
        event = today.event_of(message)
        right = (event.order, message.queue_offset, event.message().body)
        row = parked.get(message.msg_id)
        if today.behind(event) and row != right:
            where = f"{event.key} (entry {message.queue_offset}): table parked"
            return Finding(PARKED_RULE, where, right, "no row" if row is None else row, lab=today.lab)
    return None


PROMISES = (
    no_surprise(GROUP, ("ValueError",), RULES),
    _tries_of_the_head,
    _nothing_behind_it_is_handled,
    _others_are_not_held,
    _parked_with_its_body,
)

POISONED = EveryCrash(
    "lab05.poisoned",
    "poisoned(lab, handle)",
    points=5,
    about="a head that never succeeds, and a crash at every line",
    days=[day],
    crash_day=short_day,
    node=NODE,
    at="line",
    most=90,
    promises=PROMISES,
    seeds=(1,),
    limits=MANY_LIVES,
)
