"""Lab 16's fourth exercise: MyRetries, what becomes of a message that was sent back, and when it comes again.

due     the delay of its level, not earlier, once        dead     after the last retry, or with a level below 0
copy    one retry more, the same properties              crash    a retry that waited comes in the next life
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from mqlab.course.cases.lab16.form import BrokerPromise, PartOfBroker
from mqlab.course.cases.lab16.orders import (
    GROUP,
    TOPIC,
    BookOrder,
    all_are_done,
    day_of,
    dies,
    orders_of,
    reads,
    sends,
)
from mqlab.course.kit.days import Played
from mqlab.course.kit.promises import Promise
from mqlab.course.teach.exercises import Finding
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS, RECONSUME_LATER
from mqlab.rocketmq.wire.names import dlq_topic

AUDIT = "audit"
GIVES_UP = "gives up"  # its listener asks for level -1
FIVE = "1s 5s 10s 30s 1m"  # the delays of the day on which a listener asks for level 6
DEAD_RULE = (
    "A message that failed as often as allowed, or whose level is below 0, is in %DLQ%group, once, and comes no more"
)


def _fails(rng: random.Random, count: int, most: int) -> list[BookOrder]:
    return [BookOrder(f"order-{number}", fails=rng.choice((0, 0, 1, 1, most))) for number in range(count)]


def due(played: Played, rng: random.Random) -> None:
    """Orders fail once or twice, two groups the same ones, and each comes again after its delay."""
    reads(played)
    reads(played, AUDIT)
    sends(played, _fails(rng, rng.randint(5, 8), 2), pause=rng.choice((0, 400)))
    sends(played, [BookOrder("order-98", fails=1), BookOrder("order-99", fails=2)])
    played.lab.run_for("75s")


def levels(played: Played, rng: random.Random) -> None:
    """Listeners name the level: a short one after a long one, the longest there is, and one past the table's end."""
    wanted = {f"order-{number}": level for number, level in enumerate((5, 1, 2, 4, rng.choice((1, 2, 3)), 6))}

    def later(messages: Sequence[Any], context: Any) -> str:
        if messages[0].reconsume_times:
            return CONSUME_SUCCESS
        context.delay_level_when_next_consume = wanted[messages[0].keys]
        return RECONSUME_LATER

    _reads_with(played, later)
    sends(played, [BookOrder(key) for key in wanted], pause=rng.choice((0, 700)))
    played.lab.run_for("140s")


def dead(played: Played, rng: random.Random) -> None:
    """One order fails for ever, one is given up at once; the others end well."""

    def work(messages: Sequence[Any], context: Any) -> str:
        order = messages[0]
        if order.tags == GIVES_UP:
            context.delay_level_when_next_consume = -1
        fails = 99 if order.tags == GIVES_UP else int(order.properties["fails"])
        return RECONSUME_LATER if order.reconsume_times < fails else CONSUME_SUCCESS

    _reads_with(played, work, max_reconsume_times=2)
    sends(
        played,
        [*_fails(rng, 4, 2), BookOrder("order-90", fails=99), BookOrder("order-91", GIVES_UP), BookOrder("order-92")],
    )
    played.lab.run_for("80s")


def crashed(played: Played, rng: random.Random) -> None:
    """The broker is killed while retries wait, and its power is cut while others do; some were due meanwhile."""
    reads(played)
    sends(played, [BookOrder("order-0", fails=1), BookOrder("order-1", fails=2), *orders_of(rng, 3, 2)])
    played.lab.run_for(f"{rng.randint(2, 8)}s")
    dies(played, back=rng.choice(("2s", "9s")))
    played.lab.run_for("15s")
    sends(played, [BookOrder("order-10", fails=1), BookOrder("order-11", fails=1)])
    played.lab.run_for(f"{rng.randint(2, 8)}s")
    dies(played, power=True)
    played.lab.run_for("110s")
    dies(played)  # what came long ago comes no more
    played.lab.run_for("3s")


def _reads_with(played: Played, listener: Any, **settings: Any) -> None:
    settings["consume_from_where"] = "CONSUME_FROM_FIRST_OFFSET"  # for handlers that answer 22
    member = played.lab.push_consumer(GROUP, name="billing-1", **settings)
    member.subscribe(TOPIC, "*")
    member.on_messages(listener)
    member.start()


def are_dead(group: str, is_dead: Any) -> Promise:
    """These orders are dead letters, once each, and no other is; none of them comes after that."""

    def first(played: Played) -> Finding | None:
        store = played.lab.broker().store
        units = store.max_offset(dlq_topic(group), 0)
        expected = [order.key for order in played.sent.values() if is_dead(order)]
        if units != len(expected):
            return Finding(DEAD_RULE, f"messages in {dlq_topic(group)}", len(expected), units)
        return None

    return first


def _is_dead(order: BookOrder) -> bool:
    return order.fails > 2 or order.tag == GIVES_UP


THE_DEAD = all_are_done(but=_is_dead), are_dead(GROUP, _is_dead)
"""What must be true at the end of ``dead``."""

RETRIES = PartOfBroker(
    "lab16.retries",
    "MyRetries",
    "retries",
    points=6,
    about="a broker with your retries",
    promises=[
        BrokerPromise("retries come", day_of(due, "lab16.due"), (all_are_done(), all_are_done(AUDIT))),
        BrokerPromise("each at its time", day_of(levels, "lab16.levels", message_delay_level=FIVE), (all_are_done(),)),
        BrokerPromise("the dead come no more", day_of(dead, "lab16.dead"), THE_DEAD),
        BrokerPromise("a crash loses no retry", day_of(crashed, "lab16.waits"), (all_are_done(),)),
    ],
)
