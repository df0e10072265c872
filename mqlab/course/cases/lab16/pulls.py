"""Lab 16's second exercise: MyPulls, what a pull is answered with, and which pulls wait.

filtered    32 at most, by tag, next_offset past what was filtered      outside   before or past the queue
woken       held until a wanted message arrives, by all that want it    over      held until the time is over
"""

from __future__ import annotations

import random

from mqlab.course.cases.lab16.form import BrokerPromise, PartOfBroker
from mqlab.course.cases.lab16.orders import (
    GROUP,
    NEW,
    PAID,
    BookOrder,
    all_are_done,
    day_of,
    orders_of,
    pulls_by_hand,
    reads,
    sends,
)
from mqlab.course.kit.days import Played
from mqlab.course.kit.promises import Promise
from mqlab.course.teach.exercises import Finding

AUDIT = "audit"
GIFT = "gift"  # what the first day's group wants next to paid orders
WAITS_MS = 15_000  # how long a member's pull may be held
HELD_RULE = (
    "A pull that finds nothing and has seen nothing is held until something comes or its time is over: an empty answer "
    "makes its client ask again at once"
)


def _is_new(order: BookOrder) -> bool:
    return order.tag not in (PAID, GIFT)


def held(*groups: str) -> Promise:
    """No pull of these groups was answered with nothing, not even a further offset, before its time."""

    def first(played: Played) -> Finding | None:
        for pull in (pull for group in groups for pull in played.lab.pulls(group)):
            is_empty = not pull.found and pull.next_offset == pull.from_offset
            if is_empty and pull.left_ms - pull.arrived_ms < WAITS_MS:
                where = f"a pull of {pull.group} from offset {pull.from_offset} of queue {pull.queue_id}"
                return Finding(HELD_RULE, where, "held", f"answered after {pull.left_ms - pull.arrived_ms} ms")
        return None

    return first


def every_wanted(played: Played, rng: random.Random) -> None:
    """A group of two tags that few messages have comes when many are there already."""
    few = {number: rng.choice((PAID, GIFT)) for number in rng.sample(range(90), rng.randint(9, 14))}
    sends(played, orders_of(rng, 90, tag=lambda number: few.get(number, NEW)))
    reads(played, tags=f"{PAID} || {GIFT}", pull_batch_size=rng.choice((4, 32)))
    played.lab.run_for("2s")


def never_past(played: Played, rng: random.Random) -> None:
    """Pulls of every size, from every offset, over tags that look alike and none: none is left out or given twice."""
    sends(played, orders_of(rng, 70, tag=lambda number: rng.choice((PAID, PAID, NEW, f"un{PAID}", ""))))
    played.lab.run_for("1s")
    puller, queues = pulls_by_hand(played)
    for queue in queues:
        offset, end = 0, puller.max_offset(queue)
        while offset < end:
            offset = max(puller.pull(queue, PAID, offset, rng.randint(1, 9)).next_begin_offset, offset + 1)
    reads(played, tags=PAID)
    played.lab.run_for("2s")


def woken(played: Played, rng: random.Random) -> None:
    """Two groups wait on the same queues; orders come one by one, wanted by one, by both, by the first again."""
    reads(played, tags=PAID)
    reads(played, AUDIT)
    played.lab.run_for("2s")
    if held(GROUP, AUDIT)(played):  # there is no end of pulls
        return
    for number in range(rng.randint(10, 14)):
        sends(played, [BookOrder(f"order-{number}", rng.choice((PAID, NEW)))], pause=rng.choice((0, 70, 2_300)))
    sends(played, [BookOrder("order-99")])
    played.lab.run_for("5s")


def over(played: Played, rng: random.Random) -> None:
    """Nothing comes for longer than a pull waits; then something does."""
    reads(played, tags=PAID)
    played.lab.run_for("2s")
    if held(GROUP)(played):
        return
    played.lab.run_for(rng.choice(("43s", "48s")))
    sends(played, [BookOrder("order-0", NEW), BookOrder("order-1", NEW), BookOrder("order-2"), BookOrder("order-3")])
    played.lab.run_for("20s")


def outside(played: Played, rng: random.Random) -> None:
    """Pulls at the queue's end and past it, with messages and without any. A client sends no pull from before it."""
    puller, queues = pulls_by_hand(played)
    puller.pull(queues[0], "*", 0)
    sends(played, orders_of(rng, 12))
    played.lab.run_for("1s")
    for queue in queues:
        end = puller.max_offset(queue)
        for offset in (end, end + 1, end + rng.randint(2, 900), 0):
            puller.pull(queue, "*", offset)
    reads(played)
    played.lab.run_for("2s")


PULLS = PartOfBroker(
    "lab16.pulls",
    "MyPulls",
    "pulls",
    points=6,
    about="a broker with your pulls",
    promises=[
        BrokerPromise(
            "every wanted message is offered", day_of(every_wanted, "lab16.every"), (all_are_done(but=_is_new),)
        ),
        BrokerPromise("offsets never pass a message", day_of(never_past, "lab16.past"), (all_are_done(but=_is_new),)),
        BrokerPromise(
            "an arrival wakes who waits",
            day_of(woken, "lab16.woken"),
            (held(GROUP, AUDIT), all_are_done(but=_is_new), all_are_done(AUDIT)),
        ),
        BrokerPromise("nobody waits for ever", day_of(over, "lab16.over"), (held(GROUP), all_are_done(but=_is_new))),
        BrokerPromise("outside of the queue", day_of(outside, "lab16.outside"), (all_are_done(GROUP),)),
    ],
)
