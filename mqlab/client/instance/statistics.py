"""What a consumer counts about itself: pulls, deliveries, times, per minute, hour and day.

Mirrors: StatsItem, StatsItemSet, ConsumerStatsManager, ConsumeStatus. Lab 09 reads them.

    list     sampled every   kept points   window when full
    minute   10 s            7             60 s
    hour     10 min          7             60 min
    day      1 h             25            24 h

    sum = last - first point,  tps = sum per second between them,  avgpt = sum per time counted

A counter changes only when something is counted, so the samples between two changes are written when somebody looks:
the numbers are those of a sampler that ticks, without its events.
Left out: the log lines at each full minute, hour and day.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.ports import Clock

MINUTE_MS, HOUR_MS, DAY_MS = 10_000, 600_000, 3_600_000
KEPT = {MINUTE_MS: 7, HOUR_MS: 7, DAY_MS: 25}


@dataclass(frozen=True, slots=True)
class StatsSnapshot:
    """A window's answer: ``sum`` counted, ``tps`` per second, ``avgpt`` per time counted."""

    sum: int
    tps: float
    avgpt: float


@dataclass(frozen=True, slots=True)
class ConsumeStatus:
    """One topic of one group. Times in ms, rates per second. Mirrors ConsumeStatus."""

    pull_rt: float
    pull_tps: float
    consume_rt: float
    consume_ok_tps: float
    consume_failed_tps: float
    consume_failed_msgs: int


class StatsItem:
    """One counter with its three lists of samples. ``origin_ms``: when its set began to tick."""

    __slots__ = ("_due_ms", "_next_ms", "_points", "origin_ms", "times", "value")

    def __init__(self, origin_ms: int, now_ms: int) -> None:
        self.origin_ms = origin_ms
        self.value = 0
        self.times = 0
        self._points: dict[int, list[tuple[int, int, int]]] = {period: [] for period in KEPT}
        self._next_ms = {period: now_ms + (origin_ms - now_ms) % period for period in KEPT}
        self._due_ms = min(self._next_ms.values())  # the first sample that is not written yet

    def add(self, value: int, times: int, now_ms: int) -> None:
        """Count. ``value`` may be messages or ms."""
        if now_ms > self._due_ms:
            self._catch_up(now_ms, inclusive=False)
        self.value += value
        self.times += times

    def snapshot(self, period_ms: int, now_ms: int) -> StatsSnapshot:
        """The window of one list (MINUTE_MS, HOUR_MS or DAY_MS) as of now."""
        self._catch_up(now_ms, inclusive=True)
        points = self._points[period_ms]
        if not points:
            return StatsSnapshot(0, 0.0, 0.0)
        (first_ms, first_value, first_times), (last_ms, last_value, last_times) = points[0], points[-1]
        total, times = last_value - first_value, last_times - first_times
        return StatsSnapshot(total, total * 1000 / (last_ms - first_ms), total / times if times else 0.0)

    def _catch_up(self, now_ms: int, *, inclusive: bool) -> None:
        """Write the samples that were due since the last change."""
        for period, points in self._points.items():
            due_ms, keep = self._next_ms[period], KEPT[period]
            missed = (now_ms - due_ms) // period + 1 - (0 if inclusive or (now_ms - due_ms) % period else 1)
            if missed > keep:  # only the youngest points survive, and all of them show today's value
                if not points:
                    points.append((due_ms - period, 0, 0))
                due_ms += (missed - keep) * period
                missed = keep
            for _ in range(missed):
                if not points:
                    points.append((due_ms - period, 0, 0))
                points.append((due_ms, self.value, self.times))
                due_ms += period
            del points[: max(len(points) - keep, 0)]
            self._next_ms[period] = due_ms
        self._due_ms = min(self._next_ms.values())


PULL_RT, PULL_TPS = "PULL_RT", "PULL_TPS"
CONSUME_RT, CONSUME_OK_TPS, CONSUME_FAILED_TPS = "CONSUME_RT", "CONSUME_OK_TPS", "CONSUME_FAILED_TPS"


class ConsumerStatistics:
    """All counters of one client instance, by name and ``topic@group``. Mirrors ConsumerStatsManager."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._origin_ms = clock.now_ms()
        self._items: dict[tuple[str, str], StatsItem] = {}

    def count(self, name: str, group: str, topic: str, value: int) -> None:
        """Add ``value`` (messages, or ms for the two RT counters) once."""
        now_ms = self._clock.now_ms()
        key = (name, f"{topic}@{group}")
        item = self._items.get(key)
        if item is None:
            item = self._items[key] = StatsItem(self._origin_ms, now_ms)
        item.add(value, 1, now_ms)

    def snapshot(self, name: str, group: str, topic: str, period_ms: int = MINUTE_MS) -> StatsSnapshot:
        """One counter's window; zeros when nothing was counted."""
        item = self._items.get((name, f"{topic}@{group}"))
        return StatsSnapshot(0, 0.0, 0.0) if item is None else item.snapshot(period_ms, self._clock.now_ms())

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
