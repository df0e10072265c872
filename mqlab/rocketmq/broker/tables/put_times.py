"""How long puts took until they were flushed and copied: counts by class, and percentiles.

Mirrors: putMessageDistributeTime and findPutMessageEntireTimePX of StoreStatsService (GET_BROKER_RUNTIME_INFO).

    class      [<=0ms] [0~10ms] [10~50ms] … [5~10s] [10s~]       both of the last whole minute since the start
    latency    buckets of 1, 2, 5, 10, 50, 100, 1000 ms          interpolated within a bucket
    maximum    since the start

A put without a wait takes 0 ms, because the code of a node takes no virtual time. RocketMQ ends a minute on a
thread; here it ends when a put or a read comes.
Left out: the log line of each minute.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from itertools import pairwise

MINUTE_MS = 60_000
CLASSES = (
    "[<=0ms]",
    "[0~10ms]",
    "[10~50ms]",
    "[50~100ms]",
    "[100~200ms]",
    "[200~500ms]",
    "[500ms~1s]",
    "[1~2s]",
    "[2~3s]",
    "[3~4s]",
    "[4~5s]",
    "[5~10s]",
    "[10s~]",
)
CLASS_BEGINS_MS = (1, 10, 50, 100, 200, 500, 1_000, 2_000, 3_000, 4_000, 5_000, 10_000)
"""Where the second class begins, the third, and so on. The second one is called 0~10ms and begins at 1 ms."""


def _bucket_ends() -> tuple[int, ...]:
    ends = [0]
    for width, count in ((1, 20), (2, 15), (5, 10), (10, 10), (50, 6), (100, 5), (1_000, 9)):
        ends += [ends[-1] + width * step for step in range(1, count + 1)]
    return tuple(ends[1:])


BUCKET_ENDS_MS = _bucket_ends()
"""1, 2, … 20, 22, … 50, 55, … up to 10 000: the longest time that counts in each bucket."""


class PutTimes:
    """Times of puts, in minutes counted from ``began_ms``. ``longest_ms``: since the start.

    >>> times = PutTimes(0); times.put(10); times.put(20); times.waited(20, 25)
    >>> times.classes(60_000)[:22], times.longest_ms, times.latency(0.99, 60_000)
    ('[<=0ms]:1 [0~10ms]:1 [', 5, 1.0)
    """

    def __init__(self, began_ms: int) -> None:
        self._began_ms = began_ms
        self._minute = 0
        self._counts: dict[int, int] = {}  # ms -> how many puts took that
        self._last_minute: dict[int, int] | None = None
        self.longest_ms = 0

    def put(self, now_ms: int) -> None:
        """Count a put; it took no time unless ``waited`` reports a time later."""
        self._turn(now_ms)
        self._counts[0] = self._counts.get(0, 0) + 1

    def waited(self, put_ms: int, now_ms: int) -> None:
        """The put of ``put_ms`` has been flushed and copied now."""
        took_ms = now_ms - put_ms
        if took_ms <= 0:
            return
        self._turn(now_ms)
        if self._minute_of(put_ms) == self._minute:
            self._counts[0] -= 1
        self._counts[took_ms] = self._counts.get(took_ms, 0) + 1
        self.longest_ms = max(self.longest_ms, took_ms)

    def classes(self, now_ms: int) -> str:
        """The counts of the last minute as RocketMQ writes them; ``null`` before the first minute has ended."""
        self._turn(now_ms)
        if self._last_minute is None:
            return "null"
        counts = [0] * len(CLASSES)
        for took_ms, count in self._last_minute.items():
            counts[bisect_right(CLASS_BEGINS_MS, took_ms)] += count
        return "".join(f"{name}:{count} " for name, count in zip(CLASSES, counts, strict=True))

    def latency(self, share: float, now_ms: int) -> float:
        """The time in ms that this share of the last minute's puts did not exceed; more than 10 s counts as 10 s."""
        self._turn(now_ms)
        counts = [0] * len(BUCKET_ENDS_MS)
        for took_ms, count in (self._last_minute or {}).items():
            counts[min(bisect_left(BUCKET_ENDS_MS, took_ms), len(counts) - 1)] += count
        rank, passed = math.floor(sum(counts) * share), 0
        for (begin_ms, end_ms), count in zip(pairwise((0, *BUCKET_ENDS_MS)), counts, strict=True):
            if rank <= passed + count:
                return begin_ms + ((end_ms - begin_ms) * (rank - passed) / count if count else 0.0)
            passed += count
        return float(BUCKET_ENDS_MS[-1])

    def _minute_of(self, at_ms: int) -> int:
        return (at_ms - self._began_ms) // MINUTE_MS

    def _turn(self, now_ms: int) -> None:
        """Begin another minute when one is over."""
        minute = self._minute_of(now_ms)
        if minute != self._minute:
            self._last_minute = self._counts if minute == self._minute + 1 else {}
            self._counts = {}
            self._minute = minute

    def __repr__(self) -> str:
        return f"<PutTimes: longest {self.longest_ms} ms>"
