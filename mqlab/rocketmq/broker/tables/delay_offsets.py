"""How far the delivery of each delay level has come.

Mirrors: the offset table of ScheduleMessageService; file config/delayOffset.json.

    level    offset of the next entry to look at in queue (level - 1) of SCHEDULE_TOPIC_XXXX
    3        41
    4        7
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.tables.table import BrokerTable
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.bodies import DataVersion


class DelayOffsetTable(BrokerTable[int, int]):
    """Delay level -> the next queue offset to look at in that level's queue. Part of ScheduleMessageService."""

    def __init__(self, now_ms: Callable[[], int], *, version_step: int) -> None:
        self._now_ms = now_ms
        self._version_step = version_step
        self.changed: Signal[[]] = Signal()
        self._updates = 0
        self._entries: dict[int, int] = {}
        self.data_version = DataVersion.at(now_ms())

    def update(self, level: int, queue_offset: int) -> None:
        """Remember the next offset of a level."""
        self._updates += 1
        if self._updates % self._version_step == 0:
            self.data_version = self.data_version.next(self._now_ms())
        if self._entries.get(level) != queue_offset:
            self._entries[level] = queue_offset
            self.changed()

    def correct(self, level: int, queue_offset: int) -> None:
        """Set a level to an offset that its queue has. This does not count for the data version."""
        self._entries[level] = queue_offset
        self.changed()

    def to_value(self) -> dict[str, Any]:
        """The content of the file and of the answer to GET_ALL_DELAY_OFFSET."""
        return {"dataVersion": self.data_version.to_value(), "offsetTable": dict(self._entries)}

    def to_json(self) -> bytes:
        """The body of the answer to GET_ALL_DELAY_OFFSET."""
        return java_json.to_json(self.to_value())

    def encode(self) -> str:
        """The text of delayOffset.json."""
        return java_json.pretty(self.to_value())

    def decode(self, text: str) -> None:
        """Use the offsets of a file; other levels stay. Raises CorruptionError."""
        try:
            value = java_json.loads(text)
            table = java_json.table(value, "offsetTable")
            self._entries = self._entries | {
                java_json.to_int(level): java_json.to_long(offset) for level, offset in table.items()
            }
            version = java_json.data_of(value, "dataVersion")
            self.data_version = DataVersion.from_value(version) if version else self.data_version
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptionError(
                "delay offsets cannot be read", expected='{"offsetTable":{1:10}}', found=error
            ) from error

    def take_over(self, text: str) -> bool:
        """A slave uses its master's offsets (GET_ALL_DELAY_OFFSET); False if it has them already.

        They may be after the end of the slave's own queues, which follow later; the next start corrects them.
        Raises CorruptionError. Mirrors SlaveSynchronize.syncDelayOffset and loadWhenSyncDelayOffset.
        """
        before = self._entries
        self.decode(text)
        if self._entries != before:
            self.changed()
        return self._entries != before

    def __repr__(self) -> str:
        return f"<DelayOffsetTable {self._entries}>"
