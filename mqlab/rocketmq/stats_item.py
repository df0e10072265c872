"""A counter that reports what was counted in the last minute, hour and day, without a timer of its own.

Mirrors: StatsItem and StatsSnapshot.

    list     sampled every   kept samples   window when full
    minute   10 s            7              60 s
    hour     10 min          7              60 min
    day      1 h             25             24 h

    sum = last sample - first sample,  tps = sum per second between them,  avgpt = sum per time counted

RocketMQ samples on timers. A counter changes only when something is counted, so here the samples that were due since
the last change are written at the next change or look: the same numbers without a timer.
"""

from __future__ import annotations

from dataclasses import dataclass

MINUTE_MS, HOUR_MS, DAY_MS = 10_000, 600_000, 3_600_000  # the period of each list's samples
KEPT = {MINUTE_MS: 7, HOUR_MS: 7, DAY_MS: 25}


@dataclass(frozen=True, slots=True)
class StatsSnapshot:
    """What was counted within a window: ``sum``, ``tps`` per second, ``avgpt`` per time counted."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


class StatsItem:
    """One counter; ``value`` and ``times`` only grow. ``origin_ms``: when the sampling of all its like began.

    >>> item = StatsItem(0, 0)
    >>> for second in range(0, 60, 10): item.add(8, 1, second * 1000)
    >>> item.snapshot(MINUTE_MS, 59_999).sum
    48
    """

    __slots__ = ("_due_ms", "_next_ms", "_samples", "times", "value")

    def __init__(self, origin_ms: int, now_ms: int) -> None:
        self.value = 0
        self.times = 0
        self._samples: dict[int, list[tuple[int, int, int]]] = {period_ms: [] for period_ms in KEPT}
        self._next_ms = {period_ms: now_ms + (origin_ms - now_ms) % period_ms for period_ms in KEPT}
        self._due_ms = min(self._next_ms.values())  # the first sample that is not written yet

    def add(self, value: int, times: int, now_ms: int) -> None:
        """Count ``value`` (messages, bytes or ms), which came ``times`` times."""
        if now_ms > self._due_ms:
            self._catch_up(now_ms, with_now=False)
        self.value += value
        self.times += times

    def snapshot(self, period_ms: int, now_ms: int, *, with_now: bool = True) -> StatsSnapshot:
        """The window of one list (MINUTE_MS, HOUR_MS or DAY_MS); all zero before its first sample.

        ``with_now`` says whether a sample that is due in this very ms was taken already.
        """
        self._catch_up(now_ms, with_now=with_now)
        samples = self._samples[period_ms]
        if not samples:
            return StatsSnapshot()
        # The first and the last sample are never the same one: the first catch-up writes two.
        (first_ms, first_value, first_times), (last_ms, last_value, last_times) = samples[0], samples[-1]
        total, times = last_value - first_value, last_times - first_times
        return StatsSnapshot(total, total * 1000 / (last_ms - first_ms), total / times if times else 0.0)

    def _catch_up(self, now_ms: int, *, with_now: bool) -> None:
        """Write the samples that were due since the last change."""
        for period_ms, samples in self._samples.items():
            due_ms, kept = self._next_ms[period_ms], KEPT[period_ms]
            last_ms = now_ms if with_now else now_ms - 1
            missed = max((last_ms - due_ms) // period_ms + 1, 0)
            if missed and not samples:
                samples.append((due_ms - period_ms, 0, 0))  # the counter was 0 one period before its first sample
            # Only the youngest samples are kept, and all that were missed have the value of now.
            for number in range(max(missed - kept, 0), missed):
                samples.append((due_ms + number * period_ms, self.value, self.times))
            del samples[: max(len(samples) - kept, 0)]
            self._next_ms[period_ms] = due_ms + missed * period_ms
        self._due_ms = min(self._next_ms.values())
