"""lab09.safe_async: a slow step gets a topic and a group of its own, and nothing is lost wherever a process dies.

shop ─▶ "orders" ─▶ billing (fast) ─▶ "invoices" ─▶ printing (slow, 8 s a page)

judged by   every order printed in the end; billing's calls short; pages with the order's key and body
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mqlab.course.kit.crashing import EveryCrash
from mqlab.course.kit.days import (
    Day,
    Does,
    NotMade,
    Played,
    Restarts,
    Sends,
    Topics,
    Waits,
    each_life,
    parameters_of,
    takes,
)
from mqlab.course.kit.promises import broken, finding_at, no_surprise, took_ms
from mqlab.course.teach.exercises import Finding
from mqlab.course.words import refutation
from mqlab.errors import ClientError
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from mqlab.rocketmq.wire.message import Message

FAST, SLOW = "billing", "printing"
NODE, PRINTER = "billing-1", "printing-1"
ORDERS, INVOICES = "orders", "invoices"
PRINT_MS, LONGEST_CALL_MS, AWAY_MS = 8_000, 1_000, 2_000

MADE_RULE = (
    "safe_async takes send and print_page, and returns two listeners: one for orders, one for invoices, "
    "each a function inside it, (messages, context)"
)
KEPT_RULE = "A printed page has the order's keys and its body: send both on"
SENT_RULE = (
    "Send each page to the topic invoices: its listener gets only what is stored there. "
    'A received message keeps its own topic, so make a new one: Message("invoices", ...)'
)
PRINTS_RULE = "Every stored invoice is printed, by the second listener"
ONCE_RULE = "Without a crash or a failed send, each order is printed once: one send per call"
STATUS_RULE = "Both listeners return CONSUME_SUCCESS when they are done; after None a message is redelivered"
RULES = {
    "one of CONSUME_SUCCESS": STATUS_RULE,
}
EXPECTED_ERRORS = ("ClientError",)


@dataclass(frozen=True, slots=True)
class PrintedOrder:
    """An order; its page is printed from its key and its body."""

    key: str
    body: bytes

    def message(self) -> Message:
        """What the shop sends."""
        return Message(ORDERS, self.body, keys=self.key)


@dataclass(slots=True)
class Pages(Played):
    """A day with a printer. ``printed``: (key, body) of the pages that came out."""

    printed: list[tuple[str, bytes]] = field(default_factory=list)
    begun: int = 0
    sends: Callable[..., Any] | None = None
    fail_at: int = 0
    fails_until_ms: int = 0
    elsewhere: str = ""
    tried: int = 0
    failed: int = 0

    def send(self, message: Message) -> Any:
        """Send as a producer does; in some days all sends of two seconds fail, and nothing is stored.

        What goes to another topic is held: sent to orders, it would come again without end.
        """
        if message.topic != INVOICES:
            self.elsewhere = self.elsewhere or message.topic
            return None
        self.tried += 1
        if self.tried == self.fail_at:
            self.fails_until_ms = self.lab.now_ms + AWAY_MS
        if self.lab.now_ms < self.fails_until_ms:
            self.failed += 1
            raise ClientError("the broker did not answer within 3000 ms")
        assert self.sends is not None
        return self.sends(message)

    def print_page(self, message: Any, context: Any) -> None:
        """The slow step: a page that takes 8 s."""
        self.begun += 1
        context.sleep(PRINT_MS)
        self.printed.append((message.keys, message.body))


@dataclass(frozen=True, slots=True)
class Splits:
    """Both consumers of the learner; each life of a process calls safe_async for a listener of its own.

    Two processes live at once here, so none of them can be a copy of the learner's (mqlab.course.teach.lives): what a
    function keeps inside is lost with a life, what it keeps in a variable of the notebook is not.
    """

    def act(self, played: Any) -> None:
        """Start them."""
        lab = played.lab
        played.sends = lab.producer("billing-sends").send

        def listener_from(function: Callable[..., Any], number: int) -> Any:
            if not takes(function, 2):
                where = "the arguments of safe_async"
                raise NotMade("safe_async", parameters_of(function), MADE_RULE, where, "(send, print_page)")
            both = function(played.send, played.print_page)
            if not isinstance(both, tuple | list) or len(both) != 2 or not all(map(callable, both)):
                raise NotMade("safe_async", both, MADE_RULE, "its result", "two functions")
            if not takes(both[number], 2):
                where = f"the arguments of listener {number + 1}"
                raise NotMade("safe_async", parameters_of(both[number]), MADE_RULE, where, "(messages, context)")
            return both[number]

        for number, (group, name, topic) in enumerate(((FAST, NODE, ORDERS), (SLOW, PRINTER, INVOICES))):
            life = functools.partial(listener_from, played.answers["safe_async"], number)
            life()
            consumer = lab.push_consumer(group, name=name)
            consumer.subscribe(topic, "*")
            consumer.on_messages(each_life(life))
            consumer.start()
        lab.run_for("25s")


def _orders(rng: random.Random, count: int) -> list[PrintedOrder]:
    first = rng.randint(100, 900)
    return [PrintedOrder(f"order-{first + number}", f"страница {number} 页".encode()) for number in range(count)]


def _opens(fail_at: int) -> Does:
    def opens(day: Pages) -> None:
        day.fail_at = fail_at

    return Does(opens)


def _day(orders: Sequence[PrintedOrder], *then: Any, fail_at: int = 0) -> Day:
    return Day((Topics((ORDERS, INVOICES)), _opens(fail_at), Splits(), Sends(orders), *then), kind=Pages)


def calm_day(seed: int) -> Day:
    """Nothing fails."""
    rng = random.Random(f"lab09.safe_async {seed}")
    return _day(_orders(rng, rng.randint(4, 6)), Waits("20s"))


def failing_day(seed: int) -> Day:
    """From one send on the broker is away, longer than a call may last; orders come again ten seconds later."""
    rng = random.Random(f"lab09.safe_async fails {seed}")
    count = rng.randint(4, 6)
    return _day(_orders(rng, count), Waits("40s"), fail_at=rng.randint(1, count))


def billing_dies(seed: int) -> Day:
    """Billing dies when its offset was written, and a page that it had begun would not be out yet."""
    rng = random.Random(f"lab09.safe_async billing dies {seed}")
    return _day(_orders(rng, rng.randint(4, 6)), Waits("6s"), Restarts(NODE), Waits("40s"))


def printer_dies(seed: int) -> Day:
    """The printing process dies six seconds after its first page was begun: its offset may be written by then."""
    rng = random.Random(f"lab09.safe_async printer dies {seed}")

    def prints(day: Any) -> bool:
        return bool(day.begun)

    return _day(_orders(rng, rng.randint(4, 6)), Restarts(PRINTER, when=prints, after="6s"), Waits("40s"))


def two_orders(seed: int) -> Day:
    """Two orders; billing dies before each of its lines."""
    return _day(_orders(random.Random(f"lab09.safe_async lines {seed}"), 2), Waits("25s"))


def _short_calls(day: Pages) -> Finding | None:
    for row in day.deliveries(FAST):
        if row.ended_ms is not None and took_ms(row) > LONGEST_CALL_MS:
            belief, took = "lab09.prints_itself", f"a call of {took_ms(row):,} ms"
            return replace(finding_at(day, row, refutation(belief), "a call of some ms", took), belief=belief)
    return None


def _sent_on(day: Pages) -> Finding | None:
    if day.elsewhere:
        return broken(day, "the topic of what is sent on", INVOICES, day.elsewhere, rule=SENT_RULE)
    return None


def _all_printed(day: Pages) -> Finding | None:
    printed = Counter(key for key, _ in day.printed)
    invoices = {message.keys for message in day.lab.store().messages(INVOICES)}
    for order in day.sent.values():
        if printed[order.key]:
            continue
        where = f"{order.key}: pages printed"
        # 1. Its invoice was stored: the second listener has lost it.
        if order.key in invoices:
            calls = [row for row in day.deliveries(SLOW) if row.ended_ms is not None and row.status == CONSUME_SUCCESS]
            belief = "lab09.printer_says_done" if calls else ""
            return broken(day, where, "one", "none", rule=PRINTS_RULE, belief=belief)
        # 2. Nothing has failed: it was never sent.
        if not day.failed and not day.lab.journal.of("fault.killed"):
            return broken(day, where, "one", "none, and it is not stored in invoices", rule=SENT_RULE)
        # 3. It was not stored: the first one has said CONSUME_SUCCESS before anything was stored.
        if day.failed and not day.lab.journal.of("work.started"):
            return broken(day, where, "one", "none, after a send had failed", belief="lab09.send_is_sure")
        not_there = "none, and it is not stored in invoices"
        return broken(day, where, "one", not_there, belief="lab09.started_is_done")
    return None


def _own_pages(day: Pages) -> Finding | None:
    orders = {order.key: order.body for order in day.sent.values()}
    for key, body in day.printed:
        if orders.get(key) != body:
            expected = (key, orders[key]) if key in orders else f"one of {', '.join(orders)}"
            return broken(day, "a page", expected, (key, body), rule=KEPT_RULE)
    return None


def _printed_once(day: Pages) -> Finding | None:
    if day.failed or day.lab.journal.of("fault.killed"):
        return None
    printed = Counter(key for key, _ in day.printed)
    for key, times in printed.items():
        if times > 1:
            return broken(day, f"{key}: pages printed", 1, times, rule=ONCE_RULE)
    return None


def _both_say_done(day: Pages) -> Finding | None:
    for group in (FAST, SLOW):
        for row in day.deliveries(group):
            if row.ended_ms is not None and row.error is None and row.status != CONSUME_SUCCESS and not day.failed:
                where = f"{group}, {getattr(day.sent.get(row.msg_id), 'key', row.msg_id)}"
                return finding_at(day, row, STATUS_RULE, CONSUME_SUCCESS, row.status, where)
    return None


SAFE_ASYNC = EveryCrash(
    "lab09.safe_async",
    "safe_async(send, print_page)",
    points=4,
    about="failed sends, two crashes, and a crash at every line",
    days=[calm_day, failing_day, billing_dies, printer_dies],
    crash_day=two_orders,
    node=NODE,
    at="line",
    most=30,
    promises=(
        no_surprise(FAST, EXPECTED_ERRORS, RULES),
        no_surprise(SLOW, rules=RULES),
        _sent_on,
        _both_say_done,
        _short_calls,
        _own_pages,
        _all_printed,
        _printed_once,
    ),
)
