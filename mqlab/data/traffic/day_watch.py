"""What an operator who watched a day could know at each moment of it: plain rows, every five minutes.

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

from mqlab.data.traffic.day import DAY_MS, MINUTE_MS
from mqlab.data.traffic.day_facts import SUCCESS, DayFacts
from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.model import FIRST_DAY_MS, GROUPS, ORDERS, Group
from mqlab.data.traffic.writing.offsets_and_truth import COUNTED_UNTIL

if TYPE_CHECKING:
    import pandas

STRETCH_MINUTES = 5
_NEVER = float(1 << 62)
_COLUMNS = ("stored", "called", "failed", "again", "lag", "waiting", "oldest_s", "running_s")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Watched:
    """A moment of a day, and the rows of the five minutes before it."""

    at_ms: int
    rows: tuple[Row, ...]


def watched(facts: DayFacts, start_ms: int = FIRST_DAY_MS) -> Iterator[Watched]:
    """The 288 moments of a day, in their order."""
    step_ms = STRETCH_MINUTES * MINUTE_MS
    moments = np.arange(start_ms + step_ms, start_ms + DAY_MS + 1, step_ms)
    sources = [rows for group in GROUPS for rows in _sources(facts, group, moments, start_ms)]
    for at_ms, rows in zip(moments.tolist(), zip(*sources, strict=True), strict=True):
        head = {"at_ms": at_ms, "minute": (at_ms - start_ms) // MINUTE_MS}
        yield Watched(at_ms, tuple({**head, **row} for row in rows))


def _sources(facts: DayFacts, group: Group, moments: Array, start_ms: int) -> Iterator[list[Row]]:
    """The rows of each tag of a group, a row for each moment."""
    if not group.traced:
        stored = facts.messages.loc[facts.messages["topic"] == group.topic, "stored_ms"].to_numpy()
        until_ms = start_ms + COUNTED_UNTIL * MINUTE_MS if group.topic == ORDERS else _NEVER
        yield _rows(group.name, "", _untraced(np.sort(stored), until_ms, moments))
        return
    life = facts.life[(facts.life["group"] == group.name) & facts.life["reads"]]
    calls = facts.calls[facts.calls["group"] == group.name].merge(life[["msg_id", "tags"]], "left", "msg_id")
    calls = calls.assign(again=again_of(calls))
    for tag in group.tags:
        yield _rows(group.name, tag, _traced(life[life["tags"] == tag], calls[calls["tags"] == tag], moments))


def _rows(group: str, tag: str, columns: tuple[Array, ...]) -> list[Row]:
    head = {"group": group, "tag": tag}
    values = zip(*(column.astype(np.int64).tolist() for column in columns), strict=True)
    return [{**head, **dict(zip(_COLUMNS, row, strict=True))} for row in values]


def again_of(calls: pandas.DataFrame) -> Array:
    """For each call, in order of their beginnings: an earlier one of its group and message succeeded or never ended."""
    over = calls["ended_ms"].isna() | (calls["status"] == SUCCESS)
    before: Array = over.groupby([calls["group"], calls["msg_id"]]).cumsum().to_numpy() - over.to_numpy()
    return np.asarray(before > 0)


def _untraced(stored: Array, until_ms: float, moments: Array) -> tuple[Array, ...]:
    """A group of which only the offsets are known. It keeps up until ``until_ms``, and then lets everything lie."""
    lag = np.maximum(0, np.searchsorted(stored, moments) - np.searchsorted(stored, until_ms))
    nothing = np.zeros(len(moments))
    return _in_each(stored, moments), nothing, nothing, nothing, lag, nothing, nothing, nothing


def _traced(life: pandas.DataFrame, calls: pandas.DataFrame, moments: Array) -> tuple[Array, ...]:
    """One tag of a group with a trace."""
    life, calls = life.sort_values("stored_ms"), calls.sort_values("started_ms")
    stored, first, done = (life[name].fillna(_NEVER).to_numpy() for name in ("stored_ms", "first_ms", "done_ms"))
    began, ended = (calls[name].fillna(_NEVER).to_numpy() for name in ("started_ms", "ended_ms"))
    success, again = (calls["status"] == SUCCESS).to_numpy(), calls["again"].to_numpy(bool)
    return (
        _in_each(stored, moments),
        _in_each(began, moments),
        _in_each(np.sort(ended[~success]), moments),
        _in_each(began[again], moments),
        _open(stored, done, moments),
        _open(stored, first, moments),
        _oldest_s(stored, first, moments),
        _oldest_s(began, ended, moments),
    )


def _in_each(times: Array, moments: Array) -> Array:
    """How many of some sorted times are in the five minutes before each moment."""
    counts: Array = np.searchsorted(times, moments) - np.searchsorted(times, moments - STRETCH_MINUTES * MINUTE_MS)
    return counts


def _open(begun: Array, over: Array, moments: Array) -> Array:
    """How many have begun before each moment and are not over then; ``begun`` is sorted."""
    both = np.sort(np.maximum(begun, over))
    counts: Array = np.searchsorted(begun, moments) - np.searchsorted(both, moments)
    return counts


def _oldest_s(begun: Array, over: Array, moments: Array) -> Array:
    """For how many seconds the oldest of those has been open; ``begun`` is sorted."""
    # The first that is not over yet is the oldest; where even that one has not begun, none is open.
    oldest = np.searchsorted(np.maximum.accumulate(over), moments)
    since = np.append(begun, _NEVER)[oldest]
    ages: Array = np.where(since < moments, moments - since, 0) // 1000
    return ages
