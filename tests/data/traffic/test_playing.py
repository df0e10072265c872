"""The same platform, played: what the model says happens to real producers, brokers and listeners."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from mqlab.data.traffic import Incident, PlayedDay, TrafficModel, play
from mqlab.data.traffic.model import FIRST_DAY_MS
from mqlab.data.traffic.playing.day import PLAYED
from mqlab.data.traffic.trouble.incidents import ALL_KINDS
from mqlab.errors import UsageError
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.admin.message_traces import decode_trace

HAPPENING = ("poison_message", "wrong_reset", "inconsistent_tags", "failing_consumer")


@pytest.fixture(scope="module")
def played() -> PlayedDay:
    return play(messages=500, seed=6, incidents=HAPPENING)


def sent(day: PlayedDay) -> list:
    return [m for path in day.stores.values() for m in StoreInspector(path).messages(topic="orders")]


def incident(day: PlayedDay, kind: str):
    return next(incident for incident in day.incidents if incident.kind == kind)


def test_every_message_is_stored_and_the_stores_are_whole(played: PlayedDay) -> None:
    assert sorted(played.stores) == ["broker-a"]
    store = StoreInspector(played.stores["broker-a"])
    assert store.problems(deep=True) == []
    counts = Counter(message.topic for message in store.messages())
    assert counts["orders"] + counts["stock"] == played.sent > 250
    assert {json.loads(m.body)["event"] for m in sent(played)} == {
        "created",
        "paid",
        "shipped",
        "refunded",
        "cancelled",
    }
    assert "poison_message" in repr(played)


def test_groups_get_what_they_read_and_tell_of_it(played: PlayedDay) -> None:
    told = [
        e
        for m in StoreInspector(played.stores["broker-a"]).messages(topic="RMQ_SYS_TRACE_TOPIC")
        for e in decode_trace(m)
    ]
    groups = {entry.group for entry in told if entry.type == "SubBefore"}
    assert groups == {"billing", "shipping", "notification"}
    wanted = {m.msg_id for m in sent(played) if m.tags in ("created", "paid")}
    assert {e.msg_id for e in told if e.type == "SubBefore" and e.group == "billing"} == wanted
    everything = [row.msg_id for row in played.lab.deliveries("analytics") if row.status == "CONSUME_SUCCESS"]
    assert set(everything) == {m.msg_id for m in sent(played)}


def test_a_poison_message_is_tried_again_and_again(played: PlayedDay) -> None:
    tries = Counter(r.msg_id for r in played.lab.deliveries("billing") if r.status == "RECONSUME_LATER")
    assert max(tries.values()) >= 4


def test_a_failing_listener_sends_back(played: PlayedDay) -> None:
    happening = incident(played, "failing_consumer")
    rows = [r for r in played.lab.deliveries(happening.group) if r.started_ms and r.client]
    inside = [r for r in rows if happening.start_ms <= r.started_ms and r.ended_ms and r.ended_ms < happening.end_ms]
    assert inside and not any(r.status == "CONSUME_SUCCESS" for r in inside)


def test_a_reset_delivers_again(played: PlayedDay) -> None:
    happening = incident(played, "wrong_reset")
    done = Counter(r.msg_id for r in played.lab.deliveries(happening.group) if r.status == "CONSUME_SUCCESS")
    twice = {msg_id for msg_id, count in done.items() if count > 1}
    stored = {m.msg_id: m.store_timestamp for m in sent(played)}
    first_ms = happening.start_ms - happening.back_ms
    assert twice and all(first_ms <= stored[msg_id] <= happening.end_ms for msg_id in twice)


def test_a_member_with_fewer_tags_loses_the_others(played: PlayedDay) -> None:
    happening = incident(played, "inconsistent_tags")
    got = {r.msg_id for r in played.lab.deliveries(happening.group) if r.status == "CONSUME_SUCCESS"}
    lost = [m for m in sent(played) if m.tags in happening.tags and m.msg_id not in got]
    assert lost
    assert all(happening.start_ms <= m.store_timestamp <= happening.end_ms + 60_000 for m in lost)


def test_the_same_seed_plays_the_same() -> None:
    days = [play(messages=300, seed=3, minutes=2, brokers=2) for _ in range(2)]
    assert days[0].lab.journal.digest() == days[1].lab.journal.digest()
    assert sorted(days[0].stores) == ["broker-a", "broker-b"]


@pytest.mark.parametrize("kind", [kind for kind in ALL_KINDS if kind not in PLAYED])
def test_a_kind_that_only_a_written_day_knows_is_refused(kind: str) -> None:
    with pytest.raises(UsageError, match=f"{kind} cannot be played, only written"):
        play(messages=300, incidents=(kind,))


def test_a_magnitude_that_cannot_be_played_is_refused() -> None:
    slow = Incident("slow_consumer", FIRST_DAY_MS, FIRST_DAY_MS + 60_000, group="billing", member=1, cost_ms=90)
    with pytest.raises(UsageError, match="concerns the whole group, but member, cost_ms is given"):
        play(messages=300, model=TrafficModel(incidents=(slow,)))


def test_delayed_messages_are_not_played() -> None:
    with pytest.raises(UsageError, match="reminders cannot be played, only written"):
        play(messages=300, model=TrafficModel(reminders=True))


def test_a_campaign_is_played() -> None:
    day = play(messages=300, seed=3, minutes=2, incidents=("campaign",))
    assert [incident.kind for incident in day.incidents] == ["campaign"] and day.sent > 150
