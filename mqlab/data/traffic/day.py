"""The day: how many orders come in each minute, and when order number n is created.

    hour       0   1   2 ...  8 ...  12 ... 20  21 ... 23       a wave with a lunch hill and an evening mountain
    weight    30  20  14 ... 60 ... 110 .. 170 150 ... 50       per hour, straight lines in between
    burst     a few minutes count several times as much

    order ──▶ minute (the table of orders before each minute) ──▶ place in the minute ──▶ ms

Left out: a curve within the minute; orders come at random moments there, but in their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mqlab.data.traffic.draws import Array, below

HOURLY = (30, 20, 14, 10, 9, 12, 24, 42, 60, 78, 90, 104, 110, 96, 88, 84, 88, 100, 124, 152, 170, 150, 104, 50)
MINUTES = 24 * 60
MINUTE_MS = 60_000
DAY_MS = MINUTES * MINUTE_MS


@dataclass(frozen=True, slots=True)
class Burst:
    """``factor`` times as many orders from one minute of the day on, for some minutes."""

    minute: int
    minutes: int
    factor: int


class OrdersDay:
    """One broker's ``orders`` over a day that begins at ``start_ms``; times are ms since the epoch.

    >>> day = OrdersDay(0, 10_000, (Burst(600, 10, 6),))
    >>> int(day.time_ms(np.array([0]))[0]), day.orders_before(DAY_MS)
    (0, 10000)
    """

    def __init__(self, start_ms: int, orders: int, bursts: tuple[Burst, ...] = ()) -> None:
        minutes = np.arange(MINUTES)
        hour, within = minutes // 60, minutes % 60
        hourly = np.array(HOURLY, np.int64)
        weights = hourly[hour] * (60 - within) + hourly[(hour + 1) % 24] * within
        for burst in bursts:
            weights[burst.minute : burst.minute + burst.minutes] *= burst.factor
        summed = np.concatenate(([0], np.cumsum(weights)))
        self.start_ms, self.end_ms, self.orders = start_ms, start_ms + DAY_MS, orders
        self._before = summed * orders // summed[-1]

    def time_ms(self, orders: Array, bits: Array | None = None) -> Array:
        """When these orders (0 and up, int64; beyond the last: the end of the day) are created.

        Without ``bits``: the earliest time. Random bits move each order towards the next one, never past it.
        """
        minute = np.searchsorted(self._before, orders, side="right") - 1
        minute = np.minimum(minute, MINUTES - 1)
        # A minute is divided evenly among its orders.
        first = self._before[minute]
        counts = np.maximum(1, self._before[minute + 1] - first)
        passed_ms = np.minimum((orders - first) * MINUTE_MS // counts, MINUTE_MS - 1)
        if bits is not None:
            passed_ms += below(bits, 0, 32, 1 << 20) * (MINUTE_MS // counts) >> 20
        times: Array = self.start_ms + minute * MINUTE_MS + passed_ms
        return times

    def orders_before(self, passed_ms: int) -> int:
        """How many orders are created in the first ``passed_ms`` of the day."""
        minute, rest = divmod(min(max(passed_ms, 0), DAY_MS), MINUTE_MS)
        if minute >= MINUTES:
            return self.orders
        first, after = int(self._before[minute]), int(self._before[minute + 1])
        return first + (after - first) * rest // MINUTE_MS

    def __repr__(self) -> str:
        return f"<Day of {self.orders} orders from {self.start_ms}>"
