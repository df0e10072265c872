"""lab08.outbox_or_half: what an outbox and half messages cost, counted in a run.

    orders    so many, of which the bank declines some; at some of the others the shop dies
    ─▶        for each way: messages stored, requests between shop and broker, rows written

The shop dies at the worst moment of each way: when the outbox's message is stored and not yet marked; when the local
transaction is committed and the broker not yet told.
"""

from __future__ import annotations

import functools
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from mqlab.course.kit import Pure
from mqlab.course.kit.shapes import Difference, record, tuple_of
from mqlab.course.kit.slips import Slip
from mqlab.course.teach.exercises import Call
from mqlab.course.words import refutation
from mqlab.errors import MqlabError
from mqlab.lab.world.lab import Lab, play
from mqlab.rocketmq.client.statuses import COMMIT_MESSAGE, ROLLBACK_MESSAGE
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire.message import Message

TOPIC, SHOP, DATABASE = "orders", "shop-1", "shop"
COUNTED = ("SEND_MESSAGE_V2", "END_TRANSACTION", "CHECK_TRANSACTION_STATE")
SETTINGS: dict[str, Any] = {"broker": {"transaction_check_interval": 10_000}, "client": {"enable_trace": False}}
TABLES = """
CREATE TABLE orders (order_key TEXT PRIMARY KEY);
CREATE TABLE outbox (order_key TEXT PRIMARY KEY, sent INTEGER NOT NULL DEFAULT 0);
CREATE TABLE transactions (order_key TEXT PRIMARY KEY);
CREATE TABLE written (name TEXT);
CREATE TRIGGER a AFTER INSERT ON orders BEGIN INSERT INTO written VALUES ('order'); END;
CREATE TRIGGER b AFTER INSERT ON outbox BEGIN INSERT INTO written VALUES ('outbox'); END;
CREATE TRIGGER c AFTER UPDATE ON outbox BEGIN INSERT INTO written VALUES ('mark'); END;
CREATE TRIGGER d AFTER INSERT ON transactions BEGIN INSERT INTO written VALUES ('transaction'); END;
"""
WAY = tuple_of("way", messages=int, requests=int, rows=int)
Costs = dict[str, tuple[int, int, int]]

MESSAGES_RULE = (
    "Messages are units in the broker's log. An outbox stores one per send. In a transaction the half message is "
    "one, the final message another, and each question of the broker stores the half message again"
)
REQUESTS_RULE = (
    "Requests go in both directions: a send, the end of a transaction (commit or rollback), and the broker's question. "
    "An end that was never sent does not count; the answer to a question does"
)
ROWS_RULE = (
    "Rows are inserts and updates: an order is one, its row in outbox or transactions another, and the mark in "
    "the outbox a third. A declined order writes none"
)


def outbox_run(orders: int, declined: int, died: int) -> Lab:
    """The shop with an outbox: order and outbox row in one transaction, then send, then mark."""

    def story(lab: Lab) -> None:
        database, shop = _begins(lab), lab.producer(DATABASE, name=SHOP)

        def sweep(dies: bool = False) -> None:
            with database.connect() as tables:
                waiting = tables.execute("SELECT order_key FROM outbox WHERE sent = 0").fetchall()
            for (key,) in waiting:
                shop.send(Message(TOPIC, b"a book", keys=key))
                if dies:
                    lab.kill(SHOP)
                    lab.run_for("1s")
                    lab.start(SHOP)
                    return
                with database.connect() as tables:
                    tables.execute("UPDATE outbox SET sent = 1 WHERE order_key = ?", (key,))

        for number in range(declined, orders):
            with database.connect() as tables:
                tables.execute("INSERT INTO orders VALUES (?)", (f"order-{number}",))
                tables.execute("INSERT INTO outbox (order_key) VALUES (?)", (f"order-{number}",))
            sweep(dies=number - declined < died)
            sweep()  # what a new life, or the next round, finds
            lab.run_for("200ms")

    return play(story, seed=5, **SETTINGS)


