"""Facts of a day read without Spark: the calls of the trace, what became of each message, what a watcher could know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlab.data.traffic import day_facts
from mqlab.data.traffic.day_facts import DayFacts, facts_of
from mqlab.data.traffic.day_watch import Watched, again_of, watched
from mqlab.data.traffic.model import GROUPS, ORDERS
from mqlab.errors import UsageError
from tests.data.traffic.conftest import Day

READS = {group.name: group.tags for group in GROUPS if group.traced}


@pytest.fixture(scope="module")
def facts(day: Day) -> DayFacts:
    return facts_of(day.summary.directory)


def test_a_call_is_what_the_two_entries_of_the_trace_say(day: Day, facts: DayFacts) -> None:
    told = [entry for entries in day.told.values() for entry in entries]
    ends = {(entry.request_id, entry.msg_id): entry for entry in told if entry.type == "SubAfter"}
    wanted: Counter[Any] = Counter()
    for entry in told:
        if entry.type == "SubBefore":
            end = ends.get((entry.request_id, entry.msg_id))
            ended = (entry.time_ms + end.cost_ms, end.status) if end else (None, "NO_RESULT")
            wanted[entry.group, entry.msg_id, entry.client, entry.retry_times, entry.time_ms, *ended] += 1
    columns = ["group", "msg_id", "client", "try_number", "started_ms", "ended_ms", "status"]
    found = facts.calls[columns].astype(object).where(facts.calls[columns].notna(), None)
    assert Counter(map(tuple, found.itertuples(index=False))) == wanted


def test_each_order_message_has_a_row_for_each_traced_group(day: Day, facts: DayFacts) -> None:
    stored = Counter(message.msg_id for name in day.messages for message in day.of(name, ORDERS))
    assert Counter(facts.life["msg_id"]) == {msg_id: len(READS) for msg_id in stored}
    for group, tags in READS.items():
        life = facts.life[facts.life["group"] == group]
        assert set(life.loc[life["reads"], "tags"]) == set(tags)


def test_each_message_names_the_process_that_sent_it(day: Day, facts: DayFacts) -> None:
    born = Counter(message.born_host[0] for name in day.messages for message in day.of(name, ORDERS))
    assert Counter(facts.messages.loc[facts.messages["topic"] == ORDERS, "sender"]) == born


def test_messages_that_a_member_with_fewer_tags_lost_have_no_call(day: Day, facts: DayFacts) -> None:
    _, told = day.incident("inconsistent_tags")
    life = facts.life[
        facts.life["reads"] & (facts.life["group"] == told["group"]) & facts.life["tags"].isin(told["tags"])
    ]
    inside = life[(life["stored_ms"] >= told["start_ms"]) & (life["stored_ms"] < told["end_ms"])]
    lost = sum(
        one["messages_not_delivered"]
        for said in day.truth.values()
        for one in said
        if one["kind"] == "inconsistent_tags"
    )
    assert len(inside) == lost > 0 and inside["calls"].sum() == 0


def test_calls_of_a_wrong_reset_are_told_as_repeated(day: Day, facts: DayFacts) -> None:
    told = [one for said in day.truth.values() for one in said if one["kind"] == "wrong_reset"]
    calls = facts.calls[facts.calls["group"] == told[0]["group"]]
    repeated = calls[again_of(calls)]
    inside = repeated["started_ms"].between(told[0]["start_ms"], told[0]["end_ms"])
    assert inside.sum() == sum(one["messages_delivered_again"] for one in told)


def test_dead_letters_are_dead_for_their_group_only(day: Day, facts: DayFacts) -> None:
    letters = {
        (message.topic.removeprefix("%DLQ%"), message.msg_id)
        for said in day.messages.values()
        for message in said
        if message.topic.startswith("%DLQ%")
    }
    dead = facts.life[facts.life["dead"]]
    assert set(zip(dead["group"], dead["msg_id"], strict=True)) == letters


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (b"SubAfter\x01ABC\x01\x02", "3 fields instead of 7"),
        (b"SubBefore\x011\x01r\x01billing\x01q\x01ID\x01\xd9\xa1\x01k\x02", "retries '"),
        (b"SubAfter\x01q\x01ID\x013\x01true\x01k\x019\x02", "status 9 does not exist"),
        (b"SubAfter\x01q\x01ID\x01-3\x01true\x01k\x010\x02", "cost '-3' is not a number"),
        (b"Sub\x01q\x02", "no kind of entry"),
        (b"SubBefore\x011731283200000\x01r\x01bil", "cut off before its end"),
    ],
)
def test_damaged_trace_is_told_and_costs_no_other_entry(
    monkeypatch: pytest.MonkeyPatch, day: Day, facts: DayFacts, written: bytes, reason: str
) -> None:
    whole = list(day_facts._trace_bodies(str(day.summary.directory)))
    monkeypatch.setattr(day_facts, "_trace_bodies", lambda stores: [*whole, ("broker-a", "10.20.0.16", written)])
    found = facts_of(day.summary.directory)
    assert found.calls.equals(facts.calls) and len(facts.damaged) == 0
    assert found.damaged["broker"].tolist() == ["broker-a"] and reason in found.damaged["reason"][0]


def test_saved_facts_are_read_again(facts: DayFacts, tmp_path: Path) -> None:
    again = DayFacts.read(facts.save(tmp_path / "facts"))
    assert again.life.equals(facts.life) and again.calls.equals(facts.calls) and repr(again) == repr(facts)


def test_a_folder_without_facts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no facts of a day: messages.parquet, .* is missing"):
        DayFacts.read(tmp_path)


def moments(facts: DayFacts) -> list[Watched]:
    return list(watched(facts))


def rows(moment: Watched, group: str) -> Iterator[dict[str, Any]]:
    return (row for row in moment.rows if row["group"] == group)


def test_the_five_minutes_together_are_the_day(facts: DayFacts) -> None:
    seen = moments(facts)
    assert len(seen) == 288 and [seen[0].rows[0]["minute"], seen[-1].rows[0]["minute"]] == [5, 1_440]
    for group in READS:
        life = facts.life[(facts.life["group"] == group) & facts.life["reads"]]
        assert sum(row["stored"] for moment in seen for row in rows(moment, group)) == len(life)


def test_a_moment_says_nothing_of_what_comes_later(facts: DayFacts) -> None:
    """Cut the day at noon: what was known until then stays as it was."""
    noon = moments(facts)[143].at_ms
    cut = DayFacts(
        facts.messages[facts.messages["stored_ms"] < noon],
        facts.calls[facts.calls["started_ms"] < noon].assign(
            ended_ms=lambda calls: calls["ended_ms"].where(calls["ended_ms"] < noon)
        ),
        facts.life[facts.life["stored_ms"] < noon].assign(
            first_ms=lambda life: life["first_ms"].where(life["first_ms"] < noon),
            done_ms=lambda life: life["done_ms"].where(life["done_ms"] < noon),
        ),
        facts.offsets,
        facts.damaged,
    )
    assert moments(cut)[:144] == moments(facts)[:144]


def test_a_call_that_never_returns_runs_longer_and_longer(day: Day, facts: DayFacts) -> None:
    _, told = day.incident("stuck_message")
    ages = [
        max(row["running_s"] for row in rows(moment, "billing"))
        for moment in moments(facts)
        if moment.at_ms > told["stored_ms"] + 600_000
    ]
    assert ages and ages[0] >= 600 and ages == sorted(ages)


def test_a_group_without_a_trace_that_counts_no_more_has_a_growing_lag(facts: DayFacts) -> None:
    lags = [next(rows(moment, "analytics"))["lag"] for moment in moments(facts)]
    offsets = facts.offsets[(facts.offsets["group"] == "analytics") & (facts.offsets["topic"] == ORDERS)]
    assert lags[:270] == [0] * 270 and lags == sorted(lags)
    assert lags[-1] == (offsets["end"] - offsets["committed"]).sum() > 0
