"""Conditions of Spark SQL that find the rows behind a number of the page, with the names and times of that day.

Mirrors: nothing of RocketMQ; what a reader of the page would type in a notebook.

    equal(consumer_group="billing")  from_until("stored", 0, 60_000)  all_of(a, b)

Left out: the frames themselves; page.py puts the directory of the run before a condition.
"""

from __future__ import annotations

from typing import Any


def equal(**values: object) -> str:
    r"""Each column has this value, in the order given.

    >>> equal(consumer_group="it's", queue_id=3)
    "consumer_group = 'it\\'s' AND queue_id = 3"
    >>> equal(tags=None)
    'tags IS NULL'
    """
    return all_of(*(_equal(column, value) for column, value in values.items()))


def from_until(column: str, from_ms: float, until_ms: float) -> str:
    """A time column is in this range of milliseconds since 1970; the end is outside.

    >>> from_until("stored", 1_000, 2_000)
    'stored >= timestamp_millis(1000) AND stored < timestamp_millis(2000)'
    """
    return f"{column} >= timestamp_millis({int(from_ms)}) AND {column} < timestamp_millis({int(until_ms)})"


def all_of(*conditions: str) -> str:
    """All the conditions hold; empty ones are left out.

    >>> all_of("a = 1", "", "b = 2")
    'a = 1 AND b = 2'
    """
    return " AND ".join(condition for condition in conditions if condition)


def _equal(column: str, value: object) -> str:
    if value is None or value != value:  # a null of pandas is NaN, which differs from itself
        return f"{column} IS NULL"
    return f"{column} = {literal(value)}"


def literal(value: Any) -> str:
    r"""A value as Spark SQL writes it.

    >>> print(literal("a\\b'c"), literal(7))
    'a\\b\'c' 7
    """
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return f"{int(value)}"
