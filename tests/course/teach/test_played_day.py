"""The played day: every cause and outcome with every seed, the same day each time, and a truth that adds up."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from mqlab.course.given.lab11.played_day import (
    AUDIT,
    BILLING,
    KILLED,
    LATE,
    MAIL,
    NEVER_BACK,
    POISON,
    QUIET,
    RAISES,
    SENT_TWICE,
)
from mqlab.course.given.lab11.played_truth import CAUSES
from mqlab.course.teach import datasets
from mqlab.course.teach.datasets import DayStores, played_day
from mqlab.errors import UsageError
from mqlab.lab.inspector import StoreInspector
from tests.course.teach.seeds import first_of

OUTCOMES = {"consumed", "dead", "pending", "filtered", "lost", "waiting"}


@pytest.fixture(scope="module", params=first_of(11, 2))
def day(request: pytest.FixtureRequest) -> DayStores:
    return played_day(request.param)


def files(stores: Path) -> dict[str, bytes]:
    return {str(path.relative_to(stores)): path.read_bytes() for path in stores.rglob("*") if path.is_file()}


def test_every_cause_and_outcome_is_in_it(day: DayStores) -> None:
    assert {call.cause for call in day.calls} == {"", *CAUSES}
    assert {life.outcome for life in day.lives} == OUTCOMES
    assert {call.status for call in day.calls} == {"SUCCESS", "FAILED", "EXCEPTION", "NO_RESULT"}
    assert 350 < len({(life.msg_id, life.keys) for life in day.lives}) < 450


def test_the_story_is_what_the_truth_says(day: DayStores) -> None:
    assert day.life(BILLING, POISON).outcome == "dead"
    assert (day.life(BILLING, NEVER_BACK).outcome, day.life(BILLING, NEVER_BACK).no_results) == ("pending", 1)
    assert day.life(AUDIT, KILLED).again == {"no_result": 1, "late": 1}
    assert day.life(BILLING, SENT_TWICE).again == {"resend": 1}
    assert (day.life(AUDIT, SENT_TWICE).copies, day.life(AUDIT, "").members) == (2, 2)
    assert {day.life(group, LATE).outcome for group in (BILLING, AUDIT, MAIL, QUIET)} == {"waiting"}
    assert day.life(BILLING, RAISES).failures == 1
    lost = [life for life in day.lives if life.outcome == "lost"]
    assert {life.consumer_group for life in lost} == {MAIL} and {life.tags for life in lost} == {"paid", "shipped"}
    assert {life.tags for life in day.lives if life.outcome == "filtered"} == {"created"}
    with pytest.raises(UsageError, match="0 messages of group 'billing' have the keys 'nothing'"):
        day.life(BILLING, "nothing")


def test_calls_and_lives_add_up(day: DayStores) -> None:
    attempts = Counter((call.consumer_group, call.msg_id, call.keys) for call in day.calls)
    for life in day.lives:
        mine = attempts.pop((life.consumer_group or "", life.msg_id, life.keys), 0)
        assert life.attempts == mine == life.successes + life.failures + life.no_results
        assert sum(life.again.values()) == max(mine - life.members, 0)
    assert not attempts


def test_stores_are_whole_and_each_call_gives_a_copy(day: DayStores) -> None:
    for store in day.stores.iterdir():
        inspector = StoreInspector(store)
        assert inspector.problems(deep=True) == []
        inspector.close()


def test_the_same_seed_is_the_same_day_and_a_copy_may_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    first = played_day()
    before = files(first.stores)
    shutil.rmtree(first.stores / "broker-a")
    assert files(played_day().stores) == before
    datasets._played.cache_clear()
    again = played_day()
    assert files(again.stores) == before
    assert (again.calls, again.lives, again.offsets) == (first.calls, first.lives, first.offsets)
