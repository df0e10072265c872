"""What a consumer counts about itself: pulls, deliveries and times, each per minute, hour and day.

Mirrors: StatsItemSet, ConsumerStatsManager, ConsumeStatus. The counters are those of mqlab.rocketmq.stats_item.

Left out: the log lines at each full minute, hour and day.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.rocketmq.ports import Clock
from mqlab.rocketmq.stats_item import HOUR_MS, MINUTE_MS, StatsItem, StatsSnapshot


@dataclass(frozen=True, slots=True)
class ConsumeStatus:
    """One topic of one group. Times in ms, rates per second. Mirrors ConsumeStatus."""

    pull_rt: float
    pull_tps: float
    consume_rt: float
    consume_ok_tps: float
    consume_failed_tps: float
    consume_failed_msgs: int


PULL_RT, PULL_TPS = "PULL_RT", "PULL_TPS"
CONSUME_RT, CONSUME_OK_TPS, CONSUME_FAILED_TPS = "CONSUME_RT", "CONSUME_OK_TPS", "CONSUME_FAILED_TPS"


class ConsumerStatistics:
    """All counters of one client instance, by name, topic and group. Mirrors ConsumerStatsManager."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._origin_ms = clock.now_ms()
        self._items: dict[tuple[str, str, str], StatsItem] = {}

    def count(self, name: str, group: str, topic: str, value: int, now_ms: int) -> None:
        """Add ``value`` (messages, or ms for the two RT counters) once."""
        key = (name, topic, group)
        try:
            item = self._items[key]
        except KeyError:
            item = self._items[key] = StatsItem(self._origin_ms, now_ms)
        item.add(value, 1, now_ms)

    def snapshot(self, name: str, group: str, topic: str, period_ms: int = MINUTE_MS) -> StatsSnapshot:
        """One counter's window; zeros when nothing was counted."""
        item = self._items.get((name, topic, group))
        return StatsSnapshot() if item is None else item.snapshot(period_ms, self._clock.now_ms())

    def consume_status(self, group: str, topic: str) -> ConsumeStatus:
        """What mqadmin shows of a topic. consume_rt is the hour's while the minute is empty."""
        consume_rt = self.snapshot(CONSUME_RT, group, topic)
        if consume_rt.sum == 0:
            consume_rt = self.snapshot(CONSUME_RT, group, topic, HOUR_MS)
        return ConsumeStatus(
            pull_rt=self.snapshot(PULL_RT, group, topic).avgpt,
            pull_tps=self.snapshot(PULL_TPS, group, topic).tps,
            consume_rt=consume_rt.avgpt,
            consume_ok_tps=self.snapshot(CONSUME_OK_TPS, group, topic).tps,
            consume_failed_tps=self.snapshot(CONSUME_FAILED_TPS, group, topic).tps,
            consume_failed_msgs=self.snapshot(CONSUME_FAILED_TPS, group, topic, HOUR_MS).sum,
        )

    def __repr__(self) -> str:
        return f"<ConsumerStatistics {len(self._items)} counters>"
