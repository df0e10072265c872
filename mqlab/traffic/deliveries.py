"""The fate of each message in each traced group: when and how often it is delivered to a listener, and the results.

Mirrors: the outcome of ConsumeMessageConcurrentlyService and ScheduleMessageService, not their mechanism.

    message ─▶ group reads its tag? ─▶ start = stored + some ms (+ lag of a slow listener, + a replay before it)
                                       end = start + what the listener takes
       failed ─▶ SCHEDULE_TOPIC_XXXX level 3 + tries ─▶ due ─▶ %RETRY%group ─▶ start ...       round after round
              ─▶ %DLQ%group when the group's tries are used up

    Rounds: all first tries of a slice at once, then those that failed, until none fails.

Left out: rebalances; a message's queue determines which of a group's processes gets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from mqlab.store.config import StoreConfig, parse_delay_levels
from mqlab.traffic.draws import Array, Draws, below
from mqlab.traffic.incidents import REPLAY_SPEED, Incident
from mqlab.traffic.model import INSTANCES, TAGS, TRACED, Group, TrafficModel

FIRST_RETRY_LEVEL = 3
_DELAYS_MS = np.array((0, *parse_delay_levels(StoreConfig().message_delay_level)), np.int64)
_POLL_MS = 100
_DELIVERY, _OUTCOME = 20, 60  # purposes of draws; one per group
SUCCESS, EXCEPTION, FAILED = 0, 2, 4  # context codes in a trace
TAG_NUMBERS = {tag: number for number, tag in enumerate(TAGS)}


@dataclass(slots=True)
class Deliveries:
    """Messages handed to listeners, one row per delivery. ``row`` is a row of the slice, ``group`` a number in TRACED.

    ``returned`` is False for a listener that never comes back, ``extra`` True for what a wrong reset repeats.
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

    def chosen(self, rows: Array) -> Deliveries:
        return Deliveries(*(getattr(self, field.name)[rows] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.row)


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
class Stored:
    """The columns of a slice's messages that deliveries need: all arrays, one row per message."""

    order: Array
    kind: Array
    queue_id: Array
    queue_offset: Array
    stored_ms: Array


@dataclass(frozen=True, slots=True)
class Fixed:
    """Messages singled out by an incident: ``order`` * 8 + ``kind`` and the place of the stuck message."""

    poison: int = -1
    stuck_queue: int = -1
    stuck_offset: int = -1
    stuck_after: int = -1  # the first queue offset that is never read


class Consumers:
    """The traced groups of one broker."""

    def __init__(self, model: TrafficModel, draws: Draws, incidents: tuple[Incident, ...]) -> None:
        self._model = model
        self._draws = draws
        self._incidents = incidents
        self.lost = np.zeros(len(TRACED), np.int64)
        self.repeated = np.zeros(len(TRACED), np.int64)

    def first_tries(self, number: int, group: Group, stored: Stored, reads: Array, fixed: Fixed) -> Deliveries:
        """The first delivery of each message of a slice in one group. ``reads``: subscribed or not, by tag."""
        rows = np.flatnonzero(reads[stored.kind])
        rows = self._without_lost(number, group, stored, rows, fixed)
        # 1. When each delivery starts and ends, by its draws; a slow listener starts late and takes long.
        bits = self._draws.bits(_DELIVERY + number, stored.order[rows] * 8 + stored.kind[rows])
        at = stored.stored_ms[rows]
        start_ms = at + 2 + below(bits, 0, 16, 7) + self._lag_ms(group, at)
        cost_ms = 8 + below(bits, 16, 16, 40) + below(bits, 32, 8, 30) * (below(bits, 40, 8, 16) == 0)
        cost_ms = np.where(self._is_slow(group, start_ms), 1200 + below(bits, 16, 16, 6000), cost_ms)
        # 2. The group's processes share the queues: the first half belongs to the first process.
        client = number * INSTANCES + (stored.queue_id[rows] >= self._model.queues // INSTANCES)
        deliveries = Deliveries(
            rows, np.full(len(rows), number), np.zeros(len(rows), np.int64), client, start_ms, start_ms + cost_ms,
            np.zeros(len(rows), np.int64), np.ones(len(rows), bool), np.zeros(len(rows), bool),
        )  # fmt: skip
        # 3. Incidents: a call that never returns, failures, deliveries repeated by a wrong reset.
        if fixed.stuck_queue >= 0 and group.name == "billing":
            stuck = (stored.queue_id[rows] == fixed.stuck_queue) & (stored.queue_offset[rows] == fixed.stuck_offset)
            deliveries.returned &= ~stuck
        deliveries.code = self._codes(number, group, deliveries, stored, fixed)
        return _both(deliveries, self._repeated(number, group, stored, deliveries))

    def next_tries(self, failed: Deliveries, parked: Parked, stored: Stored, fixed: Fixed) -> Deliveries:
        """The delivery that follows each retry message."""
        deliveries = replace(failed)
        deliveries.tries = failed.tries + 1
        message = stored.order[failed.row] * 8 + stored.kind[failed.row]
        bits = self._draws.bits(_OUTCOME + 30, message * 32 + deliveries.tries)
        deliveries.start_ms = parked.due_ms + 2 + below(bits, 0, 16, 7)
        deliveries.end_ms = deliveries.start_ms + 8 + below(bits, 16, 16, 80)
        deliveries.client = failed.group * INSTANCES  # the retry topic has one queue, which the first process owns
        deliveries.code = np.zeros(len(deliveries.row), np.int64)
        for number, group in enumerate(TRACED):
            here = np.flatnonzero(deliveries.group == number)
            if len(here):
                deliveries.code[here] = self._codes(number, group, deliveries.chosen(here), stored, fixed)
        return deliveries

    def rounds(self, first: Deliveries, stored: Stored, fixed: Fixed) -> Iterator[tuple[Deliveries, Parked | None]]:
        """Each round of tries with its parked failures; ends when nothing failed."""
        tried = first
        while True:
            failed = tried.chosen(np.flatnonzero((tried.code != SUCCESS) & tried.returned & ~tried.extra))
            if not len(failed):
                yield tried, None
                return
            parked = _parked(failed)
            yield tried, parked
            again = np.flatnonzero(parked.level > 0)
            tried = self.next_tries(failed.chosen(again), _chosen(parked, again), stored, fixed)

    def _without_lost(self, number: int, group: Group, stored: Stored, rows: Array, fixed: Fixed) -> Array:
        for incident in self._incidents:
            if incident.group != group.name:
                continue
            if incident.kind == "inconsistent_tags":
                at, kind = stored.stored_ms[rows], stored.kind[rows]
                dropped = np.isin(kind, [TAG_NUMBERS[tag] for tag in incident.tags])
                dropped &= (at >= incident.start_ms) & (at < incident.end_ms)
                self.lost[number] += int(dropped.sum())
                rows = rows[~dropped]
            elif incident.kind == "stuck_message" and fixed.stuck_queue >= 0:
                # The stuck message's process queue has reached consumeConcurrentlyMaxSpan: nothing more is pulled.
                is_blocked = stored.queue_id[rows] == fixed.stuck_queue
                is_blocked &= stored.queue_offset[rows] >= fixed.stuck_after
                rows = rows[~is_blocked]
        return rows

    def _lag_ms(self, group: Group, at: Array) -> Array:
        """How long messages wait because the group's listeners are slow, or first read old messages again."""
        lag = np.zeros(len(at), np.int64)
        for incident in self._incidents:
            if incident.group != group.name:
                continue
            start_ms, end_ms = incident.start_ms, incident.end_ms
            if incident.kind == "slow_consumer":
                # The lag grows while the listener is slow, and shrinks a little faster afterwards.
                growing = np.clip(at - start_ms, 0, end_ms - start_ms) * 3 // 5
                lag += np.maximum(0, growing - np.maximum(0, at - end_ms) * 4 // 5)
            elif incident.kind == "wrong_reset" and incident.back_ms is not None:
                read_at = start_ms + (at - start_ms + incident.back_ms) // REPLAY_SPEED
                lag += np.where((at >= start_ms) & (at < end_ms), np.maximum(0, read_at - at), 0)
        return lag

    def _is_slow(self, group: Group, start_ms: Array) -> Array:
        slow = np.zeros(len(start_ms), bool)
        for incident in self._incidents:
            if incident.kind == "slow_consumer" and incident.group == group.name:
                slow |= (start_ms >= incident.start_ms) & (start_ms < incident.end_ms)
        return slow

    def _codes(self, number: int, group: Group, deliveries: Deliveries, stored: Stored, fixed: Fixed) -> Array:
        """The context code in which each delivery ends: 0 for success, else a kind of failure."""
        message = stored.order[deliveries.row] * 8 + stored.kind[deliveries.row]
        chance = below(self._draws.bits(_OUTCOME + number, message), 0, 32, 4096)
        per_1024 = self._model.failing_of_1024
        fails = np.where(deliveries.tries == 0, chance < 4 * per_1024, (chance < per_1024) & (deliveries.tries == 1))
        code = np.where(fails, FAILED, SUCCESS)
        for incident in self._incidents:
            if incident.kind == "failing_consumer" and incident.group == group.name:
                inside = (deliveries.start_ms >= incident.start_ms) & (deliveries.start_ms < incident.end_ms)
                code = np.where(inside, EXCEPTION, code)
            if incident.kind == "poison_message" and incident.group == group.name:
                code = np.where(message == fixed.poison, EXCEPTION, code)
        return code

    def _repeated(self, number: int, group: Group, stored: Stored, deliveries: Deliveries) -> Deliveries | None:
        """The deliveries that a wrong reset repeats."""
        for incident in self._incidents:
            if incident.kind != "wrong_reset" or incident.group != group.name or incident.back_ms is None:
                continue
            first_ms = incident.start_ms - incident.back_ms
            at = stored.stored_ms[deliveries.row]
            again = deliveries.chosen(np.flatnonzero((at >= first_ms) & (at < incident.start_ms) & deliveries.returned))
            took_ms = again.end_ms - again.start_ms
            again.start_ms = incident.start_ms + 50 + (stored.stored_ms[again.row] - first_ms) // REPLAY_SPEED
            again.end_ms = again.start_ms + np.minimum(took_ms, 90)
            again.code = np.zeros(len(again), np.int64)
            again.extra = np.ones(len(again), bool)
            self.repeated[number] += len(again)
            return again
        return None


def _both(first: Deliveries, second: Deliveries | None) -> Deliveries:
    if second is None or not len(second):
        return first
    return Deliveries(*(np.concatenate((getattr(first, f.name), getattr(second, f.name))) for f in fields(first)))


def _chosen(parked: Parked, rows: Array) -> Parked:
    return Parked(*(getattr(parked, field.name)[rows] for field in fields(parked)))


def _parked(failed: Deliveries) -> Parked:
    max_tries = np.array([group.max_reconsume_times for group in TRACED], np.int64)[failed.group]
    # The schedule polls every _POLL_MS, so a due time is rounded up to the next poll.
    level = np.where(failed.tries >= max_tries, 0, FIRST_RETRY_LEVEL + failed.tries)
    stored_ms = failed.end_ms + 1
    due_ms = -(-(stored_ms + _DELAYS_MS[level]) // _POLL_MS) * _POLL_MS
    return Parked(failed.row, failed.group, failed.tries, stored_ms, due_ms, level)
