"""Lab 04's last exercise: a group that does not move, and an operator who has to free it.

    odd seeds    billing reads in order, and the head of one queue (1, 5, 9 …) or of both (3, 7 …) fails for ever
    even seeds   billing has two threads, and two orders hang in them

The learner's ``rescue(lab)`` runs in the middle of the day; orders come before it and after it. Judged by two tables
and by the deliveries: what is poisoned is with a human, everything else is paid, nothing committed comes again.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from mqlab.course.cases.lab04.offsets import FOR_EVER_MS, GROUP, TOPIC
from mqlab.course.kit import World
from mqlab.course.kit.days import DatabaseTables, Day, Does, Played, Sends, Topics, Waits
from mqlab.course.teach.exercises import Finding
from mqlab.durations import calendar
from mqlab.errors import UsageError
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS, SUCCESS, SUSPEND_CURRENT_QUEUE_A_MOMENT
from mqlab.rocketmq.wire.message import Message, MessageQueue

QUEUES, THREADS = 2, 2
TABLES = """
CREATE TABLE for_a_human (msg_id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE paid (order_key TEXT PRIMARY KEY);
"""
MOST_ROWS = 1_000

HUMAN_RULE = "A poisoned order ends with a human: its row in for_a_human has its msg_id and its body"
BYTES_RULE = "A body is bytes, not text: store message.body as it is, so that what is sent again is the same"
HEALTHY_RULE = (
    "Only what cannot be paid is for a human. An order that waits for a poisoned one, or for a thread, is "
    "healthy: look at what happened to it, and not only at the offset"
)
LOST_RULE = "No other order is lost: skip one offset, not a backlog"
AGAIN_RULE = "What was committed is not redelivered: an offset may not go back"
STUCK_RULE = "The group keeps reading: orders that are sent after the rescue are also paid"
WAITS_RULE = (
    "The group keeps reading: an order that waited for a poisoned one, or for a thread that hung, is paid in the end"
)
ROW_RULE = "A row in for_a_human has the msg_id of an order: each message has its own, even where two have one key"
DOWN_RULES = {
    "broker-a": "The broker works, and the shop keeps sending to it: leave it alone, or start it again",
    "billing-1": "A group whose only member is down reads nothing: start billing-1 again before you return",
}


@dataclass(frozen=True, slots=True)
class PoisonedOrder:
    """An order; ``poisoned``: the listener never ends it well."""

    key: str
    poisoned: bool

    def message(self) -> Message:
        """The message that the shop sends."""
        own = {"poisoned": "yes"} if self.poisoned else {}
        return Message(TOPIC, f"книга 书 {self.key}".encode(), keys=self.key, properties=own)


@dataclass(slots=True)
class StuckDay(Played):
    """A day with a rescue. ``committed``: each queue's offset when it began, at ``began_ms``.

    ``down``: the node that was down when the rescue returned.
    """

    committed: dict[MessageQueue, int] = field(default_factory=dict)
    began_ms: int = 0
    down: str = ""
    rows: dict[str, list[Any]] = field(default_factory=dict)

    def table(self, name: str, columns: str) -> list[Any]:
        """A table's rows. UsageError when it is not a table any more."""
        if name not in self.rows:
            with closing(sqlite3.connect(self.lab.database(GROUP).path)) as connection:
                kind = connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (name,)).fetchall()
                if kind != [("table",)]:
                    raise UsageError(f"{name} is not a table any more", hint="write rows into the table that is there")
                self.rows[name] = connection.execute(f"SELECT {columns} FROM {name}").fetchmany(MOST_ROWS)
        return self.rows[name]


def day(seed: int) -> Day:
    """Orders, among them poisoned ones; a minute in which nothing moves; more orders; the rescue; and more orders.

    Where one queue is not blocked, what was paid just before the rescue is not committed when it begins.
    """
    rng = random.Random(f"lab04.rescue {seed}")
    orderly = seed % 2 == 1
    acts = (
        Topics((TOPIC,), QUEUES),
        DatabaseTables(GROUP, TABLES),
        Does(lambda today: _billing_reads(today, orderly)),
        Sends(_orders(rng, orderly, both_blocked=seed % 4 == 3)),
        Waits("50s"),
        Sends([PoisonedOrder(f"order-{number}", poisoned=False) for number in range(800, 804)]),
        Waits("1s"),
        Does(_rescued),
        Sends([PoisonedOrder(f"order-{number}", poisoned=False) for number in range(900, 904)]),
        Waits("35s"),
    )
    return Day(acts, kind=StuckDay)


def _orders(rng: random.Random, orderly: bool, both_blocked: bool) -> list[PoisonedOrder]:
    """Round robin: even orders go to one queue, odd ones to the other. Some of both are before the poisoned ones."""
    count = rng.randint(20, 26)
    first = rng.choice((6, 8)) + rng.randint(0, 1)
    # Two that hang are in one queue, with healthy ones between them; in order, the second head is in the other queue.
    second = first + rng.choice((4, 6)) + (1 if orderly else 0)
    poisoned = {first, second} if not orderly or both_blocked else {first}
    return [PoisonedOrder(f"order-{number}", number in poisoned) for number in range(count)]


