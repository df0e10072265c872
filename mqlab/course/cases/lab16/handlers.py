"""Lab 16's fifth exercise: HANDLERS, six request codes as they are on the wire, over the course's other parts.

310 send, 11 pull     stored, and brought to who asks or waits       36 send back     a retry, a dead letter
14 and 15             where a group is, and where it begins          38 members       who shares the queues
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from mqlab.course.cases.lab16.form import BrokerPromise, PartOfBroker
from mqlab.course.cases.lab16.orders import (
    GROUP,
    NEW,
    PAID,
    QUEUES,
    TOPIC,
    BookOrder,
    all_are_done,
    day_of,
    dies,
    once_each,
    orders_of,
    reads,
    sends,
)
from mqlab.course.cases.lab16.retries import THE_DEAD, dead
from mqlab.course.cases.lab16.right import RightGroups, RightPulls, RightRetries
from mqlab.course.kit.days import Played
from mqlab.course.teach.exercises import Finding

MOVES_RULE = "UPDATE_CONSUMER_OFFSET moves the group: when all is done, its offsets are at the ends of the queues"
SHARED_RULE = "GET_CONSUMER_LIST_BY_GROUP tells each member all members: then each queue has one owner"
WAITS_RULE = "A pull that finds nothing is held: a member does not ask again and again"
NO_OFFSET_RULE = (
    "QUERY_CONSUMER_OFFSET of a group that never committed gets code 22: then its client decides, and with default "
    "settings it begins at the end of the queue"
)
AUDIT, LATE = "audit", "late"
BUSY = 1_500
"""Steps in a second that no day of these has where pulls are held."""


def _reads(played: Played, group: str = GROUP, **settings: Any) -> Any:
    """A member of a group that begins with the first message where the broker knows no offset."""
    return reads(played, group, consume_from_where="CONSUME_FROM_FIRST_OFFSET", **settings)


def sent(played: Played, rng: random.Random) -> None:
    """More messages than one pull brings, sent before any group reads, then some when two groups wait."""
    sends(played, orders_of(rng, rng.randint(80, 95)))
    _reads(played)
    reads(played, LATE)
    played.lab.run_for("10s")
    sends(played, orders_of(rng, 8, 100), pause="300ms")
    played.lab.run_for("10s")


def pulled(played: Played, rng: random.Random) -> None:
    """Two groups, one of a rare tag; then nothing for a while, then a message for both."""
    sends(played, orders_of(rng, 40, tag=lambda number: PAID if rng.random() < 0.2 else NEW))
    _reads(played, tags=PAID, pull_batch_size=rng.choice((4, 8)))
    _reads(played, AUDIT)
    played.lab.run_for("3s")
    if _busiest_second(played) > BUSY:  # they_wait has seen enough
        return
    played.lab.run_for("42s")
    sends(played, [BookOrder("order-98", NEW), BookOrder("order-99")])
    played.lab.run_for("10s")


def offsets(played: Played, rng: random.Random) -> None:
    """A member reads, leaves, and another goes on; the broker is killed in between. Another group goes back to 0."""
    member = _reads(played)
    sends(played, orders_of(rng, rng.randint(8, 14)))
    played.lab.run_for("12s")
    member.shutdown()
    played.lab.run_for("6s")
    dies(played)
    sends(played, orders_of(rng, 5, 30))
    _reads(played, name="billing-2")
    played.lab.run_for("30s")
    puller = played.lab.pull_consumer(AUDIT)
    (queue, _) = puller.fetch_subscribe_message_queues(TOPIC)
    puller.update_consume_offset_to_broker(queue, 0)
    puller.fetch_consume_offset(queue, from_store=True)


def shared(played: Played, rng: random.Random) -> None:
    """Two members share the queues; one leaves."""
    first, second = _reads(played), _reads(played, name="billing-2")
    played.lab.run_for("25s")
    sends(played, orders_of(rng, rng.randint(8, 12)))
    played.lab.run_for("8s")
    rng.choice((first, second)).shutdown()
    sends(played, orders_of(rng, 6, 20))
    played.lab.run_for("25s")


def _is_old(order: BookOrder) -> bool:
    return int(order.key.removeprefix("order-")) < 100


def began_at_the_end(played: Played) -> Finding | None:
    """The group that came late with default settings has got no order of before."""
    old = [order.key for row in played.deliveries(LATE) if _is_old(order := played.sent[row.msg_id])]
    return Finding(NO_OFFSET_RULE, f"orders of before that {LATE} got", 0, len(old)) if old else None


def at_the_end(played: Played) -> Finding | None:
    """The group's offsets are at the ends of the queues."""
    broker = played.lab.broker()
    ends = [broker.store.max_offset(TOPIC, queue_id) for queue_id in range(QUEUES)]
    held = [broker.offset_table.query(GROUP, TOPIC, queue_id) for queue_id in range(QUEUES)]
    return None if held == ends else Finding(MOVES_RULE, f"offsets of {GROUP}, queues 0 and 1", ends, held)


def two_owners(played: Played) -> Finding | None:
    """While there were two members, each has got messages of its own queue only."""
    owners: dict[str, set[str]] = {}
    for row in played.deliveries(GROUP):
        owners.setdefault(str(row.message_queue), set()).add(row.client)
    first = {order.key for order in list(played.sent.values())[:8]}
    clients = {row.client for row in played.deliveries(GROUP) if played.sent[row.msg_id].key in first}
    if len(clients) < 2:
        return Finding(SHARED_RULE, "members that got the first orders", 2, sorted(clients))
    return None


def they_wait(played: Played) -> Finding | None:
    """Members wait at the broker: in no second is there more to do than sends and deliveries make."""
    busiest = _busiest_second(played)
    if busiest <= BUSY:
        return None
    return Finding(WAITS_RULE, "steps in the busiest second", f"at most {BUSY:,}", busiest)


def _busiest_second(played: Played) -> int:
    return max(Counter(record.now_ms // 1_000 for record in played.lab.journal).values())


def _is_new(order: BookOrder) -> bool:
    return order.tag != PAID


ENDS_OF_SENT = all_are_done(), once_each(), all_are_done(LATE, _is_old), began_at_the_end


HANDLERS = PartOfBroker(
    "lab16.handlers",
    "HANDLERS",
    "handlers",
    points=7,
    about="a broker with your handlers",
    promises=[
        BrokerPromise("SENT is stored", day_of(sent, "lab16.sent"), ENDS_OF_SENT),
        BrokerPromise(
            "every wanted message is offered",
            day_of(pulled, "lab16.pulled"),
            (they_wait, all_are_done(but=_is_new), all_are_done(AUDIT), once_each(), once_each(AUDIT)),
        ),
        BrokerPromise(
            "offsets go on", day_of(offsets, "lab16.wire_offsets"), (all_are_done(), at_the_end, once_each())
        ),
        BrokerPromise("retries come", day_of(dead, "lab16.wire_back"), THE_DEAD),
        BrokerPromise("everybody knows who is there", day_of(shared, "lab16.shared"), (all_are_done(), two_owners)),
    ],
    others={"pulls": RightPulls, "groups": RightGroups, "retries": RightRetries},
)
