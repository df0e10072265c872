"""lab02.strategy: the learner's fault strategy in the shop's producer, while brokers become slow and fail.

MyFaults()      is_available, is_reachable, update      every call is also made to RocketMQ's own table
the day         three brokers; some are slow for a while, one refuses writes, one is killed
judged by       the first question of the producer whose answer is another one; then the edges of the classes
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab02.clusters import SHOP, TOPIC, ClusterDay
from mqlab.course.kit import World
from mqlab.course.kit.days import Does, NotMade, Played, Topics
from mqlab.course.teach.exercises import Call, Finding
from mqlab.course.words import refutation
from mqlab.durations import calendar
from mqlab.errors import MqlabError
from mqlab.rocketmq.client.sending.fault_strategy import (
    ISOLATION_LATENCY_MS,
    LATENCY_MAX_MS,
    LatencyFaultStrategy,
)
from mqlab.rocketmq.wire.message import Message, MessageQueue

NAME, BROKERS = "MyFaults", 3
METHODS = ("is_available", "is_reachable", "update")
CALM = "20s"  # longer than the longest send of the day: no send fails because its time is up

FORM_RULE = f"{NAME} is a class, made without arguments, with the methods {', '.join(METHODS)}"
BOOL_RULE = "is_available and is_reachable answer True or False"
CLASS_RULE = (
    "A broker is avoided as long as its class says: the class is that of the largest threshold that the latency has "
    "reached, and the time begins when the answer came"
)
OVER_RULE = (
    "A broker is avoided for the time of its class and no longer: at the end of that time it is available again, "
    "even without a success before. The class is that of the largest threshold that the latency has reached"
)
ISOLATION_RULE = "With isolation=True a broker is avoided for 10 s: as if its answer had taken 10,000 ms"
REACHABLE_RULE = (
    "is_reachable is what the last update said: reachable=False until an update says True, and True for a broker that "
    "no update has named"
)
UNKNOWN_RULE = "A broker of which nothing is known is available"

FAILED_AFTER_MS = 20_000
"""Longer than the largest threshold."""
OVERLAPPING: Sequence[Sequence[tuple[int, int, bool, bool]]] = (
    ((0, 700, False, True), (300, 40, True, True)),  # a slow answer, then a failure of a broker that is reachable
    ((0, 40, True, False), (500, 2_000, False, True)),  # a failure, then a slow answer within its ban
    ((0, 2_000, False, True), (400, 2_000, False, True)),  # two slow answers
)
"""For each broker its updates: ms from now, latency, isolation, reachable."""


@dataclass(frozen=True, slots=True)
class Update:
    """One call of ``update``."""

    broker: str
    latency_ms: int
    now_ms: int
    isolation: bool
    reachable: bool

    def __str__(self) -> str:
        took = f"isolation={self.isolation}" if self.isolation else f"an answer after {self.latency_ms} ms"
        return f"{took}, reachable={self.reachable}, at {calendar(self.now_ms)}"


@dataclass(slots=True)
class StrategyQuestion:
    """A question whose answer differs from RocketMQ's. ``before``: the broker's updates until then."""

    method: str
    broker: str
    now_ms: int
    right: bool
    found: Any
    before: tuple[Update, ...]
    until_ms: int


@dataclass(slots=True)
class WatchedStrategy:
    """The producer's strategy: it asks the learner's object, and RocketMQ's table next to it."""

    mine: Any
    lab: Any
    table: LatencyFaultStrategy = field(default_factory=LatencyFaultStrategy)
    updates: list[Update] = field(default_factory=list)
    wrong: StrategyQuestion | None = None
    raised: Exception | None = None

    def is_available(self, broker_name: str, now_ms: int) -> bool:
        """May the next message go there?"""
        right = self.table.is_available(broker_name, now_ms)
        return self._answer(
            "is_available", broker_name, now_ms, right, lambda: self.mine.is_available(broker_name, now_ms)
        )

    def is_reachable(self, broker_name: str) -> bool:
        """Does it answer at all?"""
        right = self.table.is_reachable(broker_name)
        return self._answer(
            "is_reachable", broker_name, self.lab.now_ms, right, lambda: self.mine.is_reachable(broker_name)
        )

    def update(self, broker_name: str, latency_ms: int, now_ms: int, *, isolation: bool, reachable: bool) -> None:
        """A send has ended."""
        self.table.update(broker_name, latency_ms, now_ms, isolation=isolation, reachable=reachable)
        self.updates.append(Update(broker_name, latency_ms, now_ms, isolation, reachable))
        try:
            self.mine.update(broker_name, latency_ms, now_ms, isolation=isolation, reachable=reachable)
        except MqlabError:
            raise
        except Exception as error:
            self.raised = self.raised or error

    def _answer(self, method: str, broker: str, now_ms: int, right: bool, ask: Callable[[], Any]) -> bool:
        try:
            answer = ask()
        except MqlabError:
            raise
        except Exception as error:  # the producer would take it for a failed send, and the learner would not hear of it
            self.raised = self.raised or error
            return right
        if answer is not right and self.wrong is None:
            before = tuple(update for update in self.updates if update.broker == broker)
            item = self.table.items.get(broker)
            until_ms = item.available_from_ms if item else 0
            self.wrong = StrategyQuestion(method, broker, now_ms, right, answer, before, until_ms)
        return bool(answer)


