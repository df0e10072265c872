"""What lab 16's days are made of: orders of a shop, groups that read them, and what must be true at the end of a day.

topic orders, two queues     tags paid and new     an order says how often it fails
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.course.kit.days import Day, Does, Played, Topics
from mqlab.course.kit.promises import Promise, ends_with
from mqlab.course.teach.exercises import Finding
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS, RECONSUME_LATER
from mqlab.rocketmq.wire.message import Message

TOPIC, GROUP, BROKER = "orders", "billing", "broker-a"
PAID, NEW = "paid", "new"
QUEUES = 2
SYNC = {"flush_disk_type": "SYNC_FLUSH"}

DONE_RULE = "Every message that is stored and wanted is given to the group, until it ends well"
ONCE_RULE = "Nobody died and nothing failed: then each message is given once"


@dataclass(frozen=True, slots=True)
class BookOrder:
    """One order: its key and tag ("": none), how often it fails, how large it is."""

    key: str
    tag: str = PAID
    fails: int = 0
    books: int = 1

    def message(self) -> Message:
        """The message, made again."""
        properties = {"fails": str(self.fails)}
        return Message(TOPIC, b"a book, " * self.books, keys=self.key, tags=self.tag or None, properties=properties)


def work(messages: Sequence[Any], context: Any) -> str:
    """The groups' listener: an order fails as often as it says."""
    fails = int(messages[0].properties.get("fails", "0"))
    return RECONSUME_LATER if messages[0].reconsume_times < fails else CONSUME_SUCCESS


def reads(played: Played, group: str = GROUP, tags: str = "*", name: str = "", **settings: Any) -> Any:
    """A started member of a group, called group-1 unless named."""
    member = played.lab.push_consumer(group, name=name or f"{group}-1", **settings)
    member.subscribe(TOPIC, tags)
    member.on_messages(work)
    member.start()
    return member


def sends(played: Played, orders: Sequence[BookOrder], pause: str | int = 0) -> list[Any]:
    """Send orders, one after the other; what each send returned."""
    results = []
    for order in orders:
        result = played.producer("shop").send(order.message())
        played.sent[result.msg_id] = order
        results.append(result)
        if pause:
            played.lab.run_for(pause)
    return results


def pulls_by_hand(played: Played) -> tuple[Any, list[Any]]:
    """A consumer that pulls when it is told to, and the queues of the topic."""
    puller = played.lab.pull_consumer("looks")
    return puller, puller.fetch_subscribe_message_queues(TOPIC)


def orders_of(rng: random.Random, count: int, first: int = 0, tag: Callable[[int], str] = lambda number: PAID) -> Any:
    """So many orders of different sizes."""
    return [
        BookOrder(f"order-{number}", tag(number), books=rng.randint(1, 40)) for number in range(first, first + count)
    ]


def day_of(story: Callable[[Played, random.Random], None], name: str, **broker: Any) -> Callable[[int], Day]:
    """The maker of a day from its story, which gets what was drawn by lot from the seed."""

    def make(seed: int) -> Day:
        def act(played: Played) -> None:
            story(played, random.Random(f"{name} {seed}"))

        return Day((Topics((TOPIC,), QUEUES), Does(act)), broker={**SYNC, **broker})

    return make


def all_are_done(group: str = GROUP, but: Callable[[BookOrder], bool] = lambda order: False) -> Promise:
    """Every order that a group wants ends well in one of its deliveries; ``but``: those that need not."""

    def done(played: Played, row: Any) -> bool:
        return bool(row.status == CONSUME_SUCCESS)

    return ends_with(group, done, DONE_RULE, "one that ends well", but)


def once_each(group: str = GROUP) -> Promise:
    """No order is given twice with the same reconsume_times."""

    def first(played: Played) -> Finding | None:
        seen: set[tuple[str, int]] = set()
        for row in played.deliveries(group):
            delivery = (row.msg_id, row.reconsume_times)
            if delivery in seen:
                where = f"{played.sent[row.msg_id].key}, reconsume_times {row.reconsume_times}"
                return Finding(ONCE_RULE, where, "one delivery", "two")
            seen.add(delivery)
        return None

    return first


def dies(played: Played, *, power: bool = False, keep: Callable[[Any], bool] | None = None, back: str = "2s") -> None:
    """The broker's process is killed, or its machine's power cut; it is started again after a while."""
    if power:
        played.lab.power_off(BROKER, keep=keep)
    else:
        played.lab.kill(BROKER)
    played.deaths_ms.append(played.lab.now_ms)
    played.lab.run_for(back)
    played.lab.start(BROKER)
