"""lab14.shrink: a schedule made short, while something still goes wrong, in few runs.

    64 events, fails(events) ─▶ shrink(events, fails) ─▶ the few without which nothing goes wrong

What ``fails`` asks is made up, so that a run costs nothing: it goes wrong when some events are there, and in one
schedule an event matters only next to another. Any schedule from which no single event can be left out is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from mqlab.counts import counted
from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import Pure
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Call
from mqlab.errors import UsageError
from mqlab.lab.simulation.plan import Event

LENGTH, MOST_RUNS, ENDLESS = 64, 60, 2_000
TWO_AND_A_FAULT, ONLY_TOGETHER = "two messages and a fault", "an event that is needed only together with another one"
Fails = Callable[[set[int]], bool]


class Runs:
    """Runs of a made-up cluster: which schedules go wrong, and how often was asked."""

    def __init__(self, goes_wrong: Fails) -> None:
        self.goes_wrong = goes_wrong
        self.count = 0

    def fails(self, events: Sequence[Event]) -> bool:
        """Whether something goes wrong with these events. UsageError after very many runs."""
        self.count += 1
        if self.count > ENDLESS:
            raise UsageError(f"fails was asked {ENDLESS} times", hint="stop when nothing can be left out any more")
        return self.breaks(events)

    def breaks(self, events: Sequence[Event]) -> bool:
        """The same for the judge, who does not count."""
        return self.goes_wrong({event["number"] for event in events})


def schedule(rng: random.Random) -> list[Event]:
    """Messages, and here and there a fault."""
    events: list[Event] = []
    for number in range(LENGTH):
        event: Event = {"number": number, "at": 250 * number + rng.randrange(200)}
        fault = {"do": rng.choice(("kill", "power_off", "slow_disk")), "node": "broker-a"}
        events.append(event | (fault if number % 8 == 3 else {"do": "send", "topic": rng.choice(("orders", "steps"))}))
    return events


def _all_of(wanted: set[int]) -> Fails:
    return lambda there: wanted <= there


def _only_beside(step: int) -> Fails:
    """It needs ``step``; next to the event behind it, which does nothing by itself, it needs that before it as well."""
    return lambda there: step in there and (step + 1 not in there or step - 1 in there)


def _one_round(events: list[Event], goes_wrong: Fails) -> list[Event]:
    """What is left when nothing is tried a second time."""
    runs, size = Runs(goes_wrong), LENGTH // 2
    while size:
        start = 0
        while start < len(events):
            shorter = events[:start] + events[start + size :]
            if runs.breaks(shorter):
                events = shorter
            else:
                start += size
        size //= 2
    return events


def _where_one_round_is_not_enough(events: list[Event], rng: random.Random) -> Fails:
    """Such a failure, at a place where an answer that tries nothing twice keeps an event too many."""
    while True:
        goes_wrong = _only_beside(rng.randrange(9, LENGTH - 9))
        if len(_one_round(events, goes_wrong)) > 1:
            return goes_wrong


def call_of(events: list[Event], goes_wrong: Fails, about: str) -> Call:
    """One schedule."""
    runs = Runs(goes_wrong)
    return Call(events=events, fails=runs.fails, given=runs, about=about)


def calls(seed: int) -> list[Call]:
    """A fault and two messages far apart; a fault alone; an event that is needed only next to another one."""
    rng = random.Random(f"lab14 shrink {seed}")
    faults = list(range(3, LENGTH, 8))
    fault = rng.choice(faults[2:-2])
    early, late = rng.randrange(4, 10), rng.randrange(LENGTH - 10, LENGTH - 5)
    events = schedule(rng)
    return [
        call_of(events, _all_of({early, fault, late}), TWO_AND_A_FAULT),
        call_of(events, _all_of({fault}), "a fault alone"),
        call_of(events, _where_one_round_is_not_enough(events, rng), ONLY_TOGETHER),
    ]


def _difference(call: Call, value: Any) -> Difference | None:
    runs: Runs = call.given
    events, left = call["events"], [event for event in call["events"] if event in value]
    if left != value:
        return Difference((), "not a part", "events of the schedule, each once, in their order", _numbers(value))
    if not runs.breaks(value):
        faults_only = value and all(event["do"] != "send" for event in value)
        part = "lab14.faults_are_causes" if faults_only else "holds"
        return Difference((), part, "a schedule with which it goes wrong", _numbers(value))
    for number, event in enumerate(value):
        if runs.breaks(value[:number] + value[number + 1 :]):
            words = f"{_numbers(value)}, and without event {event['number']} it goes wrong as well"
            return Difference((), _why_left_over(call, value), "no single event can be left out", words)
    asked, runs.count = runs.count, 0
    if asked > MOST_RUNS:
        return Difference(
            (), "lab14.one_at_a_time", f"at most {MOST_RUNS} runs for {len(events)} events", f"{asked} runs"
        )
    return None


def _why_left_over(call: Call, value: Sequence[Event]) -> str:
    """A belief's id where what is left shows it."""
    if call.about == ONLY_TOGETHER and len(value) == 2:
        return "lab14.once_needed"
    return "lab14.one_half" if call.about == TWO_AND_A_FAULT and call.given.count else "left over"


def _numbers(events: Sequence[Any]) -> str:
    named = [str(event["number"]) if isinstance(event, dict) and "number" in event else "?" for event in events]
    return f"{counted(len(named), 'events')}: {', '.join(named[:12])}{', …' if len(named) > 12 else ''}"


RULES = {
    "not a part": (
        "shrink returns some of the events that it was given, as they are and in their order: leave out, add nothing"
    ),
    "holds": (
        "What shrink returns must still go wrong: ask fails about the shorter schedule before you take it for the next"
    ),
    "left over": (
        "Nothing can be left out of a short schedule: try each single event of it once more, and repeat until a whole "
        "round has left out none"
    ),
}

SHRINK = Pure(
    "lab14.shrink",
    "shrink(events, fails)",
    points=4,
    about="schedules of 64 events",
    calls=calls,
    returns=[object],
    compares=_difference,
    rules=RULES,
    forbids=FORBIDS["lab14.shrink"],
)
