"""The life of an order as events in a queue, the warehouse that handles them, and what lab 05's days share.

    created ─▶ paid ─▶ shipped      one order; its events are handled in this order, or a customer gets an empty parcel

An answer gets the warehouse as a function, ``handle(message, context)``. It takes its time, may fail, and knows what it
has done: handling an event again changes nothing. What it did is what a day is judged by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqlab.course.kit.days import LabDatabases, NotMade, Played, parameters_of, takes
from mqlab.course.kit.promises import LISTENER_ERRORS
from mqlab.course.teach.exercises import Finding
from mqlab.course.teach.lives import anew
from mqlab.durations import calendar
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.client.consuming.listener import as_call
from mqlab.rocketmq.wire.message import Message

TOPIC, GROUP, NODE, OTHER = "orders", "billing", "billing-1", "billing-2"
LIFE = ("created", "paid", "shipped")
FOR_EVER = 1_000_000
RAISED_RULE = "An exception in a listener counts as a failure, and in order it holds the queue: catch what you expect"
ORDERLY_ERRORS = {
    "database is locked": LISTENER_ERRORS["database is locked"],
    "which is not one of": "An orderly listener returns SUCCESS or SUSPEND_CURRENT_QUEUE_A_MOMENT (by hand COMMIT and "
    "ROLLBACK); anything else counts as a suspension",
    "": RAISED_RULE,
}
"""Part of an error's text -> the rule that was broken; the last one is for all others."""
MANY_LIVES = {"total_seconds": 120, "lab_seconds": 240}
"""Limits for a day that is played once per line: ten times what a good answer needs."""
AGAIN_MS = 1  # the warehouse knows what it has done


@dataclass(frozen=True, slots=True)
class OrderEvent:
    """One event of an order; ``takes_ms`` in the warehouse, where its first ``fails`` tries fail."""

    order: str
    step: str
    takes_ms: int = 200
    fails: int = 0

    @property
    def key(self) -> str:
        """What a finding calls it."""
        return f"{self.order} {self.step}"

    def message(self) -> Message:
        """The message that the shop sends: the order is its key, what happened its tag."""
        return Message(TOPIC, f"{self.step} 订单 {self.order}".encode(), tags=self.step, keys=self.order)


@dataclass(slots=True)
class WarehouseCall:
    """One call of the warehouse; ``ended_ms`` None: it was cut off by a death, or is under way."""

    event: OrderEvent
    client: str
    began_ms: int
    ended_ms: int | None = None
    succeeded: bool = False


@dataclass(slots=True)
class EventDay(Played):
    """A day with a warehouse. ``wrong``: how an answer that is not a listener was found out."""

    works: list[WarehouseCall] = field(default_factory=list)
    events: list[OrderEvent] = field(default_factory=list)
    error: Exception = field(default_factory=lambda: ConnectionError("the warehouse is busy"))

    def handle(self, message: Any, context: Any) -> None:
        """The warehouse handles an event; raises the day's error when it fails."""
        event = self.event_of(message)
        tries = sum(work.event is event for work in self.works)
        done = any(work.succeeded for work in self.works if work.event is event)
        work = WarehouseCall(event, context._starter.ports.node, self.lab.now_ms)
        self.works.append(work)
        context.sleep(AGAIN_MS if done else event.takes_ms)
        work.ended_ms = self.lab.now_ms
        if not done and tries < event.fails:
            raise self.error
        work.succeeded = True

    def event_of(self, message: Any) -> OrderEvent:
        """The event that a message, or a row with its tag and key, is about."""
        return next(event for event in self.events if event.order == message.keys and event.step == message.tags)

    def done_ms(self, event: OrderEvent) -> int | None:
        """When an event was first handled to its end, None if it was not."""
        ends = [work.ended_ms for work in self.works if work.event is event and work.succeeded]
        return next((ms for ms in ends if ms is not None), None)

    def stored(self) -> list[Any]:
        """The messages of the topic, in the order of the log."""
        return list(self.lab.store().messages(TOPIC))


