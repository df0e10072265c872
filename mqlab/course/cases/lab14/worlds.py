"""The clusters of lab 14: those of the notebook, and those that an answer is judged by, which are others.

    TUNIS, TURIN, WARSAW      the three that the learner is to find out about, by hand
    day_that_breaks(rule, …)  a day of a cluster with another defect than theirs, on which a rule is broken first

The names of hidden clusters come from the class's seed, so nothing about them can be read or played before the grading.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count

from mqlab.course.cases.lab14.book import ROOMS, Breach, Row, breaches
from mqlab.lab.simulation.plan import RunPlan
from mqlab.lab.simulation.planted import cluster, history

TUNIS, TURIN, WARSAW = PATIENTS = ("Tunis", "Turin", "Warsaw")
NEEDS = {"acknowledged": "slow_disk", "numbered": "power_off"}
"""Rules that no day breaks on which this does not happen: such a day need not be played."""


@lru_cache(maxsize=64)
def rows_of(name: str, day: int, sound_room: str = "") -> list[Row]:
    """The history of a day. Callers must not change it."""
    it = cluster(name)
    it = it.rolled_back(sound_room) if sound_room else it
    return history(it.play(it.day(day)))


def first_breach(name: str, day: int) -> Breach | None:
    """The first rule that is broken on a day."""
    return next(iter(breaches(rows_of(name, day))), None)


def day_that_breaks(rule: str, seed: object) -> tuple[str, int]:
    """Name and day of a cluster on whose day this rule is broken first, with a defect that no patient has."""
    for name in _names(f"{rule} {seed}"):
        it = cluster(name)
        if not it.is_due_to(rule) or any(it.has_defect_of(cluster(patient)) for patient in PATIENTS):
            continue
        for day in range(3):
            if _may_break(rule, it.day(day)):
                breach = first_breach(name, day)
                if breach is not None and breach.rule == rule:
                    return name, day
    raise AssertionError("names do not end")


def sound_day(seed: object) -> tuple[str, int, str]:
    """Name, day and room: with this room from a sound release nothing is wrong in the cluster."""
    it = cluster(f"lab 14, sound {seed}")
    (room,) = {ROOMS[rule] for rule in ROOMS if it.is_due_to(rule)}
    return it.name, 0, room


def _names(purpose: str) -> Iterator[str]:
    return (f"lab 14, {purpose}, {number}" for number in count())


def _may_break(rule: str, day: RunPlan) -> bool:
    return rule not in NEEDS or any(event["do"] == NEEDS[rule] for event in day.events)
