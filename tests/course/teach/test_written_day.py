"""The written day of lab 11: its tables are those of the exercises, and all that goes wrong shows in one of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow.parquet
import pytest

from mqlab.course import answer
from mqlab.course.cases.lab11.again import why_again
from mqlab.course.cases.lab11.latency import slow_when
from mqlab.course.cases.lab11.life import StoreFacts, facts, life
from mqlab.course.given.lab11 import trace_tables as trace
from mqlab.course.given.lab11.lag_board import offsets_in
from mqlab.course.given.lab11.written_day import INCIDENTS, WrittenDay, written_day
from mqlab.data.traffic.model import FIRST_DAY_MS, GROUPS

SMALL = 12_000
TAGS = {group.name: group.tags for group in GROUPS}


@pytest.fixture(scope="module")
def day() -> WrittenDay:
    return written_day(SMALL)


@pytest.fixture(scope="module")
def known(day: WrittenDay) -> StoreFacts:
    return facts(str(day.stores))


@pytest.fixture(scope="module")
def harm(day: WrittenDay) -> dict[str, dict[str, Any]]:
    return {told["kind"]: told for told in day.truth()}


def rows(day: WrittenDay, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pyarrow.parquet.read_table(day.tables / name).to_pylist()
    return found


def test_entries_and_calls_are_those_that_the_exercises_get(day: WrittenDay) -> None:
    columns = [part.split()[0] for part in trace.ENTRIES.split(", ")]
    assert [list(row) for row in rows(day, "entries")[:1]] == [columns]
    mine = Counter(tuple(row.items()) for row in rows(day, "entries"))
    assert mine == Counter(tuple((n, row[n]) for n in columns) for row in trace.entries_in(day.stores))

    def in_order(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(calls, key=lambda call: (call["request_id"], call["msg_id"]))

    assert in_order(rows(day, "calls")) == in_order(trace.calls_in(day.stores))


def test_messages_and_offsets_are_those_of_the_stores(day: WrittenDay) -> None:
    messages = rows(day, "messages")
    assert len(messages) == SMALL and all(row["keys"] is not None for row in messages)
    assert rows(day, "committed") == offsets_in(day.stores)


def test_the_same_day_is_not_made_twice(day: WrittenDay) -> None:
    assert written_day(SMALL) is day


def test_what_is_lost_and_called_again_is_what_the_day_was_asked_for(
    known: StoreFacts, harm: dict[str, dict[str, Any]]
) -> None:
    """So the tasks that ask for these numbers can be answered from the learner's own tables."""
    lost = {(row["group_name"], row["msg_id"]) for row in life(known) if row["outcome"] == "lost"}
    assert lost == {tuple(pair) for pair in harm["inconsistent_tags"]["harmed"]} and lost
    again = {(row["group_name"], row["msg_id"], row["cause"]) for row in why_again(known)}
    causes = Counter(cause for _, _, cause in again)
    for cause, kind in (("late", "wrong_reset"), ("soon", "deploy"), ("resend", "lost_answer")):
        assert causes[cause] == harm[kind]["twice"] > 0, cause
    assert causes["no_result"] == 0 and causes["retry"] > 0


def test_who_is_late_was_stored_while_a_backlog_was_there(known: StoreFacts) -> None:
    late = [row["minute_ms"] for row in slow_when(known, "billing", TAGS["billing"]) if (row["p99_ms"] or 0) > 300_000]
    hours = [(minute - FIRST_DAY_MS) / 3_600_000 for minute in late]
    slow = [hour for hour in hours if hour < 14]
    assert 10 < min(slow) < 10.3 and 11 < max(slow) < 12
    assert all(16 <= hour < 16.5 for hour in set(hours) - set(slow))


def test_a_clock_is_ahead_on_one_machine(day: WrittenDay) -> None:
    early = {row["born_host"] for row in rows(day, "messages") if row["born_timestamp"] > row["store_timestamp"]}
    assert len(early) == 1


def test_the_tasks_take_what_the_tables_tell(day: WrittenDay, harm: dict[str, dict[str, Any]]) -> None:
    assert answer("lab11.letters", harm["inconsistent_tags"]["lost"], day).state == "good"
    assert answer("lab11.letters", 0, day).state == "bad"
    for more in (0, 2):
        assert answer("lab11.for_nothing", harm["deploy"]["twice"] + more, day, "soon").state == "good"
    assert answer("lab11.for_nothing", harm["deploy"]["twice"] + 3, day, "soon").state == "bad"
    assert answer("lab11.for_nothing", harm["deploy"]["twice"], day, "late").state == "bad"
    assert "change CAUSE first" in answer("lab11.for_nothing", 3, day, "retry").text()
    assert len(INCIDENTS) == len(harm) == 7
