"""Offsets of a stream with a mark of the last unit that was read, so that a number alone names no place.

Mirrors nothing of Spark's source for Kafka, whose offsets are numbers: a topic made again with more messages than were
read looks to it like the old one.

    {"0": {"offset": 17, "unit": 2774523921}}     next is 17; the unit before has this CRC-32 of all its bytes
    {"0": 17}                                     nothing before 17 was there to mark; also a checkpoint of before

A unit's bytes hold its physical offset, its times and its unique key: another topic, or another log, has others.
"""

from __future__ import annotations

import zlib
from typing import Any

OFFSET, UNIT = "offset", "unit"

Marked = int | dict[str, int]


def mark_of(unit: bytes | bytearray | memoryview) -> int:
    """The mark of a stored unit."""
    return zlib.crc32(unit)


def marked(offset: int, mark: int | None) -> Marked:
    """An offset as Spark keeps it.

    >>> marked(17, 5), marked(17, None)
    ({'offset': 17, 'unit': 5}, 17)
    """
    return offset if mark is None else {OFFSET: offset, UNIT: mark}


def offset_in(value: Any) -> Any:
    """The number of a kept offset; what is none comes back as it is."""
    return value[OFFSET] if isinstance(value, dict) and set(value) == {OFFSET, UNIT} else value


def mark_in(value: Any) -> int | None:
    """The mark of a kept offset; None without one."""
    return value[UNIT] if isinstance(value, dict) and set(value) == {OFFSET, UNIT} else None
