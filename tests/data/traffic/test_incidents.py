"""Every incident the truth tells of can be seen in the stores, by counting what is there."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from mqlab.data.traffic import TrafficModel
from mqlab.data.traffic.model import Asked
from mqlab.data.traffic.trouble.incidents import KINDS, MAX_SPAN, incidents_of
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.admin.message_traces import decode_trace
from mqlab.rocketmq.store import config_texts
from tests.data.traffic.conftest import SMALL, Day


def between(message, told) -> bool:
    return told["start_ms"] <= message.born_timestamp < told["end_ms"]


def deliveries(day: Day, broker: str, group: str) -> list:
    return [entry for entry in day.told[broker] if entry.type == "SubBefore" and entry.group == group]


def test_a_burst_brings_many_times_the_orders(day: Day) -> None:
    for name in day.messages:
        told = next(t for t in day.truth[name] if t["kind"] == "burst")
        created = [m.born_timestamp for m in day.of(name, "orders") if m.tags == "created"]
        long_ms = told["end_ms"] - told["start_ms"]
        inside = sum(told["start_ms"] <= at < told["end_ms"] for at in created)
        before = sum(told["start_ms"] - 2 * long_ms <= at < told["start_ms"] for at in created) / 2
        assert inside == told["orders"] > 2 * before


def test_a_hot_key_makes_a_third_of_an_hours_orders_and_a_hot_queue(day: Day) -> None:
    name, told = day.incident("hot_key")
    created = [m for m in day.of(name, "orders") if m.tags == "created" and between(m, told)]
    hot = [m for m in created if told["key"] in m.keys.split()]
    assert len(hot) == told["orders"] > len(created) // 5
    assert {m.queue_id for m in hot} == {told["queue_id"]}


def test_a_slow_consumer_takes_seconds_and_falls_behind(day: Day) -> None:
    for name in day.messages:
        told = next(t for t in day.truth[name] if t["kind"] == "slow_consumer")
        stored = {m.msg_id: m.store_timestamp for m in day.of(name, "orders")}
        costs = [e.cost_ms for e in day.told[name] if e.type == "SubAfter" and e.group == told["group"]]
        slow = sum(cost >= 1000 for cost in costs)
        assert 0 < slow <= told["slow_deliveries"] <= slow + 2
        lags = [e.time_ms - stored[e.msg_id] for e in deliveries(day, name, told["group"]) if e.retry_times == 0]
        assert max(lags) >= told["most_lag_ms"] > 600_000


def test_a_failing_consumer_fills_the_retry_topic(day: Day) -> None:
    for name in day.messages:
        told = next(t for t in day.truth[name] if t["kind"] == "failing_consumer")
        began = {e.request_id: e.time_ms for e in deliveries(day, name, told["group"])}
        ended = [e for e in day.told[name] if e.type == "SubAfter" and e.group == told["group"]]
        inside = [e for e in ended if told["start_ms"] <= began[e.request_id] < told["end_ms"]]
        assert inside and not any(e.success for e in inside)
        assert len(inside) == told["failed_deliveries"]
        dead = [m for m in day.messages[name] if m.topic == f"%DLQ%{told['group']}"]
        assert len(dead) == told["dead_letters_of_the_day"] > 0


def test_a_poison_message_ends_as_a_dead_letter(day: Day) -> None:
    name, told = day.incident("poison_message")
    message = next(m for m in day.of(name, "orders") if m.msg_id == told["msg_id"])
    assert (message.physical_offset, message.queue_offset) == (told["physical_offset"], told["queue_offset"])
    assert (message.offset_msg_id, message.tags) == (told["offset_msg_id"], told["tag"])
    tries = [e for e in day.told[name] if e.msg_id == told["msg_id"] and e.group == told["group"]]
    assert sum(e.type == "SubBefore" for e in tries) == 17
    assert not any(e.success for e in tries if e.type == "SubAfter")
    assert [m.msg_id for m in day.of(name, "%DLQ%billing")].count(told["msg_id"]) == 1


def test_a_stuck_message_has_no_end_and_holds_its_queues_offset(day: Day) -> None:
    name, told = day.incident("stuck_message")
    own = [e.type for e in day.told[name] if e.msg_id == told["msg_id"] and e.group == told["group"]]
    assert own == ["SubBefore"]
    text = (day.summary.stores[name] / "config" / "consumerOffset.json").read_text("utf-8")
    offsets = config_texts.decode("consumerOffset.json", text)["offsetTable"]
    assert offsets["orders@billing"][told["queue_id"]] == told["queue_offset"]
    end = StoreInspector(day.summary.stores[name]).queue("orders", told["queue_id"]).max_offset
    assert offsets["orders@billing"][told["queue_id"]] < end == offsets["orders@shipping"][told["queue_id"]]
    read = [m for m in day.of(name, "orders") if m.store_timestamp < SMALL.start_ms + (22 * 60 + 30) * 60_000]
    assert sum(offsets["orders@analytics"].values()) == len(read) < len(day.of(name, "orders"))


def test_nobody_reads_on_when_the_span_is_used_up(small_day) -> None:
    summary = small_day(messages=60_000, model=None, incidents=("stuck_message",), queues=1, commit_log_bytes=1 << 26)
    told = json.loads(summary.truth.read_text("utf-8"))["brokers"]["broker-a"][0]
    messages = list(StoreInspector(summary.stores["broker-a"]).messages())
    got = {
        entry.msg_id
        for m in messages
        if m.topic == "RMQ_SYS_TRACE_TOPIC"
        for entry in decode_trace(m)
        if entry.group == "billing"
    }
    behind = [m for m in messages if m.topic == "orders" and m.tags in ("created", "paid") and m.msg_id not in got]
    assert behind and min(m.queue_offset for m in behind) >= told["queue_offset"] + MAX_SPAN
    read = [m.queue_offset for m in messages if m.topic == "orders" and m.msg_id in got]
    assert told["queue_offset"] + MAX_SPAN - 50 < max(read) < told["queue_offset"] + MAX_SPAN


def test_inconsistent_tags_lose_messages_without_a_trace(day: Day) -> None:
    for name in day.messages:
        told = next(t for t in day.truth[name] if t["kind"] == "inconsistent_tags")
        got = Counter(e.msg_id for e in deliveries(day, name, told["group"]))
        unseen = [
            m
            for m in day.of(name, "orders")
            if m.tags in told["tags"] and told["start_ms"] <= m.store_timestamp < told["end_ms"] and m.msg_id not in got
        ]
        assert len(unseen) == told["messages_not_delivered"] > 0


def test_a_wrong_reset_delivers_hours_twice(day: Day) -> None:
    for name in day.messages:
        told = next(t for t in day.truth[name] if t["kind"] == "wrong_reset")
        first = Counter(e.msg_id for e in deliveries(day, name, told["group"]) if e.retry_times == 0)
        stored = {m.msg_id: m.store_timestamp for m in day.of(name, "orders")}
        twice = [msg_id for msg_id, count in first.items() if count == 2]
        assert len(twice) == told["messages_delivered_again"] > 0
        assert all(told["start_ms"] - told["back_ms"] <= stored[msg_id] < told["start_ms"] for msg_id in twice)
        assert max(first.values()) == 2


def test_a_quiet_day_has_nothing_of_all_that(small_day) -> None:
    summary = small_day(messages=6_000, model=None, incidents=())
    assert json.loads(summary.truth.read_text("utf-8"))["brokers"] == {"broker-a": []}


def test_the_seed_chooses_what_and_when() -> None:
    chosen = [incidents_of(Asked(9_000, 3, seed)) for seed in range(40)]
    assert {incident.kind for incidents in chosen for incident in incidents} == set(KINDS)
    assert len(set(chosen)) == 40
    assert len({len(incidents) for incidents in chosen}) > 3
    same = Asked(9_000, 3, 5, TrafficModel())
    assert incidents_of(same) == incidents_of(same)


@pytest.mark.parametrize("kind", KINDS)
def test_incidents_lie_within_the_day(kind: str) -> None:
    model = TrafficModel(incidents=(kind,))
    for seed in range(30):
        (incident,) = incidents_of(Asked(9_000, 3, seed, model))
        assert model.start_ms <= incident.start_ms <= incident.end_ms <= model.start_ms + 86_400_000
