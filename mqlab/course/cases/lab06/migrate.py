"""lab06.migrate: a running group changes from ``paid`` to ``paid || shipped`` while orders keep coming.

    three members, backlog behind them ─▶ traffic ─▶ the learner's story, five minutes at most ─▶ more traffic ─▶ judged

What each queue holds is read from the store, who got what from the deliveries, offsets from the journal.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mqlab.course.kit import World
from mqlab.course.kit.days import Day, Does, Played, Topics, Waits
from mqlab.course.kit.promises import Promise
from mqlab.course.teach.exercises import Finding
from mqlab.durations import calendar
from mqlab.lab.world.absences import NOT_PULLED
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from mqlab.rocketmq.wire.message import Message

GROUP, TOPIC = "billing", "orders"
MEMBERS = 3
LIMIT_MS, BACK_AT_MOST = 300_000, 1_000
OLD_ORDERS, A_BATCH, A_SECOND = 1_400, 100, 3

TIME_RULE = "The story returns within five minutes"
TRAFFIC_RULE = "The shop keeps sending all the time: no send may fail because of the change"
PAID_RULE = (
    "Every paid order of the whole run is consumed: at no moment may a member that reads a queue drop paid, nor the "
    "broker filter it out for the group"
)
SHIPPED_RULE = (
    "From the moment the story returns, shipped orders are also consumed: every member must want them by "
    "then, and pulls from before the change must have been answered"
)
HELD_RULE = (
    "A pull that was sent before the change is filtered by the client with the tags of that time, when its answer "
    "comes after it. The broker holds a pull for up to 20 s: return when the last of them is answered"
)
WAITS_RULE = "No order may be left waiting: when the story returns, members that are running must read all queues"
SKIPPED_RULE = "An offset that is set past unread orders loses them: the group never gets them"
OTHERS_RULE = "The group must consume paid and shipped, and nothing else: * is a larger subscription than it wants"
BACK_RULE = "No offset is set back by more than 1,000: the group would get again what it consumed long ago"


@dataclass(slots=True)
class Migration(Played):
    """The day: the group's members, the traffic, and when the story began and ended."""

    members: list[Any] = field(default_factory=list)
    traffic: Any = None
    began_ms: int = 0
    returned_ms: int = 0

    def orders(self) -> Iterator[Any]:
        """All stored orders of the topic."""
        return iter(self.lab.store().messages(TOPIC))

    def consumed(self) -> set[str]:
        """What members of the group have consumed: msg_ids."""
        return {row.msg_id for row in self.deliveries(GROUP) if row.status == CONSUME_SUCCESS}


def consume(messages: Any, context: Any) -> str:
    """The listener of billing: it takes whatever it gets."""
    return CONSUME_SUCCESS


def day(seed: int) -> Day:
    """A backlog that is read, three members, traffic with both tags by lot, the change, more traffic, calm."""
    rng = random.Random(f"lab06.migrate {seed}")
    words = rng.choices(("paid", "shipped", "created"), weights=(4, 4, 1), k=2_000)

    def goes_on(today: Migration) -> None:
        shop = today.producer("shop")
        today.traffic = today.lab.traffic(
            shop,
            rates=[("0s", A_SECOND)],
            message=lambda number: Message(TOPIC, b"a book", tags=words[number], keys=f"order-{number}"),
        )

    acts = (
        Topics((TOPIC,), queues=4),
        Does(_old_orders),
        Does(_three_members),
        Does(goes_on),
        Waits(rng.randint(31_000, 39_000)),
        Does(_the_change),
        Waits("30s"),
        Does(lambda today: today.traffic.stop()),
        Waits("45s"),
    )
    return Day(acts, kind=Migration)


def _old_orders(today: Migration) -> None:
    """Orders of other tags that the group has passed long ago: a reset to the beginning goes far back."""
    shop = today.producer("shop")
    queues = shop.fetch_publish_message_queues(TOPIC)
    for queue in queues[:2]:
        for first in range(0, OLD_ORDERS, A_BATCH):
            batch = [
                Message(TOPIC, b"a book", tags="created", keys=f"old-{number}")
                for number in range(first, first + A_BATCH)
            ]
            shop.send_batch(batch, message_queue=queue)


def _three_members(today: Migration) -> None:
    for number in range(1, MEMBERS + 1):
        consumer = today.lab.push_consumer(
            GROUP, name=f"{GROUP}-{number}", consume_from_where="CONSUME_FROM_FIRST_OFFSET"
        )
        consumer.subscribe(TOPIC, "paid")
        consumer.on_messages(consume)
        consumer.start()
        today.members.append(consumer)
    today.lab.run_for("30s")


