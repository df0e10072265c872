"""Days with a bank, played with a learner's listener: the bank refuses or hangs, or an order kills the process.

    three     a bank that refuses; billing dies at a bad moment     ─▶ deliveries, and a table for a human
    stuck     a bank that hangs; billing is killed and restarted    ─▶ deliveries of both lives
    killer    an order at which the process dies, again and again   ─▶ deliveries of all lives, and the table

The bank itself is a function in the notebook (ask_bank); a day knows what it does to each order at each try.
Judging is in judges.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from mqlab.client.consuming.listener import as_call
from mqlab.errors import LimitReached, UsageError
from mqlab.lab.lab import Lab
from mqlab.lab.shared_resources import Database
from mqlab.teach.cases.lab07.days import BODIES, GROUP, start_billing, told
from mqlab.teach.cases.story_parts import one_queue
from mqlab.teach.exercises import Answers
from mqlab.teach.lives import anew
from mqlab.wire.message import Message

TABLES = """
CREATE TABLE started (msg_id TEXT PRIMARY KEY, times INTEGER NOT NULL);
CREATE TABLE for_a_human (msg_id TEXT PRIMARY KEY, body BLOB NOT NULL);
"""
MAX_ROWS, MAX_BYTES = 10_000, 1 << 20  # far more than a day's messages need
HANG_MS = 10 * 3_600_000


@dataclass(frozen=True, slots=True)
class Order:
    """One order of a bad day; ``bank`` has one word for each try, and the last one is for all later tries too."""

    key: str
    bank: str
    body: bytes

    def answer_ms(self, tries: int) -> int:
        """How long the bank takes after so many failed tries."""
        word = self._word(tries)
        return {"hang": HANG_MS, "no": 40}.get(word) or int(word)

    def pays(self, tries: int) -> bool:
        """Whether the bank says yes after so many failed tries."""
        return self._word(tries) not in ("hang", "no")

    def _word(self, tries: int) -> str:
        words = self.bank.split()
        return words[min(tries, len(words) - 1)]


@dataclass(slots=True)
class BadDay:
    """A Lab after a bad day: its orders by msg_id, in the order they were sent, and the moments billing died.

    ``kept``: after each death at the killer, how often the table ``started`` has it.
    """

    lab: Lab
    orders: dict[str, Order] = field(default_factory=dict)
    deaths_ms: list[int] = field(default_factory=list)
    kept: list[int | None] = field(default_factory=list)

    def deliveries(self) -> list[Any]:
        """What billing's listeners were called with."""
        return list(self.lab.deliveries(GROUP, absences=False))

    def for_a_human(self) -> dict[str, bytes]:
        """What the learner's listener stored: msg_id -> body."""
        return dict(self._rows("for_a_human", "body"))

    def times(self, bank: str) -> int | None:
        """The number in the table ``started`` for the first order that the bank treats like this; None if absent."""
        counted = dict(self._rows("started", "times"))
        return next((counted.get(msg_id) for msg_id, order in self.orders.items() if order.bank == bank), None)

    def _rows(self, table: str, column: str) -> list[tuple[str, Any]]:
        """A table's rows. UsageError when it is a view now, or gives more than a day's messages could."""
        rows: list[tuple[str, Any]] = []
        size = 0
        with closing(sqlite3.connect(self.lab.database(GROUP).path)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
            made = connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchall()
            if made and made != [("table",)]:
                raise UsageError(f"{table} is a {made[0][0]} now", hint="write rows into the table that is there")
            for row in connection.execute(f"SELECT msg_id, {column} FROM {table}"):
                rows.append(row)
                size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
                if size > MAX_BYTES or len(rows) > MAX_ROWS:
                    raise UsageError(f"{table} holds more than {MAX_ROWS} rows or {MAX_BYTES >> 20} MB")
        return rows

    def in_work(self, least_ms: int, most_ms: int) -> str:
        """The bank's behaviour for the order that billing has been working on for so long; "" for none."""
        for row in self.lab.delivery_book.of(GROUP)[::-1]:
            if row.ended_ms is None and least_ms <= self.lab.now_ms - (row.started_ms or 0) <= most_ms:
                return self.orders[row.msg_id].bank
        return ""

    def send(self, shop: Any, banks: Sequence[str], rng: random.Random) -> None:
        """One order for each behaviour of the bank."""
        for number, bank in enumerate(banks):
            order = Order(f"order-{number}", bank, f"{rng.choice(BODIES)} {number}".encode())
            result = shop.send(Message("orders", order.body, keys=order.key, properties={"bank": bank}))
            self.orders[result.msg_id] = order

    def die_and_restart(self) -> None:
        """Billing's process is killed; three seconds later it is started again."""
        self.deaths_ms.append(self.lab.now_ms)
        self.lab.kill("billing-1")
        self.lab.run_for("3s")
        self.lab.start("billing-1")

    def until(self, condition: Callable[[], bool], limit: str) -> bool:
        """Play until a condition is true; False if it was not true within the limit."""
        try:
            self.lab.run_until(condition, limit=limit)
        except LimitReached:
            return False
        return True


class LabDatabases:
    """The part of a Lab that a process of billing gets when it is started: the databases, and nothing else."""

    def __init__(self, lab: Lab) -> None:
        self.database = lab.database

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"an answer cannot use {type(self).__name__}.{name}; it has database")


