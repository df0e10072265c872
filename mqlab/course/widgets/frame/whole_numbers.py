"""Numbers that a learner gives to a board."""

from __future__ import annotations

from typing import Any

from mqlab.errors import UsageError


def must_be_whole(name: str, value: Any, least: int, most: int) -> None:
    """UsageError unless a setting is a whole number in its range; True is none.

    >>> must_be_whole("threads", 20, 1, 64)
    """
    if type(value) is not int or not least <= value <= most:
        raise UsageError(f"{name} must be a whole number from {least} to {most}, got {value!r}")
