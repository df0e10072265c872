"""Lab 04's design: a consumer that charges each order once, whatever dies and whichever member has the queue.

    two owners      billing-2 joins while billing-1 works: both have the same orders in their listeners
    sent twice      the shop's program sends an order again: another msg_id, the same key
    every line      billing-1 is killed before each line of its listener, and starts in a new process

Judged by the accounts: each customer has paid the sum of his orders, no more and no less.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from mqlab.course.cases.lab04.offsets import GROUP, NODE, TOPIC
from mqlab.course.kit.crashing import EveryCrash
from mqlab.course.kit.days import DatabaseTables, Day, Does, Learner, Played, Reads, Sends, Topics, Waits
from mqlab.course.kit.promises import LISTENER_ERRORS, finding_at, no_surprise, took_ms
from mqlab.course.teach.exercises import Finding
from mqlab.errors import UsageError
from mqlab.lab.world.deliveries import RESULT_DISCARDED
from mqlab.rocketmq.wire.message import Message

TABLES = """
CREATE TABLE accounts (customer TEXT PRIMARY KEY, paid INTEGER NOT NULL);
CREATE TABLE charged (order_key TEXT PRIMARY KEY);
"""
CUSTOMERS = ("anna", "борис", "陈")
OTHER = "billing-2"

TWICE_RULE = (
    "Between looking and acting another process may look as well, and a process may crash between acting "
    "and recording: write the row that says 'charged' in the transaction that charges, and let the database "
    "refuse a second"
)
LOST_RULE = (
    "A row that is committed before the account is changed says 'charged' of an order that is not: write both in one "
    "transaction"
)
KEY_RULE = (
    "The same order may come in two messages: the shop sent it again. msg_id, queue and offset belong to a "
    "message, message.keys to the order"
)
AGAIN_RULE = (
    "The row of this order was there when its second message came, and the account was changed once more: charge only "
    "if the row is new. INSERT OR IGNORE has rowcount 0 for a row that exists, INSERT OR REPLACE has 1"
)
NO_ORDER_RULE = "The table charged holds the keys of orders, which are in message.keys; here it holds another one"
AMOUNT_RULE = (
    "The orders are in the table charged, but the account got less than their sum: add what ask_rate returned, in the "
    "row of message.properties['customer']"
)
NOBODY_RULE = "Every order that the shop sent is charged, and the charge is committed: with connection: … commits"
LOCKED_RULE = (
    "While a transaction that has written is open, no other can write: ask for the rate before it begins, and "
    "commit what you write"
)
RECORD_RULE = (
    "A listener that gets an order again looks for its row in the table charged, and finds what was written "
    "there: the listener that charges must insert message.keys"
)
SUM_RULE = "An account is the sum of all orders of its customer: add the amount, paid = paid + ?, to what is there"
DONE_RULE = (
    "A message is done when its listener returns CONSUME_SUCCESS, even if its row was there already. After "
    "no result, or RECONSUME_LATER, the message is redelivered up to 16 times, and then it is a dead letter"
)
RATE_RULE = (
    "What an order costs is known to the rate service alone: call ask_rate(message, context). The body is what the "
    "shop believes"
)
INTEGRITY_RULE = (
    "The second copy of an order is not an error: when its row exists already, change nothing and return "
    "CONSUME_SUCCESS"
)


@dataclass(frozen=True, slots=True)
class RatedOrder:
    """An order with its customer; ``rate_ms``: how long the rate service takes."""

    key: str
    customer: str
    amount: int
    rate_ms: int

    def message(self) -> Message:
        """The message that the shop sends."""
        properties = {"customer": self.customer, "rate_ms": str(self.rate_ms)}
        return Message(TOPIC, str(self.amount).encode(), keys=self.key, properties=properties)


@dataclass(slots=True)
class Accounts(Played):
    """A day with accounts. ``owners``: how many members had the queue."""

    owners: int = 1

    def paid(self) -> dict[str, int]:
        """Customer -> what the account says. UsageError when the table is not one any more."""
        return {str(customer): paid for customer, paid in self._rows("accounts", "customer, paid")}

    def charged(self) -> set[str]:
        """What the table of charged orders names. UsageError when the table is not one any more."""
        return {str(key) for (key,) in self._rows("charged", "order_key")}

    def _rows(self, table: str, columns: str) -> list[Any]:
        with closing(sqlite3.connect(self.lab.database(GROUP).path)) as connection:
            kind = connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchall()
            if kind != [("table",)]:
                raise UsageError(f"{table} is not a table any more", hint="change the rows of the table that is there")
            return connection.execute(f"SELECT {columns} FROM {table}").fetchmany(1_000)

    def owed(self) -> Counter[str]:
        """Customer -> the sum of his orders, each counted once."""
        orders = {order.key: order for order in self.sent.values()}
        owed: Counter[str] = Counter()
        for order in orders.values():
            owed[order.customer] += order.amount
        return owed


def _orders(rng: random.Random, count: int, rate_ms: int) -> list[RatedOrder]:
    """Orders whose amounts are powers of two: a wrong sum tells which order is in it how often."""
    first = rng.randint(100, 900)
    customers = [rng.choice(CUSTOMERS) for _ in range(count)]
    customers[-1] = customers[0]  # one account has two orders at least
    amounts = rng.sample([1 << (4 + 2 * number) for number in range(count)], count)
    # Its second order costs less, so that an account which is larger than an order does not mean that it was charged.
    amounts[0], amounts[-1] = max(amounts[0], amounts[-1]), min(amounts[0], amounts[-1])
    return [
        RatedOrder(f"order-{first + number}", customers[number], amounts[number], rate_ms) for number in range(count)
    ]


def _begun(queues: int = 1) -> tuple[Any, ...]:
    accounts = "".join(f"INSERT INTO accounts VALUES ('{customer}', 0);" for customer in CUSTOMERS)
    return Topics((TOPIC,), queues), DatabaseTables(GROUP, TABLES + accounts)


def two_owners(seed: int) -> Day:
    """billing-1 works on orders that take two seconds; billing-2 joins and gets one of the queues with its orders."""
    rng = random.Random(f"lab04.once owners {seed}")
    orders = _orders(rng, rng.randint(4, 5), rng.choice((1_900, 2_200, 2_600)))

    def joins(played: Accounts) -> None:
        played.lab.run_until(lambda: len(played.deliveries(GROUP)) >= len(orders), limit="30s")
        played.lab.run_for("100ms")
        played.owners = 2

    acts = (
        *_begun(queues=2),
        Reads(GROUP, TOPIC, Learner("once", makes=True), ready_after="2s"),
        Sends(orders),
        Does(joins),
        Reads(GROUP, TOPIC, Learner("once", makes=True), name=OTHER, ready_after="12s"),
    )
    return Day(acts, kind=Accounts)


def sent_twice(seed: int) -> Day:
    """The shop's program sends one order again some seconds later: it has not heard of its first message.

    Both messages are in queues of their own.
    """
    rng = random.Random(f"lab04.once twice {seed}")
    orders = _orders(rng, 3, 20)
    acts = (
        *_begun(queues=4),
        Reads(GROUP, TOPIC, Learner("once", makes=True), ready_after="2s"),
        Sends([*orders, rng.choice(orders)], every="300ms"),
        Waits("3s"),
    )
    return Day(acts, kind=Accounts)


def two_orders(seed: int) -> Day:
    """Two orders, one after the other; a new process begins again."""
    rng = random.Random(f"lab04.once lines {seed}")
    one_thread = {"consume_thread_min": 1, "consume_thread_max": 1}
    acts = (
        *_begun(),
        Sends(_orders(rng, 2, 20)),
        Reads(GROUP, TOPIC, Learner("once", makes=True, each_life=True), settings=one_thread, ready_after="5s"),
    )
    return Day(acts, kind=Accounts)


def _all_paid_once(day: Accounts) -> Finding | None:
    """Every account is the sum of the customer's orders."""
    paid, owed = day.paid(), day.owed()
    for customer in CUSTOMERS:
        if paid.get(customer) == owed[customer]:
            continue
        wrong = [order for order in _each_order(day) if order.customer == customer]
        where = f"the account of {customer} ({', '.join(f'{order.key}: {order.amount}' for order in wrong)})"
        if day.owners == 2:
            where += f"; a queue moved from {NODE} to {OTHER} while its orders were in the listener"
        return Finding(_rule(day, customer, paid.get(customer)), where, owed[customer], paid.get(customer), lab=day.lab)
    return None


