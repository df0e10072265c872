"""What somebody who watched a day could know at each moment of it: plain rows, every five minutes.

Mirrors: a collector that reads trace topic, queues and offsets as they grow.

    at_ms  minute   the end of five minutes; the same as a minute of the day, 5 to 1,440
    group  tag      who reads what; a group without a trace has one row, with the tag ""
    stored          messages of the tag that were stored in the five minutes
    called  failed  again     calls that began in them; calls that ended in them without success; calls that began in
                              them for a message that was consumed before, or whose call never returned
    lag             messages stored by now and not consumed by now
    waiting  oldest_s         messages that no listener has been called with by now, and how long the oldest has waited
    running_s       for how long the oldest call that has not ended by now has been running

No row depends on anything that comes after its moment. A group without a trace is known by its offsets alone: of its
columns only ``stored`` and ``lag`` are filled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mqlab.traffic.day import DAY_MS, MINUTE_MS
from mqlab.traffic.day_facts import SUCCESS, DayFacts
from mqlab.traffic.draws import Array
from mqlab.traffic.model import FIRST_DAY_MS, GROUPS, ORDERS, Group
from mqlab.traffic.offsets_and_truth import COUNTED_UNTIL

if TYPE_CHECKING:
    import pandas

STRETCH_MINUTES = 5
_NEVER = float(1 << 62)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Watched:
    """A moment of a day, and the rows of the five minutes before it."""

    at_ms: int
    rows: tuple[Row, ...]


def watched(facts: DayFacts, start_ms: int = FIRST_DAY_MS) -> Iterator[Watched]:
    """The 288 moments of a day, in their order."""
    sources = [source for group in GROUPS for source in _sources(facts, group, start_ms)]
    step_ms = STRETCH_MINUTES * MINUTE_MS
    for at_ms in range(start_ms + step_ms, start_ms + DAY_MS + 1, step_ms):
        minute = (at_ms - start_ms) // MINUTE_MS
        head = {"at_ms": at_ms, "minute": minute}
        yield Watched(at_ms, tuple({**head, **source.row(at_ms - step_ms, at_ms)} for source in sources))


def _sources(facts: DayFacts, group: Group, start_ms: int) -> Iterator[_Traced | _Untraced]:
    if not group.traced:
        stored = facts.messages.loc[facts.messages["topic"] == group.topic, "stored_ms"].to_numpy()
        until_ms = start_ms + COUNTED_UNTIL * MINUTE_MS if group.topic == ORDERS else _NEVER
        yield _Untraced(group.name, np.sort(stored), until_ms)
        return
    life = facts.life[(facts.life["group"] == group.name) & facts.life["reads"]]
    calls = facts.calls[facts.calls["group"] == group.name].merge(life[["msg_id", "tags"]], "left", "msg_id")
    calls = calls.assign(again=again_of(calls))
    for tag in group.tags:
        yield _Traced.of(group.name, tag, life[life["tags"] == tag], calls[calls["tags"] == tag])


def again_of(calls: pandas.DataFrame) -> Array:
    """For each call, in order of their beginnings: an earlier one of its group and message succeeded or never ended."""
    over = calls["ended_ms"].isna() | (calls["status"] == SUCCESS)
    before: Array = over.groupby([calls["group"], calls["msg_id"]]).cumsum().to_numpy() - over.to_numpy()
    return np.asarray(before > 0)


@dataclass(slots=True)
class _Untraced:
    """A group of which only the offsets are known. It keeps up until ``until_ms``, and then lets everything lie."""

    group: str
    stored: Array
    until_ms: float

    def row(self, since_ms: int, at_ms: int) -> Row:
        stored = _between(self.stored, since_ms, at_ms)
        lag = max(0, int(np.searchsorted(self.stored, at_ms) - np.searchsorted(self.stored, self.until_ms)))
        return {
            "group": self.group, "tag": "", "stored": stored, "called": 0, "failed": 0, "again": 0,
            "lag": lag, "waiting": 0, "oldest_s": 0, "running_s": 0,
        }  # fmt: skip


@dataclass(slots=True)
class _Traced:
    """One tag of a group with a trace. Arrays of times in ms; what never happened is ``_NEVER``."""

    group: str
    tag: str
    stored: Array
    first: Array
    done: Array
    began: Array
    ended: Array
    success: Array
    again: Array

    @classmethod
    def of(cls, group: str, tag: str, life: pandas.DataFrame, calls: pandas.DataFrame) -> _Traced:
        life = life.sort_values("stored_ms")
        stored, first, done = (life[name].fillna(_NEVER).to_numpy() for name in ("stored_ms", "first_ms", "done_ms"))
        began, ended = (calls[name].fillna(_NEVER).to_numpy() for name in ("started_ms", "ended_ms"))
        success = (calls["status"] == SUCCESS).to_numpy()
        return cls(group, tag, stored, first, done, began, ended, success, calls["again"].to_numpy())

    def row(self, since_ms: int, at_ms: int) -> Row:
        stored = self.stored < at_ms
        waiting = self.stored[stored & (self.first >= at_ms)]
        running = self.began[(self.began < at_ms) & (self.ended >= at_ms)]
        began = (self.began >= since_ms) & (self.began < at_ms)
        ended = (self.ended >= since_ms) & (self.ended < at_ms)
        return {
            "group": self.group, "tag": self.tag, "stored": _between(self.stored, since_ms, at_ms),
            "called": int(began.sum()), "failed": int((ended & ~self.success).sum()),
            "again": int((began & self.again).sum()), "lag": int((stored & (self.done >= at_ms)).sum()),
            "waiting": len(waiting), "oldest_s": _age_s(waiting, at_ms), "running_s": _age_s(running, at_ms),
        }  # fmt: skip


def _between(times: Array, since_ms: int, at_ms: int) -> int:
    return int(np.searchsorted(times, at_ms) - np.searchsorted(times, since_ms))


def _age_s(times: Array, at_ms: int) -> int:
    return int(at_ms - times.min()) // 1000 if len(times) else 0
