"""The benchmark of a day runs, with few messages; seconds are not asserted."""

from __future__ import annotations

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import day


def test_a_day_names_all_that_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    benchmarks.main(["day", "--messages", "60", "--journal-limit", "500"])
    told = capsys.readouterr().out
    assert all(name in told for name in ("send and read", "timeline of a message", "verify", "digest", "goal: 15 s"))
    assert "60 deliveries a group" in told and ", 0 dropped" not in told
    assert len(day.GROUPS) == 3