def _the_change(today: Migration) -> None:
    today.began_ms = today.lab.now_ms
    today.answers["migrate"](today.lab, list(today.members), consume)
    today.returned_ms = today.lab.now_ms


def _in_time(today: Migration) -> Finding | None:
    took_ms = today.returned_ms - today.began_ms
    if took_ms <= LIMIT_MS:
        return None
    return Finding(TIME_RULE, "the story", "300 s at most", f"{took_ms / 1000:.0f} s", lab=today.lab)


def _traffic_never_stops(today: Migration) -> Finding | None:
    if today.traffic.failed == 0 and today.traffic.sent == today.traffic.number:
        return None
    actual = f"{today.traffic.number - today.traffic.sent} of {today.traffic.number} sends failed"
    return Finding(TRAFFIC_RULE, "the shop", "no failed send", actual, lab=today.lab)


def _first_missed(today: Migration, tag: str, since_ms: int) -> Any:
    consumed = today.consumed()
    return next(
        (
            order
            for order in today.orders()
            if order.tags == tag and order.store_timestamp >= since_ms and order.msg_id not in consumed
        ),
        None,
    )


def _paid_is_consumed(today: Migration) -> Finding | None:
    missed = _first_missed(today, "paid", 0)
    return None if missed is None else _missed(today, missed, PAID_RULE)


def _shipped_is_consumed(today: Migration) -> Finding | None:
    missed = _first_missed(today, "shipped", today.returned_ms)
    if missed is None:
        return None
    # If all members want it in the end, only pulls from before the change can have dropped it.
    consumed = today.consumed()
    late_ms = today.returned_ms + 25_000
    later = [order for order in today.orders() if order.tags == "shipped" and order.store_timestamp >= late_ms]
    settled = bool(later) and all(order.msg_id in consumed for order in later)
    return _missed(today, missed, HELD_RULE if settled else SHIPPED_RULE)


def _nothing_else_is_consumed(today: Migration) -> Finding | None:
    consumed = today.consumed()
    for order in today.orders():
        if order.tags == "created" and order.msg_id in consumed:
            where = f"{order.keys}, {order.tags}, at {calendar(order.store_timestamp)}"
            return Finding(OTHERS_RULE, where, "filtered out", CONSUME_SUCCESS, lab=today.lab)
    return None


def _missed(today: Migration, order: Any, rule: str) -> Finding:
    row = next((row for row in today.lab.deliveries(GROUP) if row.msg_id == order.msg_id), None)
    if row is not None and row.status == NOT_PULLED:
        consumed = today.consumed()
        of_queue = [other for other in today.orders() if other.queue_id == order.queue_id]
        passed = any(other.msg_id in consumed for other in of_queue if other.queue_offset > order.queue_offset)
        rule = SKIPPED_RULE if passed else WAITS_RULE
    when = f"stored {(order.store_timestamp - today.returned_ms) / 1000:+.1f} s from the story's return"
    where = f"{order.keys}, {order.tags}, queue {order.queue_id}, at {calendar(order.store_timestamp)}, {when}"
    return Finding(rule, where, "CONSUME_SUCCESS", getattr(row, "status", "no delivery"), lab=today.lab)


def _not_far_back(today: Migration) -> Finding | None:
    changed = [
        (record, change.values)
        for record in today.lab.journal
        for change in record.changes
        if change.kind in ("offset.committed", "offset.reset")
    ]
    for record, values in changed:
        if (values["group"], values["topic"]) != (GROUP, TOPIC):
            continue
        before, offset = values["before"], values["queue_offset"]
        if before is not None and before - offset > BACK_AT_MOST:
            where = f"queue {values['queue_id']} at {calendar(record.now_ms)}"
            actual = f"from {before} to {offset}"
            return Finding(BACK_RULE, where, "1,000 back at most", actual, step=record.step, lab=today.lab)
    return None


PROMISES: tuple[Promise, ...] = (
    _in_time,
    _traffic_never_stops,
    _not_far_back,
    _paid_is_consumed,
    _shipped_is_consumed,
    _nothing_else_is_consumed,
)

MIGRATE = World(
    "lab06.migrate",
    "migrate(lab, members, listener)",
    points=5,
    about="a change of tags under traffic",
    day=day,
    promises=PROMISES,
)
