"""Lab 16's first exercise: MyStore, a log of units and its queues, in a broker that crashes.

stored    numbers, places, order, the message of an id        crash    killed in the middle of a day
time      the first message at a time or later                power    cut: synced is there, a torn end is not
"""

from __future__ import annotations

import random
from collections.abc import Callable

from mqlab.course.cases.lab16.form import BrokerPromise, PartOfBroker
from mqlab.course.cases.lab16.orders import (
    BookOrder,
    all_are_done,
    day_of,
    dies,
    once_each,
    orders_of,
    pulls_by_hand,
    reads,
    sends,
)
from mqlab.course.kit.days import Played
from mqlab.lab.runtime.crash_files import PAGE, Unsynced
from mqlab.rocketmq.wire.message import Message


def stored(played: Played, rng: random.Random) -> None:
    """Messages in two queues and a second topic, one that fails once, and each read by its id."""
    reads(played)
    orders = [*orders_of(rng, rng.randint(20, 26)), BookOrder("order-late", fails=1)]
    results = sends(played, orders)
    played.lab.create_topic("returns", read_queue_nums=1, write_queue_nums=1)
    for number in range(3):
        played.producer("shop").send(Message("returns", b"a book", keys=f"return-{number}"))
    played.lab.run_for("30s")
    for result in rng.sample(results, 5):
        played.lab.admin.view_message(result.offset_msg_id)


def in_order(played: Played, rng: random.Random) -> None:
    """More messages than one pull may bring, read from any offset and with any limit; four in one dispatch."""
    sends(played, orders_of(rng, rng.randint(75, 90)))
    played.lab.run_for("1s")
    puller, queues = pulls_by_hand(played)
    for queue in reversed(queues * 2):
        played.producer("shop").send_async(BookOrder("order-at-once").message(), queue)
    played.lab.run_for("1s")
    for queue in queues:
        end = puller.max_offset(queue)
        for _ in range(4):
            puller.pull(queue, "*", rng.randint(0, end), rng.randint(1, 32))
        puller.pull(queue, "*", 0, 32)
    reads(played)
    played.lab.run_for("15s")


def by_time(played: Played, rng: random.Random) -> None:
    """Messages at different times, then questions about times."""
    moments = [played.lab.now_ms]
    for order in orders_of(rng, 12):
        sends(played, [order], pause=rng.choice((0, 0, 40, 2_500)))
        moments.append(played.lab.now_ms)
    played.lab.run_for("1s")
    puller, queues = pulls_by_hand(played)
    for queue in queues:
        for moment in rng.sample(moments, 8):
            puller.search_offset(queue, moment + rng.randint(-3, 3))
        puller.search_offset(queue, played.lab.now_ms + 1_000)


def crashed(played: Played, rng: random.Random) -> None:
    """The process is killed just after a send, before a dispatch, and later; nothing that was put may be gone."""
    reads(played)
    first = rng.randint(8, 12)
    sends(played, orders_of(rng, first))
    played.lab.run_for(rng.choice(("0ms", "300ms", "2s")))
    dies(played)
    played.lab.run_for("20s")
    sends(played, orders_of(rng, 7, first))
    dies(played)
    played.lab.run_for("20s")
    sends(played, orders_of(rng, 3, first + 7))
    played.lab.run_for("20s")
    played.producer("shop").send_async(BookOrder("order-undispatched").message())
    played.lab.run_until("message.stored")
    dies(played)
    played.lab.run_for("10s")


def power_is_cut(played: Played, rng: random.Random) -> None:
    """SYNC_FLUSH: what was sent survives a power cut."""
    reads(played)
    first = rng.randint(8, 12)
    sends(played, orders_of(rng, first))
    dies(played, power=True)
    played.lab.run_for("20s")
    sends(played, orders_of(rng, 5, first))
    dies(played, power=True)
    played.lab.run_for("25s")


def second_file(played: Played, rng: random.Random) -> None:
    """More than half a megabyte: a log of files begins another one. Then a power cut; each is read by its id."""
    played.producers["shop"] = played.lab.producer("shop", compress_msg_body_over_howmuch=1 << 20)
    results = sends(played, [BookOrder(f"order-{number}", books=rng.randint(8_000, 9_000)) for number in range(9)])
    reads(played, consume_from_where="CONSUME_FROM_FIRST_OFFSET", pull_batch_size=4)
    played.lab.run_for("10s")
    dies(played, power=True)
    played.lab.run_for("10s")
    for result in results:
        played.lab.admin.view_message(result.offset_msg_id)


LARGE = 1_100
"""Books of an order whose body has at least one page (4 KiB) of a file for itself."""


def torn(played: Played, rng: random.Random) -> None:
    """ASYNC_FLUSH: a page inside of a body is gone. The log ends there, and what comes later is written over it."""
    small, large = rng.randint(7, 10), rng.randint(4, 7)
    played.producers["shop"] = played.lab.producer("shop", compress_msg_body_over_howmuch=1 << 20)
    sends(played, orders_of(rng, small, 10))
    played.lab.run_for("1200ms")
    sends(played, [BookOrder(f"order-{number}", books=LARGE) for number in range(30, 30 + large)])
    dies(played, power=True, keep=_all_but_one(rng.randint(1, 2)))
    played.lab.run_for("3s")
    sends(played, [BookOrder("order-50", books=LARGE)])  # as long as the torn one: what was behind it would fit
    played.lab.run_for("3s")
    dies(played)
    played.lab.run_for("3s")
    sends(played, orders_of(rng, 4, 60))
    played.lab.run_for("3s")
    dies(played)
    reads(played)
    played.lab.run_for("10s")


def _all_but_one(number: int) -> Callable[[Unsynced], bool]:
    """What a power cut keeps: all but one of the pages that are inside of a body, counted from 1."""
    inside: list[Unsynced] = []

    def keep(unsynced: Unsynced) -> bool:
        if unsynced.kind != "page":
            return True
        with open(unsynced.path, "rb") as file:
            file.seek(unsynced.page * PAGE)
            page = file.read(PAGE)
        if page != (page[:8] * PAGE)[:PAGE] or page[:8] == bytes(8):
            return True
        inside.append(unsynced)
        return len(inside) != number

    return keep


STORE = PartOfBroker(
    "lab16.store",
    "MyStore",
    "store",
    points=9,
    about="a broker on your store",
    promises=[
        BrokerPromise("SENT is stored", day_of(stored, "lab16.stored"), (all_are_done(), once_each()), 2),
        BrokerPromise("messages come in order", day_of(in_order, "lab16.in_order"), (all_are_done(),)),
        BrokerPromise("offsets by time", day_of(by_time, "lab16.by_time")),
        BrokerPromise("killed, it has lost nothing", day_of(crashed, "lab16.crashed"), (all_are_done(),), 2),
        BrokerPromise("the power cut took nothing that was flushed", day_of(power_is_cut, "lab16.power")),
        BrokerPromise("a second file", day_of(second_file, "lab16.second_file"), (all_are_done(),)),
        BrokerPromise("a torn end", day_of(torn, "lab16.torn", flush_disk_type="ASYNC_FLUSH")),
    ],
)
"""Points: SENT is stored and the crash count twice."""
