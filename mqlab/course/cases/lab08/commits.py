"""lab08.transaction: a transaction listener and its table, when the shop or the broker dies at any step.

orders      half messages of the shop; the bank takes its time, and the account may be empty
judged by   accounts and the topic: money was taken if and only if the message is there

    a calm day       good orders, one without money in the account; each is in its topic within seconds
    a slow bank      the broker asks back while the local transaction still runs: check before commit
    every crash      the shop at each line and step, the broker at the steps of an order
    both             the slow bank, and the shop dies at each line
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from mqlab.course.kit.days import DatabaseTables, Day, Does, LabDatabases, NotMade, Played, Topics, parameters_of, takes
from mqlab.course.kit.form import exercise_of
from mqlab.course.kit.promises import COMMIT_RULE
from mqlab.course.teach.exercises import Answers, Finding
from mqlab.course.teach.lives import anew
from mqlab.course.words import refutation
from mqlab.errors import MqlabError
from mqlab.lab.world.crashes import calm_run, with_crash
from mqlab.lab.world.lab import Lab, play
from mqlab.lab.world.state import CrashPoint
from mqlab.rocketmq.client.statuses import ROLLBACK_MESSAGE, UNKNOW
from mqlab.rocketmq.wire.message import Message

GROUP, SHOP, BROKER, TOPIC, DATABASE = "shop", "shop-1", "broker-a", "orders", "shop"
BANK_MS, SLOW_MS, SOON_MS = 30, 14_000, 5_000
SETTINGS = {"transaction_check_interval": 10_000}
TABLES = """
CREATE TABLE accounts (customer TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0));
CREATE TABLE transactions (order_key TEXT PRIMARY KEY, state TEXT NOT NULL);
"""
METHODS = ("execute_local_transaction", "check_local_transaction")
MADE_RULE = (
    "transaction takes the lab and ask_bank, and returns a listener, an object with "
    "execute_local_transaction(message, arg) and check_local_transaction(message)"
)
SUM_RULE = "The account is charged the order's amount, once: balance = balance - ? in the listener's own transaction"
ERROR_RULE = "An exception in execute_local_transaction counts as UNKNOW, like any value that is not a state"
CHECK_RULE = "An exception in check_local_transaction counts as UNKNOW, like any value that is not a state"
BANK_RULE = "Ask the bank before you take the money: ask_bank(message) in execute_local_transaction"
ROW_RULE = "The row shows that the money was taken: a check that finds it must return COMMIT_MESSAGE"
NOTHING_RULE = "If the bank allows an order and the account can pay it, take the money and send its message"
AROUND = 14


@dataclass(frozen=True, slots=True)
class AmountOrder:
    """An order; ``amount`` may be more than the customer has."""

    key: str
    customer: str
    amount: int

    def message(self) -> Message:
        """The message that is sent in a transaction."""
        properties = {"customer": self.customer, "amount": str(self.amount)}
        return Message(TOPIC, self.key.encode(), keys=self.key, properties=properties)


@dataclass(slots=True)
class Till(Played):
    """A day of transactions."""

    orders: list[AmountOrder] = field(default_factory=list)
    balances: dict[str, int] = field(default_factory=dict)
    bank_ms: int = BANK_MS
    sent_ms: dict[str, int] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    keeps_rows: bool = True

    def ask_bank(self, message: Any) -> None:
        """The bank looks at the order, which takes its time."""
        self.asked.add(str(message.keys))
        self.lab.handles[SHOP].node.ports.workers.sleep(self.bank_ms)

    def taken(self) -> dict[str, int]:
        """Customer -> what was taken from the account."""
        with closing(sqlite3.connect(self.lab.database(DATABASE).path)) as connection:
            rows = dict(connection.execute("SELECT customer, balance FROM accounts").fetchall())
        return {customer: before - rows.get(customer, 0) for customer, before in self.balances.items()}

    def has_row(self) -> bool:
        """Whether the listener has written anything into its own table."""
        with closing(sqlite3.connect(self.lab.database(DATABASE).path)) as connection:
            return bool(connection.execute("SELECT 1 FROM transactions").fetchall())

    def died(self) -> bool:
        """Whether the shop or the broker was killed."""
        return bool(self.lab.journal.of("fault.killed"))

    def said(self, kind: str) -> list[Mapping[str, Any]]:
        """What the listener has said: the states and errors of "transaction.executed" or "transaction.checked"."""
        return [values for record, values in self.lab.journal.changes(kind) if record.node == SHOP]

    def arrived(self) -> dict[str, int]:
        """Key -> when its message could first be consumed."""
        arrived_ms: dict[str, int] = {}
        for message in self.lab.store().messages(TOPIC):
            arrived_ms.setdefault(str(message.keys), message.store_timestamp)
        return arrived_ms


def _made(today: Till, function: Callable[..., Any]) -> Any:
    if not takes(function, 2):
        raise NotMade("transaction", parameters_of(function), MADE_RULE, "its arguments", "(lab, ask_bank)")
    listener = function(LabDatabases(today.lab), today.ask_bank)
    for name in METHODS:
        if not callable(getattr(listener, name, None)):
            raise NotMade("transaction", listener, MADE_RULE, "its result", f"an object with {name}")
    return listener


def _opens(today: Till) -> None:
    """Start the shop, send each order in a transaction, and let the broker ask back."""
    lab = today.lab
    _made(today, today.answers["transaction"])

    class EachLife:
        def __init__(self) -> None:
            listener = _made(today, anew(today.answers["transaction"], "transaction"))
            self.execute_local_transaction = lambda message, arg: listener.execute_local_transaction(message, arg)
            self.check_local_transaction = lambda message: listener.check_local_transaction(message)

    shop = lab.transaction_producer(GROUP, EachLife, name=SHOP)
    lab.run_for("1s")
    for order in today.orders:
        if shop.is_up:
            today.sent_ms[order.key] = lab.now_ms
            shop.send_message_in_transaction_async(order.message())
        lab.run_for("500ms")
    # A shop that works on after its restart knows its broker again, and can be asked after its next heartbeat.
    lives = 0
    for pause in (*["500ms"] * (8 + today.bank_ms // 500), *["9s"] * 4):
        lab.run_for(pause)
        if shop.is_up and lives < len(lab.journal.of("fault.start")):
            lives = len(lab.journal.of("fault.start"))
            with suppress(MqlabError):
                shop.fetch_publish_message_queues(TOPIC)


def _day(orders: Sequence[AmountOrder], bank_ms: int) -> Day:
    balances = {order.customer: 1_000 for order in orders}
    rows = "".join(f"INSERT INTO accounts VALUES ('{customer}', 1000);" for customer in balances)

    def begins(today: Till) -> None:
        today.orders, today.balances, today.bank_ms = list(orders), balances, bank_ms

    acts = (Topics((TOPIC,)), DatabaseTables(DATABASE, TABLES + rows), Does(begins), Does(_opens))
    return Day(acts, broker=SETTINGS, kind=Till)


def _orders(seed: int, amounts: Sequence[int]) -> list[AmountOrder]:
    first = random.Random(f"lab08.transaction {seed}").randint(100, 900)
    names = ("anna", "борис", "陈", "anna")
    return [AmountOrder(f"order-{first + index}", names[index], amount) for index, amount in enumerate(amounts)]


def calm_day(seed: int) -> Day:
    """Three good orders, two of them of one customer, and one that costs more than there is."""
    return _day(_orders(seed, (300, 2_000, 700, 500)), BANK_MS)


def slow_day(seed: int) -> Day:
    """The bank takes longer than the broker waits: it asks back while the local transaction runs."""
    return _day(_orders(seed, (400,)), SLOW_MS)


def short_day(seed: int) -> Day:
    """One order; played once per place of a crash."""
    return _day(_orders(seed, (500,)), BANK_MS)


def _agree(today: Till) -> Finding | None:
    """Money and message: both or neither."""
    taken, arrived = today.taken(), today.arrived()
    for order in today.orders:
        message, others = order.key in arrived, [other for other in today.orders if other is not order]
        sold = [other.amount for other in others if other.customer == order.customer and other.key in arrived]
        money = max(0, taken[order.customer] - sum(sold))
        where = f"{order.key} of {order.amount}: what was taken, and whether its message is in {TOPIC}"
        if money not in (0, order.amount):
            twice = money == 2 * order.amount and bool(today.said("transaction.checked"))
            belief = "lab08.check_repeats" if twice else ""
            rule = refutation(belief) if belief else SUM_RULE
            return Finding(rule, where, (order.amount, True), (money, message), belief=belief)
        if money and order.key not in today.asked:
            return Finding(BANK_RULE, order.key, "ask_bank(message)", "it was not called")
        if bool(money) != message:
            rule, belief, actual = _why(today, bool(money))
            return Finding(rule, where, (money, bool(money)), actual or (money, message), belief=belief)
    return None


def _why(today: Till, money: bool) -> tuple[str, str, str]:
    """Why money and message disagree: a rule, the belief that it refutes, and what is to be shown instead."""
    checks = today.said("transaction.checked")
    if money and any(change["state"] == ROLLBACK_MESSAGE for change in today.said("transaction.executed")):
        belief = "lab08.two_commits"
        return refutation(belief), belief, "money taken, but execute_local_transaction returned ROLLBACK_MESSAGE"
    if money and checks and not any(check["state"] != UNKNOW for check in checks):
        error = next((check["error"] for check in checks if check["error"]), "")
        if error:
            return CHECK_RULE, "", _last_line(error)
        never_written = today.keeps_rows and not today.has_row()
        belief = "lab08.row_later" if never_written else "lab08.unknow_is_safe"
    elif money:
        belief = _why_no_message(today)
        if not belief:
            return ROW_RULE, "", ""
    elif today.lab.journal.changes("database.rolled_back") and not today.died():
        return COMMIT_RULE, "", "a transaction was left open, and rolled back"
    else:
        belief = "lab08.row_first" if today.died() and today.has_row() else "lab08.half_means_paid"
    return refutation(belief), belief, ""


def _why_no_message(today: Till) -> str:
    """Money was taken, and the half message rolled back by the check, or by execute_local_transaction itself."""
    if not today.has_row():
        return "lab08.row_later" if today.keeps_rows else "lab08.memory_knows"
    # There is a row, and the check did not go by it.
    first_check = next(iter(today.lab.journal.changes("transaction.checked")), None)
    # The check was asked while the bank was still thinking, and the money was taken after its answer.
    early = first_check is not None and today.bank_ms == SLOW_MS
    return "lab08.no_row_no_money" if early else ""


def _last_line(error: str) -> str:
    return error.strip().splitlines()[-1]


def _soon(today: Till) -> Finding | None:
    """On a calm day a good order is there at once, and does not wait for the broker's question."""
    if today.bank_ms != BANK_MS or today.died():
        return None
    arrived = today.arrived()
    for order, executed in zip(today.orders, today.said("transaction.executed"), strict=False):
        if order.amount > today.balances[order.customer]:
            continue
        where = f"{order.key}, which the bank has allowed"
        if executed["error"]:
            expected = "a state: COMMIT_MESSAGE, for example"
            return Finding(ERROR_RULE, where, expected, _last_line(executed["error"]))
        if order.key not in arrived:
            return Finding(NOTHING_RULE, where, f"{order.amount} taken", "nothing was taken, and no message is there")
        after_ms = arrived[order.key] - today.sent_ms[order.key]
        if after_ms > SOON_MS:
            belief = "lab08.let_it_ask"
            expected, actual = f"in {TOPIC} within 5 s", f"after {after_ms:,} ms"
            return Finding(refutation(belief), where, expected, actual, belief=belief)
    return None