def _each_order(day: Accounts) -> list[RatedOrder]:
    return list({order.key: order for order in day.sent.values()}.values())


def _rule(day: Accounts, customer: str, paid: object) -> str:
    owed = day.owed()[customer]
    orders = [order for order in _each_order(day) if order.customer == customer]
    charged = day.charged()
    strange = charged - {order.key for order in day.sent.values()}
    # 1. Less than the sum of the orders: lost by a death, overwritten by another order, or never charged.
    if not isinstance(paid, int) or paid < owed:
        if strange:
            return NO_ORDER_RULE
        if not charged >= {order.key for order in orders}:
            return NOBODY_RULE
        if day.lab.crash_point is not None or day.lab.journal.of("fault.killed"):
            return LOST_RULE
        return SUM_RULE if paid in {order.amount for order in orders} and len(orders) > 1 else AMOUNT_RULE
    # 2. More: a second message of the same order was charged, or two listeners charged the same message.
    copies = Counter(order.key for order in day.sent.values())
    again = [order for order in orders if copies[order.key] > 1]
    if not again or paid != owed + sum(order.amount for order in again):
        return TWICE_RULE
    if charged >= {order.key for order in again}:
        return AGAIN_RULE
    return KEY_RULE if charged else RECORD_RULE


def _asked_for_the_rate(day: Accounts) -> Finding | None:
    """The listener that charged an order has taken at least the time of its rate service."""
    rows: dict[str, list[Any]] = {}
    for row in day.deliveries(GROUP):
        rows.setdefault(day.sent[row.msg_id].key, []).append(row)
    for order in _each_order(day):
        calls = rows.get(order.key, [])
        if calls and all(row.ended_ms is not None and took_ms(row) < order.rate_ms for row in calls):
            expected = f"a call of {order.rate_ms} ms or more: its rate service takes that long"
            return finding_at(day, calls[0], RATE_RULE, expected, f"a call of {took_ms(calls[0])} ms")
    return None


def _all_done(day: Accounts) -> Finding | None:
    """Every call of the listener that ended has returned CONSUME_SUCCESS, unless its result counts for nothing."""
    for row in day.deliveries(GROUP):
        if row.ended_ms is not None and row.status not in {"CONSUME_SUCCESS", RESULT_DISCARDED}:
            return finding_at(day, row, DONE_RULE, "CONSUME_SUCCESS", row.status)
    return None


RULES = {**LISTENER_ERRORS, "IntegrityError": INTEGRITY_RULE, "database is locked": LOCKED_RULE}
PROMISES: Sequence[Any] = (no_surprise(GROUP, rules=RULES), _all_paid_once, _asked_for_the_rate, _all_done)

ONCE = EveryCrash(
    "lab04.once",
    "once(lab)",
    points=5,
    about="accounts, two owners, and a crash at every line",
    days=[sent_twice, two_owners],
    crash_day=two_orders,
    node=NODE,
    at="line",
    most=60,
    promises=PROMISES,
)