def half_run(orders: int, declined: int, died: int) -> Lab:
    """The shop with half messages; where it dies, the broker has to ask."""

    def story(lab: Lab) -> None:
        database = _begins(lab)

        class Listener:
            def execute_local_transaction(self, message: Any, arg: int) -> str:
                if arg < declined:
                    return ROLLBACK_MESSAGE
                with database.connect() as tables:
                    tables.execute("INSERT INTO orders VALUES (?)", (message.keys,))
                    tables.execute("INSERT INTO transactions VALUES (?)", (message.keys,))
                if arg - declined < died:
                    lab.world.at(lab.now_ms + 1, lambda: lab.kill(SHOP))
                    lab.handles[SHOP].node.ports.workers.sleep(1_000)
                return COMMIT_MESSAGE

            def check_local_transaction(self, message: Any) -> str:
                with database.connect() as tables:
                    row = "SELECT 1 FROM transactions WHERE order_key = ?"
                    known = tables.execute(row, (message.keys,)).fetchone()
                return COMMIT_MESSAGE if known else ROLLBACK_MESSAGE

        shop = lab.transaction_producer(DATABASE, Listener, name=SHOP)
        for number in range(orders):
            shop.send_message_in_transaction_async(Message(TOPIC, b"a book", keys=f"order-{number}"), number)
            lab.run_for("1s")
            if not shop.is_up:
                lab.start(SHOP)
            with suppress(MqlabError):
                shop.fetch_publish_message_queues(TOPIC)
        lab.run_for("40s")

    return play(story, seed=5, **SETTINGS)


def _begins(lab: Lab) -> Any:
    lab.create_topic(TOPIC, read_queue_nums=1, write_queue_nums=1)
    database = lab.database(DATABASE)
    with closing(sqlite3.connect(database.path)) as connection:
        connection.executescript(TABLES)
    lab.run_for("1s")
    return database


def counted(lab: Lab) -> tuple[int, int, int]:
    """Messages, requests and rows of a run. Op messages, of which one names many orders, are not counted."""
    messages = sum(len(list(lab.store().messages(topic))) for topic in (TOPIC, names.HALF_TOPIC))
    requests = sum(record.about_text.startswith(COUNTED) for record in lab.journal if record.kind == "frame")
    with closing(sqlite3.connect(lab.database(DATABASE).path)) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM written").fetchone()
    return messages, requests, rows


@functools.cache
def costs(orders: int, declined: int, died: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Outbox and half messages, counted."""
    return counted(outbox_run(orders, declined, died)), counted(half_run(orders, declined, died))


def _call(orders: int, declined: int, died: int) -> Call:
    outbox, half = costs(orders, declined, died)
    about = f"{orders} orders, {declined} declined, the shop dies at {died}"
    return Call(orders=orders, declined=declined, died=died, right={"outbox": outbox, "half": half}, about=about)


def shops(seed: int) -> list[Call]:
    """A calm shop, one with declined orders, one that dies as well."""
    rng = random.Random(f"lab08.outbox_or_half {seed}")
    orders = rng.choice((4, 6))  # few different runs: each is counted once
    declined = rng.randint(1, 2)
    return [_call(orders, 0, 0), _call(orders, declined, 0), _call(orders, declined, rng.randint(1, 2))]


def _wrongly(change: Callable[[Call, Costs], Costs]) -> Callable[[Call], Costs]:
    return lambda call: change(call, dict(call.right))


def _more(costs_of: Costs, way: str, messages: int = 0, requests: int = 0, rows: int = 0) -> Costs:
    old = costs_of[way]
    return {**costs_of, way: (old[0] + messages, old[1] + requests, old[2] + rows)}


def _paid(call: Call) -> int:
    return int(call["orders"] - call["declined"])


def _explained(call: Call, answer: Any, seen: Difference) -> str:
    if call["died"] and seen.part == "messages" and seen.path[:1] == ("outbox",):
        return refutation("lab08.outbox_once")
    return ""


OUTBOX_OR_HALF = Pure(
    "lab08.outbox_or_half",
    "outbox_or_half(orders, declined, died)",
    points=3,
    about="what both ways cost",
    calls=shops,
    returns=record(outbox=WAY, half=WAY),
    explain=_explained,
    rules={"messages": MESSAGES_RULE, "requests": REQUESTS_RULE, "rows": ROWS_RULE},
    slips=[
        Slip(
            "outbox once",
            _wrongly(lambda call, right: _more(right, "outbox", -call["died"], -call["died"])),
            belief="lab08.outbox_once",
        ),
        Slip(
            "half is moved",
            _wrongly(lambda call, right: _more(right, "half", -_paid(call))),
            belief="lab08.half_is_moved",
        ),
        Slip(
            "declined is free",
            _wrongly(lambda call, right: _more(right, "half", -call["declined"], -2 * call["declined"])),
            belief="lab08.declined_is_free",
        ),
        Slip(
            "the end is free",
            _wrongly(lambda call, right: _more(right, "half", 0, -call["orders"])),
            belief="lab08.end_is_free",
        ),
        Slip(
            "marks are free",
            _wrongly(lambda call, right: _more(right, "outbox", 0, 0, -_paid(call))),
            belief="lab08.marks_are_free",
        ),
    ],
)
