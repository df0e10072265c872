"""The benchmarks of a start, of growth and of grading run, with little to do; seconds are not asserted."""

from __future__ import annotations

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import growth, start
from mqlab.course.grading.sandbox.walled import Sandbox
from tests.course.grading.conftest import walls

__all__ = ["walls"]


def test_a_start_is_told_beside_the_bare_interpreter(capsys: pytest.CaptureFixture[str]) -> None:
    benchmarks.main(["start", "--repeat", "1"])
    told = capsys.readouterr().out
    assert all(name in told for name in start.STARTS) and "goal for a Lab" in told


def test_growth_has_a_row_per_world_and_more_steps_in_a_larger_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(growth.SMALLEST, "messages", 30)
    for kind in growth.WORLDS:
        (small, nothing), (large, more) = growth.rows(kind, largest=growth.SMALLEST[kind] * 3)
        assert (small.size * 3, nothing) == (large.size, None)
        assert large.steps > small.steps and more is not None


def test_growth_prints_a_line_per_world(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(growth.SMALLEST, "messages", 30)
    benchmarks.main(["growth", "--largest", "10"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == [
        "messages",
        "messages",
        "queues",
        "consumers",
    ]


@pytest.mark.long
def test_grading_is_told_beside_a_notebook_that_only_runs(capsys: pytest.CaptureFixture[str], walls: Sandbox) -> None:
    benchmarks.main(["grading", "--lab", "00", "--submissions", "1"])
    told = capsys.readouterr().out
    assert "nbclient" in told and "behind the wall" in told and "without it" in told
