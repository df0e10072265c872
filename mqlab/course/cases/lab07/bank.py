"""The bank of lab 07, and the days that an answer's listener spends with it.

    three     a bank that refuses; billing dies at a bad moment     ─▶ deliveries, and a table for a human
    stuck     a bank that hangs; billing is killed and restarted    ─▶ deliveries of both lives
    killer    an order at which the process dies, again and again   ─▶ deliveries of all lives, and the table

The bank itself is a function in the notebook (ask_bank); an order knows what the bank does to it at each try.
What is promised is in listeners.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from mqlab.course.cases.lab07.days import BODIES, GROUP
from mqlab.course.kit.days import Act, DatabaseTables, Day, Does, Learner, Played, Reads, Restarts, Sends, Topics, Waits
from mqlab.errors import UsageError
from mqlab.rocketmq.wire.message import Message

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

    def message(self) -> Message:
        """The message that the shop sends; the bank finds its words in a property."""
        return Message("orders", self.body, keys=self.key, properties={"bank": self.bank})

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
class BadDay(Played):
    """A day with the bank. ``kept``: after each death at the killer, how often the table ``started`` has it."""

    kept: list[int | None] = field(default_factory=list)

    def for_a_human(self) -> dict[str, bytes]:
        """What the learner's listener stored: msg_id -> body."""
        return dict(self._rows("for_a_human", "body"))

    def times(self, bank: str) -> int | None:
        """The number in the table ``started`` for the first order that the bank treats like this; None if absent."""
        counted = dict(self._rows("started", "times"))
        return next((counted.get(msg_id) for msg_id, order in self.sent.items() if order.bank == bank), None)

    def _rows(self, table: str, column: str) -> list[tuple[str, Any]]:
        """A table's rows. UsageError when it is a view now, or gives more than a day's messages could."""
        rows: list[tuple[str, Any]] = []
        size = 0
        with closing(sqlite3.connect(self.lab.database(GROUP).path)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
            kinds = connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchall()
            if kinds and kinds != [("table",)]:
                raise UsageError(f"{table} is a {kinds[0][0]} now", hint="write rows into the table that is there")
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
                return str(self.sent[row.msg_id].bank)
        return ""


def orders(banks: Sequence[str], rng: random.Random) -> list[Order]:
    """One order for each behaviour of the bank."""
    return [
        Order(f"order-{number}", bank, f"{rng.choice(BODIES)} {number}".encode()) for number, bank in enumerate(banks)
    ]


def three_tries(seed: int, deaths: int = 1) -> Day:
    """Some orders are refused once or twice, some always.

    Billing dies when it has just tried one for the last time; the first time it dies, also after the second try.
    """
    rng = random.Random(f"lab07.three {seed}")
    banks = ["no", "no", "no no 40", "no 40", "40", "40", "no no 40"] + ["40"] * rng.randint(0, 2)
    rng.shuffle(banks)

    def refused(retries: int) -> Callable[[Played], bool]:
        """The delivery of a hopeless order after so many retries has ended."""

        def ended(played: Played) -> bool:
            rows = [row for row in played.deliveries(GROUP) if row.reconsume_times == retries and row.ended_ms]
            return any(played.sent[row.msg_id].bank == "no" for row in rows)

        return ended

    acts: tuple[Act, ...] = (
        Topics(("orders",)),
        DatabaseTables(GROUP, TABLES),
        Reads(GROUP, "orders", Learner("three_times", makes=True, each_life=True)),
        Sends(orders(banks, rng)),
        # What a listener counts in memory is gone with its process.
        *(Restarts("billing-1", when=refused(1), after="1s") for _ in range(min(deaths, 1))),
        # The death may come before or after the client's report of its offsets, which is made every 5 s.
        *(Restarts("billing-1", when=refused(2), after=rng.choice(("1s", "2s"))) for _ in range(deaths)),
        Waits("4m"),
    )
    return Day(acts, kind=BadDay)


def stuck(seed: int) -> Day:
    """A hundred orders; the bank is slow for some and hangs for one or two. Then an operator restarts billing."""
    rng = random.Random(f"lab07.stuck {seed}")
    banks = ["40"] * 94 + ["2500", "2900", "1800", "hang 40", rng.choice(("hang hang 40", "40")), "2700"]
    rng.shuffle(banks)
    acts = (
        Topics(("orders",)),
        Reads(GROUP, "orders", Learner("pay")),
        Sends(orders(banks, rng)),
        # Long enough for every other order to end, so that only a held-back offset brings them again.
        Waits(rng.randint(30_000, 50_000)),
        Restarts("billing-1"),
        Waits("3m"),
    )
    return Day(acts, kind=BadDay)


KILLER, UNLUCKY = "400", "350"  # the process dies at both: at the first each time, at the second twice by chance


def killer(seed: int) -> Day:
    """One order kills its process, one is hit twice by chance, one is refused often. One message at a time."""
    rng = random.Random(f"lab07.killer {seed}")
    # 1. Where the two dangerous orders are among the others.
    others = ["no no no 40", *["40"] * rng.randint(2, 4)]
    first, second = sorted(rng.choices(range(len(others)), k=2))
    banks = [*others[:first], KILLER, *others[first:second], UNLUCKY, *others[second:]]
    # 2. One thread, so one order at a time; a new listener in each life, so that only the table remembers.
    acts = (
        Topics(("orders",)),
        DatabaseTables(GROUP, TABLES),
        Reads(
            GROUP,
            "orders",
            Learner("never_again", makes=True, each_life=True),
            settings={"consume_thread_min": 1, "consume_thread_max": 1},
        ),
        Sends(orders(banks, rng)),
        Does(_dies_again_and_again),
        Waits("2m"),
    )
    return Day(acts, kind=BadDay)


def _dies_again_and_again(day: BadDay) -> None:
    """Billing dies at the dangerous orders, until it has not died for 8 s."""
    deaths = {KILLER: 6, UNLUCKY: 2}
    idle = 0
    while idle < 80:  # look every 100 ms
        day.lab.run_for("100ms")
        bank = day.in_work(100, 340)
        idle += 1
        if deaths.get(bank):
            deaths[bank] -= 1
            idle = 0
            day.die_and_restart("billing-1")
            if bank == KILLER:
                day.kept.append(day.times(KILLER))