def _billing_reads(today: StuckDay, orderly: bool) -> None:
    """Billing as it is: pays, and writes what it has paid."""
    database = today.lab.database(GROUP)
    paid = SUCCESS if orderly else CONSUME_SUCCESS

    def pay(messages: Sequence[Any], context: Any) -> str:
        context.sleep("20ms")
        if messages[0].properties.get("poisoned") and orderly:
            return SUSPEND_CURRENT_QUEUE_A_MOMENT
        if messages[0].properties.get("poisoned"):
            context.sleep(FOR_EVER_MS)
        with database.connect() as connection:
            connection.execute("INSERT OR IGNORE INTO paid VALUES (?)", (messages[0].keys,))
        return paid

    threads: dict[str, Any] = {} if orderly else {"consume_thread_min": THREADS, "consume_thread_max": THREADS}
    consumer = today.lab.push_consumer(GROUP, **threads)
    consumer.subscribe(TOPIC, "*")
    (consumer.on_messages_orderly if orderly else consumer.on_messages)(pay)
    consumer.start()
    today.lab.run_for("2s")


def _rescued(today: StuckDay) -> None:
    """The learner's rescue; the offsets and the time of its beginning are kept."""
    held = today.lab.broker().offset_table.queues_of(GROUP, TOPIC) or {}
    today.committed = {MessageQueue(TOPIC, "broker-a", queue_id): offset for queue_id, offset in held.items()}
    today.began_ms = today.lab.now_ms
    today.answers["rescue"](today.lab)
    # A broker that is down would end the day with an error of the shop's: what the rescue left undone is done for it.
    for name in DOWN_RULES:
        if not today.lab.node_handle(name).is_up:
            today.down = today.down or name
            today.lab.start(name)


def _all_are_up(today: StuckDay) -> Finding | None:
    if not today.down:
        return None
    return Finding(DOWN_RULES[today.down], f"{today.down}, after the rescue", "running", "down", lab=today.lab)


def _nothing_committed_comes_again(today: StuckDay) -> Finding | None:
    for row in today.deliveries(GROUP):
        offset = today.committed.get(row.message_queue, 0)
        if (row.started_ms or 0) > today.began_ms and row.queue_offset < offset:
            key = today.sent[row.msg_id].key
            where = f"{key}, entry {row.queue_offset} of {row.message_queue}, at {calendar(row.started_ms)}"
            expected = f"nothing before {offset}, which was committed when the rescue began"
            return Finding(AGAIN_RULE, where, expected, "delivered again", lab=today.lab)
    return None


def _poisoned_are_with_a_human(today: StuckDay) -> Finding | None:
    human = dict(today.table("for_a_human", "msg_id, body"))
    for msg_id, order in today.sent.items():
        where, body = f"{order.key}: table for_a_human", order.message().body
        if order.poisoned and human.get(msg_id) != body:
            stored = human.get(msg_id, "no row")
            if isinstance(stored, str) and stored == body.decode():
                return Finding(BYTES_RULE, where, f"bytes: {body!r}", f"text: {stored!r}", lab=today.lab)
            shown = stored.decode("utf-8", "backslashreplace") if isinstance(stored, bytes) else stored
            return Finding(HUMAN_RULE, where, body.decode(), shown, lab=today.lab)
    return None


def _healthy_are_paid(today: StuckDay) -> Finding | None:
    human = dict(today.table("for_a_human", "msg_id, body"))
    paid = {key for (key,) in today.table("paid", "order_key")}
    for msg_id, order in today.sent.items():
        where = f"{order.key}: table paid"
        if order.poisoned or order.key in paid:
            continue
        if msg_id in human:
            return Finding(HEALTHY_RULE, f"{order.key}: table for_a_human", "no row", "a row", lab=today.lab)
        if order.key.startswith("order-9"):
            return Finding(STUCK_RULE, where, "a row", "none", lab=today.lab)
        waits = _waits_at(today, msg_id)
        return Finding(WAITS_RULE if waits else LOST_RULE, f"{where}{waits}", "a row", "none", lab=today.lab)
    return None


def _waits_at(today: StuckDay, msg_id: str) -> str:
    """Where the group's offset still is before a message; "" if it has passed it."""
    held = today.lab.broker().offset_table.queues_of(GROUP, TOPIC) or {}
    stored = next((message for message in today.lab.store().messages(TOPIC) if message.msg_id == msg_id), None)
    if stored is None or held.get(stored.queue_id, 0) > stored.queue_offset:
        return ""
    where = f"entry {stored.queue_offset} of queue {stored.queue_id}"
    return f"; it is {where}, and the group's offset there is {held.get(stored.queue_id, 0)} in the end"


def _only_the_poisoned_are_with_a_human(today: StuckDay) -> Finding | None:
    for msg_id, _ in today.table("for_a_human", "msg_id, body"):
        order = today.sent.get(msg_id)
        if order is None:
            return Finding(ROW_RULE, "table for_a_human", "the msg_id of an order", msg_id, lab=today.lab)
        if not order.poisoned:
            where = f"{order.key}: table for_a_human"
            return Finding(HEALTHY_RULE, where, "no row", "a row", lab=today.lab)
    return None


RESCUE = World(
    "lab04.rescue",
    "rescue(lab)",
    points=5,
    about="a group that does not move",
    day=day,
    promises=[
        _all_are_up,
        _nothing_committed_comes_again,
        _only_the_poisoned_are_with_a_human,
        _healthy_are_paid,
        _poisoned_are_with_a_human,
    ],
)