PROMISES = (_agree, _soon)


@dataclass(frozen=True, slots=True)
class CommitDays:
    """What one seed makes."""

    calm: Day
    slow: Day
    crash: Day
    seed: int


@dataclass(frozen=True)
class BothDie:
    """The form: calm days, then the short day once for each line and step of the shop and steps of the broker."""

    id: str = "lab08.transaction"
    name: str = "transaction"
    about: str = "money and message, and a crash of shop or broker"
    weights: Mapping[str, float] = field(default_factory=dict)

    def make(self, seed: int) -> CommitDays:
        """The days of a seed."""
        return CommitDays(calm_day(seed), slow_day(seed), short_day(seed), seed)

    def judge(self, answers: Answers, days: CommitDays) -> Finding | None:
        """The first promise that is broken."""
        try:
            calm = days.calm.play(answers, days.seed)
            keeps_rows = calm.has_row()
            return (
                self._broken(calm)
                or self._broken(days.slow.play(answers, days.seed))
                or self._crashed(answers, days.crash, days.seed, SHOP, keeps_rows)
                or self._crashed(answers, days.crash, days.seed, BROKER, keeps_rows)
                or self._crashed(answers, days.slow, days.seed, SHOP, keeps_rows)
            )
        except NotMade as error:
            return Finding(error.rule, error.where, error.expected, error.found)

    def _crashed(self, answers: Answers, day: Day, seed: int, node: str, keeps_rows: bool) -> Finding | None:
        played: list[Any] = []
        story, settings = day.story(answers, played), day.settings
        calm, points = calm_run(story, node=node, seed=seed, **settings)
        slow = played[-1].bank_ms == SLOW_MS
        for point in self.chosen(points, calm, seed):
            if slow and point.kind == "step":
                continue
            play(with_crash(story, point, node=node), seed=seed, **settings)
            played[-1].keeps_rows = keeps_rows
            finding = self._broken(played[-1])
            if finding is not None:
                return replace(finding, first_wrong=f"{node} killed {point} and restarted: {finding.first_wrong}")
        return None

    def chosen(self, points: Sequence[CrashPoint], calm: Lab, seed: int) -> list[CrashPoint]:
        """All lines and requests, and every other step from the half message to the end of its local transaction.

        The next seed takes the steps in between.
        """
        began = calm.journal.of("transaction.prepared")[0].step - 8
        steps = [point for point in points if point.kind == "step" and began <= point.number <= began + 45]
        return [point for point in points if point.kind != "step"] + steps[:AROUND][seed % 2 :: 2]

    def _broken(self, played: Till) -> Finding | None:
        for promise in PROMISES:
            finding = promise(played)
            if finding is not None:
                return replace(finding, lab=played.lab)
        return None


TRANSACTION = exercise_of(BothDie(), points=6, seeds=(1, 2))