class NoListener(Exception):
    """A learner's function that should have made a listener returned something else."""

    def __init__(self, name: str, found: object) -> None:
        super().__init__(name)
        self.name, self.found = name, found


def made_listener(answers: Answers, name: str, lab: Lab | LabDatabases) -> Any:
    """The listener that a learner's function makes; NoListener when the result cannot be called."""
    listener = answers[name](lab)
    if not callable(listener):
        raise NoListener(name, listener)
    return listener


def listener_of_each_life(answers: Answers, name: str, lab: Lab) -> type:
    """A listener's class, which a consumer instantiates at each start: then the answer's cell is run anew."""

    class EachLife:
        def __init__(self) -> None:
            again = {name: anew(answers[name], name)}
            self.consume_message = as_call(made_listener(again, name, LabDatabases(lab)))

    return EachLife


def make_tables(database: Database) -> None:
    """The two tables that lab 07's listeners write."""
    with closing(sqlite3.connect(database.path)) as connection:
        connection.executescript(TABLES)


# lab07.three -----------------------------------------------------------------------------------------------------


def three_tries(answers: Answers, seed: int) -> BadDay:
    """Some orders are refused once or twice, some always. Billing dies when it has just tried one for the last time."""
    rng = random.Random(f"lab07.three {seed}")
    banks = ["no", "no", "no no 40", "no 40", "40", "40", "no no 40"] + ["40"] * rng.randint(0, 2)
    rng.shuffle(banks)
    days: list[BadDay] = []

    def story(lab: Lab) -> None:
        one_queue(lab, "orders")
        make_tables(lab.database(GROUP))
        day = BadDay(lab)
        days.append(day)
        start_billing(lab, made_listener(answers, "three_times", lab))
        day.send(lab.producer("shop"), banks, rng)
        # 1. The death comes when the third delivery of a hopeless order has ended.
        hopeless = [msg_id for msg_id, order in day.orders.items() if order.bank == "no"]

        def last_word() -> bool:
            return any(row.msg_id in hopeless and row.reconsume_times == 2 and row.ended_ms for row in day.deliveries())

        # 2. It may come before or after the client's report of its offsets, which is made every 5 s.
        if day.until(last_word, "60s"):
            lab.run_for(rng.choice(("1s", "2s")))
            day.die_and_restart()
        lab.run_for("4m")

    told(story, seed)
    return days[0]


# lab07.stuck -----------------------------------------------------------------------------------------------------


def stuck(answers: Answers, seed: int) -> BadDay:
    """A hundred orders; the bank is slow for some and hangs for one or two. Then somebody restarts billing."""
    rng = random.Random(f"lab07.stuck {seed}")
    banks = ["40"] * 94 + ["2500", "2900", "1800", "hang 40", rng.choice(("hang hang 40", "40")), "2700"]
    rng.shuffle(banks)
    days: list[BadDay] = []

    def story(lab: Lab) -> None:
        one_queue(lab, "orders")
        day = BadDay(lab)
        days.append(day)
        start_billing(lab, answers["pay"])
        day.send(lab.producer("shop"), banks, rng)
        # Long enough for every other order to end, so that only a held-back offset brings them again.
        lab.run_for(rng.randint(30_000, 50_000))
        day.die_and_restart()
        lab.run_for("3m")

    told(story, seed)
    return days[0]


# lab07.killer ----------------------------------------------------------------------------------------------------

KILLER, UNLUCKY = "400", "350"  # the process dies at both: at the first each time, at the second twice by chance


def killer(answers: Answers, seed: int) -> BadDay:
    """One order kills its process, one is hit twice by chance, one is refused often. One message at a time."""
    rng = random.Random(f"lab07.killer {seed}")
    # 1. Where the two dangerous orders are among the others.
    others = ["no no no 40", *["40"] * rng.randint(2, 4)]
    first, second = sorted(rng.choices(range(len(others)), k=2))
    banks = [*others[:first], KILLER, *others[first:second], UNLUCKY, *others[second:]]
    days: list[BadDay] = []

    def story(lab: Lab) -> None:
        one_queue(lab, "orders")
        make_tables(lab.database(GROUP))
        day = BadDay(lab)
        days.append(day)
        # 2. One thread, so one order at a time; a new listener in each life, so that only the table remembers.
        listener = listener_of_each_life(answers, "never_again", lab)
        start_billing(lab, listener, consume_thread_min=1, consume_thread_max=1)
        day.send(lab.producer("shop"), banks, rng)
        deaths = {KILLER: 6, UNLUCKY: 2}

        idle = 0
        while idle < 80:  # look every 100 ms, until billing has not died for 8 s
            lab.run_for("100ms")
            bank = day.in_work(100, 340)
            idle += 1
            if deaths.get(bank):
                deaths[bank] -= 1
                idle = 0
                day.die_and_restart()
                if bank == KILLER:
                    day.kept.append(day.times(KILLER))
        lab.run_for("2m")

    told(story, seed)
    return days[0]
