"""A topic deleted before a crash: what recovery brings back of it, and what it repairs of queues that are really lost.

The figures of the first two tests are those of RocketMQ's own store over the same directories.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.rocketmq.wire.record import Record

NewRecord = Callable[..., Record]
STEP_MS = 3_000


def put(world: Any, new_record: NewRecord, topic: str, count: int, first: int = 0) -> list[int]:
    """Messages some seconds apart, so that the checkpoint keeps up with them; their queue offsets."""
    offsets = []
    for number in range(first, first + count):
        offsets.append(world.store.put(new_record(number, topic=topic)).queue_offset)
        world.clock.advance(STEP_MS)
    return offsets


def crash(world: Any, lose: str = "", **settings: Any) -> Any:
    world.kill()
    if lose:
        shutil.rmtree(f"{world.directory}/consumequeue/{lose}")
    return world.start(**settings)


def bounds(store: Any, topic: str) -> tuple[int, int]:
    return store.min_offset(topic, 0), store.max_offset(topic, 0)


def keys(store: Any, topic: str) -> list[str]:
    low, high = bounds(store, topic)
    return [store.get(topic, 0, at, 1).records()[0].property_map["KEYS"].split()[0] for at in range(low, high)]


def test_a_crash_brings_back_only_what_recovery_reads_again(world: Any, new_record: NewRecord) -> None:
    put(world, new_record, "a", 81)
    assert world.store.delete_topic("a")
    store = crash(world)
    assert bounds(store, "a") == (72, 81)
    assert (store.recovery_report.start_offset, store.recovery_report.problems) == (12_288, [])


def test_a_message_stored_after_the_deletion_keeps_its_offset(world: Any, new_record: NewRecord) -> None:
    put(world, new_record, "a", 81)
    world.store.delete_topic("a")
    assert put(world, new_record, "a", 1, first=100) == [0]
    store = crash(world)
    assert keys(store, "a") == ["k100"] and bounds(store, "a") == (0, 1)


@pytest.mark.parametrize("count", [3, 81])
def test_a_message_that_was_not_dispatched_yet_keeps_its_offset(world: Any, new_record: NewRecord, count: int) -> None:
    put(world, new_record, "a", count)
    world.store.delete_topic("a")
    assert world.store.put(new_record(100, topic="a")).queue_offset == 0
    store = crash(world)
    assert keys(store, "a") == ["k100"] and bounds(store, "a") == (0, 1)


def test_all_messages_since_the_deletion_are_repaired(world: Any, new_record: NewRecord) -> None:
    put(world, new_record, "a", 30)
    world.store.delete_topic("a")
    put(world, new_record, "a", 60, first=100)
    store = crash(world, lose="a")
    assert keys(store, "a") == [f"k{number}" for number in range(100, 160)]
    assert any("recovery starts one file earlier" in problem for problem in store.recovery_report.problems)


@pytest.mark.parametrize("numpy", [False, True])
def test_a_lost_queue_is_repaired_and_a_deleted_topic_stays_as_it_would_be(
    world: Any, new_record: NewRecord, numpy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqlab.rocketmq.store.recovery.fast_scan.WORTH_IT", 1)
    for round_of_both in range(40):
        put(world, new_record, "kept", 1, first=round_of_both)
        put(world, new_record, "a", 1, first=round_of_both)
    world.store.delete_topic("a")
    world.store.put(new_record(100, topic="a"))
    store = crash(world, lose="kept", recover_with_numpy=numpy)
    assert keys(store, "kept") == [f"k{number}" for number in range(40)]
    assert keys(store, "a") == ["k100"] and bounds(store, "a") == (0, 1)


@pytest.mark.parametrize("numpy", [False, True])
def test_going_back_for_a_lost_queue_makes_no_empty_queue(
    world: Any, new_record: NewRecord, numpy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqlab.rocketmq.store.recovery.fast_scan.WORTH_IT", 1)
    put(world, new_record, "a", 5)
    put(world, new_record, "kept", 60)
    world.store.delete_topic("a")
    store = crash(world, lose="kept", recover_with_numpy=numpy)
    assert len(keys(store, "kept")) == 60
    assert store.topics() == {"kept": [0]}


def test_a_second_crash_changes_nothing(world: Any, new_record: NewRecord) -> None:
    put(world, new_record, "a", 81)
    world.store.delete_topic("a")
    crash(world)
    put(world, new_record, "a", 5, first=100)
    store = crash(world)
    assert bounds(store, "a") == (72, 86)
    assert bounds(crash(world, lose="a"), "a") == (72, 86)


def test_a_log_that_lost_its_end_moves_the_deletion_back(world: Any, new_record: NewRecord) -> None:
    """What is written where the lost messages were is newer than the deletion."""
    put(world, new_record, "a", 30)
    for number in range(60):
        world.store.put(new_record(number, topic="a"))
    deleted_at = world.store.max_physical_offset
    world.store.delete_topic("a")
    world.power_cut()  # takes what is not synced
    store = world.start()
    end = store.max_physical_offset
    assert store.deleted_topics.end_of("a") == end < deleted_at
    put(world, new_record, "a", 60, first=100)
    store = crash(world, lose="a")
    assert store.deleted_topics.end_of("a") == end
    assert keys(store, "a") == [f"k{number}" for number in range(100, 160)]


@pytest.mark.parametrize("topics, low", [({"other": {}}, 72), ({"other": {}, "a": {}}, 0), ({}, 0)])
def test_a_topic_that_the_broker_no_longer_has_was_deleted(
    world: Any, new_record: NewRecord, topics: dict[str, Any], low: int
) -> None:
    """A real broker keeps no record of its own, but takes the topic out of topics.json before it deletes the queues."""
    put(world, new_record, "a", 81)
    world.files.make_directory(f"{world.directory}/config")
    text = json.dumps({"topicConfigTable": topics})
    Path(world.directory, "config/topics.json").write_text(text, "utf-8")
    assert bounds(crash(world, lose="a"), "a") == (low, 81)


def test_a_record_that_cannot_be_read_is_reported_and_everything_is_repaired(world: Any, new_record: NewRecord) -> None:
    put(world, new_record, "a", 81)
    world.store.delete_topic("a")
    Path(world.directory, "config/deletedTopics.json").write_text("{", "utf-8")
    store = crash(world)
    assert bounds(store, "a") == (0, 81)
    assert "deletedTopics.json" in store.recovery_report.problems[0]


def test_a_deletion_is_forgotten_with_the_messages_before_it(world: Any, new_record: NewRecord) -> None:
    put(world, new_record, "a", 30)
    world.store.delete_topic("a")
    put(world, new_record, "other", 60)
    world.store.shutdown()
    for name in sorted(world.files.list(f"{world.directory}/commitlog"))[:2]:
        world.files.remove(f"{world.directory}/commitlog/{name}")
    assert world.start().deleted_topics.end_of("a") == -1


def test_a_topic_without_queues_is_not_recorded(world: Any) -> None:
    assert not world.store.delete_topic("a")
    assert not world.files.exists(f"{world.directory}/config/deletedTopics.json")
