"""The parts next to a learner's handlers: pulls, groups and retries that keep every promise, in as few lines as may be.

They are the judge's: an answer's process cannot import them.
"""

from __future__ import annotations

import json
from typing import Any

from mqlab.lab.parts import copied, tag_of
from mqlab.lab.parts.disk import Disk
from mqlab.lab.parts.doors import StoreToRead, StoreToWrite
from mqlab.rocketmq.wire.names import dlq_topic, retry_topic
from mqlab.rocketmq.wire.record import decode

Pull = dict[str, Any]
PulledUnits = tuple[list[bytes], int]


class RightPulls:
    """Reads 32 messages at a time until something is wanted, and holds what finds nothing."""

    def __init__(self, store: StoreToRead) -> None:
        self._store = store
        self._held: dict[int, Pull] = {}

    def pull(self, number: int, pull: Pull, now_ms: int) -> PulledUnits | None:
        """An answer, or None: the pull is held."""
        answer = self._read(pull)
        if answer[0] or answer[1] != pull["queue_offset"] or pull["until_ms"] <= now_ms:
            return answer
        self._held[number] = pull
        return None

    def _read(self, pull: Pull) -> PulledUnits:
        queue, offset = (pull["topic"], pull["queue_id"]), pull["queue_offset"]
        end = self._store.max_offset(*queue)
        if not 0 <= offset <= end:
            return [], max(0, min(offset, end))
        wanted: list[bytes] = []
        while offset < end and not wanted:
            units = self._store.get(*queue, offset, pull["most"])
            wanted = [unit for unit in units if not pull["tags"] or tag_of(unit) in pull["tags"]]
            offset += len(units)
        return wanted, offset

    def arrived(self, topic: str, queue_id: int) -> list[tuple[int, PulledUnits]]:
        """The pulls that a new message wakes."""
        waiting = [
            number for number, pull in self._held.items() if (pull["topic"], pull["queue_id"]) == (topic, queue_id)
        ]
        answers = [(number, self._read(self._held[number])) for number in waiting]
        return [(number, answer) for number, answer in answers if answer[0] and self._held.pop(number)]

    def look(self, now_ms: int) -> list[tuple[int, PulledUnits]]:
        """The pulls whose time is over."""
        over = [number for number, pull in self._held.items() if pull["until_ms"] <= now_ms]
        return [(number, self._read(self._held.pop(number))) for number in over]


class RightGroups:
    """Members in memory, offsets in one file that is replaced."""

    FILE = "config/right_offsets.json"

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._members: dict[str, set[str]] = {}
        self._offsets: dict[str, int] = json.loads(disk.load(self.FILE) or b"{}")

    def joined(self, group: str, member: str) -> None:
        """A member is there."""
        self._members.setdefault(group, set()).add(member)

    def left(self, group: str, member: str) -> None:
        """A member is gone."""
        self._members.get(group, set()).discard(member)

    def members(self, group: str) -> list[str]:
        """The members that are there."""
        return sorted(self._members.get(group, ()))

    def commit(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """A group is so far."""
        self._offsets[f"{group}@{topic}@{queue_id}"] = queue_offset

    def committed(self, group: str, topic: str, queue_id: int) -> int:
        """How far a group is; -1 without a commit."""
        return self._offsets.get(f"{group}@{topic}@{queue_id}", -1)

    def save(self) -> None:
        """Write all offsets."""
        self._disk.replace(self.FILE, json.dumps(self._offsets).encode())


class RightRetries:
    """Retries that wait are in one file that is replaced: due time, group, unit."""

    FILE = "config/right_retries.json"

    def __init__(self, store: StoreToWrite, disk: Disk, delays_ms: list[int]) -> None:
        self._store, self._disk, self._delays_ms = store, disk, delays_ms
        self._waiting: list[tuple[int, str, str]] = [tuple(row) for row in json.loads(disk.load(self.FILE) or b"[]")]

    def send_back(self, group: str, unit: bytes, level: int, most: int, now_ms: int) -> str:
        """What becomes of a message that failed."""
        times = decode(unit).reconsume_times
        if times >= most or level < 0:
            self._store.put(dlq_topic(group), 0, copied(unit))
            return "dead"
        level = min(level or 3 + times, len(self._delays_ms))
        self._waiting.append((now_ms + self._delays_ms[level - 1], group, copied(unit).hex()))
        self._save()
        return "retry"

    def look(self, now_ms: int) -> None:
        """Put what is due into the retry topics."""
        over = [row for row in self._waiting if row[0] <= now_ms]
        for row in over:
            self._store.put(retry_topic(row[1]), 0, bytes.fromhex(row[2]))
            self._waiting.remove(row)
        if over:
            self._save()

    def _save(self) -> None:
        self._disk.replace(self.FILE, json.dumps(self._waiting).encode())
