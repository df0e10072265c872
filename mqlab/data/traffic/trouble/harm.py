"""What an incident harmed: messages that a group never consumed, consumed late, or was given twice.

Mirrors: what is left of an incident when the excuses are taken away; a retry that heals does no harm.

    of a message and a traced group that reads its tag
      lost    never consumed: its tag vanished, it was skipped, or it is a dead letter
      late    the first call that succeeded ended more than 5 minutes after the message was stored;
              or none did by the end of the day, and it was stored more than 5 minutes before
      twice   a call began after another, which succeeded or never returned

    a slice and group: all deliveries, all that was missed ─▶ verdict per message ─▶ rows of the incidents that did it

A message that its sender stored twice is one message. Decoys do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mqlab.data.traffic.deliveries import SUCCESS, Deliveries, Missed, Parked
from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.model import TRACED

if TYPE_CHECKING:
    from mqlab.data.traffic.writing.slice_messages import Slice
    from mqlab.data.traffic.writing.store_state import WrittenStore

LATE_MS = 300_000
WAYS = ("lost", "late", "twice")
_NEVER = np.int64(1 << 62)


@dataclass(slots=True)
class Harmed:
    """The messages that one incident harmed at one broker: (group, msg_id) and how, and the times of the harm."""

    ids: list[tuple[str, Array]] = field(default_factory=list)  # group, text of 32 letters
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WAYS, 0))
    since_ms: int = int(_NEVER)
    until_ms: int = 0

    def add(self, other: Harmed) -> None:
        """Take in what the incident did at another broker."""
        self.ids += other.ids
        for way in WAYS:
            self.counts[way] += other.counts[way]
        self.since_ms, self.until_ms = min(self.since_ms, other.since_ms), max(self.until_ms, other.until_ms)

    def pairs(self) -> set[tuple[str, str]]:
        """(group, msg_id) of each."""
        return {(group, bytes(msg_id).decode()) for group, ids in self.ids for msg_id in ids.tolist()}


@dataclass(slots=True)
class _Verdicts:
    """One row per message of a slice: whether and when it was harmed in each way, and by which incidents (bits)."""

    harmed: dict[str, Array]
    causes: dict[str, Array]
    since_ms: dict[str, Array]
    until_ms: dict[str, Array]


class Harm:
    """Collects the harm of each incident of one broker, slice by slice."""

    def __init__(self, state: WrittenStore) -> None:
        self._state = state
        self.of = [Harmed() for _ in state.incidents]

    def note(self, group: int, rounds: list[tuple[Deliveries, Parked | None]], missed: Missed, messages: Slice) -> None:
        """All deliveries of a slice's messages to one group, and the messages that it was not given."""
        if not self.of:
            return
        verdicts = self._judged(rounds, missed, messages)
        for number, incident in enumerate(self._state.incidents):
            if incident.decoy:
                continue
            own = {way: verdicts.harmed[way] & (verdicts.causes[way] >> number & 1 > 0) for way in WAYS}
            rows = np.flatnonzero(own["lost"] | own["late"] | own["twice"])
            if not len(rows):
                continue
            ids = self._state.clients.ids(messages.sender[rows], messages.made_ms[rows], messages.counter[rows])
            harmed = self.of[number]
            harmed.ids.append((TRACED[group].name, ids))
            for way in WAYS:
                mine = own[way]
                if mine.any():
                    harmed.counts[way] += int(mine.sum())
                    harmed.since_ms = min(harmed.since_ms, int(verdicts.since_ms[way][mine].min()))
                    harmed.until_ms = max(harmed.until_ms, int(verdicts.until_ms[way][mine].max()))

    def _judged(self, rounds: list[tuple[Deliveries, Parked | None]], missed: Missed, messages: Slice) -> _Verdicts:
        count, end_ms = len(messages.order), self._state.day.end_ms
        of = messages.repeats  # the row of a message's first copy stands for all its copies
        stored_ms = messages.stored_ms
        calls = [deliveries for deliveries, _ in rounds]
        row = of[np.concatenate([call.row for call in calls])]
        start_ms, ended_ms, code, returned, extra, causes = (
            np.concatenate([getattr(call, name) for call in calls])
            for name in ("start_ms", "end_ms", "code", "returned", "extra", "causes")
        )
        begun = start_ms < end_ms
        # 1. The first success.
        succeeded = returned & (code == SUCCESS) & (ended_ms < end_ms)
        done_ms = _least(count, row[succeeded], ended_ms[succeeded])
        # 2. Twice: the calls after one that did not fail, as far as the day shows. What an incident repeated is one of
        #    them, or came before the call that a failure had left over. Without an incident that repeats it, its sender
        #    stored it twice.
        settles = begun & (succeeded | ~returned | (ended_ms >= end_ms))
        again = begun & _after_one_of(settles, row, start_ms)
        twice = _any(count, row[again])
        sent_again = self._bits("lost_answer") * (np.bincount(of, minlength=count) > 1)
        repeated = extra & (again | settles) & twice[row]
        twice_by = _together(count, row[repeated], causes[repeated]) | sent_again
        # 3. Lost: missed for good, or a dead letter.
        gone = of[missed.row[~missed.held]]
        lost_by = _together(count, gone, missed.causes[~missed.held])
        lost_until = _most(count, gone, stored_ms[gone])
        for deliveries, parked in rounds:
            if parked is None:
                continue
            dead = (parked.level == 0) & (parked.stored_ms < end_ms)
            failed = deliveries.chosen(np.flatnonzero((deliveries.code != SUCCESS) & deliveries.returned))
            lost_by |= _together(count, of[parked.row[dead]], failed.causes[dead])
            gone = np.concatenate((gone, of[parked.row[dead]]))
            lost_until = np.maximum(lost_until, _most(count, of[parked.row[dead]], parked.stored_ms[dead]))
        lost = _any(count, gone) & (done_ms == _NEVER)
        # 4. Late: consumed after more than five minutes, or waiting for longer at the end of the day.
        held = of[missed.row[missed.held]]
        late_by = _together(count, row[~extra], causes[~extra]) | _together(count, held, missed.causes[missed.held])
        waited_ms = np.minimum(done_ms, end_ms) - stored_ms
        is_read = _any(count, np.concatenate((row, held)))
        late = is_read & ~lost & (waited_ms > LATE_MS)
        return _Verdicts(
            {"lost": lost, "late": late, "twice": twice},
            {"lost": lost_by, "late": late_by, "twice": twice_by},
            {"lost": stored_ms, "late": stored_ms, "twice": _least(count, row[again], start_ms[again])},
            {
                "lost": lost_until,
                "late": np.minimum(done_ms, end_ms),
                "twice": _most(count, row[again], start_ms[again]),
            },
        )

    def _bits(self, kind: str) -> int:
        return sum(1 << n for n, incident in enumerate(self._state.incidents) if incident.kind == kind)

    def __repr__(self) -> str:
        return f"<Harm of {len(self.of)} incidents at {self._state.broker_name}>"


def _after_one_of(chosen: Array, rows: Array, start_ms: Array) -> Array:
    """For each call whether a chosen one of the same row began before it; of two in one ms the first is the earlier."""
    order = np.lexsort((start_ms, rows))
    number = np.cumsum(chosen[order]) - chosen[order]  # of chosen calls before each, in all rows
    first = np.searchsorted(rows[order], rows[order])
    after = np.empty(len(rows), bool)
    after[order] = number > number[first]
    return after


def _least(count: int, rows: Array, values: Array) -> Array:
    least = np.full(count, _NEVER)
    np.minimum.at(least, rows, values)
    return least


def _most(count: int, rows: Array, values: Array) -> Array:
    most = np.zeros(count, np.int64)
    np.maximum.at(most, rows, values)
    return most


def _together(count: int, rows: Array, bits: Array) -> Array:
    joined = np.zeros(count, np.int64)
    np.bitwise_or.at(joined, rows, bits)
    return joined


def _any(count: int, rows: Array) -> Array:
    marked = np.zeros(count, bool)
    marked[rows] = True
    return marked
