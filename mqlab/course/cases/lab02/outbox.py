"""lab02.outbox: a shop whose orders and messages agree, wherever its process dies and however long a broker is away.

Outbox(lab, shop)      made in each life of the shop's process; it has a database, and a producer
place_order(key, body) a customer buys: called once, never repeated
relay()                called every second by one thread of the same process
judged by              the rows of orders and the messages of the topic
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from mqlab.course.cases.lab02.clusters import SHOP, TOPIC
from mqlab.course.kit.crashing import EveryCrash
from mqlab.course.kit.days import DatabaseTables, Day, Does, LabDatabases, NotMade, Played, Topics, takes
from mqlab.course.kit.promises import broken
from mqlab.course.teach.exercises import Finding
from mqlab.course.teach.lives import anew
from mqlab.course.words import refutation
from mqlab.durations import calendar
from mqlab.errors import MqlabError, UsageError

NAME, NODE, BROKER = "Outbox", "shop-1", "broker-a"
TABLES = """
CREATE TABLE orders (order_key TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE outbox (order_key TEXT PRIMARY KEY, body BLOB NOT NULL, sent INTEGER NOT NULL DEFAULT 0);
"""
TICK_MS, RELAY_EVERY = 250, 4
PATIENCE_MS = 500  # a customer waits so long at most
MOST_ROWS = 1_000

FORM_RULE = "Outbox is a class: Outbox(lab, shop), with the methods place_order(key, body) and relay()"
ORDER_RULE = "place_order writes the order into the table orders, and commits: with connection: … commits"
BODY_RULE = "The message of an order has the order's key as its keys, and the body that place_order was given"
TOPIC_RULE = "The message of an order is sent to the topic orders"
PLACED_RULE = (
    "A customer can buy while no broker answers: place_order returns at once when the database has the order. "
    "Sending is the work of relay"
)
LOCKED_RULE = (
    "While a transaction that has written is open, no other can write, and a send may take seconds: commit before "
    "you send, and mark in a transaction of its own"
)
SENT_RULE = "relay sends what is in the outbox and not marked yet, each time it is called"
TWICE_RULE = "What was sent is marked, and not sent again: only a crash between sending and marking sends it twice"


@dataclass(frozen=True, slots=True)
class Placed:
    """One call of ``place_order``, and when it began."""

    key: str
    body: bytes
    began_ms: int


@dataclass(slots=True)
class ShopDay(Played):
    """A day of the shop. ``ended``: key -> when place_order returned; ``raised``: key -> what it raised."""

    placed: list[Placed] = field(default_factory=list)
    ended: dict[str, int] = field(default_factory=dict)
    raised: dict[str, BaseException] = field(default_factory=dict)
    relay_raised: list[BaseException] = field(default_factory=list)
    program: Any = None
    life: int = -1
    relaying: bool = False
    marked_unread: set[str] = field(default_factory=set)  # placed during a call of relay that marked them

    def rows(self, table: str, columns: str) -> list[Any]:
        """A table's rows. UsageError when it is not a table any more."""
        with closing(sqlite3.connect(self.lab.database(SHOP).path)) as connection:
            kind = connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchall()
            if kind != [("table",)]:
                raise UsageError(f"{table} is not a table any more", hint="use the tables that are there")
            return connection.execute(f"SELECT {columns} FROM {table}").fetchmany(MOST_ROWS)

    def orders(self) -> dict[str, Any]:
        """The orders in the database."""
        return dict(self.rows("orders", "order_key, body"))

    def stored(self) -> list[Any]:
        """The messages of the topic."""
        return list(self.lab.store().messages(TOPIC))

    def elsewhere(self, key: str) -> str:
        """The topic of a message with this key that is not where it should be; "" if there is none."""
        others = (
            message.topic for message in self.lab.store().messages() if message.keys == key and message.topic != TOPIC
        )
        return next(others, "")

    def is_outboxed(self, key: str) -> bool:
        """Whether an order is in the outbox."""
        return any(row == (key,) for row in self.rows("outbox", "order_key"))


def _alive(today: ShopDay) -> bool:
    """Whether the process runs; a new life begins with a new program."""
    node = today.lab.world.nodes[NODE]
    if not today.lab.node_handle(NODE).is_up:
        return False
    if node.incarnation != today.life:
        today.life, today.relaying = node.incarnation, False
        today.program = _made(today)
    return True


def _made(today: ShopDay) -> Any:
    shop = today.producer(SHOP)
    answer = anew(today.answers[NAME], NAME)
    try:
        program = answer(LabDatabases(today.lab), shop)
    except TypeError as error:
        raise NotMade(NAME, str(error), FORM_RULE, f"{NAME}(lab, shop)", "an object") from None
    lacks = [name for name in ("place_order", "relay") if not callable(getattr(program, name, None))]
    if lacks:
        raise NotMade(NAME, f"no {', no '.join(lacks)}", FORM_RULE, f"{NAME}(lab, shop)", "an object with two methods")
    if not takes(program.place_order, 2) or not takes(program.relay, 0):
        raise NotMade(NAME, "methods with other arguments", FORM_RULE, NAME, "place_order(key, body) and relay()")
    return program


def _places(today: ShopDay, key: str, body: bytes) -> None:
    if not _alive(today):
        return  # the web server is down: the customer comes back another day
    today.placed.append(Placed(key, body, today.lab.now_ms))
    work = today.lab.start_work(NODE, today.program.place_order, key, body)
    work.then(
        lambda _: today.ended.setdefault(key, today.lab.now_ms), lambda error: today.raised.setdefault(key, error)
    )


def _relays(today: ShopDay) -> None:
    """The thread of the relay: one call after the other."""
    if not _alive(today) or today.relaying:
        return
    today.relaying, life, began_ms = True, today.life, today.lab.now_ms

    def over(error: BaseException | None = None) -> None:
        marked = {key for key, sent in today.rows("outbox", "order_key, sent") if sent}
        today.marked_unread |= {key for key in marked if today.ended.get(key, 0) > began_ms}
        if error is not None:
            today.relay_raised.append(error)
        if today.life == life:
            today.relaying = False

    today.lab.start_work(NODE, today.program.relay).then(lambda _: over(), over)


def _runs(today: ShopDay, ticks: int, orders: Sequence[tuple[int, str, bytes]] = ()) -> None:
    """So many quarters of a second; orders at some of them, the relay at every fourth."""
    for tick in range(ticks):
        for due_tick, key, body in orders:
            if due_tick == tick:
                _places(today, key, body)
        if tick % RELAY_EVERY == RELAY_EVERY - 1:
            _relays(today)
        today.lab.run_for(TICK_MS)


def _orders(rng: random.Random, ticks: Sequence[int]) -> list[tuple[int, str, bytes]]:
    # Keys do not grow with time, and every other order has the same body: only the key says which order is meant.
    last, book = rng.randint(100, 900) + len(ticks), rng.randint(1, 8)
    return [
        (tick, f"order-{last - number}", f"книга 书 {book + number % 2}".encode()) for number, tick in enumerate(ticks)
    ]


def two_orders(seed: int) -> Day:
    """Two orders, and enough time for the relay; the process dies somewhere."""
    orders = _orders(random.Random(f"lab02.outbox lines {seed}"), (1, 5))
    acts = (Topics((TOPIC,)), DatabaseTables(SHOP, TABLES), Does(_opens), Does(lambda today: _runs(today, 26, orders)))
    return Day(acts, kind=ShopDay)


def broker_away(seed: int) -> Day:
    """Orders before, while and after the broker is down for some seconds."""
    rng = random.Random(f"lab02.outbox away {seed}")
    ticks = (1, 9, 10, rng.randint(12, 20), 44)
    orders = _orders(rng, ticks)

    def goes(today: ShopDay) -> None:
        _runs(today, 8, orders)
        today.lab.kill(BROKER)
        _runs(today, 32, [(tick - 8, key, body) for tick, key, body in orders])
        today.lab.start(BROKER)
        _runs(today, 60, [(tick - 40, key, body) for tick, key, body in orders])

    return Day((Topics((TOPIC,)), DatabaseTables(SHOP, TABLES), Does(_opens), Does(goes)), kind=ShopDay)


def slow_broker(seed: int) -> Day:
    """The broker needs two seconds for an answer; orders come meanwhile."""
    rng = random.Random(f"lab02.outbox slow {seed}")
    orders = _orders(rng, (1, 5, 6, 8, 9, 26))  # the last one comes between two sends of one call of relay

    def goes(today: ShopDay) -> None:
        today.lab.slow(BROKER, rng.randint(900, 1_200))
        _runs(today, 80, orders)

    return Day((Topics((TOPIC,)), DatabaseTables(SHOP, TABLES), Does(_opens), Does(goes)), kind=ShopDay)


def _opens(today: ShopDay) -> None:
    today.producer(SHOP).fetch_publish_message_queues(TOPIC)
    today.lab.run_for("1s")


def _customers_can_buy(today: ShopDay) -> Finding | None:
    for order in today.placed:
        where = f"place_order({order.key!r}, …) at {calendar(order.began_ms)}"
        if order.key in today.raised:
            return _not_taken(today, order, where, today.raised[order.key])
        took_ms = today.ended.get(order.key, today.lab.now_ms) - order.began_ms
        if took_ms > PATIENCE_MS and not today.lab.journal.of("fault.killed"):
            rule = LOCKED_RULE if today.is_outboxed(order.key) else PLACED_RULE
            return Finding(rule, where, "taken at once", f"a call of {took_ms} ms", lab=today.lab)
    return None


def _not_taken(today: ShopDay, order: Placed, where: str, error: BaseException) -> Finding:
    """place_order has raised: the lock of another connection, a broker that is away, or a mistake of its own."""
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    if "locked" in text:
        return Finding(LOCKED_RULE, where, "the order is taken", text, lab=today.lab)
    if not isinstance(error, MqlabError):
        raise error
    # It has sent by itself: before the order was in the database, or afterwards.
    belief = "lab02.commit_then_send" if order.key in today.orders() else "lab02.send_first"
    rule = f"{refutation(belief)}. {PLACED_RULE}"
    return Finding(rule, where, "the order is taken", text, lab=today.lab, belief=belief)


def _orders_are_written(today: ShopDay) -> Finding | None:
    orders = today.orders()
    for order in today.placed:
        if order.key in today.ended and orders.get(order.key) != order.body:
            where = f"{order.key}: table orders, after place_order has returned"
            return Finding(ORDER_RULE, where, order.body, orders.get(order.key, "no row"), lab=today.lab)
    return None


def _none_is_invented(today: ShopDay) -> Finding | None:
    orders = today.orders()
    placed = {order.key: order.body for order in today.placed}
    for message in today.stored():
        if message.keys not in placed or placed[message.keys] != message.body:
            where = f"a message of {TOPIC}, stored at {calendar(message.store_timestamp)}"
            text = f"keys {message.keys!r}, body {message.body!r}"
            return Finding(BODY_RULE, where, "keys and body of an order", text, lab=today.lab)
        if message.keys not in orders:
            belief = "lab02.send_first"
            where = f"{message.keys}: a message, stored at {calendar(message.store_timestamp)}"
            return broken(today, where, "a row in orders", "no order", belief=belief)
    return None


def _each_arrives(today: ShopDay) -> Finding | None:
    arrived = {message.keys for message in today.stored()}
    marks = dict(today.rows("outbox", "order_key, sent"))
    for key in today.orders():
        if key in arrived:
            continue
        where = f"{key}: its row in orders is there, its message is not"
        elsewhere = today.elsewhere(key)
        if elsewhere:
            return Finding(TOPIC_RULE, f"{key}: its message", f"in {TOPIC}", f"in {elsewhere}", lab=today.lab)
        if key not in marks:
            belief = "lab02.commit_then_send"
        elif marks[key]:
            belief = "lab02.marks_every_row" if key in today.marked_unread else "lab02.mark_first"
        else:
            _raise_a_mistake(today.relay_raised)
            return Finding(SENT_RULE, where, "a message", "in the outbox, not marked, not sent", lab=today.lab)
        return broken(today, where, "a message", "none", belief=belief)
    return None


def _raise_a_mistake(errors: Sequence[BaseException]) -> None:
    """What relay raised and no broker was the cause of."""
    for error in errors:
        if not isinstance(error, MqlabError):
            raise error


def _sent_once_without_need(today: ShopDay) -> Finding | None:
    most = 1 + len(today.lab.journal.of("fault.killed"))
    for key, times in Counter(message.keys for message in today.stored()).items():
        if times > most:
            where = f"{key}: messages in the topic at the end of the day"
            return Finding(TWICE_RULE, where, f"{most} at most", times, lab=today.lab)
    return None


PROMISES: Sequence[Any] = (
    _customers_can_buy,
    _orders_are_written,
    _none_is_invented,
    _each_arrives,
    _sent_once_without_need,
)

OUTBOX = EveryCrash(
    "lab02.outbox",
    "Outbox(lab, shop)",
    points=5,
    about="orders, a broker that is away, and a death at every line",
    days=[broker_away, slow_broker],
    crash_day=two_orders,
    node=NODE,
    at="line",
    most=80,
    promises=PROMISES,
)
