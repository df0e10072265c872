"""Where a student's bad day gets its incidents and decoys: kinds, groups, times and magnitudes, by draws.

Mirrors: a bad day, on which several things go wrong at once and some that look so do not.

    one of QUIET      stays under the thresholds of the ready-made rules
    two of LOUD       two of the three overlap in time; each harms another group, or none has a group
    two of DECOYS     never where they would change whom an incident harms

    magnitudes follow the number of orders, so that a small day's incidents do harm as well

Left out: incidents without harm (burst, hot_key, trace_gap, clock_skew).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from mqlab.data.traffic.clients import FIRST_CONSUMER
from mqlab.data.traffic.day import MINUTE_MS, OrdersDay
from mqlab.data.traffic.model import GROUPS, TRACED, Asked
from mqlab.data.traffic.trouble.incident import Incident
from mqlab.data.traffic.trouble.incidents import ALL_KINDS, REPLAY_SPEED, Dice
from mqlab.data.traffic.writing.store_state import order_count

LOUD = (
    "slow_consumer",
    "failing_consumer",
    "poison_message",
    "stuck_message",
    "inconsistent_tags",
    "wrong_reset",
    "skipped",
    "lost_answer",
)
SLOW_MEMBER = "slow member"  # a slow_consumer: one process, and a little slower only
QUIET = ("deploy", "killed_listener", SLOW_MEMBER)
DECOYS = ("campaign", "planned_deploy", "big_customer", "group_off", "load_test")
ALARMING = ("slow_consumer", "failing_consumer", "inconsistent_tags", "wrong_reset", "skipped", "deploy")
CALM = ("campaign", "planned_deploy", "big_customer")  # decoys that the numbers of a watched day can tell
_OF_BILLING = ("poison_message", "stuck_message")
_HOUR = 60
_APART_MINUTES = 150  # what follows an order comes within this time
_ENOUGH_HANGING = 5
_One = TypeVar("_One")


@dataclass(frozen=True, slots=True)
class Placing:
    """Places what happens on the day of ``asked``, whose own incidents do not count."""

    dice: Dice
    asked: Asked

    def capstone(self) -> tuple[Incident, ...]:
        """Three incidents and two decoys."""
        incidents = self._incidents(self._kinds())
        decoys: list[Incident] = []
        for kind in self._shuffled(DECOYS):
            decoy = self._decoy(kind, incidents)
            if decoy is not None and len(decoys) < 2:
                decoys.append(decoy)
        return (*incidents, *decoys)

    def alarm(self, kind: str | None) -> tuple[Incident, ...]:
        """One incident, or none, and up to two decoys."""
        group = self._shuffled([group.name for group in TRACED])[0]
        incidents = [] if kind is None else [self._incident(kind, group, self.dice.between(9 * _HOUR, 17 * _HOUR))]
        wanted = self._shuffled(CALM)[: self.dice.between(0, 2)]
        decoys = [self._decoy(kind, incidents) for kind in wanted]
        return (*incidents, *(decoy for decoy in decoys if decoy is not None))

    def _kinds(self) -> list[str]:
        """One quiet kind and two loud ones, in the order in which they are placed."""
        quiet = self._shuffled(QUIET)[0]
        loud = [kind for kind in self._shuffled(LOUD) if not (quiet == SLOW_MEMBER and kind == "slow_consumer")]
        # Billing can have one of these: a group has one incident.
        first = loud[0]
        second = next(kind for kind in loud[1:] if not (first in _OF_BILLING and kind in _OF_BILLING))
        # A message that fails has a moment and no duration, so it is not one of the two that overlap.
        return sorted(self._shuffled([quiet, first, second]), key=lambda kind: kind == "poison_message")

    def _incidents(self, kinds: list[str]) -> list[Incident]:
        """The first two overlap; the third is anywhere."""
        groups = self._groups(kinds)
        placed: list[Incident] = []
        for kind, group in zip(kinds, groups, strict=True):
            minute = self.dice.between(9 * _HOUR, 17 * _HOUR)
            if len(placed) == 1:
                first_ms, last_ms = placed[0].start_ms, min(placed[0].end_ms, self._at(17 * _HOUR))
                long = (last_ms - first_ms) // MINUTE_MS
                minute = self._minute(first_ms) + max(1, long * self.dice.between(20, 60) // 100)
            placed.append(self._incident(kind, group, minute))
        return placed

    def _groups(self, kinds: list[str]) -> list[str]:
        """A group for each kind, all different."""
        names = [group.name for group in TRACED]
        free = self._shuffled(names)
        if any(kind in _OF_BILLING for kind in kinds):
            free.remove(names[0])
        return [names[0] if kind in _OF_BILLING else free.pop() for kind in kinds]

    def _incident(self, kind: str, group: str, minute: int) -> Incident:
        """An incident of a kind that begins in a minute of the day; its broker and magnitudes are drawn."""
        start_ms, between = self._at(minute), self.dice.between
        tags = next(known.tags for known in GROUPS if known.name == group)
        broker = between(0, self.asked.brokers - 1)

        def lasting(minutes: int) -> Incident:
            name = "slow_consumer" if kind == SLOW_MEMBER else kind
            return Incident(name, start_ms, self._at(minute + minutes), group=group)

        match kind:
            case "slow_consumer":
                return replace(lasting(between(45, 80)), member=(None, 0, 1)[between(0, 2)])
            case "slow member":
                # Twice the usual time, at half of the calls: less than the rules look for.
                return replace(lasting(between(50, 80)), member=between(0, 1), cost_ms=60, percent=40)
            case "failing_consumer":
                # Retries go to the first member, and would be healed there if the other one failed.
                return replace(lasting(between(12, 20)), member=(None, 0)[between(0, 1)])
            case "poison_message":
                return replace(lasting(0), broker=broker)
            case "stuck_message":
                queue_id = between(0, self.asked.model.queues - 1)
                return replace(lasting(24 * _HOUR - minute), broker=broker, queue_id=queue_id)
            case "inconsistent_tags":
                return replace(lasting(between(60, 150)), tags=tags[1:], member=2)
            case "wrong_reset":
                back = between(60, 150)
                return replace(lasting(back // (REPLAY_SPEED - 1)), back_ms=back * MINUTE_MS)
            case "deploy":
                return replace(lasting(24), restarts=6, back_ms=45_000)
            case "killed_listener":
                hangs_ms = self._hangs_ms(minute, group)
                return replace(lasting(40), broker=broker, member=between(0, 1), restarts=4, back_ms=hangs_ms)
            case "lost_answer":
                client = between(0, FIRST_CONSUMER - 1)
                return replace(lasting(between(50, 80)), broker=broker, group=None, client=client, percent=30)
            case _:
                return lasting(between(15, 40))  # skipped

    def _hangs_ms(self, minute: int, group: str) -> int:
        """How long a listener hangs until a few calls have come."""
        day = OrdersDay(self.asked.model.start_ms, order_count(self.asked.messages_of(0), self.asked.model))
        passed_ms = minute * MINUTE_MS
        an_hour = day.orders_before(passed_ms + _HOUR * MINUTE_MS) - day.orders_before(passed_ms)
        # A member has half of the calls; billing is called about twice for an order, the others once.
        calls_an_hour = an_hour * (2 if group == TRACED[0].name else 1) / 2
        return min(4 * MINUTE_MS, max(45_000, int(_ENOUGH_HANGING * _HOUR * MINUTE_MS / max(1, calls_an_hour))))

    def _decoy(self, kind: str, incidents: list[Incident]) -> Incident | None:
        """A decoy, where it does not mix with an incident; None if there is no such place."""
        for _ in range(12):
            decoy = ALL_KINDS[kind](self.dice, self.asked)
            if kind == "planned_deploy":
                early = self._at(5 * _HOUR)  # nothing else has begun by then
                decoy = decoy if self._is_alone(decoy, incidents) else replace(decoy, start_ms=early, end_ms=early)
                decoy = replace(decoy, end_ms=decoy.start_ms + 12 * MINUTE_MS)
            if kind != "load_test" or self._is_alone(decoy, incidents):
                return decoy
        return None

    @staticmethod
    def _is_alone(decoy: Incident, incidents: list[Incident]) -> bool:
        """Whether the incidents of its group do not touch what it does."""
        apart_ms = _APART_MINUTES * MINUTE_MS
        return all(
            i.group != decoy.group
            or i.start_ms - (i.back_ms or 0) > decoy.end_ms + apart_ms
            or i.end_ms < decoy.start_ms - apart_ms
            for i in incidents
        )

    def _shuffled(self, values: list[_One] | tuple[_One, ...]) -> list[_One]:
        rest, shuffled = list(values), []
        while rest:
            shuffled.append(rest.pop(self.dice.between(0, len(rest) - 1)))
        return shuffled

    def _at(self, minute: int) -> int:
        return self.asked.model.start_ms + minute * MINUTE_MS

    def _minute(self, at_ms: int) -> int:
        return (at_ms - self.asked.model.start_ms) // MINUTE_MS
