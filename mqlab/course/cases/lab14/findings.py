"""lab14.finding: what the learner has found out about the three clusters: a day, a step and a rule for each.

    finding() ─▶ {"Tunis": (3, 412, "locked"), …}     the first rule that is broken on that day, and where

Each case judges one of the clusters. Any day is right on which the cluster's own defect breaks its rule first.
"""

from __future__ import annotations

from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab14.book import ROOMS, Breach, breaches
from mqlab.course.cases.lab14.worlds import PATIENTS, rows_of
from mqlab.course.kit import Pure, tuple_of
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Call
from mqlab.lab.simulation.planted import cluster

MOST_DAYS = 30
FAULTS = ("fault.killed", "fault.powered_off", "fault.start")


def call_of(name: str) -> Call:
    """The question about one cluster."""
    return Call(given=name, about=name)


def calls(seed: int) -> list[Call]:
    """A cluster; three seeds ask about all of them."""
    return [call_of(PATIENTS[(seed - 1) % len(PATIENTS)])]


def _difference(call: Call, value: Any) -> Difference | None:
    name: str = call.given
    if name not in value:
        return Difference((), "missing", "a day, a step and a rule", "no such key")
    day, step, rule = value[name]
    if rule not in ROOMS:
        return Difference(("rule",), "no rule", f"one of {', '.join(ROOMS)}", rule)
    if not 0 <= day < MOST_DAYS:
        return Difference(("day",), "no day", f"0 to {MOST_DAYS - 1}", day)
    # 1. The day.
    broken = breaches(rows_of(name, day))
    if not broken or not cluster(name).is_due_to(broken[0].rule):
        return Difference((f"day {day}",), "quiet", "a day on which its own defect shows first", f"day {day}")
    first = broken[0]
    # 2. The rule.
    if rule != first.rule:
        later = next((breach for breach in broken if breach.rule == rule), None)
        words = f"{rule!r} is broken first at step {later.step}" if later else f"{rule!r} holds on all of day {day}"
        return Difference(
            (f"day {day}",),
            "consequence" if later else "lab14.alarm_names_the_cause",
            "the rule that is broken first",
            words,
        )
    # 3. The step.
    if step != first.step:
        return Difference((f"day {day}", "step"), _of_step(name, day, step, first, broken), "the first step", step)
    return None


def _of_step(name: str, day: int, step: int, first: Breach, broken: list[Breach]) -> str:
    """What an answer has that names this step."""
    rows = rows_of(name, day)
    if any(breach.step == step for breach in broken):
        return "lab14.any_breach"
    if any(row["step"] == step and row["what"] in FAULTS for row in rows):
        return "lab14.fault_is_cause"
    return "too late" if step > first.step else "too early"


RULES = {
    "missing": "finding returns a dictionary with a key for each of the three clusters: Tunis, Turin and Warsaw",
    "no rule": "A finding names one of the nine rules, as the table has it",
    "no day": f"A day is a seed from 0 to {MOST_DAYS - 1}",
    "quiet": (
        "On this day the cluster's defect does not show, or something else shows before it: look for a day with an "
        "alarm, and follow the message that the alarm names"
    ),
    "consequence": (
        "This rule is broken on that day, and another one was broken before it. What comes later may be a consequence: "
        "look at the steps before the one that is named here"
    ),
    "too late": (
        "The rule is the right one, and it was broken before this step already: go back in the time machine, row by row"
    ),
    "too early": (
        "The rule is the right one, and at this step it still holds: what you see there is allowed, as the last "
        "column of the table says"
    ),
}

FINDING = Pure(
    "lab14.finding",
    "finding()",
    points=6,
    about="one of the three clusters",
    calls=calls,
    seeds=(1, 2, 3),
    returns={str: tuple_of("finding", day=int, step=int, rule=str)},
    compares=_difference,
    rules=RULES,
    weights={"": 0, **dict.fromkeys(PATIENTS, 1.0)},
    forbids=FORBIDS["lab14.finding"],
)
