"""Lab 05: created, paid, shipped, and neither the producer nor the consumer may turn two of them round.

    send_event(shop, message)       the shop's side: into which queue
    read_events(consumer, handle)   billing's side: with which listener

In the day the shop is started again, one of its requests is lost, a second member joins while events are handled,
billing-1 is killed and started again, and the warehouse is busy now and then. Judged by the calls of the warehouse: an
event begins after the one before it has ended.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mqlab.course.cases.lab05.events import (
    GROUP,
    LIFE,
    NODE,
    OTHER,
    RAISED_RULE,
    TOPIC,
    EventDay,
    OrderEvent,
    moment,
    not_done,
    out_of_order,
)
from mqlab.course.kit import World
from mqlab.course.kit.days import Day, Does, NotMade, Topics, Waits
from mqlab.course.kit.promises import _raised, broken
from mqlab.course.teach.exercises import Exercise, Finding
from mqlab.course.teach.lives import anew
from mqlab.course.words import refutation
from mqlab.durations import calendar
from mqlab.errors import MqlabError
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS, SUCCESS

QUEUES = 4
SHOP, BROKER = "shop-1", "broker-a"
ORDERS = 8
BUSY = (1, 4)
"""How often the warehouse is too busy for the first event of two orders."""
STORED_RULE = "send_event sends the message to the broker and waits for the answer: every event of the shop is stored"
ASYNC_RULE = (
    "A listener that returns before the work is done lets the next event of the order begin: wait for the "
    "warehouse, then return"
)
HANDLED_RULE = "Every event is handled in the end: try again what the warehouse is too busy for"
LISTENER_RULE = (
    "read_events registers a listener: consumer.on_messages_orderly(listener) or consumer.on_messages(listener)"
)


@dataclass(slots=True)
class LifeDay(EventDay):
    """A day whose shop is started again: ``shops_own`` is send_event in its new life, after ``sent_before`` events."""

    shops_own: Callable[..., Any] | None = None
    sent_before: int = 0


def day(seed: int) -> Day:
    """Eight orders, their lives interleaved; a restart of the shop, a lost request, a join, a death, busy moments."""
    rng = random.Random(f"lab05.life {seed}")
    first = rng.randint(100, 900)
    orders = [f"order-{first + number}" for number in range(ORDERS)]
    busy = dict(zip(rng.sample(orders, 2), BUSY, strict=True))
    events = [
        OrderEvent(order, step, rng.choice((300, 600, 900)), busy.get(order, 0) if step == "created" else 0)
        for step in LIFE
        for order in rng.sample(orders, ORDERS)
    ]
    lost = ORDERS + rng.randrange(ORDERS)
    acts = (
        Topics((TOPIC,), QUEUES),
        Does(lambda today: _sends(today, events[:ORDERS])),
        Does(_restarts_the_shop),  # before billing's first start: behind the wall, one process has both halves
        Does(lambda today: _reads(today, NODE)),
        Waits("2s"),
        Does(lambda today: _sends(today, events[ORDERS:lost])),
        Does(lambda today: today.lab.drop(SHOP, BROKER)),
        Does(lambda today: _sends(today, events[lost : 2 * ORDERS])),
        Does(lambda today: _reads(today, OTHER)),
        Waits("2s"),
        Does(lambda today: _sends(today, events[2 * ORDERS :])),
        Does(lambda today: today.until(lambda: _works_now(today, NODE), "10s")),
        Does(lambda today: today.die_and_restart(NODE, "1s")),
        Waits("2m"),
    )
    return Day(acts, kind=LifeDay)


def _works_now(today: EventDay, name: str) -> bool:
    return any(work.client == name and work.ended_ms is None for work in today.works)


def _reads(today: EventDay, name: str) -> None:
    consumer = today.lab.push_consumer(GROUP, name=name)
    consumer.subscribe(TOPIC, "*")
    today.answers["read_events"](consumer, today.handle)
    try:
        consumer.start()
    except MqlabError as error:
        reason = str(error).splitlines()[0]
        raise NotMade("read_events", reason, LISTENER_RULE, f"start of {name}", "a listener") from None
    today.lab.run_for("1s")


def _sends(today: LifeDay, events: list[OrderEvent]) -> None:
    """The shop sends events; one whose send has failed is sent once more."""
    shop, send_event = today.producer("shop"), today.shops_own or today.answers["send_event"]
    for event in events:
        today.events.append(event)
        try:
            send_event(shop, event.message())
        except MqlabError:
            send_event(shop, event.message())
        today.lab.run_for("100ms")


def _restarts_the_shop(today: LifeDay) -> None:
    today.sent_before = len(today.events)
    today.lab.kill(SHOP)
    today.lab.start(SHOP)
    today.shops_own = anew(today.answers["send_event"], "send_event")


def _queue_of(today: EventDay, event: OrderEvent) -> int | None:
    return next((message.queue_id for message in today.stored() if today.event_of(message) is event), None)


def _stored(today: EventDay) -> Finding | None:
    for event in today.events:
        if _queue_of(today, event) is None:
            belief = "lab05.async_is_stored" if _sent_as(today, "ASYNC") else ""
            rule = refutation(belief) if belief else STORED_RULE
            return Finding(rule, f"{event.key} in the topic", "stored", "not stored", lab=today.lab, belief=belief)
    return None


def _sent_as(today: EventDay, mode: str) -> bool:
    return any(values["mode"] == mode for _, values in today.lab.journal.changes("message.sent"))


def _in_order(today: LifeDay) -> Finding | None:
    pair = out_of_order(today)
    if pair is None:
        return None
    work, before = pair
    queues = _queue_of(today, before), _queue_of(today, work.event)
    done_ms = today.done_ms(before)
    ended = "was never handled" if done_ms is None else f"ended at {calendar(done_ms)}"
    belief, rule = "", ASYNC_RULE
    if queues[0] != queues[1]:
        belief = _why_another_queue(today)
    elif not _is_orderly(today):
        belief = "lab05.queue_is_enough"
    elif done_ms is None and not _is_beside(today, before):
        belief = "lab05.swallowed"
    rule = refutation(belief) if belief else rule
    where = f"{moment(today, work)}; {before.key} is in queue {queues[0]}, {work.event.key} in queue {queues[1]}"
    return Finding(rule, where, f"after {before.key}", f"{before.key} {ended}", lab=today.lab, belief=belief)


def _why_another_queue(today: LifeDay) -> str:
    """The belief of a selector that gives an order two queues: it does so within a life, or in its next life only."""
    queues: dict[str, int | None] = {}
    same = all(
        queues.setdefault(event.order, queue) == queue
        for event, queue in ((event, _queue_of(today, event)) for event in today.events[today.sent_before :])
    )
    return "lab05.selector_remembers" if same else "lab05.topic_has_order"


def _is_orderly(today: EventDay) -> bool:
    return any(True for _ in today.lab.journal.changes("queue.locked"))


def _is_beside(today: EventDay, event: OrderEvent) -> bool:
    """Whether the work on an event went on after its listener had answered, or was cut off then."""
    ends = [
        row.ended_ms for row in today.deliveries(GROUP) if row.ended_ms is not None and _is_about(today, row, event)
    ]
    return any(
        work.ended_ms is None or any(work.began_ms <= ms < work.ended_ms for ms in ends)
        for work in today.works
        if work.event is event
    )


def _nothing_lost(today: EventDay) -> Finding | None:
    event = not_done(today)
    if event is None:
        return None
    for row in today.deliveries(GROUP):
        if row.error is not None and "the warehouse is busy" not in row.error:
            return Finding(RAISED_RULE, f"{event.key} is not handled", "a status", _raised(row.error), lab=today.lab)
    said = [
        row.status
        for row in today.deliveries(GROUP)
        if row.message_queue.topic.endswith((TOPIC, GROUP)) and _is_about(today, row, event)
    ]
    belief = "lab05.swallowed" if any(status in (SUCCESS, CONSUME_SUCCESS) for status in said) else ""
    rule = refutation(belief) if belief else HANDLED_RULE
    deliveries = said[:6] or "no delivery"
    return Finding(rule, f"{event.key}: its deliveries", "handled in the end", deliveries, lab=today.lab, belief=belief)


def _is_about(today: EventDay, row: Any, event: OrderEvent) -> bool:
    return any(message.msg_id == row.msg_id and today.event_of(message) is event for message in today.stored())


def _one_queue_each(today: LifeDay) -> Finding | None:
    """By luck two queues may keep an order; the next day they do not."""
    queues: dict[str, int | None] = {}
    for event in today.events:
        queue = _queue_of(today, event)
        before = queues.setdefault(event.order, queue)
        if before != queue:
            belief = _why_another_queue(today)
            return broken(
                today,
                f"the events of {event.order}",
                f"all in queue {before}",
                f"{event.key} in {queue}",
                belief=belief,
            )
    if len(set(queues.values())) < 2:
        belief = "lab05.global_order"
        actual = f"all {len(queues)} orders in queue {next(iter(queues.values()))}"
        return broken(
            today, f"{len(queues)} orders, {QUEUES} queues, two members", "several queues", actual, belief=belief
        )
    return None


_WORLD = World(
    "lab05.life_of_an_order",
    "send_event(shop, message)",
    points=4,
    about="a join and a crash",
    day=day,
    promises=[_stored, _in_order, _nothing_lost, _one_queue_each],
)
LIFE_OF_AN_ORDER: Exercise = replace(_WORLD, defines=("send_event", "read_events"))
