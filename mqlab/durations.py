"""Durations as people write them: "200ms", "10s", "5m", "1h", "2d", or a plain number of milliseconds.

Mirrors: the units of RocketMQ's messageDelayLevel (s, m, h, d), with ms added. Every lab uses them.

    "1s" -> 1000      "4h" -> 14_400_000      250 -> 250      "1.5s" -> 1500

Left out: months, and sums such as "1h30m".
"""

from __future__ import annotations

import re

from mqlab.errors import UsageError

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*")


def milliseconds(duration: str | int | float) -> int:
    """The duration in whole ms, rounded half up. Raises UsageError when it is no duration or below zero.

    >>> milliseconds("1h"), milliseconds("200ms"), milliseconds(250), milliseconds("1.5s")
    (3600000, 200, 250, 1500)
    """
    if isinstance(duration, str):
        match = _PATTERN.fullmatch(duration)
        if match is None:
            raise UsageError(
                f"{duration!r} is not a duration", hint='write "200ms", "10s", "5m", "1h" or a number of ms'
            )
        return int(float(match[1]) * UNITS_MS[match[2]] + 0.5)
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        raise UsageError(f"{duration!r} is not a duration", hint='write "200ms", "10s", "5m", "1h" or a number of ms')
    if duration < 0:
        raise UsageError(f"a duration cannot be negative: {duration!r}")
    return int(duration + 0.5)
