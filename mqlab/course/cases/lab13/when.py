"""lab13.when: from when to when an incident harmed messages.

harmed {group: [msg_id]} ─▶ (since, until) in ms      next to the truth: overlap over union, or a minute at each end

since    the first harmed message was stored, or the first needless call began
until    the last one was consumed, given up, or called again; midnight, if one still waits
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab13.days import JudgedDay, by_group, days_of, pairs_of
from mqlab.course.kit import tuple_of
from mqlab.course.kit.scored import Scored
from mqlab.course.kit.scores import overlap
from mqlab.course.teach.exercises import Call, Finding
from mqlab.course.words import refutation
from mqlab.scales import HOUR, MINUTE, SECOND, time_text

NEAR_ENOUGH = 0.8
ENDS_LATE_RULE = (
    "Harm ends when the last harmed message is consumed, given up, or called again: only one that was called, is not "
    "dead and still waits makes it end at midnight"
)
_MS_OF_A_DAY = 10**12  # a time in seconds is smaller


def calls(seed: int) -> Iterator[Call]:
    """Each incident of the days of a seed."""
    return calls_of(days_of(seed))


def calls_of(days: Iterable[JudgedDay]) -> Iterator[Call]:
    """Each incident of some days."""
    for day in days:
        for incident in day.incidents:
            yield Call(
                facts=day.store,
                harmed=by_group(pairs_of(incident)),
                given=incident,
                right=(incident["harm_since_ms"], incident["harm_until_ms"]),
                about=f"{day.name}, {named(incident)}",
            )


def named(incident: Any) -> str:
    """An incident as a message names it.

    >>> named({"kind": "slow_consumer", "group": "billing"})
    'slow_consumer of billing'
    """
    return f"{incident['kind']} of {incident['group']}" if incident["group"] else str(incident["kind"])


def in_ms(call: Call, times: tuple[int, int]) -> Finding | None:
    """Times of another unit, or of another clock."""
    if min(times) < _MS_OF_A_DAY:
        return _finding(call, times, "Times are ms since 1970, as in the tables; these are too small")
    away = [time_ms - other for time_ms, other in zip(times, call.right, strict=True)]
    hours = round(away[0] / HOUR)
    if hours and all(abs(ms - hours * HOUR) <= MINUTE for ms in away):
        return _finding(call, times, refutation("lab13.local_time"), "lab13.local_time")
    return None


def overlaps(call: Call, times: tuple[int, int]) -> Finding | None:
    """A stretch that is too long, too short, or elsewhere."""
    since, until = call.right
    near = abs(times[0] - since) <= MINUTE and abs(times[1] - until) <= MINUTE
    share = overlap(times, call.right)
    if near or share >= NEAR_ENOUGH:
        return None
    too_late, too_early = times[0] - since, until - times[1]
    if too_late > MINUTE and too_late >= too_early:
        return _finding(call, times, refutation("lab13.first_alarm"), "lab13.first_alarm", share / 2)
    if too_early > MINUTE:
        return _finding(call, times, refutation("lab13.repaired_is_over"), "lab13.repaired_is_over", share / 2)
    rule = "Only the harmed messages count: not what else their group did on that day, and not their earlier tries"
    if times[1] - until > max(MINUTE, since - times[0]):
        rule = ENDS_LATE_RULE
    return _finding(call, times, rule, share=share / 2)


def _finding(call: Call, times: tuple[int, int], rule: str, belief: str = "", share: float = 0.0) -> Finding:
    return Finding(rule, call.about, _shown(call.right), _shown(times), call=call, belief=belief, share=share)


def _shown(times: tuple[int, int]) -> str:
    return " to ".join(time_text(time_ms, SECOND) if time_ms >= _MS_OF_A_DAY else str(time_ms) for time_ms in times)


WHEN = Scored(
    "lab13.when",
    "when(facts, harmed)",
    points=3,
    about="every kind of incident",
    opens="with_day",
    calls=calls,
    returns=tuple_of(since=int, until=int),
    judges=(in_ms, overlaps),
    forbids=FORBIDS["lab13.when"],
    limits={"seconds": 120, "total_seconds": 600},
)
