"""The fate of each message in each traced group: when and how often it is delivered to a listener, and the results.

Mirrors: the outcome of ConsumeMessageConcurrentlyService and ScheduleMessageService, not their mechanism.

    message ─▶ group reads its tag? ─▶ start = stored + some ms (+ lag of a slow listener, + a replay before it)
                                       end = start + what the listener takes
       failed ─▶ SCHEDULE_TOPIC_XXXX level 3 + tries ─▶ due ─▶ %RETRY%group ─▶ start ...       round after round
              ─▶ %DLQ%group when the group's tries are used up

    Rounds: all first tries of a slice at once, then those that failed, until none fails.

Which process is called, and what happens when one goes, is decided by members.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from mqlab.data.traffic.clients import members_of
from mqlab.data.traffic.day import OrdersDay
from mqlab.data.traffic.draws import Array, Draws, below
from mqlab.data.traffic.model import TAGS, TRACED, Group, TrafficModel
from mqlab.data.traffic.trouble.incident import Incident
from mqlab.data.traffic.trouble.incidents import REPLAY_SPEED
from mqlab.data.traffic.trouble.members import Leave, TracedMembers
from mqlab.rocketmq.store.config import StoreConfig, parse_delay_levels

FIRST_RETRY_LEVEL = 3
DELAYS_MS = np.array((0, *parse_delay_levels(StoreConfig().message_delay_level)), np.int64)
POLL_MS = 100
_DELIVERY, _OUTCOME, _PARTLY = 20, 60, 200  # purposes of draws; one per group
_SLOWER_PERCENT = 60  # of each minute is what a slow listener falls behind
_ALL = 100
SUCCESS, EXCEPTION, FAILED = 0, 2, 4  # context codes in a trace
TAG_NUMBERS = {tag: number for number, tag in enumerate(TAGS)}


@dataclass(slots=True)
class Deliveries:
    """Messages handed to listeners, one row per delivery. ``row`` is a row of the slice, ``group`` a number in TRACED.

    ``returned`` is False for a listener that never comes back, ``extra`` True for what is delivered again although it
    did not fail, ``replaced`` for a call whose message another process gets. ``causes`` has a bit for each incident
    that delayed, failed or repeated the delivery.
    """

    row: Array
    group: Array
    tries: Array
    client: Array
    start_ms: Array
    end_ms: Array
    code: Array
    returned: Array
    extra: Array
    replaced: Array
    causes: Array

    def chosen(self, rows: Array) -> Deliveries:
        return Deliveries(*(getattr(self, field.name)[rows] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.row)


@dataclass(slots=True)
class Missed:
    """Messages of a slice that a group reads and is never given. ``causes`` as in Deliveries.

    ``held`` are those that wait behind a stuck one; the others are lost.
    """

    row: Array
    causes: Array
    held: Array


@dataclass(slots=True)
class Parked:
    """Failed deliveries given back: ``stored_ms`` in the schedule topic (level), ``due_ms`` in the retry topic.

    A level of 0 means the dead letter topic, and no due time.
    """

    row: Array
    group: Array
    tries: Array
    stored_ms: Array
    due_ms: Array
    level: Array


@dataclass(slots=True)
class DeliveryColumns:
    """The columns of a slice's messages that deliveries need: all arrays, one row per message."""

    order: Array
    kind: Array
    queue_id: Array
    queue_offset: Array
    stored_ms: Array
    is_test: Array  # from a load test's account


@dataclass(frozen=True, slots=True)
class Fixed:
    """Messages singled out by an incident: ``order`` * 8 + ``kind`` and the place of the stuck message."""

    poison: int = -1
    stuck_queue: int = -1
    stuck_offset: int = -1
    stuck_after: int = -1  # the first queue offset that is never read


Columns = TypeVar("Columns", Deliveries, Missed)


