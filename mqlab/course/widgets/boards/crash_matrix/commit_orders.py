"""Orders of commit on a crash matrix: a shop takes money and sends a message, and it or the broker dies in between.

    commit_matrix({"database first": database_first, "message first": message_first, "half message": HalfMessage})
    commit_matrix(…, dies="broker-a")

A way is a function ``(shop, database, order)``, which is run as the shop's program, or a class made from the database
that is a transaction listener; its ``afterwards(message)``, if it has one, is called when the send has returned. The
database has a table ``money (order_key)``. What an order's end is called is in END.
Left out: two deaths in one run, a shop that tries again by itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any

from mqlab.course.widgets.boards.crash_matrix.board import CrashMatrix, crash_matrix
from mqlab.errors import MqlabError, UsageError
from mqlab.lab.world.lab import Lab
from mqlab.lab.world.state import CrashPoint
from mqlab.rocketmq.wire.message import Message

SHOP, BROKER, TOPIC, ORDER, DATABASE = "shop-1", "broker-a", "orders", "order-0", "shop"
BEGINS_MS, CHECKED_AFTER = 2_000, "12s"
QUICK_CHECKS = {"transaction_check_interval": 10_000}
TABLES = "CREATE TABLE money (order_key TEXT PRIMARY KEY);"
END = {
    (False, 0): "neither",
    (True, 0): "money, no message",
    (False, 1): "message, no money",
    (True, 1): "both",
    (True, 2): "both, the message twice",
    (False, 2): "message twice, no money",
}
GOOD = ("neither", "both", "both, the message twice")
Way = Callable[..., Any]


def commit_story(way: Way) -> Callable[[Lab], None]:
    """The story of one order: the shop's program runs on the shop's node, and dies with it."""

    def story(lab: Lab) -> None:
        lab.create_topic(TOPIC, read_queue_nums=1, write_queue_nums=1)
        database = lab.database(DATABASE)
        with closing(sqlite3.connect(database.path)) as connection:
            connection.executescript(TABLES)
        lives: list[Any] = []
        if isinstance(way, type):
            shop = lab.transaction_producer(DATABASE, _each_life(way, database, lives), name=SHOP)
        else:
            shop = lab.producer(DATABASE, name=SHOP)
        lab.run_for(BEGINS_MS)
        if shop.is_up:
            _runs(shop, way, database, lives)
        # A shop that works on knows its broker again, and can be asked after its next heartbeat.
        for pause in (*["500ms"] * 8, *[CHECKED_AFTER] * 3):
            lab.run_for(pause)
            if shop.is_up:
                with suppress(MqlabError):
                    shop.fetch_publish_message_queues(TOPIC)

    return story


def _each_life(way: type, database: Any, lives: list[Any]) -> type:
    class EachLife:
        """The listener, a new one in each process."""

        def __init__(self) -> None:
            listener = way(database)
            lives.append(listener)
            self.execute_local_transaction = listener.execute_local_transaction
            self.check_local_transaction = listener.check_local_transaction

    return EachLife


def _runs(shop: Any, way: Way, database: Any, lives: list[Any]) -> None:
    """Run the shop's program in a thread of the shop's process."""
    node = shop.node
    message = Message(TOPIC, b"a book", keys=ORDER)

    def program() -> None:
        if isinstance(way, type):
            listener = lives[-1]
            node.send_message_in_transaction(message)
            if hasattr(listener, "afterwards"):
                listener.afterwards(message)
        else:
            way(node, database, ORDER)

    node.ports.workers.pool("Checkout", 1).submit(program, lambda value, error: None)


def how_it_ended(lab: Lab) -> str:
    """Whether money and message agree: one of END."""
    with closing(sqlite3.connect(lab.database(DATABASE).path)) as connection:
        money = bool(connection.execute("SELECT 1 FROM money").fetchall())
    sent = sum(message.keys == ORDER for message in lab.store().messages(TOPIC))
    return END[money, min(sent, 2)]


def during_the_order(point: CrashPoint) -> bool:
    """Lines of the shop's program, and the steps at which something reaches a node or is written."""
    return point.kind == "line" or point.where in ("frame", "store.dispatch", "listener.start", "listener.resume")


def commit_matrix(ways: Mapping[str, Way], *, dies: str = SHOP, seed: int = 7, run: bool = True) -> CrashMatrix:
    """How an order ends for each place at which the shop or the broker dies. ``dies``: "shop-1" or "broker-a".

    Raises UsageError for another node, and when there is no way.
    """
    if dies not in (SHOP, BROKER):
        raise UsageError(f"dies names the shop or the broker, got {dies!r}", hint=f'dies="{SHOP}" or dies="{BROKER}"')
    return crash_matrix(
        {name: commit_story(way) for name, way in ways.items()},
        node=dies,
        outcome=how_it_ended,
        good=GOOD,
        only=during_the_order,
        seed=seed,
        run=run,
        broker=QUICK_CHECKS,
        client={"enable_trace": False},
    )
