"""lab09.brake: a listener that asks as much of a database as it can do, and not more, however much that is today.

    20 s      eight slots, a query takes a second: eight a second can be done, seven come
    40 s      two slots: two a second can be done, seven come
    60 s      eight slots again, and a lag of 200 messages

Judged by what the database saw: how many calls waited in it, whether one was too late, and how many it answered.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mqlab.counts import counted
from mqlab.course.cases.lab09.database import DATABASE, QUERY_MS, SLOTS, DatabaseDay
from mqlab.course.kit import World
from mqlab.course.kit.days import Day, Does, Topics, Waits, listener_of
from mqlab.course.kit.promises import broken, finding_at, no_surprise, took_ms
from mqlab.course.teach.exercises import Finding
from mqlab.course.words import refutation
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from mqlab.rocketmq.wire.message import Message

GROUP, NODE, TOPIC = "billing", "billing-1", "orders"
THREADS, FEWER = 30, 2
MOST_WAITING, PATIENCE_MS = 4, 10_000
PARTS = {FEWER: 0.8, SLOTS: 0.9}
"""How much of what so many slots can do has to be done."""
COME, WELL_S, ILL_S, AFTER_S = 7, 20, 40, 60
GETS_GOING_S = 5
"""What comes in so many of the first seconds may still wait when they are over."""

MADE_RULE = (
    "brake takes ask, now, usual_ms and most_waiting, and returns a listener: a function inside it, (messages, context)"
)
TIMED_OUT_RULE = (
    "No call may be too late: its abandoned query keeps a slot in the database, and the message is "
    "redelivered. Admit fewer calls when answers take longer"
)
WAITING_RULE = (
    "Ten seconds after the database has changed, at most most_waiting calls may wait in it: the time of an answer "
    "shows how many slots there are"
)
DONE_RULE = "The database has answered: the order is done. Return CONSUME_SUCCESS; after None it is redelivered"
LEAK_RULE = (
    "No call asks any more, though messages wait and the database is free: a call that is counted in must be counted "
    "out again after the answer, and also after an exception"
)
IDLE_RULE = (
    "While messages wait, the database has work: two slots can do two per second. Admit a little more than is served"
)
WELL_RULE = "With all slots, no lag may grow: seven per second arrive and eight can be done. Admit more calls at a time"
FULL_RULE = (
    "Within a minute after the database has its slots again, the group does nine tenths of what they can do: the limit "
    "must be able to grow as far as there is room"
)
ASKED_RULE = "CONSUME_SUCCESS means that the database has answered: return it only after ask has returned"
RULES = {"TimeoutError": TIMED_OUT_RULE}


@dataclass(frozen=True, slots=True)
class Braked:
    """The learner's consumer."""

    def act(self, played: Any) -> None:
        """Start it."""
        lab = played.lab
        arguments, spelled = (
            (played.ask, lambda: lab.now_ms, QUERY_MS, MOST_WAITING),
            "(ask, now, usual_ms, most_waiting)",
        )
        listener = listener_of("brake", played.answers["brake"], arguments, spelled, MADE_RULE)
        consumer = lab.push_consumer(GROUP, name=NODE, consume_thread_min=THREADS, consume_thread_max=THREADS)
        consumer.subscribe(TOPIC, "*")
        consumer.on_messages(listener)
        consumer.start()
        lab.run_for("25s")


def evening(seed: int) -> Day:
    """Traffic of seven a second, and a database that loses most of its slots for forty seconds."""
    rng = random.Random(f"lab09.brake {seed}")
    queues = rng.choice((3, 4))
    bodies = ("a book", "книга", "一本书")

    def traffic(played: DatabaseDay) -> None:
        played.began_ms = played.lab.now_ms
        rates = [("0s", float(COME)), (f"{WELL_S + ILL_S + AFTER_S}s", 0.0)]
        shop = played.producer("shop")
        played.lab.traffic(shop, rates=rates, message=lambda number: Message(TOPIC, rng.choice(bodies).encode()))

    def fewer(played: DatabaseDay) -> None:
        played.fewer_ms = played.lab.now_ms
        played.lab.resource(DATABASE).resize(FEWER)

    def again(played: DatabaseDay) -> None:
        played.again_ms = played.lab.now_ms
        played.lab.resource(DATABASE).resize(SLOTS)

    return Day(
        (
            Topics((TOPIC,), queues),
            Does(DatabaseDay.opens),
            Braked(),
            Does(traffic),
            Waits(f"{WELL_S}s"),
            Does(fewer),
            Waits(f"{ILL_S}s"),
            Does(again),
            Waits(f"{AFTER_S}s"),
        ),
        kind=DatabaseDay,
    )


def _answered(day: DatabaseDay, since_ms: int, until_ms: int) -> int:
    return sum(call.answered and since_ms <= call.ended_ms < until_ms for call in day.asked)


