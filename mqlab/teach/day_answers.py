"""What an answer about a day is called with: tables of the day, or what was known of it moment by moment.

    with_day(whom, "…/day", calendar)      whom(facts, calendar), with the tables that DayFacts.save wrote
    with_moments(alarm, "…/watched")       when alarm(so_far) rang: it is asked every five minutes, with the past only

Lab 13 uses them. Both read from disk in the answer's own process, and no Spark is started.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

MOMENTS = "moments.json"
Rows = list[dict[str, Any]]


def with_day(answer: Callable[..., Any], day: str | Path, *given: Any) -> Any:
    """What ``answer(facts, *given)`` returns for the tables that are saved in a folder.

    Raises UsageError for a folder without them.
    """
    from mqlab.traffic.day_facts import DayFacts

    return answer(DayFacts.read(day), *given)


def save_moments(moments: Iterable[Rows], folder: str | Path) -> None:
    """Write the rows of each moment of a day into a folder."""
    Path(folder, MOMENTS).write_text(json.dumps(list(moments)), "utf-8")


def with_moments(answer: Callable[[list[Rows]], Any], folder: str | Path) -> list[int]:
    """The moments (ms) at which ``answer(so_far)`` is true; ``so_far`` has the rows of each moment up to then."""
    return rung(answer, json.loads(Path(folder, MOMENTS).read_text("utf-8")))


def rung(answer: Callable[[list[Rows]], Any], moments: Iterable[Rows]) -> list[int]:
    """The same for moments that are at hand."""
    so_far: list[Rows] = []
    fired = []
    for rows in moments:
        so_far.append(rows)
        if answer(so_far):
            fired.append(int(rows[0]["at_ms"]))
    return fired