@dataclass(frozen=True, slots=True)
class MadeWith:
    """The learner's function, which gets some of the day and returns a listener; called again in each life."""

    name: str
    given: Callable[[EventDay, Any], Sequence[Any]]  # the day, the databases -> its arguments
    form: str

    def listener(self, played: EventDay) -> type:
        """A class that a consumer instantiates at each start."""
        mine, lab = self, played.lab
        mine._made(played.answers[self.name], played, lab)  # what cannot be made is told before anything is played

        class EachLife:
            def __init__(self) -> None:
                self.consume_message = as_call(mine._made(anew(played.answers[mine.name], mine.name), played, lab))

        return EachLife

    def _made(self, function: Callable[..., Any], played: EventDay, lab: Lab) -> Any:
        arguments = self.given(played, LabDatabases(lab))
        if not takes(function, len(arguments)):
            rule = f"{self.name}{self.form} returns a listener: a function inside it, (messages, context)"
            raise NotMade(self.name, parameters_of(function), rule, f"the arguments of {self.name}", self.form)
        listener = function(*arguments)
        method = getattr(listener, "consume_message", listener)
        if not callable(method):
            raise NotMade(self.name, listener)
        if not takes(method, 2):
            rule = f"{self.name} returns a listener: it is called with a list of messages and a context"
            raise NotMade(self.name, parameters_of(method), rule, "the listener's arguments", "(messages, context)")
        return listener


@dataclass(frozen=True, slots=True)
class ReadsInOrder:
    """A consumer of billing that reads in order, with a listener made by the learner's function."""

    made: MadeWith
    settings: dict[str, Any] = field(default_factory=dict)
    name: str = NODE

    def act(self, played: Any) -> None:
        """Start it."""
        consumer = played.lab.push_consumer(GROUP, name=self.name, **self.settings)
        consumer.subscribe(TOPIC, "*")
        consumer.on_messages_orderly(self.made.listener(played))
        consumer.start()


@dataclass(frozen=True, slots=True)
class SendsEvents:
    """Events that the shop sends one after the other, each order to its own queue."""

    events: Sequence[OrderEvent]
    every: str = ""

    def act(self, played: Any) -> None:
        """Send them."""
        shop = played.producer("shop")
        orders = list(dict.fromkeys(event.order for event in self.events))
        played.events += self.events
        for event in self.events:
            sent = shop.send(
                event.message(),
                selector=lambda queues, message, at: queues[at % len(queues)],
                arg=orders.index(event.order),
            )
            played.sent[sent.msg_id] = event
            if self.every:
                played.lab.run_for(self.every)


def predecessor(events: Sequence[OrderEvent], event: OrderEvent) -> OrderEvent | None:
    """The event of the same order that comes before it."""
    own = [other for other in events if other.order == event.order]
    index = own.index(event)
    return own[index - 1] if index else None


def out_of_order(day: EventDay) -> tuple[WarehouseCall, OrderEvent] | None:
    """The first call for an event whose predecessor was not handled to its end when it began."""
    for work in day.works:
        before = predecessor(day.events, work.event)
        if before is None:
            continue
        done_ms = day.done_ms(before)
        if done_ms is None or done_ms > work.began_ms:
            return work, before
    return None


def not_done(day: EventDay) -> OrderEvent | None:
    """The first event that was never handled to its end."""
    return next((event for event in day.events if day.done_ms(event) is None), None)


def moment(day: EventDay, work: WarehouseCall) -> str:
    """Where a call shows, in words."""
    return f"{work.event.key}, begun at {calendar(work.began_ms)} by {work.client}"


def moved_too_far(day: EventDay, rule: str) -> Finding | None:
    """The first time that the group's offset passed an event that was not handled to its end."""
    entries = {(message.queue_id, message.queue_offset): day.event_of(message) for message in day.stored()}
    for record, values in day.lab.journal.changes("offset.updated"):
        queue = values["queue"]
        if queue.topic != TOPIC:
            continue
        for (queue_id, offset), event in entries.items():
            if queue_id != queue.queue_id or offset >= values["commit_offset"]:
                continue
            done_ms = day.done_ms(event)
            if done_ms is None or done_ms > record.now_ms:
                where = f"{event.key}, entry {offset} of queue {queue_id}, at {calendar(record.now_ms)}"
                expected = "the offset stays until it is handled"
                actual = f"the offset moved to {values['commit_offset']}"
                return Finding(rule, where, expected, actual, step=record.step, lab=day.lab)
    return None
