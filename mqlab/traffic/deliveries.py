"""What becomes of each message at each traced group: when it is handed to a listener, how often, how it ends.

Mirrors: ConsumeMessageConcurrentlyService and ScheduleMessageService in outcome, not in mechanism. Labs 11 and 13.

    message ─▶ group reads its tag? ─▶ start = stored + some ms (+ lag of a slow listener, + a replay before it)
                                       end = start + what the listener takes
       failed ─▶ SCHEDULE_TOPIC_XXXX level 3 + tries ─▶ due ─▶ %RETRY%group ─▶ start ...       round after round
              ─▶ %DLQ%group when the group's tries are used up

    Rounds: all first tries of a slice at once, then those that failed, until none fails.

Left out: rebalances; which of a group's processes gets a message is a matter of its queue.
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
_DELIVERY, _OUTCOME = 20, 60  # purposes of draws; one a group
SUCCESS, EXCEPTION, FAILED = 0, 2, 4  # context codes in a trace
TAG_NUMBERS = {tag: number for number, tag in enumerate(TAGS)}


@dataclass(slots=True)
class Deliveries:
    """Messages handed to listeners, a row each. ``row`` points into the slice's events, ``group`` into TRACED.

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
    """What deliveries need to know of a slice's messages: all arrays, a row a message."""

    order: Array
    kind: Array
    queue_id: Array
    queue_offset: Array
    stored_ms: Array


@dataclass(frozen=True, slots=True)
class Fixed:
    """Messages singled out by an incident: ``order`` * 8 + ``kind`` and, of the stuck one, where it stands."""

    poison: int = -1
    stuck_queue: int = -1
    stuck_offset: int = -1
    stuck_after: int = -1  # the first queue offset that nobody reads any more


class Consumers:
    """The traced groups of one broker."""

    def __init__(self, model: TrafficModel, draws: Draws, incidents: tuple[Incident, ...]) -> None:
        self._model = model
        self._draws = draws
        self._incidents = incidents
        self.lost = np.zeros(len(TRACED), np.int64)
        self.repeated = np.zeros(len(TRACED), np.int64)

    def first_tries(self, number: int, group: Group, stored: Stored, reads: Array, fixed: Fixed) -> Deliveries:
        """The first delivery of each message of a slice that a group gets. ``reads``: by tag, whether it wants it."""
        rows = np.flatnonzero(reads[stored.kind])
        rows = self._without_lost(number, group, stored, rows, fixed)
        bits = self._draws.bits(_DELIVERY + number, stored.order[rows] * 8 + stored.kind[rows])
        at = stored.stored_ms[rows]
        start_ms = at + 2 + below(bits, 0, 16, 7) + self._lag_ms(group, at)
        cost_ms = 8 + below(bits, 16, 16, 40) + below(bits, 32, 8, 30) * (below(bits, 40, 8, 16) == 0)
        cost_ms = np.where(self._is_slow(group, start_ms), 1200 + below(bits, 16, 16, 6000), cost_ms)
        client = number * INSTANCES + (stored.queue_id[rows] >= self._model.queues // INSTANCES)
        made = Deliveries(
            rows, np.full(len(rows), number), np.zeros(len(rows), np.int64), client, start_ms, start_ms + cost_ms,
            np.zeros(len(rows), np.int64), np.ones(len(rows), bool), np.zeros(len(rows), bool),
        )  # fmt: skip
        if fixed.stuck_queue >= 0 and group.name == "billing":
            stuck = (stored.queue_id[rows] == fixed.stuck_queue) & (stored.queue_offset[rows] == fixed.stuck_offset)
            made.returned &= ~stuck
        made.code = self._codes(number, group, made, stored, fixed)
        return _both(made, self._repeated(number, group, stored, made))

    def next_tries(self, failed: Deliveries, parked: Parked, stored: Stored, fixed: Fixed) -> Deliveries:
        """The delivery that follows each retry message."""
        made = replace(failed)
        made.tries = failed.tries + 1
        message = stored.order[failed.row] * 8 + stored.kind[failed.row]
        bits = self._draws.bits(_OUTCOME + 30, message * 32 + made.tries)
        made.start_ms = parked.due_ms + 2 + below(bits, 0, 16, 7)
        made.end_ms = made.start_ms + 8 + below(bits, 16, 16, 80)
        made.client = failed.group * INSTANCES  # the retry topic has one queue, the first process has it
        made.code = np.zeros(len(made.row), np.int64)
        for number, group in enumerate(TRACED):
            here = np.flatnonzero(made.group == number)
            if len(here):
                made.code[here] = self._codes(number, group, made.chosen(here), stored, fixed)
        return made

    def rounds(self, first: Deliveries, stored: Stored, fixed: Fixed) -> Iterator[tuple[Deliveries, Parked | None]]:
        """Each round of tries with what its failures are parked as; ends when nothing failed."""
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
                behind = stored.queue_id[rows] == fixed.stuck_queue
                behind &= stored.queue_offset[rows] >= fixed.stuck_after
                rows = rows[~behind]
        return rows

    def _lag_ms(self, group: Group, at: Array) -> Array:
        """How long messages wait because the group's listeners are slow, or read old messages again first."""
        lag = np.zeros(len(at), np.int64)
        for incident in self._incidents:
            if incident.group != group.name:
                continue
            start_ms, end_ms = incident.start_ms, incident.end_ms
            if incident.kind == "slow_consumer":
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

    def _codes(self, number: int, group: Group, made: Deliveries, stored: Stored, fixed: Fixed) -> Array:
        """How each delivery ends: 0 well, else the context code of a failure."""
        message = stored.order[made.row] * 8 + stored.kind[made.row]
        chance = below(self._draws.bits(_OUTCOME + number, message), 0, 32, 4096)
        few = self._model.failing_of_1024
        fails = np.where(made.tries == 0, chance < 4 * few, (chance < few) & (made.tries == 1))
        code = np.where(fails, FAILED, SUCCESS)
        for incident in self._incidents:
            if incident.kind == "failing_consumer" and incident.group == group.name:
                inside = (made.start_ms >= incident.start_ms) & (made.start_ms < incident.end_ms)
                code = np.where(inside, EXCEPTION, code)
            if incident.kind == "poison_message" and incident.group == group.name:
                code = np.where(message == fixed.poison, EXCEPTION, code)
        return code

    def _repeated(self, number: int, group: Group, stored: Stored, made: Deliveries) -> Deliveries | None:
        """What a wrong reset brings a second time."""
        for incident in self._incidents:
            if incident.kind != "wrong_reset" or incident.group != group.name or incident.back_ms is None:
                continue
            first_ms = incident.start_ms - incident.back_ms
            at = stored.stored_ms[made.row]
            again = made.chosen(np.flatnonzero((at >= first_ms) & (at < incident.start_ms) & made.returned))
            took = again.end_ms - again.start_ms
            again.start_ms = incident.start_ms + 50 + (stored.stored_ms[again.row] - first_ms) // REPLAY_SPEED
            again.end_ms = again.start_ms + np.minimum(took, 90)
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
    most = np.array([group.max_reconsume_times for group in TRACED], np.int64)[failed.group]
    level = np.where(failed.tries >= most, 0, FIRST_RETRY_LEVEL + failed.tries)
    stored_ms = failed.end_ms + 1
    due_ms = -(-(stored_ms + _DELAYS_MS[level]) // _POLL_MS) * _POLL_MS
    return Parked(failed.row, failed.group, failed.tries, stored_ms, due_ms, level)
