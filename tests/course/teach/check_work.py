"""How much work a public check is: counted, because a busy machine would make a clock lie."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from mqlab.course import check
from mqlab.course.kit.form import SECONDS
from tests.course.teach.notebook_answers import reference

CALLS_A_SECOND = 1_000_000
"""Calls of Python functions, on a machine of five years ago."""


def passes_in_its_time(exercise_id: str) -> None:
    """Raises AssertionError for a reference that its public check refuses, or works on for too long."""
    names, states = reference(exercise_id), []
    calls = calls_in(lambda: states.append(check(exercise_id, names).state))
    assert states == ["good"] and 0 < calls < SECONDS * CALLS_A_SECOND


def calls_in(work: Callable[[], object]) -> int:
    """How many calls of Python functions some work takes. What plays a world is work, too."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls
