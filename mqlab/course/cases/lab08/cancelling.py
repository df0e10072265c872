"""lab08.cancel_unpaid: a consumer that cancels what is unpaid when its time has come, against payments of that moment.

the bank     has the money first; ask_bank takes 40 ms, and its answer is as old as the question
payments     a service that turns 'unpaid' into 'paid', if it is still 'unpaid', and gives the money back if not
closing      the learner's consumer: order cancelled, its item back in stock, in one transaction
"""

from __future__ import annotations

import functools
import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from mqlab.course.kit.crashing import EveryCrash, Meeting
from mqlab.course.kit.days import (
    DatabaseTables,
    Day,
    Does,
    LabDatabases,
    Played,
    Restarts,
    Sends,
    Topics,
    Waits,
    each_life,
    listener_of,
)
from mqlab.course.kit.promises import LISTENER_ERRORS, no_surprise, writes_committed
from mqlab.course.teach.exercises import Finding
from mqlab.course.teach.lives import anew
from mqlab.course.words import refutation
from mqlab.rocketmq.wire.message import Message

GROUP, NODE, TOPIC, DATABASE = "closing", "closing-1", "unpaid", "shop"
ASK_MS, PAYS_AFTER_MS, TOLD_AFTER_MS = 40, 20, 3_000
UNPAID, PAID, WHILE_ASKED, ONLY_AT_BANK = "unpaid", "paid before", "paid while the bank is asked", "paid at the bank"
TABLES = """
CREATE TABLE orders (order_key TEXT PRIMARY KEY, item TEXT NOT NULL, state TEXT NOT NULL);
CREATE TABLE stock (item TEXT PRIMARY KEY, free INTEGER NOT NULL);
"""
MADE_RULE = (
    "cancel_unpaid takes the lab and ask_bank, and returns a listener: a function inside it, (messages, context)"
)
STILL_RULE = "An order that is unpaid when its time is over must be cancelled: its state becomes 'cancelled'"
FINAL_RULE = (
    "A cancelled order stays 'cancelled': its item was returned. Whoever writes 'paid' does so only if the row is "
    "still 'unpaid', as the payment service does"
)
STATE_RULE = "An order is 'unpaid', 'paid' or 'cancelled': those three words, in its row of orders"
PAID_RULE = "A paid order stays 'paid', and its item does not return: free keeps its value"
FREE_RULE = "A cancelled order returns one item to those that were free: free = free + 1"
HALF_RULE = "The order is cancelled and its item is not back in stock: write both in one transaction"
BEFORE_RULE = "If you ask the bank inside a transaction, every payment waits: ask before it begins"
LOCKED = {
    **LISTENER_ERRORS,
    "database is locked": "Another process is writing: ask the bank before your transaction begins",
}


@dataclass(frozen=True, slots=True)
class ReservingOrder:
    """An order with the item that is kept for it, and how it is paid."""

    key: str
    item: str
    how: str
    free: int  # of the item, before

    def message(self) -> Message:
        """What the shop sends with the order: look again in a second."""
        return Message(TOPIC, self.item.encode(), keys=self.key, delay_time_level=1)


