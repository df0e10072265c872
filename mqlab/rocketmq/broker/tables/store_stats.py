"""How busy the store is: puts and gets per second over 10, 60 and 600 seconds.

Mirrors: StoreStatsService, what mqadmin brokerStatus and clusterList show.

    putTps "0.5 0.42 "     over the last 10 samples, over 60; there are no 600 samples yet

RocketMQ samples every second on a thread. Here a counter remembers its value at the end of each second in which it
grew: the same numbers without a timer. put_times has how long puts took.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from mqlab.rocketmq.broker.tables.put_times import PutTimes

WINDOWS = (10, 60, 600)
SAMPLE_MS = 1_000


class Sampled:
    """A number that only grows, sampled every second. Times in ms.

    >>> puts = Sampled(0); puts.add(20, 1_100); puts.rates(10_999), puts.rates(11_500), puts.rates(12_500)
    ('  ', '2.0  ', '0.0  ')
    """

    def __init__(self, began_ms: int) -> None:
        self._began_ms = began_ms
        self._samples: list[int] = []  # the numbers of the samples at which it had grown, ascending
        self._totals: list[int] = []
        self.total = 0

    def add(self, count: int, now_ms: int) -> None:
        """Add to the number; the next sample has it."""
        self.total += count
        sample = (now_ms - self._began_ms) // SAMPLE_MS + 1
        if self._samples and self._samples[-1] == sample:
            self._totals[-1] = self.total
            return
        self._samples.append(sample)
        self._totals.append(self.total)
        if len(self._samples) > 2 * WINDOWS[-1]:
            old = max(bisect_right(self._samples, sample - WINDOWS[-1] - 2) - 1, 0)
            del self._samples[:old], self._totals[:old]

    def rates(self, now_ms: int, missing: str = "") -> str:
        """The average per second over each window, separated by blanks; ``missing`` for a window that is not full."""
        last = (now_ms - self._began_ms) // SAMPLE_MS  # samples 1 … last are taken
        rates = []
        for window in WINDOWS:
            grown = self._at(last) - self._at(last - window)
            rates.append(str(grown / window) if last > window else missing)
        return " ".join(rates)

    def _at(self, sample: int) -> int:
        index = bisect_right(self._samples, sample) - 1
        return self._totals[index] if index >= 0 else 0


class StoreStats:
    """The counters of one store, lost at a restart. ``table`` is what GET_BROKER_RUNTIME_INFO shows of them."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        began_ms = now_ms()
        self.puts = Sampled(began_ms)
        self.put_bytes = 0
        self.failed = 0
        self.dispatched = 0  # messages that a slave has copied; it puts nothing itself
        self.found = Sampled(began_ms)
        self.missed = Sampled(began_ms)
        self.asked = Sampled(began_ms)
        self.transferred = Sampled(began_ms)
        self.put_times = PutTimes(began_ms)

    def put(self, messages: int, size: int, now_ms: int) -> None:
        """Count a put that was stored: the number of messages, and their bytes in all."""
        self.puts.add(messages, now_ms)
        self.put_bytes += size
        self.put_times.put(now_ms)

    def waited(self, put_ms: int) -> None:
        """The put of ``put_ms`` has been flushed and copied as configured now."""
        self.put_times.waited(put_ms, self._now_ms())

    def got(self, messages: int) -> None:
        """Count a get and the messages that it found."""
        now_ms = self._now_ms()
        self.asked.add(1, now_ms)
        (self.found if messages else self.missed).add(1, now_ms)
        if messages:
            self.transferred.add(messages, now_ms)

    def table(self) -> dict[str, object]:
        """Names and values as RocketMQ shows them. A store without a put reports one put, as RocketMQ does."""
        now_ms = self._now_ms()
        times = max(self.puts.total, 1)
        return {
            "putTps": self.puts.rates(now_ms),
            "getFoundTps": self.found.rates(now_ms),
            "getMissTps": self.missed.rates(now_ms),
            "getTotalTps": self.asked.rates(now_ms, missing="0.0"),
            "getTransferredTps": self.transferred.rates(now_ms),
            "putMessageTimesTotal": times,
            "putMessageSizeTotal": self.put_bytes,
            "putMessageAverageSize": self.put_bytes / times,
            "putMessageFailedTimes": self.failed,
            "putMessageDistributeTime": self.put_times.classes(now_ms),
            "putMessageEntireTimeMax": self.put_times.longest_ms,
            "putLatency99": f"{self.put_times.latency(0.99, now_ms):.2f}",
            "putLatency999": f"{self.put_times.latency(0.999, now_ms):.2f}",
            "getMessageEntireTimeMax": 0,  # a get takes no virtual time
        }

    def __repr__(self) -> str:
        return f"<StoreStats: {self.puts.total} puts, {self.asked.total} gets>"