def _second(day: DatabaseDay, ms: int) -> str:
    return f"second {(ms - day.began_ms) // 1_000} of the evening"


def _none_too_late(day: DatabaseDay) -> Finding | None:
    late = next((call for call in day.asked if not call.answered), None)
    if late is None:
        return None
    actual = counted(sum(not call.answered for call in day.asked), "calls too late")
    where = f"{_second(day, late.came_ms)}: a call that {late.waiting} others wait before"
    belief = "lab09.no_brake" if late.waiting > SLOTS else ""
    return broken(day, where, "no call that is too late", actual, rule=TIMED_OUT_RULE, belief=belief)


def _few_wait(day: DatabaseDay) -> Finding | None:
    changes_ms = (day.began_ms, day.fewer_ms, day.again_ms)
    for call in day.asked:
        settled = not any(ms <= call.came_ms < ms + PATIENCE_MS for ms in changes_ms)
        if settled and call.waiting > MOST_WAITING:
            belief = "lab09.same_gate" if day.fewer_ms <= call.came_ms < day.again_ms else ""
            most, actual = f"{MOST_WAITING} at most", f"{call.waiting} calls wait"
            return broken(day, _second(day, call.came_ms), most, actual, rule=WAITING_RULE, belief=belief)
    return None


def _nothing_given_back(day: DatabaseDay) -> Finding | None:
    ended = {(call.msg_id, call.ended_ms): call.answered for call in day.asked}
    for row in day.deliveries(GROUP):
        if row.ended_ms is None or row.status == CONSUME_SUCCESS or row.error is not None:
            continue
        answered = ended.get((row.msg_id, row.ended_ms), False)
        belief = "" if answered else "lab09.give_back"
        rule = DONE_RULE if answered else refutation(belief)
        where = _second(day, row.started_ms)
        return replace(finding_at(day, row, rule, CONSUME_SUCCESS, row.status, where), belief=belief)
    return None


def _success_was_answered(day: DatabaseDay) -> Finding | None:
    answered = {call.msg_id for call in day.asked if call.answered}
    for row in day.deliveries(GROUP):
        if row.status == CONSUME_SUCCESS and row.msg_id not in answered:
            where = _second(day, row.started_ms)
            return finding_at(day, row, ASKED_RULE, "an answer first", f"a call of {took_ms(row):,} ms", where)
    return None


def _kept_busy(
    slots: int, rule: str, belief: str, span: Callable[[DatabaseDay], tuple[int, int]]
) -> Callable[[Any], Finding | None]:
    """In this span a part of what so many slots can do is done; who does not half of it holds this belief."""

    def first(day: DatabaseDay) -> Finding | None:
        since_ms, until_ms = span(day)
        can = slots * (until_ms - since_ms) // QUERY_MS
        done, least = _answered(day, since_ms, until_ms), PARTS[slots] * can
        if done >= least:
            return None
        seconds = f"seconds {(since_ms - day.began_ms) // 1_000} to {(until_ms - day.began_ms) // 1_000} of the evening"
        holds = belief if done < can / 2 else ""
        return broken(day, seconds, f"{least:.0f} answers or more", counted(done, "answers"), rule=rule, belief=holds)

    return first


def _nobody_stays_counted(day: DatabaseDay) -> Finding | None:
    """In the last five seconds before the change something is asked: messages come all the time."""
    since_ms = day.fewer_ms - 5_000
    if any(call.ended_ms >= since_ms for call in day.asked):
        return None
    last_ms = max((call.ended_ms for call in day.asked), default=day.began_ms)
    actual = f"none after {_second(day, last_ms)}"
    return broken(day, _second(day, since_ms), "calls of the database", actual, rule=LEAK_RULE)


def _no_lag_when_well(day: DatabaseDay) -> Finding | None:
    came = COME * (WELL_S - GETS_GOING_S)
    done = _answered(day, day.began_ms, day.fewer_ms)
    if done >= came:
        return None
    return broken(
        day, f"the first {WELL_S} seconds", f"{came} answers or more", counted(done, "answers"), rule=WELL_RULE
    )


BRAKE = World(
    "lab09.brake",
    "brake(ask, now, usual_ms, most_waiting)",
    points=5,
    about="a database that loses slots",
    day=evening,
    limits={"total_seconds": 90, "lab_seconds": 120},
    promises=[
        _success_was_answered,
        _nothing_given_back,
        _none_too_late,
        no_surprise(GROUP, rules=RULES),
        _few_wait,
        _nobody_stays_counted,
        _no_lag_when_well,
        _kept_busy(FEWER, IDLE_RULE, "lab09.stop_all", lambda day: (day.fewer_ms + PATIENCE_MS, day.again_ms)),
        _kept_busy(SLOTS, FULL_RULE, "lab09.stays_small", lambda day: (day.again_ms + 50_000, day.again_ms + 60_000)),
    ],
)
