"""How many half messages of each topic have not been ended.

Mirrors: TransactionMetrics; file config/transactionMetrics, the one without indentation.

    topic     count   time of the last change
    payments  2       12:00:01.500
"""

from __future__ import annotations

import json
from collections.abc import Callable

from mqlab.errors import CorruptionError
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.bodies import DataVersion


class TransactionMetrics:
    """The number of open half messages by real topic. Mirrors TransactionMetrics."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.changed: Signal[[]] = Signal()
        self._counts: dict[str, tuple[int, int]] = {}
        self.data_version = DataVersion.at(now_ms())

    @property
    def total(self) -> int:
        """Open half messages of all topics."""
        return sum(count for count, _ in self._counts.values())

    def count(self, topic: str) -> int:
        """Open half messages of one topic."""
        return self._counts.get(topic, (0, 0))[0]

    def add(self, topic: str, change: int) -> None:
        """Change the number of a topic: +1 for a new half message, -1 for an ended one."""
        now_ms = self._now_ms()
        self._counts[topic] = self.count(topic) + change, now_ms
        self.data_version = self.data_version.next(now_ms)
        self.changed()

    def encode(self) -> str:
        """The text of transactionMetrics."""
        counts = {topic: {"count": count, "timeStamp": at_ms} for topic, (count, at_ms) in self._counts.items()}
        value = {"dataVersion": self.data_version.to_value(), "transactionCount": counts}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def decode(self, text: str) -> None:
        """Use the counts of a file. Raises CorruptionError."""
        try:
            value = java_json.loads(text)
            self._counts = {
                topic: (java_json.to_long(entry["count"]), java_json.to_long(entry["timeStamp"]))
                for topic, entry in java_json.table(value, "transactionCount").items()
            }
            version = java_json.data_of(value, "dataVersion")
            self.data_version = DataVersion.from_value(version) if version else self.data_version
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptionError(
                "transaction metrics cannot be read", expected='{"transactionCount":{…}}', found=error
            ) from error

    def __repr__(self) -> str:
        return f"<TransactionMetrics: {self.total} open>"
