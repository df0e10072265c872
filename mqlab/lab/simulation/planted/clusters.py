"""Clusters in which one thing is wrong: students find out what, from what happens.

Mirrors: a customer's cluster with a release of its own. For lab 14.

    it = cluster("A")
    day = it.day(3)                    a plan: members, and the events of its schedule
    it.alarm(day)                      plays it; what a monitoring would report at its end, [] if all is well
    it.alarm(day, day.events[:5])      the same with another schedule
    lab = it.play(day)                 the Lab after the day, with the defect in it; history(lab) are its rows
    it.rolled_back("store")            the same cluster with the store of a sound release, on the same days
    play(it.story(day), **it.settings(day))          the day as a story

Which defect a cluster has follows from its name alone. It is put into single parts of running nodes
(mqlab.lab.simulation.planted.fitting); links have small delays of the cluster's own, so a sound cluster does not do the
same steps. ARCHITECTURE.md says what that protects against, and what not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any

from mqlab.lab.simulation.model import Found, Wrong, disordered, lost, passed, seen, tried
from mqlab.lab.simulation.plan import Event, RunPlan
from mqlab.lab.simulation.planted import of_the_broker, of_the_client, of_the_store
from mqlab.lab.simulation.planted.days import draw_day
from mqlab.lab.simulation.planted.fitting import Defect
from mqlab.lab.simulation.running import Run, lab_settings
from mqlab.lab.world.lab import Lab, play

if TYPE_CHECKING:
    from mqlab.lab.world.story import Story

SETTLE_MS = 35_000
LONGEST_DELAY_MS = 3
CATALOGUE: tuple[Defect, ...] = (*of_the_store.DEFECTS, *of_the_broker.DEFECTS, *of_the_client.DEFECTS)


class PlantedCluster:
    """A cluster with a defect, and its days."""

    def __init__(self, name: str, defects: Sequence[Defect] = CATALOGUE, *, sound_room: str = "") -> None:
        self.name = name
        self._defects = defects
        self._sound_room = sound_room

    def rolled_back(self, room: str) -> PlantedCluster:
        """This cluster with one room of the code (store, broker or client) from a sound release."""
        return PlantedCluster(self.name, self._defects, sound_room=room)

    def _rng(self, purpose: object) -> Random:
        return Random(hashlib.sha256(f"{self.name} {purpose}".encode()).digest())

    def day(self, number: int) -> RunPlan:
        """One of the cluster's days."""
        return draw_day(self._rng(f"day {number}"), number)

    def play(self, day: RunPlan, events: Sequence[Event] | None = None) -> Lab:
        """The Lab after a day, with the given events or those of the day."""
        return self._played(day, events)[0]

    def alarm(self, day: RunPlan, events: Sequence[Event] | None = None) -> list[Wrong]:
        """What is wrong when the day is over: kind and message of each broken promise, without a cause."""
        lab, run = self._played(day, events)
        evidence, plan = Found(lab), run.plan
        return [
            *lost(evidence, run.notes),
            *passed(evidence, run.notes),
            *disordered(run.notes, plan),
            *seen(evidence, run.notes, plan),
            *tried(evidence, run.notes, plan),
        ]

    def story(self, day: RunPlan, events: Sequence[Event] | None = None) -> Story:
        """A day as a story, for ``play`` and the time machine; its other keywords are ``settings(day)``."""
        return lambda lab: self._tell(Run(_with(day, events)), lab)

    def settings(self, day: RunPlan) -> dict[str, Any]:
        """The keywords of ``play`` and ``explore`` for a day."""
        return {"seed": day.seed, **lab_settings(day)}

    def _played(self, day: RunPlan, events: Sequence[Event] | None) -> tuple[Lab, Run]:
        run = Run(_with(day, events))
        return play(lambda lab: self._tell(run, lab), **self.settings(day)), run

    def is_due_to(self, rule: str) -> bool:
        """Whether this is the rule that the cluster's defect breaks first of all."""
        return self._defect().breaks == rule

    def has_defect_of(self, other: PlantedCluster) -> bool:
        """Whether both clusters have the same defect."""
        return self._defect() is other._defect()

    def _defect(self) -> Defect:
        return self._rng("defect").choice(self._defects)

    def _tell(self, run: Run, lab: Lab) -> None:
        if self._defect().room != self._sound_room:
            lab.fit_nodes(self._defect().fit)
        run.begin(lab)
        delays = self._rng(f"delays {run.plan.seed}")
        for name in list(lab.handles):
            lab.slow(name, delays.randint(0, LONGEST_DELAY_MS))
        run.act()
        run.mend()
        for _ in range(2):
            lab.run_for(SETTLE_MS)
            run.wake()

    def __repr__(self) -> str:
        return f"<Cluster {self.name}>"


@lru_cache(maxsize=16)
def cluster(name: str) -> PlantedCluster:
    """The cluster of a name. Any text is a name."""
    return PlantedCluster(str(name))


def _with(day: RunPlan, events: Sequence[Event] | None) -> RunPlan:
    return day if events is None else replace(day, events=list(events))
