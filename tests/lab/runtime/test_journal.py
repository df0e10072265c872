"""The journal: indexing, the running digest, a bounded memory."""

from __future__ import annotations

import pytest

from mqlab.errors import UsageError
from mqlab.lab.runtime.journal import NOTEBOOK, Change, Journal, StepRecord


def filled(count: int, limit: int | None = None, ask_digest_at: int = -1) -> Journal:
    journal = Journal(limit)
    for step in range(count):
        record = journal.add(StepRecord(step, step * 10, "broker-a", "timer" if step % 2 else "frame", NOTEBOOK))
        if step == ask_digest_at:
            journal.digest()
        record.changes = [Change("message.stored", {"topic": "订单", "queue_offset": step})]
    return journal


def test_records_are_found_by_step_number_slice_and_kind() -> None:
    journal = filled(10)
    assert journal[3].now_ms == 30
    assert journal[-1].step == 9
    assert [record.step for record in journal[2:5]] == [2, 3, 4]
    assert [record.step for record in journal.of("timer")] == [1, 3, 5, 7, 9]
    assert len(journal.of("message.stored")) == 10
    with pytest.raises(IndexError):
        journal[10]


def test_the_digest_does_not_depend_on_when_it_is_asked_nor_on_the_limit() -> None:
    whole = filled(500).digest()
    assert filled(500, ask_digest_at=77).digest() == whole
    assert filled(500, limit=10, ask_digest_at=123).digest() == whole
    assert filled(499).digest() != whole


def test_a_bounded_journal_says_what_it_dropped() -> None:
    journal = filled(500, limit=10)
    assert len(journal) == 500
    assert journal.dropped > 0
    assert journal[499].step == 499
    with pytest.raises(UsageError, match="was dropped"):
        journal[0]


def test_who_asks_again_gets_what_came_since_and_lists_of_their_own() -> None:
    journal = filled(6)
    first = journal.of("timer")
    assert [record.step for record in first] == [1, 3, 5]
    assert len(journal.changes("message.stored")) == 6
    journal[-1].changes = [*journal[-1].changes, Change("message.stored", {"queue_offset": "late"})]  # the last goes on
    assert [values["queue_offset"] for _, values in journal.changes("message.stored")] == [0, 1, 2, 3, 4, 5, "late"]
    journal.add(StepRecord(6, 60, "broker-a", "timer", NOTEBOOK))
    first.clear()
    assert [record.step for record in journal.of("timer")] == [1, 3, 5, 6]
    assert len(journal.changes("message.stored")) == 7


def test_what_a_bounded_journal_dropped_is_found_no_more() -> None:
    journal = Journal(10)
    for step in range(100):
        journal.add(StepRecord(step, step, "broker-a", "timer", NOTEBOOK))
        assert [record.step for record in journal.of("timer")] == [record.step for record in journal]


def test_of_steps_that_overlap_an_old_one_may_still_change() -> None:
    journal = filled(6)
    journal.steps_overlap = True
    assert len(journal.changes("message.stored")) == 6
    journal[2].changes = [*journal[2].changes, Change("message.stored", {"queue_offset": "late"})]
    assert len(journal.changes("message.stored")) == 7


def test_to_pandas_has_a_row_a_step() -> None:
    table = filled(4).to_pandas()
    assert list(table["step"]) == [0, 1, 2, 3]
    assert "订单" in table["changes"][0]
