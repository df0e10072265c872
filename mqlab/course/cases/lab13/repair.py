"""lab13.repair: a plan for the morning: offsets to set, dead letters to send again, messages to pass over.

    facts, findings, calendar ─▶ plan ─▶ carried out in a Lab on a copy of the stores ─▶ who got what, how often

Judged by deliveries: every message that was lost and can be handled comes once, nothing that was handled comes again,
and dead letters come in their old order; what stands in one queue does so anyway. What fails at each try (a poison
message, a load test's orders) fails again.

A plan is for the whole day, since it is not known beforehand in which hour the harm was. That costs little: a Lab only
delivers what stands behind an offset that is set back, some hundred messages in less than a second.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab13.days import JudgedDay, Pairs, judged
from mqlab.course.kit import record, tuple_of
from mqlab.course.kit.scored import Scored
from mqlab.course.teach.exercises import Call, Finding
from mqlab.course.words import refutation
from mqlab.data.traffic.trouble.capstone import SealedDay, capstone

MESSAGES, BROKERS = 6_000, 2
_SECRET = b"lab 13: days to repair"
NOT_POSSIBLE = "A plan sets offsets of existing queues, to places in them, and sends dead letters of this day again"
_PASSED_BY = {"skipped", "inconsistent_tags"}
Pair = tuple[str, str]


@dataclass(frozen=True)
class Repairs:
    """A day to repair, and its stores. ``living``: dead letters that would fail again; ``wanted``: what is to come;
    ``retried``: what had failed and was to be tried again: it comes once more by itself.
    """

    day: JudgedDay
    stores: str
    living: Pairs
    wanted: Pairs
    handled: Pairs
    retried: Pairs
    stored_ms: Mapping[Pair, int]


@functools.cache
def repairs(name: str) -> Repairs:
    """The day of a name."""
    day, stores = judged(_sealed(name), name, keeps_stores=True)
    life = day.facts.life[day.facts.life["reads"]]
    poisoned = {incident["group"] for incident in day.incidents if incident["kind"] == "poison_message"}
    pairs: list[Pair] = list(zip(life["group"].tolist(), life["msg_id"].tolist(), strict=True))
    handled = {pair for pair, times in zip(pairs, life["successes"].tolist(), strict=True) if times}
    dead = {pair for pair, is_dead in zip(pairs, life["dead"].tolist(), strict=True) if is_dead}
    living = {pair for pair in dead if pair[0] in poisoned or pair in day.meant}
    wanted = set(pairs) - handled - living
    ended = day.facts.calls[day.facts.calls["ended_ms"].notna()]
    tried = set(zip(ended["group"].tolist(), ended["msg_id"].tolist(), strict=True))
    stored_ms = dict(zip(pairs, life["stored_ms"].tolist(), strict=True))
    retried = frozenset(tried - handled - dead)
    return Repairs(day, stores, frozenset(living), frozenset(wanted), frozenset(handled), retried, stored_ms)


def calls(seed: int) -> Iterator[Call]:
    """A day with dead letters whose cause is over, and one with a poison message; on both, a group was passed by."""
    for kind in ("failing_consumer", "poison_message"):
        names = (f"repair {seed}-{number}" for number in itertools.count())
        repaired = repairs(next(name for name in names if _has(_sealed(name), kind)))
        findings = [(incident["kind"], incident["group"] or "") for incident in repaired.day.incidents]
        calendar = list(repaired.day.calendar)
        yield Call(
            facts=repaired.day.store, findings=findings, calendar=calendar, given=repaired, about=repaired.day.name
        )


def _has(sealed: SealedDay, kind: str) -> bool:
    groups = {
        incident.kind: incident.group
        for incident in sealed.asked.model.incidents or ()
        if not isinstance(incident, str)
    }
    # Billing tries for hours, so what fails there for some minutes is late and not dead.
    return (
        bool(_PASSED_BY & groups.keys())
        and kind in groups
        and (kind != "failing_consumer" or groups[kind] != "billing")
    )


def _sealed(name: str) -> SealedDay:
    return capstone(name, _SECRET, messages=MESSAGES, brokers=BROKERS)


def possible(call: Call, value: Mapping[str, Any]) -> Finding | None:
    """A plan that cannot be carried out."""
    from mqlab.data.traffic.playing.repairing import Plan, check_plan

    problem = check_plan(Plan.of(value), call.given.day.facts)
    if not problem:
        return None
    return Finding(NOT_POSSIBLE, f"{call.about}: {problem}", "a plan that can be carried out", value, call=call)


def delivers(call: Call, value: Mapping[str, Any]) -> Finding | None:
    """What groups get while the plan is carried out."""
    from mqlab.data.traffic.playing.repairing import Plan, carry_out

    asked: Repairs = call.given
    plan = Plan.of(value)
    failing = [pair for pair in plan.again if pair in asked.living]
    if failing:
        return _told(call, f"{len(failing)} that fail again", "none", "lab13.resend_all", failing[0])
    done = carry_out(asked.stores, plan, asked.living)
    times = done.times()
    twice = [
        pair for pair, count in times.items() if pair in asked.handled or (count > 1 and pair not in asked.retried)
    ]
    missing = sorted(asked.wanted - times.keys())
    if len(twice) > len(missing):
        return _told(call, f"{len(twice)} that had been handled", "none", "lab13.reset_is_repair", twice[0])
    if missing:
        belief = "lab13.resend_is_repair" if missing[0] not in plan.again and not _is_dead(asked, missing[0]) else ""
        rule = (
            ""
            if belief
            else "A dead letter whose cause is over is missing: it has to be sent again, and not to be passed over"
        )
        return _told(call, f"{len(missing)} never delivered", "none", belief, missing[0], rule)
    order = [pair for pair in done.done if pair in set(plan.again)]
    for before, after in itertools.pairwise(order):
        if before[0] == after[0] and asked.stored_ms[before] > asked.stored_ms[after]:
            return _told(call, "a later one before an earlier one", "as they were stored", "lab13.any_order", after)
    return None


def _is_dead(asked: Repairs, pair: Pair) -> bool:
    life = asked.day.facts.life
    return bool(life.loc[(life["group"] == pair[0]) & (life["msg_id"] == pair[1]), "dead"].any())


def _told(call: Call, found: str, expected: str, belief: str, pair: Pair, rule: str = "") -> Finding:
    where = f"{call.about}, {pair[0]}: {pair[1]}"
    return Finding(rule or refutation(belief), where, expected, found, call=call, belief=belief)


PAIR = tuple_of("message", group=str, msg_id=str)
OFFSET = tuple_of("offset", group=str, broker=str, queue_id=int, offset=int)
REPAIR = Scored(
    "lab13.repair",
    "repair(facts, findings, calendar)",
    points=6,
    about="two days",
    opens="with_day",
    calls=calls,
    returns=record(offsets=[OFFSET], again=[PAIR], skip=[PAIR]),
    judges=(possible, delivers),
    forbids=FORBIDS["lab13.repair"],
    limits={"seconds": 120, "total_seconds": 600},
)