class Consumers:
    """The traced groups of one broker."""

    def __init__(self, model: TrafficModel, draws: Draws, incidents: tuple[Incident, ...], day: OrdersDay) -> None:
        self._model = model
        self._draws = draws
        self._incidents = incidents
        self.members = [TracedMembers(n, group.name, model.queues, incidents, day) for n, group in enumerate(TRACED)]
        self.lost = np.zeros(len(TRACED), np.int64)
        self.repeated = np.zeros(len(TRACED), np.int64)
        self.stuck_client: int | None = None  # the process whose call never returns

    def first_tries(
        self, number: int, group: Group, stored: DeliveryColumns, reads: Array, fixed: Fixed
    ) -> tuple[Deliveries, Missed]:
        """The first delivery of each message of a slice in one group. ``reads``: subscribed or not, by tag."""
        rows = np.flatnonzero(reads[stored.kind])
        rows, missed = self._without_missed(number, group, stored, rows, fixed)
        # 1. When each delivery starts, by its draws and the lag of its listener. A stopped member gets nothing.
        bits = self._draws.bits(_DELIVERY + number, stored.order[rows] * 8 + stored.kind[rows])
        stored_ms = stored.stored_ms[rows]
        members = self.members[number]
        member = members.owners(stored.queue_id[rows], stored_ms)
        lag_ms, causes = self._lag_ms(group, stored_ms, member)
        start_ms = members.settled(member, stored_ms + 2 + below(bits, 0, 16, 7) + lag_ms)
        skipped = self._skipped(group, stored_ms, start_ms)
        if skipped.any():
            missed = _both(missed, Missed(rows[skipped > 0], skipped[skipped > 0], np.zeros((skipped > 0).sum(), bool)))
            rows, bits, member, causes, start_ms = (
                column[skipped == 0] for column in (rows, bits, member, causes, start_ms)
            )
        # 2. What a call takes; a slow listener takes long.
        cost_ms = 8 + below(bits, 16, 16, 40) + below(bits, 32, 8, 30) * (below(bits, 40, 8, 16) == 0)
        cost_ms = self._slower(group, start_ms, member, cost_ms, bits)
        count = len(rows)
        deliveries = Deliveries(
            rows,
            np.full(count, number),
            np.zeros(count, np.int64),
            members.clients(member, start_ms),
            start_ms,
            start_ms + cost_ms,
            np.zeros(count, np.int64),
            np.ones(count, bool),
            np.zeros(count, bool),
            np.zeros(count, bool),
            causes,
        )
        # 3. Incidents: a call that never returns, failures, deliveries that are repeated.
        if fixed.stuck_queue >= 0 and group.name == "billing":
            stuck = (stored.queue_id[rows] == fixed.stuck_queue) & (stored.queue_offset[rows] == fixed.stuck_offset)
            deliveries.returned &= ~stuck
            deliveries.causes = np.where(stuck, deliveries.causes | self._bits("stuck_message"), deliveries.causes)
            if stuck.any():
                self.stuck_client = int(deliveries.client[stuck][0])
        self._set_codes(number, group, deliveries, stored, fixed)
        again = [self._replayed(number, group, stored, deliveries)]
        again += [self._taken_over(number, group, stored, deliveries, member, leave) for leave in members.leaves]
        for part in again:
            if part is not None and len(part):
                deliveries = _both(deliveries, part)
        return deliveries, missed

    def next_tries(self, failed: Deliveries, parked: Parked, stored: DeliveryColumns, fixed: Fixed) -> Deliveries:
        """The delivery that follows each retry message."""
        deliveries = replace(failed)
        deliveries.tries, deliveries.causes = failed.tries + 1, failed.causes.copy()
        message = stored.order[failed.row] * 8 + stored.kind[failed.row]
        bits = self._draws.bits(_OUTCOME + 30, message * 32 + deliveries.tries)
        deliveries.start_ms = parked.due_ms + 2 + below(bits, 0, 16, 7)
        deliveries.code = np.zeros(len(deliveries.row), np.int64)
        deliveries.client = deliveries.code.copy()
        for number, group in enumerate(TRACED):
            here = np.flatnonzero(deliveries.group == number)
            if len(here):
                # The retry topic has one queue, which the first member owns.
                members, first = self.members[number], np.zeros(len(here), np.int64)
                start_ms, waits = self._opened(group, members.settled(first, deliveries.start_ms[here]))
                deliveries.start_ms[here], deliveries.client[here] = start_ms, members.clients(first, start_ms)
                deliveries.causes[here] |= waits
                theirs = deliveries.chosen(here)
                self._set_codes(number, group, theirs, stored, fixed)
                deliveries.code[here], deliveries.causes[here] = theirs.code, theirs.causes
        deliveries.end_ms = deliveries.start_ms + 8 + below(bits, 16, 16, 80)
        return deliveries

    def rounds(
        self, first: Deliveries, stored: DeliveryColumns, fixed: Fixed
    ) -> Iterator[tuple[Deliveries, Parked | None]]:
        """Each round of tries with its parked failures; ends when nothing failed."""
        tried = first
        while True:
            failed = tried.chosen(np.flatnonzero((tried.code != SUCCESS) & tried.returned))
            if not len(failed):
                yield tried, None
                return
            parked = _parked(failed)
            yield tried, parked
            again = np.flatnonzero(parked.level > 0)
            tried = self.next_tries(failed.chosen(again), _chosen(parked, again), stored, fixed)

    def _bits(self, kind: str) -> int:
        """The bits of all incidents of a kind, for ``causes``."""
        return sum(1 << number for number, incident in enumerate(self._incidents) if incident.kind == kind)

    def _of(self, group: Group, *kinds: str) -> Iterator[tuple[int, Incident]]:
        """The group's incidents of these kinds, each with its bit."""
        for number, incident in enumerate(self._incidents):
            if incident.group == group.name and incident.kind in kinds:
                yield 1 << number, incident

    def _without_missed(
        self, number: int, group: Group, stored: DeliveryColumns, rows: Array, fixed: Fixed
    ) -> tuple[Array, Missed]:
        """Rows without those whose tags vanish, and without those behind a stuck message."""
        missed = Missed(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool))
        for bit, incident in self._of(group, "inconsistent_tags", "stuck_message"):
            if incident.kind == "inconsistent_tags":
                stored_ms, kind = stored.stored_ms[rows], stored.kind[rows]
                gone = np.isin(kind, [TAG_NUMBERS[tag] for tag in incident.tags])
                gone &= (stored_ms >= incident.start_ms) & (stored_ms < incident.end_ms)
                self.lost[number] += int(gone.sum())
            elif fixed.stuck_queue >= 0:
                # The stuck message's process queue has reached consumeConcurrentlyMaxSpan: nothing more is pulled.
                gone = stored.queue_id[rows] == fixed.stuck_queue
                gone &= stored.queue_offset[rows] >= fixed.stuck_after
            else:
                continue
            count = int(gone.sum())
            is_held = incident.kind == "stuck_message"
            missed = _both(missed, Missed(rows[gone], np.full(count, bit), np.full(count, is_held)))
            rows = rows[~gone]
        return rows, missed

    def _lag_ms(self, group: Group, at: Array, member: Array) -> tuple[Array, Array]:
        """How long messages wait because listeners are slow, or read old messages first; and which incidents delay."""
        lag, causes = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
        for bit, incident in self._of(group, "slow_consumer", "wrong_reset"):
            start_ms, end_ms = incident.start_ms, incident.end_ms
            if incident.kind == "slow_consumer":
                # The lag grows while the listener is slow, and shrinks a little faster afterwards.
                percent = _SLOWER_PERCENT if incident.percent is None else incident.percent
                growing = np.clip(at - start_ms, 0, end_ms - start_ms) * percent // 100
                own = np.maximum(0, growing - np.maximum(0, at - end_ms) * 4 // 5)
            else:
                read_at = start_ms + (at - start_ms + (incident.back_ms or 0)) // REPLAY_SPEED
                own = np.where((at >= start_ms) & (at < end_ms), np.maximum(0, read_at - at), 0)
            own = np.where(_is_its(incident, member), own, 0)
            lag, causes = lag + own, np.where(own > 0, causes | bit, causes)
        return lag, causes

    def _skipped(self, group: Group, at: Array, start_ms: Array) -> Array:
        """The bit of the incident in which a message is skipped, or 0."""
        skipped = np.zeros(len(at), np.int64)
        for bit, incident in self._of(group, "skipped"):
            skipped[(start_ms >= incident.start_ms) & (at < incident.end_ms)] = bit
        return skipped

    def _opened(self, group: Group, start_ms: Array) -> tuple[Array, Array]:
        """Calls of retry messages begin when a group that was stopped is there again; and the bits of who waits."""
        causes = np.zeros(len(start_ms), np.int64)
        for bit, incident in self._of(group, "skipped"):
            waits = (start_ms >= incident.start_ms) & (start_ms < incident.end_ms)
            causes |= waits * bit
            start_ms = np.where(waits, incident.end_ms + (start_ms - incident.start_ms) // REPLAY_SPEED, start_ms)
        return start_ms, causes

    def _slower(self, group: Group, start_ms: Array, member: Array, cost_ms: Array, bits: Array) -> Array:
        """``cost_ms``, and more in calls of a slow listener."""
        for _, incident in self._of(group, "slow_consumer"):
            slow = (start_ms >= incident.start_ms) & (start_ms < incident.end_ms) & _is_its(incident, member)
            usual = 1200 + below(bits, 16, 16, 6000)
            more = usual if incident.cost_ms is None else incident.cost_ms + below(bits, 16, 16, incident.cost_ms)
            cost_ms = np.where(slow, more, cost_ms)
        return cost_ms

    def _set_codes(
        self, number: int, group: Group, deliveries: Deliveries, stored: DeliveryColumns, fixed: Fixed
    ) -> None:
        """Set the context code in which each delivery ends: 0 for success, else a kind of failure."""
        message = stored.order[deliveries.row] * 8 + stored.kind[deliveries.row]
        chance = below(self._draws.bits(_OUTCOME + number, message), 0, 32, 4096)
        per_1024 = self._model.failing_of_1024
        fails = np.where(deliveries.tries == 0, chance < 4 * per_1024, (chance < per_1024) & (deliveries.tries == 1))
        deliveries.code = np.where(fails, FAILED, SUCCESS)
        self._fail(number, group, deliveries, stored, fixed)

    def _fail(self, number: int, group: Group, deliveries: Deliveries, stored: DeliveryColumns, fixed: Fixed) -> None:
        """Let the deliveries fail that fail in an incident."""
        message = stored.order[deliveries.row] * 8 + stored.kind[deliveries.row]
        for bit, incident in self._of(group, "failing_consumer", "poison_message", "load_test"):
            if incident.kind == "poison_message":
                fails = message == fixed.poison
            elif incident.kind == "load_test":
                fails = stored.is_test[deliveries.row]
            else:
                fails = (deliveries.start_ms >= incident.start_ms) & (deliveries.start_ms < incident.end_ms)
                fails &= _is_its(incident, members_of(deliveries.client))
                if incident.percent is not None:
                    dice = self._draws.below(_PARTLY + number, message * 32 + deliveries.tries, _ALL)
                    fails &= dice < incident.percent
            deliveries.code = np.where(fails, EXCEPTION, deliveries.code)
            deliveries.causes = np.where(fails, deliveries.causes | bit, deliveries.causes)

    def _replayed(
        self, number: int, group: Group, stored: DeliveryColumns, deliveries: Deliveries
    ) -> Deliveries | None:
        """The deliveries that a wrong reset repeats."""
        for bit, incident in self._of(group, "wrong_reset"):
            first_ms = incident.start_ms - (incident.back_ms or 0)
            stored_ms = stored.stored_ms[deliveries.row]
            again = deliveries.chosen(
                np.flatnonzero((stored_ms >= first_ms) & (stored_ms < incident.start_ms) & deliveries.returned)
            )
            took_ms = again.end_ms - again.start_ms
            again.start_ms = incident.start_ms + 50 + (stored.stored_ms[again.row] - first_ms) // REPLAY_SPEED
            again.end_ms = again.start_ms + np.minimum(took_ms, 90)
            again.code = np.zeros(len(again), np.int64)
            again.extra = np.ones(len(again), bool)
            again.causes = np.full(len(again), bit)
            self.repeated[number] += len(again)
            return again
        return None

    def _taken_over(
        self, number: int, group: Group, stored: DeliveryColumns, deliveries: Deliveries, member: Array, leave: Leave
    ) -> Deliveries | None:
        """What the other member is given again when one has gone; calls that hang are marked in ``deliveries``."""
        members = self.members[number]
        count = len(member)  # rows after these are repetitions themselves
        start_ms, end_ms = deliveries.start_ms[:count], deliveries.end_ms[:count]
        is_its = (members_of(deliveries.client[:count]) == leave.member) & deliveries.returned[:count]
        hung = members.hang(leave, is_its, start_ms, end_ms)
        again = deliveries.chosen(np.flatnonzero(hung | members.unstored(leave, is_its, end_ms)))
        deliveries.returned[:count] &= ~hung
        deliveries.replaced[:count] |= hung
        took_ms = again.end_ms - again.start_ms
        again.start_ms = members.again_ms(leave, again.start_ms)
        again.end_ms = again.start_ms + np.minimum(took_ms, 90)
        again.client = members.clients(np.full(len(again), leave.member), again.start_ms)
        again.code, again.extra = np.zeros(len(again), np.int64), np.ones(len(again), bool)
        again.causes = np.full(len(again), 1 << leave.incident)
        self._fail(number, group, again, stored, Fixed())
        return again


def _is_its(incident: Incident, member: Array) -> Array:
    """Whether a member is concerned by an incident; one that names no member concerns all."""
    return np.ones(len(member), bool) if incident.member is None else member == incident.member


def _both(first: Columns, second: Columns) -> Columns:
    """The rows of both."""
    return type(first)(*(np.concatenate((getattr(first, f.name), getattr(second, f.name))) for f in fields(first)))


def _chosen(parked: Parked, rows: Array) -> Parked:
    return Parked(*(getattr(parked, field.name)[rows] for field in fields(parked)))


def _parked(failed: Deliveries) -> Parked:
    max_tries = np.array([group.max_reconsume_times for group in TRACED], np.int64)[failed.group]
    # The schedule polls every POLL_MS, so a due time is rounded up to the next poll.
    level = np.where(failed.tries >= max_tries, 0, FIRST_RETRY_LEVEL + failed.tries)
    stored_ms = failed.end_ms + 1
    due_ms = -(-(stored_ms + DELAYS_MS[level]) // POLL_MS) * POLL_MS
    return Parked(failed.row, failed.group, failed.tries, stored_ms, due_ms, level)
