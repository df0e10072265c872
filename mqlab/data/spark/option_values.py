"""The values of a data source's options, from strings, and the error for a wrong one.

Spark passes every option as a string and changes the case of its name.

    "64m" ─▶ 67108864      "0, 1" ─▶ (0, 1)      "2026-01-31T09:30:00" ─▶ ms since the epoch      "false" ─▶ False
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from mqlab.errors import UsageError

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


def known_options(raw_options: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """The options by their right names, given in any case. Raises UsageError for an unknown option."""
    names = {name.lower(): name for name in known}
    options: dict[str, str] = {}
    for name, value in raw_options.items():
        if name.lower() not in names:
            raise UsageError(f"there is no option {name!r}", hint=f"options are {', '.join(known)}")
        options[names[name.lower()]] = value
    return options


def words_of(options: Mapping[str, str], name: str) -> list[str]:
    """The words of a comma-separated list; an empty list for an option that is not given."""
    return [word for part in options.get(name, "").split(",") if (word := part.strip())]


def number_of(options: Mapping[str, str], name: str) -> int | None:
    """A whole number, None for an option that is not given. Raises UsageError."""
    text = options.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"option {name} is {text!r}: expected a whole number") from None


def queue_ids_of(options: Mapping[str, str]) -> tuple[int, ...]:
    """The option queues. Raises UsageError."""
    words = words_of(options, "queues")
    if not all(word.isdecimal() for word in words):
        raise UsageError(f"option queues is {options['queues']!r}: expected queue ids such as '0,1'")
    return tuple(int(word) for word in words)


def time_of(options: Mapping[str, str], name: str) -> int | None:
    """A time in ms since the epoch, None for an option that is not given. Raises UsageError."""
    text = options.get(name)
    if text is None:
        return None
    if text.lstrip("-").isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"option {name} is {text!r}: expected ms since the epoch or a time such as 2026-01-31T09:30:00"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def bytes_of(options: Mapping[str, str], name: str) -> int | None:
    """A number of bytes, with or without a unit, None for an option that is not given. Raises UsageError."""
    text = options.get(name)
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+)\s*([a-zA-Z]*)\s*", text)
    if match is None or match[2].lower() not in _UNITS or not int(match[1]):
        raise UsageError(f"option {name} is {text!r}: expected a number of bytes such as 1048576 or '64m'")
    return int(match[1]) * _UNITS[match[2].lower()]


def switch_of(options: Mapping[str, str], name: str) -> bool:
    """An option that is true unless it is given otherwise. Raises UsageError."""
    text = options.get(name, "true").strip().lower()
    if text not in ("true", "false"):
        raise UsageError(f"option {name} is {text!r}: expected true or false")
    return text == "true"
