"""The processes of one group at one broker: who reads which queue at which moment, and what changes when one goes.

Mirrors: the outcome of RebalanceService, and of the offsets that a consumer stores every few seconds.

    queues     0 1 2 3 | 4 5 6 7          the first half belongs to member 0, the other half to member 1
               0 1 2 | 3 4 5 | 6 7        while a third member is there
    a member leaves at t   the other one takes its queues over at t + 1,500 ms, and begins at the stored offsets
                           it comes back as a new process (a life later) and gets its queues back

                           before t                                    what the other one gets again
    planned_deploy         all calls end, offsets are stored            nothing
    deploy                 killed; offsets of ``unstored_ms`` are lost  what was consumed in that time, what was called
    killed_listener        hangs for ``hang_ms``, then killed           every call that hung

Left out: a group whose two members are away at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mqlab.data.traffic.clients import consumer
from mqlab.data.traffic.day import MINUTE_MS, OrdersDay
from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.model import INSTANCES
from mqlab.data.traffic.trouble.incident import Incident

TAKEOVER_MS = 1_500
_UNTOLD_MS = 600  # the trace of a process's last half second dies with it, so nothing may begin there
_AWAY_MS = 40_000
_MOST_HANGING = 16  # of the listener's 20 threads
_CLOSER = 64  # what waited for the takeover follows this many times closer than it would have been delivered


@dataclass(frozen=True, slots=True)
class Leave:
    """One departure of a member, with the number of its incident."""

    incident: int
    member: int
    at_ms: int
    back_ms: int
    hang_ms: int = 0
    unstored_ms: int = 0
    is_killed: bool = True


class TracedMembers:
    """The members of the group with this number in TRACED. ``incidents``: all of the broker's."""

    def __init__(self, number: int, name: str, queues: int, incidents: Sequence[Incident], day: OrdersDay) -> None:
        self._number, self._queues = number, queues
        mine = [(n, incident) for n, incident in enumerate(incidents) if incident.group == name]
        self.leaves = sorted((leave for n, i in mine for leave in _leaves(n, i, day)), key=lambda leave: leave.at_ms)
        self._joins = [(i.start_ms, i.end_ms) for _, i in mine if i.kind == "inconsistent_tags" and i.member == 2]

    def owners(self, queue_id: Array, at_ms: Array) -> Array:
        """The member to which each queue belongs at a moment, were all members there."""
        owner = (queue_id >= self._queues // INSTANCES).astype(np.int64)
        for start_ms, end_ms in self._joins:
            first, second = -(-self._queues // 3), -(-self._queues // 3) + -(-(self._queues - 1) // 3)
            of_three = (queue_id >= first).astype(np.int64) + (queue_id >= second)
            owner = np.where((at_ms >= start_ms) & (at_ms < end_ms), of_three, owner)
        return owner

    def settled(self, member: Array, start_ms: Array) -> Array:
        """When calls begin that would begin at ``start_ms``: later where their member has just gone."""
        for leave in self.leaves:
            waiting_ms = start_ms - (leave.at_ms - _UNTOLD_MS)
            waits = (member == leave.member) & (waiting_ms >= 0) & (start_ms < leave.at_ms + TAKEOVER_MS)
            start_ms = np.where(waits, leave.at_ms + TAKEOVER_MS + waiting_ms // _CLOSER, start_ms)
        return start_ms

    def clients(self, member: Array, start_ms: Array) -> Array:
        """The process that is called: the member itself in its current life, or the other one while it is away."""
        present = member
        for leave in self.leaves:
            away = (present == leave.member) & (start_ms >= leave.at_ms) & (start_ms < leave.back_ms)
            present = np.where(away, 1 - leave.member, present)
        life = np.zeros(len(member), np.int64)
        for leave in self.leaves:
            life += (present == leave.member) & (start_ms >= leave.back_ms)
        return consumer(self._number, present, life)

    def processes(self, member: int, start_ms: int, end_ms: int, *, killed: bool = False) -> list[int]:
        """The numbers of the processes that a member is in a stretch of time; or of those that are killed in it."""
        mine = [leave for leave in self.leaves if leave.member == member]
        first = sum(leave.back_ms <= start_ms for leave in mine)
        lives = sum(leave.at_ms < end_ms if killed else leave.back_ms < end_ms for leave in mine) + (not killed)
        return [int(consumer(self._number, member, life)) for life in range(first, max(first + 1, lives))]

    @staticmethod
    def hang(leave: Leave, is_its: Array, start_ms: Array, end_ms: Array) -> Array:
        """Which calls never return because the member dies in them."""
        in_hang = (start_ms >= leave.at_ms - leave.hang_ms) & (start_ms < leave.at_ms - _UNTOLD_MS)
        in_call = (start_ms < leave.at_ms) & (end_ms > leave.at_ms) & leave.is_killed
        return is_its & (in_hang | in_call)

    @staticmethod
    def unstored(leave: Leave, is_its: Array, end_ms: Array) -> Array:
        """Which calls ended, but their offsets were not stored when the member died."""
        unstored: Array = is_its & (end_ms >= leave.at_ms - leave.unstored_ms) & (end_ms < leave.at_ms)
        return unstored

    @staticmethod
    def again_ms(leave: Leave, start_ms: Array) -> Array:
        """When the other member is called with what it gets again."""
        since = leave.at_ms - max(leave.hang_ms, leave.unstored_ms) - MINUTE_MS
        begins_ms: Array = leave.at_ms + TAKEOVER_MS + np.maximum(0, start_ms - since) // _CLOSER
        return begins_ms

    def __repr__(self) -> str:
        return f"<Members of group {self._number}: {len(self.leaves)} departures>"


def _leaves(number: int, incident: Incident, day: OrdersDay) -> list[Leave]:
    """The departures that an incident leads to."""
    if incident.kind not in ("deploy", "planned_deploy", "killed_listener"):
        return []
    count = max(1, incident.restarts or 1)
    apart_ms = (incident.end_ms - incident.start_ms) // count
    leaves = []
    for turn in range(count):
        at_ms = incident.start_ms + turn * apart_ms + apart_ms // 2
        back_ms = at_ms + min(_AWAY_MS, max(TAKEOVER_MS + 1, apart_ms // 2))
        if incident.kind == "killed_listener":
            hang_ms = min(incident.back_ms or 0, _longest_hang_ms(day, at_ms))
            leaves.append(Leave(number, incident.member or 0, at_ms, back_ms, hang_ms=hang_ms))
        else:
            is_killed = incident.kind == "deploy"
            unstored_ms = incident.back_ms or 0 if is_killed else 0
            leaves.append(Leave(number, turn % INSTANCES, at_ms, back_ms, 0, unstored_ms, is_killed))
    return leaves


def _longest_hang_ms(day: OrdersDay, at_ms: int) -> int:
    """How long calls may hang before the threads are used up: about one call of a member for each order."""
    passed_ms = at_ms - day.start_ms
    a_minute = day.orders_before(passed_ms) - day.orders_before(passed_ms - MINUTE_MS)
    return _MOST_HANGING * MINUTE_MS // max(1, a_minute)
