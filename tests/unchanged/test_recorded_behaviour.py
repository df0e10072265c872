"""The recorded stories, stores and written day come out as they were recorded; only words may differ.

A change of structure leaves all of this equal. After an intended change of behaviour: ``python -m tests.unchanged``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unchanged.recordings import PLAYED_REPORT, REPORT, everything, recorded
from tests.unchanged.traces import LINES_PER_CHUNK, digest

CASES = [
    pytest.param(name, play, id=name, marks=[pytest.mark.long] if name.startswith("lab ") else [])
    for name, play in everything()
]


def first_difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Where two digests part, in words; "" when they are equal."""
    for number, (old, new) in enumerate(zip(before["chunks"], now["chunks"], strict=False)):
        if old != new:
            start = number * LINES_PER_CHUNK
            return f"the lines {start} to {start + LINES_PER_CHUNK - 1} differ ({now['lines']} lines in all)"
    return "" if before == now else f"{before['lines']} lines were recorded, now there are {now['lines']}"


@pytest.mark.parametrize(("name", "play"), CASES)
def test_what_was_recorded_still_happens(name: str, play: Callable[[], dict[str, Any]]) -> None:
    assert first_difference(recorded()[name], play()) == ""


def test_everything_that_is_recorded_is_played_and_nothing_else() -> None:
    assert set(recorded()) == {REPORT, PLAYED_REPORT, *(name for name, _ in everything())}


def test_a_difference_is_found_where_it_is() -> None:
    lines = [f"line {number}" for number in range(600)]
    assert first_difference(digest(lines), digest(lines)) == ""
    assert "250 to 499" in first_difference(digest(lines), digest([*lines[:300], "other", *lines[301:]]))
    assert "601" in first_difference(digest(lines), digest([*lines, "one more"]))
