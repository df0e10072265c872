"""lab02.selector: all events of an order into one queue, also from another program; and who moves when queues change.

selector(queues, message, arg)     in the shop's producer; the payment service uses RocketMQ's own (HASH)
moved(orders, before, after)       which orders have another queue afterwards
the day                            created and paid; the topic gets another number of queues; shipped and closed
judged by                          the queues in which the events are stored
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab02.clusters import SHOP, TOPIC
from mqlab.course.kit import World
from mqlab.course.kit.calls import marked
from mqlab.course.kit.days import Day, Does, NotMade, Played
from mqlab.course.kit.promises import broken
from mqlab.course.teach.exercises import Call, Exercise, Finding
from mqlab.course.words import refutation
from mqlab.errors import ClientError
from mqlab.rocketmq.wire.java_hash import string_hash
from mqlab.rocketmq.wire.message import Message, MessageQueue

PAYMENT = "payment"
NUMBERS = ((8, 6), (8, 12), (6, 4), (4, 6))
STEPS = (("created", "paid"), ("shipped", "closed"))

QUEUE_RULE = "A selector returns one of the queues that it is given: queues[…]"
SAME_RULE = (
    "As long as the number of queues stays, an order has one queue: it follows from the order's id and the number of "
    "queues alone, not from the message, not from chance, not from what was sent before"
)
OTHERS_RULE = (
    "The payment service is another program: it must compute the same queue from the order's id alone, and "
    "it uses abs(java_hash(order)) % the number of queues"
)
NEGATIVE_RULE = (
    "A Java hash may be negative, and in Python -7 % 8 is 1: take the absolute value first to get 7, as in Java"
)
PLACE_RULE = (
    "The remainder is a place in the list: queues[…]. Every broker has a queue 0 of its own, so a queue's place is not "
    "its queue_id"
)
MOVED_FORM = "moved returns a list of order ids"
MOVED_RULE = "moved names the orders whose queue differs with the new number of queues, and no others"


@dataclass(slots=True)
class SelectorDay(Played):
    """The day. ``queues``: (order, step) -> the queue it was stored in; ``numbers``: queues before and after."""

    numbers: tuple[int, int] = (8, 6)
    orders: list[str] = field(default_factory=list)
    queues: dict[tuple[str, str], int] = field(default_factory=dict)
    moved: Any = None


def day(seed: int) -> Day:
    """Two programs send two events of each order, the number of queues changes, they send two more."""
    rng = random.Random(f"lab02.selector {seed}")
    numbers = NUMBERS[seed % len(NUMBERS)] if seed > 2 else NUMBERS[seed - 1]
    first = rng.randint(100, 900)
    orders = [f"order-{first + rng.randint(0, 2) + 3 * number}" for number in range(rng.randint(22, 28))]

    def goes(today: SelectorDay) -> None:
        today.numbers, today.orders = numbers, orders
        for count, (mine, theirs) in zip(numbers, STEPS, strict=True):
            _queues(today, count)
            for order in orders:
                _sends_mine(today, order, mine)
                message = Message(TOPIC, b"a book", tags=theirs, keys=order)
                result = today.producer(PAYMENT).send(message, selector="HASH", arg=order)
                today.queues[order, theirs] = result.message_queue.queue_id
        today.moved = today.answers["moved"](list(orders), *numbers)

    return Day((Does(goes),), kind=SelectorDay)


def _queues(today: SelectorDay, count: int) -> None:
    """The topic has so many queues, and both programs know it."""
    if today.queues:
        today.lab.admin.update_topic(TOPIC, write_queue_nums=count, read_queue_nums=max(today.numbers))
        today.lab.run_for("35s")
    else:
        today.lab.create_topic(TOPIC, write_queue_nums=count, read_queue_nums=count)


def _sends_mine(today: SelectorDay, order: str, step: str) -> None:
    message = Message(TOPIC, b"a book", tags=step, keys=order)
    try:
        result = today.producer(SHOP).send(message, selector=today.answers["selector"], arg=order)
    except ClientError as error:
        if error.__cause__ is not None and "threw" in error.text:
            raise error.__cause__ from None
        if "select" not in error.text:
            raise
        raise NotMade("selector", error.text, QUEUE_RULE, f"{order}, {step}", "one of the queues") from None
    today.queues[order, step] = result.message_queue.queue_id


def _one_queue_each(today: SelectorDay) -> Finding | None:
    for number, (mine, theirs) in enumerate(STEPS):
        if len({today.queues[order, mine] for order in today.orders}) == 1:
            belief = "lab02.one_queue"
            actual = f"all {len(today.orders)} orders in queue {today.queues[today.orders[0], mine]}"
            return broken(
                today, f"{mine}, with {today.numbers[number]} queues", "several queues", actual, belief=belief
            )
        for order in today.orders:
            queue, other = today.queues[order, mine], today.queues[order, theirs]
            if queue == other:
                continue
            where = f"{order}, with {today.numbers[number]} queues: {mine} of the shop, {theirs} of the payment service"
            actual = f"{mine} in queue {queue}, {theirs} in queue {other}"
            rule, belief = _rule(today, number)
            return Finding(rule, where, f"both in queue {other}", actual, lab=today.lab, belief=belief)
    return None


def _rule(today: SelectorDay, number: int) -> tuple[str, str]:
    mine, theirs = STEPS[number]
    pairs = [(today.queues[order, mine], today.queues[order, theirs]) for order in today.orders]
    count = today.numbers[number]
    if number and all(today.queues[order, mine] == today.queues[order, STEPS[0][0]] for order in today.orders):
        return refutation("lab02.stays"), "lab02.stays"
    # With a negative hash, Python's own remainder counts from the other end.
    if all(queue_id in (other, -other % count) for queue_id, other in pairs):
        return NEGATIVE_RULE, ""
    again = [today.answers["selector"](_listed(today, count), _message(order), order) for order in today.orders]
    if [getattr(queue, "queue_id", None) for queue in again] != [queue_id for queue_id, _ in pairs]:
        return SAME_RULE, ""
    return OTHERS_RULE, ""


def _two_brokers(today: SelectorDay) -> Finding | None:
    """The queues of a topic on two brokers, four on each, as the producer lists them."""
    queues = [replace(queue, broker_name=broker) for broker in ("broker-a", "broker-b") for queue in _listed(today, 4)]
    for order in today.orders:
        call = Call(to="selector", queues=queues, message=_message(order), arg=order)
        right = queues[abs(string_hash(order)) % len(queues)]
        with marked(call):
            queue = today.answers["selector"](queues, call["message"], order)
        if queue != right:
            where = f"{order}, with four queues on each of two brokers"
            expected = f"{right.broker_name}, queue {right.queue_id}"
            actual = f"{queue.broker_name}, queue {queue.queue_id}" if isinstance(queue, MessageQueue) else queue
            return Finding(PLACE_RULE, where, expected, actual, call=call, lab=today.lab)
    return None


def _listed(today: SelectorDay, count: int) -> list[Any]:
    queues = today.producer(SHOP).fetch_publish_message_queues(TOPIC)
    return [replace(queues[0], queue_id=number) for number in range(count)]


def _message(order: str) -> Message:
    return Message(TOPIC, b"a book", keys=order)


def _moved_are_named(today: SelectorDay) -> Finding | None:
    before, after = today.numbers
    right = [order for order in today.orders if today.queues[order, STEPS[0][1]] != today.queues[order, STEPS[1][1]]]
    call = Call(to="moved", orders=today.orders, before=before, after=after, right=right, about=f"{before} -> {after}")
    moved = today.moved
    where = f"moved(orders, {before}, {after})"
    if not isinstance(moved, list | tuple | set | frozenset) or not all(isinstance(key, str) for key in moved):
        rule = "moved returned nothing: end it with return and the result" if moved is None else MOVED_FORM
        return Finding(rule, where, right, moved, call=call, lab=today.lab)
    if sorted(moved) == sorted(right):
        return None
    queue = {order: today.queues[order, STEPS[0][1]] for order in today.orders}
    belief = "lab02.only_removed" if set(moved) == {order for order in today.orders if queue[order] >= after} else ""
    if not moved and after > before:
        belief = "lab02.only_removed"
    wrong = sorted(set(moved) ^ set(right))
    if wrong:
        key = wrong[0]
        stored = f"{key} was in queue {queue[key]} of {before}, and is in {today.queues[key, STEPS[1][1]]} of {after}"
        where = f"{where}: {stored}"
    rule = refutation(belief) if belief else MOVED_RULE
    return Finding(rule, where, right, list(moved), call=call, lab=today.lab, belief=belief)


PROMISES: Sequence[Any] = (_one_queue_each, _two_brokers, _moved_are_named)
_WORLD = World(
    "lab02.selector",
    "selector(queues, message, arg)",
    points=3,
    about="two programs and another number of queues",
    day=day,
    promises=PROMISES,
    forbids=FORBIDS["lab02.selector"],
)
SELECTOR: Exercise = replace(_WORLD, defines=("selector", "moved"))
