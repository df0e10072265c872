"""Axes: round ticks for counts, durations and times of day, and how numbers are written next to them.

    count   0  500  1,000  1.2 M          duration   1 ms  10 ms  1 s  5 min  2 h          time   06:00  09:00

The pictures of notebooks (mqlab.lab.views) and of the Spark report use it.
Left out: time zones: brokers' times are shown in UTC.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from mqlab.durations import UNITS_MS

SECOND, MINUTE, HOUR, DAY = (UNITS_MS[unit] for unit in ("s", "m", "h", "d"))
TIME_STEPS_MS = (
    SECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    30 * MINUTE,
    HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    7 * DAY,
)
MOST_TIME_TICKS = 9
MOST_POWERS = 7
MOST_SPANS = 8


def count_text(value: float) -> str:
    """A number in short form, as a reader says it.

    >>> count_text(7), count_text(12_345), count_text(1_234_567), count_text(0.25)
    ('7', '12,345', '1.23 M', '0.25')
    """
    if value >= 10_000_000:
        return f"{value / 1e6:,.1f} M"
    if value >= 1_000_000:
        return f"{value / 1e6:.2f} M"
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:.2f}"


def tick_text(value: float) -> str:
    """A number next to an axis: whole numbers in short form, small and very large ones as powers of ten.

    >>> tick_text(1000), tick_text(0.5), tick_text(0.001), tick_text(10**9)
    ('1,000', '0.5', '0.001', '1e+09')
    """
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e7 else f"{value:.3g}"


def bytes_text(value: float) -> str:
    """Bytes in the largest unit that fits.

    >>> bytes_text(512), bytes_text(3 << 20)
    ('512 B', '3.0 MiB')
    """
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    power = min(int(math.log(max(value, 1), 1024)), len(units) - 1)
    return f"{value:.0f} B" if power == 0 else f"{value / 1024**power:.1f} {units[power]}"


def time_text(time_ms: int, step_ms: int = MINUTE) -> str:
    """A time of day, with seconds or a date where the step asks for them.

    >>> time_text(1_731_319_200_000), time_text(1_731_319_200_000, 1_000), time_text(1_731_319_200_000, DAY)
    ('10:00', '10:00:00', '11 Nov')
    """
    moment = datetime.fromtimestamp(time_ms / 1000, tz=UTC)
    return f"{moment:%d %b}" if step_ms >= DAY else f"{moment:%H:%M:%S}" if step_ms < MINUTE else f"{moment:%H:%M}"


def date_time_text(time_ms: float) -> str:
    """A time in UTC with its date, to the second.

    >>> date_time_text(1_731_319_200_999)
    '2024-11-11 10:00:00'
    """
    return f"{datetime.fromtimestamp(time_ms // 1_000, tz=UTC):%Y-%m-%d %H:%M:%S}"


@dataclass(frozen=True, slots=True)
class Scale:
    """A value axis from ``low`` to ``high`` with its ticks, linear or logarithmic."""

    low: float
    high: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def part(self, value: float) -> float:
        """The position of a value: 0 at the low end and 1 at the high end."""
        if self.logarithmic:
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def up_to(self, most: float) -> Scale:
        """Returns the linear axis without what is beyond ``most``: 24 hours end at 24, not at 30."""
        ticks = tuple(tick for tick in self.ticks if tick <= most)
        return self if self.logarithmic or len(ticks) < 2 else Scale(self.low, most, ticks)


def linear(most: float) -> Scale:
    """From 0 to a round number not below ``most``, in three to five steps.

    >>> linear(37).ticks
    (0, 10, 20, 30, 40)
    """
    most = max(most, 1)
    rough = most / 4
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    step = max(step, 1) if most >= 4 else step
    steps = math.ceil(most / step)
    return Scale(0, steps * step, tuple(number * step for number in range(steps + 1)))


def powers(least: float, most: float) -> Scale:
    """A logarithmic axis of numbers above 0, with a tick at each power of ten (at most eight of them).

    >>> powers(1, 2500).ticks
    (1, 10, 100, 1000, 10000)
    """
    least = max(least, 1e-12)
    first = math.floor(math.log10(least) + 1e-9)
    last = max(math.ceil(math.log10(max(most, least)) - 1e-9), first + 1)
    step = -(-(last - first) // MOST_POWERS)
    ticks = tuple(10**power for power in range(first, last + step, step))
    return Scale(ticks[0], ticks[-1], ticks, logarithmic=True)


def durations(least_ms: float, most_ms: float) -> Scale:
    """A logarithmic axis of durations, with ticks at usual units such as 1 s and 5 min.

    >>> durations(20, 900).ticks
    (10, 100, 1000)
    """
    words = (1, 10, 100, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY)
    least_ms, most_ms = max(least_ms, 1), max(most_ms, 2)
    low = max((word for word in words[:-1] if word <= least_ms), default=words[0])
    high = next((word for word in words if word >= most_ms and word > low), most_ms)
    return Scale(low, high, tuple(word for word in words if low <= word <= high), logarithmic=True)


def spans(most_ms: float) -> Scale:
    """A linear axis of durations from 0 to not below ``most_ms``, in at most eight steps of usual lengths.

    >>> spans(9_000).ticks, spans(17_000_000).ticks[:2]
    ((0, 5000, 10000), (0, 3600000))
    """
    steps = (1, 5, 10, 50, 100, 500, *TIME_STEPS_MS)
    most_ms = max(most_ms, 1)
    step = next((step for step in steps if most_ms / step <= MOST_SPANS), 7 * DAY * -(-int(most_ms) // (56 * DAY)))
    count = max(-(-math.ceil(most_ms) // step), 1)
    return Scale(0, count * step, tuple(number * step for number in range(count + 1)))


def time_ticks(start_ms: int, end_ms: int) -> tuple[list[int], int]:
    """Round times in between, at most MOST_TIME_TICKS, and the step between them."""
    long = max(end_ms - start_ms, 1)
    step = next((step for step in TIME_STEPS_MS if long / step <= MOST_TIME_TICKS), TIME_STEPS_MS[-1])
    return list(range(-(-start_ms // step) * step, end_ms + 1, step)), step


Writer = Callable[[float], str]
