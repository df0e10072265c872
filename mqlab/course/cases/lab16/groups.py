"""Lab 16's third exercise: MyGroups, who is a member of a group, and how far the group has read.

members    come, come again, leave, and lose their connection     offsets   of two groups on the same queues
crash      what was saved is there in the next life, never more than was committed
"""

from __future__ import annotations

import random

from mqlab.course.cases.lab16.form import BrokerPromise, PartOfBroker
from mqlab.course.cases.lab16.orders import (
    BROKER,
    GROUP,
    NEW,
    PAID,
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
from mqlab.rocketmq.wire.message import MessageQueue

AUDIT = "audit"


def members(played: Played, rng: random.Random) -> None:
    """Two members, then three, one leaves, one loses its connection; another group has members of its own."""
    first, second = reads(played), reads(played, name="billing-2")
    reads(played, AUDIT)
    sends(played, orders_of(rng, 6))
    played.lab.run_for("25s")
    reads(played, name="billing-3")
    played.lab.run_for("5s")
    rng.choice((first, second)).shutdown()
    played.lab.run_for("10s")
    played.lab.kill("billing-3")
    played.lab.run_for("25s")
    sends(played, orders_of(rng, 6, 6))
    played.lab.run_for("25s")


def offsets(played: Played, rng: random.Random) -> None:
    """Two groups, one of them far behind; a member continues where its group was; then a group goes back, to 0 at last;
    then three commits whose group, topic and queue are the same letters, divided elsewhere.
    """
    member = reads(played)
    slow = reads(played, AUDIT, tags=PAID)
    sends(played, orders_of(rng, rng.randint(9, 14), tag=lambda number: rng.choice((PAID, NEW))))
    played.lab.run_for("12s")
    slow.shutdown()
    sends(played, orders_of(rng, 3, 30))
    played.lab.run_for("6s")
    member.shutdown()
    sends(played, orders_of(rng, 5, 20))
    played.lab.run_for("2s")
    reads(played, name="billing-2")
    reads(played, AUDIT, name="audit-2")
    played.lab.run_for("25s")
    puller = played.lab.pull_consumer(AUDIT, name="audit-3")
    (queue, _) = puller.fetch_subscribe_message_queues(TOPIC)
    for offset in (5, 2, 0):
        puller.update_consume_offset_to_broker(queue, offset)
    puller.fetch_consume_offset(queue, from_store=True)
    alike = f"{TOPIC}1"
    played.lab.create_topic(alike, read_queue_nums=1, write_queue_nums=1)
    queues = MessageQueue(TOPIC, BROKER, 10), MessageQueue(alike, BROKER, 0), MessageQueue(TOPIC, BROKER, 0)
    reads(played, f"{AUDIT}1")  # a group is there when a member of it was
    played.lab.run_for("500ms")
    pullers = puller, puller, played.lab.pull_consumer(f"{AUDIT}1", name="audit-4")
    for offset, (asks, queue) in enumerate(zip(pullers, queues, strict=True), 1):
        asks.update_consume_offset_to_broker(queue, offset)
    for asks, queue in zip(pullers, queues, strict=True):
        asks.fetch_consume_offset(queue, from_store=True)


def crashed(played: Played, rng: random.Random) -> None:
    """The broker is killed some seconds after a save, and once just after a start.

    A group is switched off long before, and a member of the other one dies with the broker.
    """
    reads(played)
    reads(played, name="billing-2")
    audit = reads(played, AUDIT)
    sends(played, orders_of(rng, 8))
    played.lab.run_for("6s")
    audit.shutdown()
    played.lab.run_for(f"{rng.randint(12, 17)}s")
    sends(played, orders_of(rng, 4, 8))
    played.lab.run_for(f"{rng.randint(1, 7)}s")
    played.lab.kill("billing-2")
    dies(played)
    played.lab.run_for("500ms")
    dies(played)
    sends(played, orders_of(rng, 4, 12))
    played.lab.run_for("40s")


def power_is_cut(played: Played, rng: random.Random) -> None:
    """What was saved survives a power cut, also if it is the first save or the third."""
    reads(played)
    for number in range(rng.randint(2, 3)):
        sends(played, orders_of(rng, 3, 10 * number))
        played.lab.run_for(f"{rng.randint(8, 13)}s")
    dies(played, power=True)
    sends(played, [BookOrder("order-99")])
    played.lab.run_for("40s")


def _is_new(order: BookOrder) -> bool:
    return order.tag != PAID


GROUPS = PartOfBroker(
    "lab16.groups",
    "MyGroups",
    "groups",
    points=5,
    about="a broker with your groups",
    promises=[
        BrokerPromise("everybody knows who is there", day_of(members, "lab16.members"), (all_are_done(),)),
        BrokerPromise(
            "offsets never pass", day_of(offsets, "lab16.offsets"), (all_are_done(), all_are_done(AUDIT, _is_new))
        ),
        BrokerPromise(
            "killed, it has lost nothing that was saved", day_of(crashed, "lab16.killed"), (all_are_done(GROUP),)
        ),
        BrokerPromise(
            "the power cut took nothing that was saved", day_of(power_is_cut, "lab16.cut"), (all_are_done(),)
        ),
    ],
)
