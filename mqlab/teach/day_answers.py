"""What an answer about a day is called with: the five tables of the day, read from disk in the answer's own process.

    with_day(whom, "…/day", calendar)      whom(facts, calendar), with the tables that DayFacts.save wrote

Lab 13 uses it. Its judges and its learners see the same tables, and no Spark is started for them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqlab.traffic.day_facts import DayFacts


def with_day(answer: Callable[..., Any], day: str | Path, *given: Any) -> Any:
    """What ``answer(facts, *given)`` returns for the tables that are saved in a folder.

    Raises UsageError for a folder without them.
    """
    return answer(DayFacts.read(day), *given)
