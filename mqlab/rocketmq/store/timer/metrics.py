"""How many timed messages of each topic wait, as RocketMQ counts them.

Mirrors: org.apache.rocketmq.store.timer.TimerMetrics; file ``config/timermetrics``, answer of GET_TIMER_METRICS.

    {"dataVersion":{"counter":36,…},"timingCount":{"orders":{"count":2,"timeStamp":1795737477078}}}

The counts drift: a message that is put into the wheel counts +1 and -1 when it leaves, a recall marker -1 and later +1,
and a message that was recalled never leaves. Several recalls make a count negative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.bodies import DataVersion


class TimerMetrics:
    """Real topic -> how many of its messages wait, and when that last changed (ms)."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._counts: dict[str, tuple[int, int]] = {}
        self.data_version = DataVersion.at(now_ms())

    def add(self, topic: str, change: int) -> None:
        """Count a message that entered or left the wheel. Mirrors addAndGet."""
        now_ms = self._now_ms()
        self._counts[topic] = (self._counts.get(topic, (0, 0))[0] + change, now_ms)
        self.data_version = self.data_version.next(now_ms)

    def count(self, topic: str) -> int:
        """How many messages of a topic wait, by RocketMQ's count."""
        return self._counts.get(topic, (0, 0))[0]

    def to_value(self) -> dict[str, Any]:
        """The content of the file and of the answer to GET_TIMER_METRICS."""
        counts = {topic: {"count": count, "timeStamp": time_ms} for topic, (count, time_ms) in self._counts.items()}
        return {"dataVersion": self.data_version.to_value(), "timingCount": counts}

    def encode(self) -> str:
        """The text of the file: one line."""
        return java_json.to_json(self.to_value()).decode("utf-8")

    def decode(self, text: str) -> None:
        """Use the counts of a file or of the master's answer. Raises CorruptionError."""
        try:
            value = java_json.loads(text)
            self._counts = {
                topic: (int(entry["count"]), int(entry["timeStamp"])) for topic, entry in value["timingCount"].items()
            }
            version = value.get("dataVersion")
            self.data_version = DataVersion.from_value(version) if version else self.data_version
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptionError(
                "timer metrics cannot be read", expected='{"timingCount":{"orders":{"count":1,…}}}', found=error
            ) from error

    def __repr__(self) -> str:
        return f"<TimerMetrics {self._counts}>"