@dataclass(slots=True)
class Shop(Played):
    """A day in the shop. ``money``: keys whose money the bank keeps; ``given_back``: those that came too late."""

    orders: dict[str, ReservingOrder] = field(default_factory=dict)
    at_bank: set[str] = field(default_factory=set)
    given_back: set[str] = field(default_factory=set)
    asked: dict[str, int] = field(default_factory=dict)
    asking: bool = False
    held_up: list[str] = field(default_factory=list)

    def rows(self, sql: str) -> list[Any]:
        """What a query finds."""
        with closing(sqlite3.connect(self.lab.database(DATABASE).path)) as connection:
            return connection.execute(sql).fetchall()

    def ask_bank(self, message: Any, context: Any) -> bool:
        """Whether the bank has the order's money now; the answer comes 40 ms later."""
        order = self.orders[message.keys]
        self.asked[order.key] = self.asked.get(order.key, 0) + 1
        has_it = order.key in self.at_bank
        if order.how == WHILE_ASKED and self.asked[order.key] == 1:
            self.lab.world.at(self.lab.now_ms + PAYS_AFTER_MS, lambda: self.pays(order))
        if order.how == ONLY_AT_BANK and self.asked[order.key] == 1:
            self.lab.world.at(self.lab.now_ms + TOLD_AFTER_MS, lambda: self.told(order))
        self.asking = True
        try:
            context.sleep(ASK_MS)
        finally:
            self.asking = False
        return has_it

    def pays(self, order: ReservingOrder) -> None:
        """The bank takes the money, and the payment service hears of it at once."""
        self.at_bank.add(order.key)
        self.told(order)

    def told(self, order: ReservingOrder) -> None:
        """The payment service: paid, if it is still unpaid; else the money goes back."""
        try:
            with closing(sqlite3.connect(self.lab.database(DATABASE).path, timeout=0)) as connection, connection:
                sql = "UPDATE orders SET state = 'paid' WHERE order_key = ? AND state = 'unpaid'"
                if connection.execute(sql, (order.key,)).rowcount == 0:
                    self.given_back.add(order.key)
        except sqlite3.OperationalError:  # locked: it tries again
            if self.asking:
                self.held_up.append(order.key)
            self.lab.world.at(self.lab.now_ms + 10, lambda: self.told(order))


@dataclass(frozen=True, slots=True)
class Closes:
    """The learner's consumer; each life makes a new listener."""

    def act(self, played: Any) -> None:
        """Start it."""

        def listener_from(function: Callable[..., Any]) -> Any:
            arguments = (LabDatabases(played.lab), played.ask_bank)
            return listener_of("cancel_unpaid", function, arguments, "(lab, ask_bank)", MADE_RULE)

        listener_from(played.answers["cancel_unpaid"])
        one_thread = {"consume_thread_min": 1, "consume_thread_max": 1}
        consumer = played.lab.push_consumer(GROUP, name=NODE, **one_thread)
        consumer.subscribe(TOPIC, "*")
        consumer.on_messages(each_life(lambda: listener_from(anew(played.answers["cancel_unpaid"], "cancel_unpaid"))))
        consumer.start()
        played.lab.run_for("2s")


def _day(seed: int, how: Sequence[str], *then: Any) -> Day:
    rng = random.Random(f"lab08.cancel_unpaid {seed}")
    first = rng.randint(100, 900)
    kinds = rng.sample(how, len(how))
    orders = [
        ReservingOrder(f"order-{first + index}", f"товар {index} 货", kind, rng.randint(1, 4))
        for index, kind in enumerate(kinds)
    ]
    rows = "".join(
        f"INSERT INTO orders VALUES ('{order.key}', '{order.item}', '{'paid' if order.how == PAID else 'unpaid'}');"
        f"INSERT INTO stock VALUES ('{order.item}', {order.free});"
        for order in orders
    )

    def opens(today: Shop) -> None:
        today.orders = {order.key: order for order in orders}
        today.at_bank = {order.key for order in orders if order.how in (PAID, ONLY_AT_BANK)}

    return Day(
        (
            Topics((TOPIC,)),
            DatabaseTables(DATABASE, TABLES + rows),
            Does(opens),
            Closes(),
            Sends(orders),
            *then,
        ),
        kind=Shop,
    )


def busy_moment(seed: int) -> Day:
    """Two of each kind."""
    return _day(seed, (UNPAID, PAID, WHILE_ASKED, ONLY_AT_BANK) * 2, Waits("12s"))


def short_moment(seed: int) -> Day:
    """One that is never paid and one that is paid while the bank is asked; played once per line."""
    return _day(seed, (UNPAID, WHILE_ASKED), Waits("8s"))


