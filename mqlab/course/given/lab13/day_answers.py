"""What an answer about a day is called with: tables of the day, or what was known of it moment by moment.

    with_day(whom, "…/day", calendar)      whom(facts, calendar), with the tables that DayFacts.save wrote
    hear = with_moments(alarm)             hear(rows) tells what alarm(so_far) says now: it is asked every five minutes

Lab 13 uses them. Tables are read from disk in the answer's own process, and no Spark is started. An alarm's process
gets one moment after the other and keeps those that are past: nothing in it knows what is to come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]


def with_day(answer: Callable[..., Any], day: str | Path, *more: Any) -> Any:
    """What ``answer(facts, *given)`` returns for the tables that are saved in a folder.

    Raises UsageError for a folder without them.
    """
    from mqlab.data.traffic.day_facts import DayFacts

    return answer(DayFacts.read(day), *more)


def with_moments(answer: Callable[[list[Rows]], Any]) -> Callable[[Rows], bool]:
    """A function that takes the rows of the next moment, and tells whether ``answer(so_far)`` is true then."""
    so_far: list[Rows] = []

    def hear(rows: Rows) -> bool:
        so_far.append(rows)
        return bool(answer(so_far))

    return hear


def rung(answer: Callable[[list[Rows]], Any], moments: Iterable[Rows]) -> list[int]:
    """The moments (ms) at which ``answer(so_far)`` is true; ``so_far`` has the rows of each moment up to then."""
    return heard(with_moments(answer), moments)


def heard(hear: Callable[[Rows], Any], moments: Iterable[Rows]) -> list[int]:
    """The moments (ms) at which it rang: ``hear`` is called once for each, and returns True or False."""
    return [int(rows[0]["at_ms"]) for rows in moments if hear(rows)]
