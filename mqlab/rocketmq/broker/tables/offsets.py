"""The offsets of each group on each queue, as the broker knows them.

Mirrors: ConsumerOffsetManager; file config/consumerOffset.json.

    table                 key                 queue -> offset          written by
    offset_table          orders@billing      {0: 2201, 1: 2185}       commits; saved in the file
    reset_offset_table    orders@billing      {0: 10}                  a reset that waits for a pull; in memory only
    pull_offset_table     orders@billing      {0: 2233, 1: 2185}       the answers to pulls; in memory only

Every offset is the next one to consume, so lag = max offset - offset, without + 1. Commits may go backwards.
Left out: offsets of LMQ queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.bodies import DataVersion

SEPARATOR = "@"
OFFSETS_FILE = "consumerOffset.json"
BROADCAST_SUFFIX = "@broadcast"
NO_OFFSET = -1

Queues = dict[int, int]


class ConsumerOffsetTable(Mapping[str, Mapping[int, int]]):
    """``"topic@group"`` -> queue id -> next offset to consume. Mirrors ConsumerOffsetManager.

    ``changed`` is called after every change of what the file holds.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        version_step: int = 500,
        use_server_side_reset: bool = True,
        note: Callable[..., None] = lambda *_, **__: None,
    ) -> None:
        self._now_ms = now_ms
        self._version_step = version_step
        self._use_reset = use_server_side_reset
        self.changed: Signal[[]] = Signal()
        self._note = note
        self._commits = 0
        self.data_version = DataVersion.at(now_ms())
        self.offset_table: dict[str, Queues] = {}
        self.reset_offset_table: dict[str, Queues] = {}
        self.pull_offset_table: dict[str, Queues] = {}

    def commit(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """Overwrite the stored offset; going backwards is allowed. Mirrors commitOffset."""
        queues = self.offset_table.setdefault(_key(topic, group), {})
        before = queues.get(queue_id)
        queues[queue_id] = queue_offset
        self._commits += 1
        if self._commits % self._version_step == 0:
            self.data_version = self.data_version.next(self._now_ms())
        if before != queue_offset:
            self._note(
                "offset.committed",
                group=group,
                topic=topic,
                queue_id=queue_id,
                before=before,
                queue_offset=queue_offset,
            )
            self.changed()

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """The offset that a consumer starts from: a waiting reset, or the stored one, or NO_OFFSET (-1)."""
        key = _key(topic, group)
        # A waiting reset hides the stored offset, so that a new member starts from it.
        if self._use_reset and queue_id in self.reset_offset_table.get(key, {}):
            return self.reset_offset_table[key][queue_id]
        return self.offset_table.get(key, {}).get(queue_id, NO_OFFSET)

    def queues_of(self, group: str, topic: str) -> Mapping[int, int] | None:
        """The stored offsets of a group on a topic by queue id, None when there are none."""
        return self.offset_table.get(_key(topic, group))

    def topics_of(self, group: str) -> list[str]:
        """Topics on which the group has stored offsets. Mirrors whichTopicByConsumer."""
        return [topic for topic, owner in self._pairs() if owner == group]

    def groups_of(self, topic: str) -> list[str]:
        """Groups that have stored offsets on the topic. Mirrors whichGroupByTopic."""
        return [group for name, group in self._pairs() if name == topic]

    def clone(self, source_group: str, target_group: str, topic: str) -> None:
        """Give a group the stored offsets of another group on a topic. Mirrors cloneOffset."""
        queues = self.offset_table.get(_key(topic, source_group))
        if queues is not None:
            self.offset_table[_key(topic, target_group)] = dict(queues)
            self.changed()

    def remove_group(self, group: str) -> None:
        """Remove all offsets of a group. Mirrors removeOffset."""
        self._remove(lambda topic, owner: owner == group)

    def remove_topic(self, topic: str) -> None:
        """Remove all offsets on a topic. Mirrors cleanOffsetByTopic."""
        self._remove(lambda name, group: name == topic)

    def assign_reset(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """Set the stored offset, and keep the reset until the next pull of the queue. Mirrors assignResetOffset."""
        if queue_id < 0 or queue_offset < 0:
            return
        key = _key(topic, group)
        self.reset_offset_table.setdefault(key, {})[queue_id] = queue_offset
        before = self.offset_table.setdefault(key, {}).get(queue_id)
        self.offset_table[key][queue_id] = queue_offset
        self._note(
            "offset.reset", group=group, topic=topic, queue_id=queue_id, before=before, queue_offset=queue_offset
        )
        self.changed()

    def has_reset(self, group: str, topic: str, queue_id: int) -> bool:
        """True while a reset of the queue waits for a pull; commits are ignored until then."""
        return bool(self.reset_offset_table) and queue_id in self.reset_offset_table.get(_key(topic, group), {})

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return and remove a waiting reset. Mirrors queryThenEraseResetOffset."""
        if not self.reset_offset_table:  # asked by every pull
            return None
        return self.reset_offset_table.get(_key(topic, group), {}).pop(queue_id, None)

    def pulled(self, group: str, topic: str, queue_id: int, next_begin_offset: int) -> None:
        """Remember where the group's next pull of the queue will begin. Mirrors commitPullOffset."""
        self.pull_offset_table.setdefault(_key(topic, group), {})[queue_id] = next_begin_offset

    def query_pull(self, group: str, topic: str, queue_id: int) -> int:
        """The latest pull position, or the stored offset, or NO_OFFSET. Mirrors queryPullOffset."""
        pulled = self.pull_offset_table.get(_key(topic, group), {}).get(queue_id)
        return self.query(group, topic, queue_id) if pulled is None else pulled

    def to_value(self) -> dict[str, Any]:
        """The content of the file and of GET_ALL_CONSUMER_OFFSET. Java also writes ``groupTopicMap``, never read."""
        groups: dict[str, list[str]] = {}
        for topic, group in self._pairs():
            groups.setdefault(group, []).append(topic)
        return {
            "dataVersion": self.data_version.to_value(),
            "groupTopicMap": groups,
            "offsetTable": {key: dict(queues) for key, queues in self.offset_table.items()},
        }

    def to_json(self) -> bytes:
        """The body of the answer to GET_ALL_CONSUMER_OFFSET."""
        return java_json.to_json(self.to_value())

    def encode(self) -> str:
        """The text of consumerOffset.json."""
        return java_json.pretty(self.to_value())

    def decode(self, text: str) -> None:
        """Use the text of a file. Raises CorruptionError if it is not a table of offsets."""
        version, self.offset_table = _parsed(text)
        self.data_version = version or self.data_version

    def take_over(self, text: str) -> bool:
        """A slave uses its master's offsets (GET_ALL_CONSUMER_OFFSET): each topic@group of the answer replaces its own,
        also backwards; other offsets stay. Raises CorruptionError. Mirrors SlaveSynchronize.syncConsumerOffset.
        """
        version, table = _parsed(text)
        before = dict(self.offset_table)
        self.offset_table.update(table)
        self.data_version = version or self.data_version
        changed = self.offset_table != before
        if changed:
            self.changed()
        return changed

    def _pairs(self) -> list[tuple[str, str]]:
        """(topic, group) of each key; keys of broadcasting groups have a third part and are left out, as in Java."""
        parts = [key.split(SEPARATOR) for key in self.offset_table]
        return [(pair[0], pair[1]) for pair in parts if len(pair) == 2]

    def _remove(self, concerns: Callable[[str, str], bool]) -> None:
        for table in (self.offset_table, self.reset_offset_table, self.pull_offset_table):
            for key in list(table):
                parts = key.split(SEPARATOR)
                if len(parts) == 2 and concerns(parts[0], parts[1]):
                    del table[key]
        self.changed()

    def __getitem__(self, key: str) -> Mapping[int, int]:
        return self.offset_table[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.offset_table)

    def __len__(self) -> int:
        return len(self.offset_table)

    def __repr__(self) -> str:
        return f"<ConsumerOffsetTable: {len(self.offset_table)} of topic@group, {self._commits} commits>"


def _key(topic: str, group: str) -> str:
    return f"{topic}{SEPARATOR}{group}"


def _parsed(text: str) -> tuple[DataVersion | None, dict[str, Queues]]:
    """Version and offsets of a file's or an answer's text. Raises CorruptionError."""
    try:
        value = java_json.loads(text)
        table = {
            key: {java_json.to_int(queue_id): java_json.to_long(offset) for queue_id, offset in queues.items()}
            for key, queues in java_json.table(value, "offsetTable").items()
        }
        version = java_json.data_of(value, "dataVersion")
        return (DataVersion.from_value(version) if version else None), table
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptionError(
            "consumer offsets cannot be read", expected='{"offsetTable":{"topic@group":{0:5}}}', found=error
        ) from error
