"""Makes a failing plan small: leaves out events, members and machines while the same kind of wrong remains.

Like ddmin (delta debugging): halves first, then smaller parts, down to single events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from mqlab.lab.simulation.plan import RunPlan

SIMPLER = {"replicas": 0, "brokers": 1, "name_servers": 1, "small_files": False, "two_copies": False, "queues": 1}


def shrink(plan: RunPlan, fails: Callable[[RunPlan], bool], *, tries: int = 400) -> RunPlan:
    """The smallest plan found for which ``fails`` still holds, in at most so many tries."""
    left = [tries]

    def holds(candidate: RunPlan) -> bool:
        left[0] -= 1
        return left[0] >= 0 and fails(candidate)

    before = None
    while plan != before and left[0] > 0:
        before = plan
        plan = _without(plan, "events", holds)
        plan = _without(plan, "members", holds)
        for simpler in _worlds(plan):
            if holds(simpler):
                plan = simpler
    return plan


def _without(plan: RunPlan, part: str, holds: Callable[[RunPlan], bool]) -> RunPlan:
    """The plan with as few rows in one of its lists as hold."""

    def cut(rows: list[Any]) -> RunPlan:
        return replace(plan, events=rows) if part == "events" else replace(plan, members=rows)

    return cut(_fewer(getattr(plan, part), lambda rows: holds(cut(rows))))


def _fewer(rows: list[Any], holds: Callable[[list[Any]], bool]) -> list[Any]:
    """Leave out ever smaller parts of a list while ``holds``."""
    size = max(1, len(rows) // 2)
    while rows:
        start, cut = 0, False
        while start < len(rows):
            shorter = rows[:start] + rows[start + size :]
            if holds(shorter):
                rows, cut = shorter, True
            else:
                start += size
        if size == 1 and not cut:
            break
        size = max(1, size // 2)
    return rows


def _worlds(plan: RunPlan) -> Iterator[RunPlan]:
    """Plans with one thing of the world simpler; events of machines that are gone go with them."""
    for name, value in SIMPLER.items():
        if plan.world[name] == value:
            continue
        world = {**plan.world, name: value}
        gone = ("-s1",) if name == "replicas" else ("broker-b",) if name == "brokers" else ("nameserver-2",)
        machine = name in ("replicas", "brokers", "name_servers")
        events = [
            event
            for event in plan.events
            if not machine or not any(word in str(event.get(key, "")) for word in gone for key in ("node", "other"))
        ]
        yield replace(plan, world=world | ({"two_copies": False} if name == "replicas" else {}), events=events)
