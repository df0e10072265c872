"""lab13.why: the processes that did it; none, where all of a group's were alike, or a person or a setting did.

a finding {kind, group, since, until} ─▶ [client]      addresses without a port, as in the tables
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab13.days import JudgedDay, days_of
from mqlab.course.cases.lab13.when import named
from mqlab.course.kit.scored import Scored
from mqlab.course.teach.exercises import Call, Finding
from mqlab.course.words import refutation


def calls(seed: int) -> Iterator[Call]:
    """Each incident of the days of a seed."""
    return calls_of(days_of(seed))


def calls_of(days: Iterable[JudgedDay]) -> Iterator[Call]:
    """Each incident of some days."""
    for day in days:
        for incident in day.incidents:
            finding = {
                "kind": incident["kind"],
                "group": incident["group"] or "",
                "since": incident["harm_since_ms"],
                "until": incident["harm_until_ms"],
            }
            right = sorted({client.partition(":")[0] for client in incident["clients"]})
            yield Call(facts=day.store, finding=finding, given=day, right=right, about=f"{day.name}, {named(incident)}")


def guilty(call: Call, value: list[str]) -> Finding | None:
    """Processes that did nothing, or that are missing."""
    right, blamed = set(call.right), set(value)
    if right == blamed:
        return None
    group = call["finding"]["group"]
    strangers = blamed - _everybody(call.given)
    if strangers:
        rule = "A process is named by its address, as in the columns client and sender: such as 10.20.0.17"
        return _told(call, blamed, rule)
    if not blamed:
        return _told(call, blamed, refutation("lab13.all_alike"), "lab13.all_alike")
    if group and blamed >= _members(call.given, group, call["finding"]):
        return _told(call, blamed, refutation("lab13.whole_group"), "lab13.whole_group")
    if not right:
        rule = "No process of the group did anything that the others did not: then the cause is not a process"
        return _told(call, blamed, rule)
    if not group and not blamed & _senders(call.given):
        return _told(call, blamed, refutation("lab13.reader_did_it"), "lab13.reader_did_it")
    if blamed > right:
        return _told(call, blamed, refutation("lab13.in_doubt"), "lab13.in_doubt")
    return _told(call, blamed, refutation("lab13.busiest"), "lab13.busiest")


def constant(calls: Sequence[Call]) -> float:
    """The share of an answer that always names no member, or always all."""
    nobody = sum(not call.right for call in calls)
    everybody = sum(bool(call.right) and set(call.right) >= _members_of(call) for call in calls)
    return max(nobody, everybody) / len(calls) if calls else 0.0


def _members_of(call: Call) -> set[str]:
    finding = call["finding"]
    return _members(call.given, finding["group"], finding) if finding["group"] else _senders(call.given)


def _told(call: Call, blamed: set[str], rule: str, belief: str = "") -> Finding:
    return Finding(rule, call.about, call.right, sorted(blamed), call=call, belief=belief)


def _everybody(day: JudgedDay) -> set[str]:
    return _senders(day) | set(day.facts.calls["client"])


def _senders(day: JudgedDay) -> set[str]:
    return set(day.facts.messages["sender"])


def _members(day: JudgedDay, group: str, finding: Any) -> set[str]:
    calls = day.facts.calls
    inside = calls["started_ms"].between(finding["since"], finding["until"])
    return set(calls.loc[(calls["group"] == group) & inside, "client"])


WHY = Scored(
    "lab13.why",
    "why(facts, finding)",
    points=5,
    about="every kind of incident",
    opens="with_day",
    calls=calls,
    returns=[str],
    judges=(guilty,),
    floor=constant,
    forbids=FORBIDS["lab13.why"],
    limits={"seconds": 120, "total_seconds": 600},
)
