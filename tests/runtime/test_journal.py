"""The journal: indexing, the running digest, a bounded memory."""

from __future__ import annotations

import pytest

from mqlab.errors import UsageError
from mqlab.runtime.journal import NOTEBOOK, Change, Journal, StepRecord


def filled(count: int, limit: int | None = None, ask_digest_at: int = -1) -> Journal:
    journal = Journal(limit)
    for step in range(count):
        record = journal.add(StepRecord(step, step * 10, "broker-a", "timer" if step % 2 else "frame", NOTEBOOK))
        if step == ask_digest_at:
            journal.digest()
        record.changes.append(Change("message.stored", {"topic": "订单", "queue_offset": step}))
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


def test_to_pandas_has_a_row_a_step() -> None:
    table = filled(4).to_pandas()
    assert list(table["step"]) == [0, 1, 2, 3]
    assert "订单" in table["changes"][0]
