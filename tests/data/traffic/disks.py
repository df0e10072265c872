"""Whom a day harmed, found out again from its disks alone: logs, trace and dead letters, nothing of the generator's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas

from mqlab.data.traffic.day_facts import DayFacts, facts_of
from mqlab.data.traffic.model import FIRST_DAY_MS

LATE_MS, DAY_MS = 300_000, 86_400_000
Pairs = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class SeenOnDisk:
    """(group, msg_id) by the way in which it was harmed; ``stored_twice``: ids that their senders stored twice."""

    lost: Pairs
    late: Pairs
    twice: Pairs
    stored_twice: frozenset[str]

    @property
    def all(self) -> Pairs:
        return self.lost | self.late | self.twice

    def of(self, group: str) -> Pairs:
        return frozenset(pair for pair in self.all if pair[0] == group)


def seen_on_disk(stores: Path, *, but_for_key: str = "") -> SeenOnDisk:
    """Read a day; dead letters with the key ``but_for_key`` are not counted as lost."""
    facts = facts_of(stores)
    life = facts.life[facts.life.reads]
    never = life[life.done_ms.isna()]
    meant = never[never["keys"].str.split().map(lambda keys: but_for_key in keys) & never.dead]
    held = never[~never.dead & (never.calls > 0)]
    # A queue in which a call never returned is read no further once 2,000 messages are waiting behind it.
    stuck = held.groupby(["group", "broker", "queue_id"]).queue_offset.min().rename("stuck_at").reset_index()
    behind = never[~never.dead & (never.calls == 0)].merge(stuck, on=["group", "broker", "queue_id"])
    behind = behind[behind.queue_offset >= behind.stuck_at + 2_000]
    waiting = _pairs(held) | _pairs(behind)
    by_now = never.stored_ms < FIRST_DAY_MS + DAY_MS - LATE_MS
    late = life[life.done_ms - life.stored_ms > LATE_MS]
    orders = facts.messages[facts.messages.topic == "orders"]
    return SeenOnDisk(
        _pairs(never) - _pairs(meant) - waiting,
        _pairs(late) | (_pairs(never[by_now]) & waiting),
        _given_again(facts),
        frozenset(orders.msg_id[orders.msg_id.duplicated()]),
    )


def _given_again(facts: DayFacts) -> Pairs:
    settled = facts.calls[facts.calls.status.isin(["SUCCESS", "NO_RESULT"])]
    first = settled.groupby(["group", "msg_id"])["started_ms"].min().rename("at").reset_index()
    calls = facts.calls.merge(first, on=["group", "msg_id"])
    return _pairs(calls[calls.started_ms > calls["at"]])


def _pairs(rows: pandas.DataFrame) -> Pairs:
    return frozenset(zip(rows["group"], rows["msg_id"], strict=True))
