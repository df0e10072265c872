"""The days that lab 13's answers are judged by: sealed days with three incidents and two decoys each, and their truth.

    days_of(seed)    a few days that have every kind of incident and a load test among them
    day(name)        one of them: its tables where an answer can read them, its calendar, its truth
    own_day(ticket)  the day that a student was given by `mqlab incident`, made again

The stores are deleted at once, unless they are to be repaired: an answer gets the tables. A day costs about two seconds
and is made once per process.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mqlab.course.kit import Store
from mqlab.course.kit.stores import shared_folder
from mqlab.data.traffic.model import FIRST_DAY_MS
from mqlab.data.traffic.trouble.capstone import SealedDay, capstone, day_of_ticket
from mqlab.data.traffic.trouble.placing import LOUD

if TYPE_CHECKING:
    from mqlab.data.traffic.day_facts import DayFacts

MESSAGES, BROKERS = 8_000, 2
MIDNIGHT = FIRST_DAY_MS + 24 * 3_600_000
KINDS = (*LOUD, "deploy", "killed_listener")
ONE_SLOW, ONLY_A_TEST = "one slow process", "a load test, and its group is not harmed"
_WANTED = frozenset({*KINDS, ONE_SLOW, ONLY_A_TEST})
OWN = "the day that you were given"
_SECRET = b"lab 13: days to practise on"
_TRIES = 240

Told = Mapping[str, Any]
Pairs = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class JudgedDay:
    """A day's tables on disk, what had been planned, and what is true about it (entries of ``harm_of``).

    An incident without harm is left out: the tables of a small day show nothing of it.
    """

    store: Store
    calendar: tuple[dict[str, Any], ...]
    incidents: tuple[Told, ...]
    decoys: tuple[Told, ...]

    @property
    def name(self) -> str:
        """What a message calls it."""
        return self.store.about

    @functools.cached_property
    def facts(self) -> DayFacts:
        """The tables."""
        from mqlab.data.traffic.day_facts import DayFacts

        return DayFacts.read(self.store)

    @functools.cached_property
    def harmed(self) -> Pairs:
        """(group, msg_id) of everything that the incidents harmed."""
        return frozenset(pair for incident in self.incidents for pair in pairs_of(incident))

    @functools.cached_property
    def meant(self) -> Pairs:
        """(group, msg_id) of the dead letters of a load test."""
        keys = {entry["key"] for entry in self.calendar if entry.get("key")}
        dead = self.facts.life[self.facts.life["dead"]]
        rows = zip(dead["group"], dead["msg_id"], dead["keys"], strict=True)
        return frozenset((group, msg_id) for group, msg_id, text in rows if keys & set(text.split()))


def pairs_of(incident: Told) -> set[tuple[str, str]]:
    """(group, msg_id) of what one incident harmed."""
    return {(group, msg_id) for group, msg_id in incident["harmed"]}


def by_group(pairs: Pairs | set[tuple[str, str]]) -> dict[str, list[str]]:
    """Group -> sorted ids of its messages: the form in which answers give and get them."""
    msg_ids: dict[str, list[str]] = {}
    for group, msg_id in sorted(pairs):
        msg_ids.setdefault(group, []).append(msg_id)
    return msg_ids


def judged(sealed: SealedDay, name: str, keeps_stores: bool = False) -> tuple[JudgedDay, str]:
    """Write a day, read its tables, and keep these; the day, and the folder of its stores."""
    from mqlab.data.traffic.day_facts import facts_of

    folder = shared_folder("lab13")
    sealed.write(folder / "stores")
    facts_of(folder / "stores").save(folder / "day")
    if not keeps_stores:
        shutil.rmtree(folder / "stores")
    truth = sealed.truth()
    store = Store(str(folder / "day"), name)
    harmful = tuple(incident for incident in truth["incidents"] if incident["harmed"])
    day = JudgedDay(store, tuple(sealed.calendar), harmful, tuple(truth["decoys"]))
    return day, str(folder / "stores")


@functools.cache
def day(name: str) -> JudgedDay:
    """The day of a name."""
    return judged(_sealed(name), name)[0]


@functools.cache
def own_day(ticket: str) -> JudgedDay:
    """The day that a student was given, from its ticket."""
    return judged(day_of_ticket(ticket), OWN)[0]


@functools.cache
def days_of(seed: int) -> tuple[JudgedDay, ...]:
    """Days that have all kinds among them, each at least one thing that the days before it lack; the one first on which
    a load test is all that happens to its group.
    """
    missing = set(_WANTED)
    names: list[str] = []
    for number in range(_TRIES):
        name = f"day {seed}-{number}"
        new = missing & _what_happens(_sealed(name))
        # The first days bring much that is new; later ones are taken for whatever is still missing.
        if len(new) >= min(len(missing), 4 - 4 * number // _TRIES):
            names.insert(0 if ONLY_A_TEST in new else len(names), name)
            missing -= new & {*(incident["kind"] for incident in day(name).incidents), ONE_SLOW, ONLY_A_TEST}
        if not missing:
            break
    return tuple(day(name) for name in names)


def _what_happens(sealed: SealedDay) -> set[str]:
    placed = [incident for incident in sealed.asked.model.incidents or () if not isinstance(incident, str)]
    kinds = {incident.kind for incident in placed}
    if any(incident.kind == "slow_consumer" and incident.member is not None for incident in placed):
        kinds.add(ONE_SLOW)
    test = next((incident for incident in placed if incident.kind == "load_test"), None)
    if test is not None and all(incident.decoy or incident.group != test.group for incident in placed):
        kinds.add(ONLY_A_TEST)
    return kinds


def _sealed(name: str) -> SealedDay:
    return capstone(name, _SECRET, messages=MESSAGES, brokers=BROKERS)
