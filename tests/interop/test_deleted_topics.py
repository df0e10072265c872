"""Random histories in which topics are deleted before a crash: what the real store makes of the directory, and mqlab.

Messages are some virtual seconds apart, so that the checkpoint keeps up and recovery starts at a late log file.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from tests.interop.java_store import JavaStore
from tests.rocketmq.store.conftest import SMALL, World, make_record

pytestmark = pytest.mark.interop

SEEDS = 40
TOPICS = ("a", "b", "c", "d")
WORDS = ",".join(str(size) for size in SMALL.values())
Queues = dict[str, tuple[int, int, list[list[int]]]]


class History:
    """A store, and how many of each topic's last messages are newer than its deletion."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World(directory)
        self.world.start()
        self.count = 0
        self.since_deletion: dict[str, list[int]] = {}

    def put(self, topic: str, count: int, *, dispatched: bool = True) -> None:
        for _ in range(count):
            self.count += 1
            result = self.world.store.put(make_record(self.count, topic=topic))
            self.since_deletion.setdefault(topic, []).append(result.queue_offset)
            if dispatched:
                self.world.clock.advance(self.rng.choice((2, 500, 3_000, 6_000)))

    def delete(self, topic: str) -> None:
        if self.world.store.delete_topic(topic):
            self.since_deletion[topic] = []

    def crash(self) -> None:
        self.world.clock.advance(2)
        self.world.kill()
        self.world.start()

    def live(self) -> None:
        for _ in range(self.rng.randrange(8, 25)):
            deed = self.rng.random()
            topic = self.rng.choice(TOPICS)
            if deed < 0.75:
                self.put(topic, self.rng.randrange(1, 15))
            elif deed < 0.95:
                self.delete(topic)
            else:
                self.crash()
        for topic in self.rng.sample(TOPICS, 2):
            self.put(topic, self.rng.randrange(12))
            self.delete(topic)


def queues_of(directory: Path) -> tuple[Queues, list[str]]:
    """The queues after recovery, and the topics whose numbering began again twice in what recovery read."""
    world = World(directory)
    store = world.start()
    queues: Queues = {}
    for topic in store.topics():
        low, high = store.min_offset(topic, 0), store.max_offset(topic, 0)
        units = [store.consume_queue_unit(topic, 0, at) for at in range(low, high)]
        queues[topic] = (low, high, [list(unit) for unit in units if unit is not None])
    problems = store.recovery_report.problems
    return queues, [topic for topic in TOPICS if any(f"calls itself {topic}[0]" in problem for problem in problems)]


def ask_java(java_store: JavaStore, directories: list[Path]) -> list[Queues]:
    """What the real store makes of a copy of each directory, in one Java process."""
    commands: list[list[object]] = []
    for directory in directories:
        copy = directory.with_name(directory.name + "-java")
        shutil.copytree(directory, copy)
        commands.append(["list", copy, directory.with_suffix(".json"), WORDS])
    java_store.run(*commands)
    answers: list[Queues] = []
    for directory in directories:
        listed = json.loads(directory.with_suffix(".json").read_text("utf-8"))["queues"]
        answers.append({topic: (low, high, units) for topic, _, low, high, units in listed if units or high})
    return answers


def test_the_crash_leaves_the_queues_that_the_real_store_leaves(tmp_path: Path, java_store: JavaStore) -> None:
    directories = []
    for seed in range(SEEDS):
        history = History(tmp_path / f"alive-{seed}", seed)
        history.live()
        history.world.clock.advance(2)
        directories.append(tmp_path / f"dead-{seed}")
        shutil.copytree(tmp_path / f"alive-{seed}", directories[-1])
    came_back = compared = 0
    for seed, (directory, theirs) in enumerate(zip(directories, ask_java(java_store, directories), strict=True)):
        ours, begun_again = queues_of(directory)
        for topic in set(TOPICS) - set(begun_again):  # of those the real store mixes two numberings
            assert ours.get(topic) == theirs.get(topic), (seed, topic)
            came_back += topic in theirs and theirs[topic][0] > 0
            compared += 1
    assert compared > SEEDS * len(TOPICS) * 3 // 4
    assert came_back > SEEDS // 4  # deleted, and its last messages are there again


def test_messages_since_the_deletion_keep_their_offsets(tmp_path: Path) -> None:
    """Dispatched or not, and when their queue is lost before messages that recovery reads."""
    for seed in range(SEEDS):
        history = History(tmp_path / f"alive-{seed}", seed)
        history.live()
        topic = history.rng.choice(TOPICS)
        history.put(topic, history.rng.randrange(1, 4), dispatched=False)
        directory = tmp_path / f"dead-{seed}"
        shutil.copytree(tmp_path / f"alive-{seed}", directory)
        if seed % 2:
            shutil.rmtree(directory / "consumequeue" / topic, ignore_errors=True)
        check_offsets(directory, history.since_deletion, seed)


def check_offsets(directory: Path, since_deletion: dict[str, list[int]], seed: int) -> None:
    world = World(directory)
    store = world.start()
    for topic, offsets in since_deletion.items():
        for offset in offsets:
            unit = store.consume_queue_unit(topic, 0, offset)
            assert unit is not None, (seed, topic, offset)
            record = store.message_at(unit.physical_offset)
            assert record is not None and (record.topic, record.queue_offset) == (topic, offset), (seed, topic)
        if offsets:
            assert store.max_offset(topic, 0) == offsets[-1] + 1, (seed, topic)
