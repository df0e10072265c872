"""Which topics were deleted, and where the log ended then: recovery must not treat a deleted queue as a lost one.

RocketMQ has no such record: its recovery does not check whether a queue misses entries.

    config/deletedTopics.json      {"deletedTopics":{"orders":13800}}     messages before 13800 need not be in a queue
    config/topics.json             a topic that the broker does not have any more was deleted, also by a real broker

Left out: a topic deleted by a store that has no broker and keeps no such record. Its queues count as lost.
"""

from __future__ import annotations

import json
from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.ports import Clock, Files, Note
from mqlab.rocketmq.store.config_files import ConfigFile
from mqlab.rocketmq.store.reading.store_tree import read_config
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.names import is_system_topic

NEVER_DELETED = -1
NO_LONGER_THERE = (1 << 63) - 1  # after the end of every log
_KEY = "deletedTopics"


class DeletedTopics:
    """topic -> end of the log (a physical offset) when it was last deleted. ``add`` is on the disk when it returns."""

    def __init__(self, files: Files, directory: str, clock: Clock | None = None, note: Note | None = None) -> None:
        self._files = files
        self._folder = f"{directory}/config"
        self._file = ConfigFile(files, f"{self._folder}/deletedTopics.json", clock=clock, note=self._heard)
        self._note = note
        self._problems: list[str] = []
        self._ends: dict[str, int] = {}
        self._broker_topics: dict[str, Any] | None = None  # read when first asked for; empty without a broker

    def load(self) -> list[str]:
        """Read the record; a list with the reason if it, or its newest version, could not be read."""
        self._problems = []
        try:
            ends = _table(self._file.load_as(java_json.loads), _KEY)
        except CorruptionError as error:
            return [f"{error.text}: deleted queues may be taken for lost ones"]
        self._ends = {topic: end for topic, end in ends.items() if isinstance(end, int)}
        return self._problems

    def _heard(self, kind: str, /, **values: Any) -> None:
        self._problems.append(values["text"])
        if self._note is not None:
            self._note(kind, **values)

    def add(self, topic: str, log_end: int) -> None:
        """Record a deletion before the first file of the topic's queues is removed."""
        self._ends[topic] = log_end
        self._save()

    def end_of(self, topic: str) -> int:
        """Messages of the topic before this physical offset need not be in a queue; -1 when it was never deleted."""
        if self._broker_topics is None:
            self._broker_topics = self._topics_of_broker()
        if self._broker_topics and topic not in self._broker_topics and not is_system_topic(topic):
            return NO_LONGER_THERE
        return self._ends.get(topic, NEVER_DELETED)

    def _topics_of_broker(self) -> dict[str, Any]:
        try:
            return _table(read_config(self._files, f"{self._folder}/topics.json"), "topicConfigTable")
        except CorruptionError:  # the broker reports it when it reads its topics
            return {}

    def log_recovered(self, min_offset: int, end: int) -> None:
        """Messages from ``end`` on are newer than any deletion; deletions before ``min_offset`` are removed."""
        ends = {topic: min(log_end, end) for topic, log_end in self._ends.items() if min(log_end, end) > min_offset}
        if ends != self._ends:
            self._ends = ends
            self._save()

    def _save(self) -> None:
        text = json.dumps({_KEY: self._ends}, ensure_ascii=False, separators=(",", ":"))
        self._file.save(text)

    def __repr__(self) -> str:
        return f"<DeletedTopics {self._ends}>"


def _table(value: Any, key: str) -> dict[str, Any]:
    table = value.get(key) if isinstance(value, dict) else None
    return table if isinstance(table, dict) else {}