def money_too_late(seed: int) -> Day:
    """An order is cancelled, then the bank takes its money; the process dies, and the order's message comes again."""
    return _day(seed, (UNPAID,), Waits("2s"), Does(_bank_takes), Restarts(NODE), Waits("10s"))


def _bank_takes(today: Shop) -> None:
    for order in today.orders.values():
        today.at_bank.add(order.key)
        today.lab.world.at(today.lab.now_ms + 4 * TOLD_AFTER_MS, functools.partial(today.told, order))


def _right_in_the_end(today: Shop) -> Finding | None:
    state = dict(today.rows("SELECT order_key, state FROM orders"))
    free = dict(today.rows("SELECT item, free FROM stock"))
    # Those that were paid long ago come first: who cancels them does not look at all.
    for order in sorted(today.orders.values(), key=lambda order: order.how != PAID):
        end = (state.get(order.key), free.get(order.item))
        freed = None if end[1] is None else end[1] - order.free
        where = f"{order.key} ({order.how}): its state, and how many of its item are free"
        if end[0] not in ("unpaid", "paid", "cancelled"):
            return Finding(STATE_RULE, where, ("cancelled", order.free + 1), end, lab=today.lab)
        kept = order.key in today.at_bank and order.key not in today.given_back
        belief, rule = _broken(today, order, kept, end[0], freed)
        if rule:
            expected = ("paid", order.free) if order.key in today.at_bank else ("cancelled", order.free + 1)
            return Finding(rule, where, expected, end, lab=today.lab, belief=belief)
    return None


def _nobody_waits_for_the_bank(today: Shop) -> Finding | None:
    if not today.held_up:
        return None
    where = f"the payment of {today.held_up[0]}"
    return Finding(BEFORE_RULE, where, "written at once", "it had to wait while you asked the bank", lab=today.lab)


def _pays_now(today: Shop) -> None:
    """Unpaid orders are paid between two lines of the listener."""
    for order in today.orders.values():
        if order.how == UNPAID:
            today.pays(order)


def _broken(today: Shop, order: ReservingOrder, kept: bool, state: str | None, freed: int | None) -> tuple[str, str]:
    """The belief and the rule that an order's end breaks; empty texts if it is right. ``freed``: back to stock."""
    crashed = bool(today.lab.journal.of("fault.killed"))
    # 1. Paid in good time: stays paid, and its item stays away.
    if order.how in (PAID, ONLY_AT_BANK):
        if state == "cancelled" and order.how == PAID:
            return "lab08.cancel_all", refutation("lab08.cancel_all")
        if state == "cancelled":
            return "lab08.table_knows_all", refutation("lab08.table_knows_all")
        return ("", "") if freed == 0 else ("", PAID_RULE)
    # 2. Money and a cancelled order.
    if kept and (state != "paid" or freed != 0):
        return "lab08.look_then_cancel", refutation("lab08.look_then_cancel")
    # 3. Cancelled, and the item is back once.
    if not kept and state != "cancelled":
        return "", FINAL_RULE if freed else STILL_RULE
    if not kept and freed != 1:
        if freed is not None and freed > 1:
            return "lab08.cancelled_again", refutation("lab08.cancelled_again")
        if freed not in (None, 0):
            return "", FREE_RULE
        return "", HALF_RULE if not crashed else refutation("lab08.two_transactions")
    return "", ""


CANCEL_UNPAID = EveryCrash(
    "lab08.cancel_unpaid",
    "cancel_unpaid(lab, ask_bank)",
    points=4,
    about="payments at the same moment, and a crash at every line",
    days=[busy_moment, money_too_late],
    crash_day=short_moment,
    node=NODE,
    at="line",
    most=60,
    promises=(
        no_surprise(GROUP, rules=LOCKED),
        writes_committed(GROUP),
        _nobody_waits_for_the_bank,
        _right_in_the_end,
    ),
    meeting=Meeting("the customer pays", _pays_now),
)
