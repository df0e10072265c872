"""The day on which lab 12's exercises take place, and times as the sink of a stream shows them.

NINE        2024-11-11 09:00 UTC, in ms: when the films begin
shown(ms)   "2024-11-11 09:05:00", as mqlab.course.given.lab12.streams writes a timestamp of Spark
"""

from __future__ import annotations

from mqlab.data.traffic.model import FIRST_DAY_MS
from mqlab.scales import HOUR, date_time_text

DAY = "2024-11-11"
NINE = FIRST_DAY_MS + 9 * HOUR
BROKERS = ("broker-a", "broker-b")


def shown(moment_ms: int) -> str:
    """A whole second as text in UTC.

    >>> shown(NINE)
    '2024-11-11 09:00:00'
    """
    return date_time_text(moment_ms)