@dataclass(slots=True)
class FaultDay(Played):
    """The day. ``watched`` is made when the shop's producer is."""

    watched: WatchedStrategy | None = None

    def shop(self) -> Any:
        """The shop's producer, with the learner's strategy in it."""
        if SHOP not in self.producers:
            strategy = _made(self.answers[NAME])
            self.watched = WatchedStrategy(strategy, self.lab)
            self.producers[SHOP] = self.lab.producer(SHOP, mq_fault_strategy=self.watched, send_msg_timeout=CALM)
        return self.producers[SHOP]


def _made(answer: Any) -> Any:
    try:
        strategy = answer()
    except TypeError as error:
        raise NotMade(NAME, str(error), FORM_RULE, f"{NAME}()", "an object") from None
    lacks = [name for name in METHODS if not callable(getattr(strategy, name, None))]
    if lacks:
        raise NotMade(NAME, f"no {', no '.join(lacks)}", FORM_RULE, f"{NAME}()", "an object with three methods")
    return strategy


def day(seed: int) -> ClusterDay:
    """Slow brokers in different classes, quick answers during a penalty, a refusal, a death, and calm at the end."""
    rng = random.Random(f"lab02.strategy {seed}")
    first, second, third = rng.sample(["broker-a", "broker-b", "broker-c"], 3)
    # (broker, delay of each frame): an answer takes twice the delay.
    slow = [(first, rng.randint(300, 800)), (second, rng.randint(1_000, 1_400)), (third, rng.randint(1_600, 2_300))]
    rng.shuffle(slow)

    def goes(today: FaultDay) -> None:
        # 1. Small differences are none: below 50 ms no broker is avoided.
        today.lab.slow(first, rng.randint(8, 20))
        _sends(today, 8)
        today.lab.slow(first, 0)
        # 2. One broker after the other is slow for a while; a quick answer does not end its penalty.
        for broker, delay_ms in slow:
            _is_slow(today, broker, delay_ms)
            _sends(today, 4)
            _told_to(today, broker)
            _sends(today, rng.randint(10, 16))
        _sends(today, 12, every_ms=800)
        # 3. One has a full disk and refuses, while the two others have penalties: who is asked then?
        today.lab.disk_full(first)
        today.lab.run_for("80s")  # the broker looks at its disk every ten seconds, from the first minute on
        _sends(today, 4, every_ms=20)
        for broker in (second, third):
            _is_slow(today, broker, 700)
        _sends(today, 6, every_ms=20)
        today.lab.disk_full(first, 0)
        today.lab.run_for("11s")
        _sends(today, 10, every_ms=700)
        # 4. One dies and comes back.
        today.lab.kill(second)
        _sends(today, 10)
        today.lab.start(second)
        _sends(today, 20, every_ms=900)
        _is_told_and_asked(today, rng.sample([first, second, third], 3))

    return ClusterDay((Topics((TOPIC,), 2), Does(goes)), kind=FaultDay, brokers=BROKERS)


def _sends(today: FaultDay, count: int, every_ms: int = 130) -> None:
    for _ in range(count):
        message = Message(TOPIC, b"a book")
        with suppress(MqlabError):  # the answers of a strategy without a broker say so
            today.sent[today.shop().send(message).msg_id] = message
        today.lab.run_for(every_ms)


def _told_to(today: FaultDay, broker: str) -> None:
    """An asynchronous send to a queue of this broker, and its answer: it counts like any other."""
    today.shop().send_async(Message(TOPIC, b"a book"), MessageQueue(TOPIC, broker, 0))
    today.lab.run_for(60)


def _is_slow(today: FaultDay, broker: str, delay_ms: int) -> None:
    """A broker is slow as long as one answer takes."""
    today.lab.slow(broker, delay_ms)
    _told_to(today, broker)
    today.lab.run_for(2 * delay_ms)
    today.lab.slow(broker, 0)


def _is_told_and_asked(today: FaultDay, brokers: Sequence[str]) -> None:
    """What a day of sends rarely has: a ban within another, and failures of a broker that is reachable."""
    assert today.watched is not None
    strategy, now_ms = today.watched, today.lab.now_ms
    for broker, updates in zip(brokers, OVERLAPPING, strict=True):
        for at_ms, latency_ms, isolation, reachable in updates:
            strategy.update(broker, latency_ms, now_ms + at_ms, isolation=isolation, reachable=reachable)
            strategy.is_reachable(broker)
        over_ms = strategy.table.items[broker].available_from_ms
        # Bans that add up show after the end, too; one that is a millisecond too long shows at the end alone.
        for asked_ms in (over_ms - 1, over_ms + 1, over_ms):
            strategy.is_available(broker, asked_ms)


