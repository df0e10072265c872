"""Durations as people write them: "200ms", "10s", "5m" or "5min", "1h", "2d", or a plain number of ms; and back.

Mirrors: the units of RocketMQ's messageDelayLevel (s, m, h, d), with ms added.

    "1s" -> 1000      "4h" -> 14_400_000      250 -> 250      "1.5s" -> 1500        milliseconds
    61_001 -> "0:01:01.001"                                                         exact_text, for timelines
    90_000 -> "1.5 min"                                                             rounded_text, for reports

    "2026-01-31#23:59:59:999" -> ms since the epoch                                 moment_ms
    ms since the epoch -> "2026-01-31 23:59:59.999"                                 calendar

Left out: months, and sums such as "1h30m".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from mqlab.errors import UsageError

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

TIMES = ("%Y-%m-%d#%H:%M:%S:%f", "%Y-%m-%d#%H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d")

_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)\s*")


def milliseconds(duration: str | int | float) -> int:
    """The duration in whole ms, rounded half up. Raises UsageError when it is not a duration or below zero.

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
    # True is an int to Python, but not a duration.
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        raise UsageError(f"{duration!r} is not a duration", hint='write "200ms", "10s", "5m", "1h" or a number of ms')
    if duration < 0:
        raise UsageError(f"a duration cannot be negative: {duration!r}")
    return int(duration + 0.5)


def exact_text(duration_ms: int) -> str:
    """A duration exact to the millisecond.

    >>> exact_text(12), exact_text(5000), exact_text(61_001)
    ('12 ms', '5 s', '0:01:01.001')
    """
    if duration_ms < 1000:
        return f"{duration_ms} ms"
    seconds, ms = divmod(duration_ms, 1000)
    tail = f".{ms:03d}" if ms else ""
    if seconds < 60:
        return f"{seconds}{tail} s"
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}"


def rounded_text(duration_ms: float) -> str:
    """A duration of three digits in the unit that fits.

    >>> rounded_text(7), rounded_text(1_500), rounded_text(90_000), rounded_text(7_200_000)
    ('7 ms', '1.5 s', '1.5 min', '2 h')
    """
    if duration_ms == 0:
        return "0"
    for unit, name in (("d", "d"), ("h", "h"), ("m", "min"), ("s", "s")):
        if duration_ms >= UNITS_MS[unit]:
            return f"{duration_ms / UNITS_MS[unit]:.3g} {name}"
    return f"{duration_ms:.3g} ms"


def moment_ms(text: str) -> int:
    """A time as ms since the epoch, given as such or in UTC (as mqadmin or tables write it). UsageError for other text.

    >>> moment_ms("2026-01-01#00:00:01:500") - moment_ms("2026-01-01 00:00:00.250"), moment_ms("-1")
    (1250, -1)
    """
    if text.removeprefix("-").isdecimal():
        return int(text)
    for form in TIMES:
        try:
            return round(datetime.strptime(text, form).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
    raise UsageError(
        f"cannot read the time {text!r}", hint="give ms since the epoch, or UTC such as 2026-01-31#23:59:59:999"
    )


def calendar(time_ms: int) -> str:
    """A time as a UTC date with its milliseconds; the bare number where the calendar ends.

    >>> calendar(1767225600012)
    '2026-01-01 00:00:00.012'
    """
    try:
        moment = datetime.fromtimestamp(time_ms // 1000, tz=UTC)
    except (OverflowError, OSError, ValueError):
        return str(time_ms)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{time_ms % 1000:03d}"
