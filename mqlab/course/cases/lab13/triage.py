"""lab13.triage: what went wrong on a day, the most harmful first.

    facts, seen, calendar ─▶ [(kind, group)]      next to the truth: a wrong finding costs what a right one earns

``seen`` is what a first look finds: whom the incidents harmed, and what was only meant to fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab13.days import KINDS, JudgedDay, by_group, days_of
from mqlab.course.given.lab13.signs import SIGNS
from mqlab.course.kit import tuple_of
from mqlab.course.kit.scored import Scored
from mqlab.course.kit.scores import in_order, recalled
from mqlab.course.teach.exercises import Call, Finding
from mqlab.course.words import refutation
from mqlab.data.traffic.model import GROUPS

Named = tuple[str, str]
OUT_OF_ORDER = 0.75
FEW = 10  # messages
NOT_THERE = (
    "On every day some calls fail, and their retries succeed: a finding needs harmed messages, and each day has three"
)


def calls(seed: int) -> Iterator[Call]:
    """The days of a seed."""
    return calls_of(days_of(seed))


def calls_of(days: Iterable[JudgedDay]) -> Iterator[Call]:
    """A call for each of some days."""
    for day in days:
        harms = {(incident["kind"], incident["group"] or ""): len(incident["harmed"]) for incident in day.incidents}
        right = sorted(harms, key=lambda pair: -harms[pair])
        seen = by_group(day.harmed | day.meant)
        yield Call(
            facts=day.store, seen=seen, calendar=list(day.calendar), given=(day, harms), right=right, about=day.name
        )


def known(call: Call, named: list[Named]) -> Finding | None:
    """Kinds and groups that there are."""
    groups = {"", *(group.name for group in GROUPS)}
    for kind, group in named:
        if kind not in KINDS:
            return _told(call, named, "A finding names one of the kinds of the table above")
        if group not in groups:
            return _told(call, named, "The second part is a group, or '' where no single group is concerned")
    return None


def complete(call: Call, named: list[Named]) -> Finding | None:
    """Decoys, what is missing, what is called by another name, and the order."""
    day, harms = call.given
    away = recalled(named, call.right, _decoys(day, named, harms))
    if away.decoys:
        return _told(call, named, refutation("lab13.tests_alarm"), "lab13.tests_alarm", away.share)
    if away.missed:
        return _missed(call, named, away.missed, away.invented, away.share)
    if away.invented:
        return _told(call, named, NOT_THERE, share=away.share)
    if not in_order(named, harms):
        return _told(call, named, refutation("lab13.by_time"), "lab13.by_time", OUT_OF_ORDER)
    return None


def _missed(call: Call, named: list[Named], missed: tuple, invented: tuple, share: float) -> Finding:  # type: ignore[type-arg]
    _, harms = call.given
    kind, group = missed[0]
    others = [other_kind for other_kind, of in invented if of == group]
    if others:
        return _told(call, named, rule=f"{kind} goes by another name here. Its sign: {SIGNS[kind]}", share=share)
    if all(harms[pair] <= FEW for pair in missed):
        return _told(call, named, refutation("lab13.few_is_none"), "lab13.few_is_none", share)
    return _told(call, named, rule=f"{kind} is missing. Its sign: {SIGNS[kind]}", share=share)


def _decoys(day: JudgedDay, named: list[Named], harms: dict[Named, int]) -> list[Named]:
    """Findings about a group that only a load test or a switch of the day's plan concerns."""
    harmed = {group for _, group in harms}
    looks = {decoy["group"] for decoy in day.decoys if decoy["kind"] in ("load_test", "group_off")} - harmed
    return [pair for pair in named if pair[1] in looks and pair not in harms]


def _told(call: Call, named: list[Named], rule: str, belief: str = "", share: float = 0.0) -> Finding:
    return Finding(rule, call.about, call.right, named, call=call, belief=belief, share=share)


TRIAGE = Scored(
    "lab13.triage",
    "triage(facts, seen, calendar)",
    points=7,
    about="whole days",
    opens="with_day",
    calls=calls,
    returns=[tuple_of("finding", kind=str, group=str)],
    judges=(known, complete),
    forbids=FORBIDS["lab13.triage"],
    limits={"seconds": 120, "total_seconds": 600},
)