def _raises_nothing(today: FaultDay) -> Finding | None:
    assert today.watched is not None
    if today.watched.raised is not None:
        raise today.watched.raised
    return None


def _answers_as_the_table(today: FaultDay) -> Finding | None:
    assert today.watched is not None
    wrong = today.watched.wrong
    if wrong is None:
        return None
    rule, belief = _rule(wrong)
    last = f"; its last update: {wrong.before[-1]}" if wrong.before else "; no update of it yet"
    arguments = f"{wrong.broker!r}, now_ms" if wrong.method == "is_available" else f"{wrong.broker!r}"
    where = f"{wrong.method}({arguments}) at {calendar(wrong.now_ms)}{last}"
    expected: Any = wrong.right
    if wrong.method == "is_available" and not wrong.right:
        expected = f"False until {calendar(wrong.until_ms)}"
    return Finding(rule, where, expected, wrong.found, lab=today.lab, belief=belief)


def _ends_within(bans: Sequence[Update]) -> bool:
    """Whether the last ban began while the one before it was running."""
    return bans[-1].now_ms < _end(bans[-2])


def _rule(wrong: StrategyQuestion) -> tuple[str, str]:
    if not isinstance(wrong.found, bool):
        return BOOL_RULE, ""
    if wrong.method == "is_reachable":
        return REACHABLE_RULE, ""
    costly = [update for update in wrong.before if update.isolation or update.latency_ms >= LATENCY_MAX_MS[2]]
    if not wrong.before:
        return UNKNOWN_RULE, ""
    # 1. RocketMQ would send there, the answer would not.
    if wrong.right:
        if costly and wrong.now_ms == wrong.until_ms:
            return OVER_RULE, ""
        if costly and wrong.method == "is_available" and len(costly) > 1 and _ends_within(costly):
            return refutation("lab02.bans_add_up"), "lab02.bans_add_up"
        return (OVER_RULE, "") if costly else (refutation("lab02.fastest"), "lab02.fastest")
    # 2. The other way round: which update banned it?
    if wrong.before[-1] not in costly:
        return refutation("lab02.success_frees"), "lab02.success_frees"
    if _end(wrong.before[-1]) < wrong.until_ms:
        return refutation("lab02.success_frees"), "lab02.success_frees"
    if wrong.before[-1].isolation:
        return ISOLATION_RULE, ""
    return CLASS_RULE, ""


def _end(update: Update) -> int:
    latency = ISOLATION_LATENCY_MS if update.isolation else update.latency_ms
    return update.now_ms + LatencyFaultStrategy().duration_ms(latency)


def _nobody_has_heard_of_it(today: FaultDay) -> Finding | None:
    mine = _made(today.answers[NAME])
    for method, arguments in (("is_available", ("broker-z", 1_000)), ("is_reachable", ("broker-z",))):
        answer = getattr(mine, method)(*arguments)
        if answer is not True:
            rule = (
                (UNKNOWN_RULE if method == "is_available" else REACHABLE_RULE)
                if isinstance(answer, bool)
                else BOOL_RULE
            )
            return Finding(rule, f"{method}('broker-z') of an object without updates", True, answer)
    return None


def _edges_of_the_classes(today: FaultDay) -> Finding | None:
    """Each threshold, one ms below it, and the last ms of each time, asked of a fresh object; then a late failure."""
    edges = [(latency, False) for latency in sorted({bound - less for bound in LATENCY_MAX_MS for less in (0, 1)})]
    for latency, isolation in (*edges, (FAILED_AFTER_MS, True)):
        mine = _made(today.answers[NAME])
        duration = LatencyFaultStrategy().duration_ms(ISOLATION_LATENCY_MS if isolation else latency)
        mine.update("broker-a", latency, 1_000, isolation=isolation, reachable=True)
        for after, right in ((duration - 1, False), (duration, True)):
            if after < 0:
                continue
            answer = mine.is_available("broker-a", 1_000 + after)
            if answer is not right:
                ended = "a failure with isolation=True" if isolation else "an answer"
                where = f"{ended} after {latency} ms; is_available {after} ms later"
                call = Call(to=NAME, latency_ms=latency, asked_after_ms=after, right=right, about="an object alone")
                rule = ISOLATION_RULE if isolation else OVER_RULE if right else CLASS_RULE
                return Finding(rule, where, right, answer, call=call)
    return None


PROMISES: Sequence[Any] = (_raises_nothing, _answers_as_the_table, _nobody_has_heard_of_it, _edges_of_the_classes)

STRATEGY = World(
    "lab02.strategy",
    "MyFaults()",
    points=4,
    about="a producer and brokers that slow down",
    day=day,
    promises=PROMISES,
    forbids=FORBIDS["lab02.strategy"],
)
