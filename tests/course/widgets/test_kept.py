"""Runs of a page without a kernel are read from files: they are what is played now, and no board plays one of them."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.course.widgets import allocation_board, backlog_tank, long_poll_scope, retry_clock
from mqlab.course.widgets.boards.allocation.handover import KEPT as ALLOCATION
from mqlab.course.widgets.boards.backlog.recorded import KEPT as BACKLOG
from mqlab.course.widgets.boards.long_poll.scope import KEPT as LONG_POLL
from mqlab.course.widgets.boards.retry_clock.board import KEPT as RETRY_CLOCK
from mqlab.course.widgets.frame import kept_runs
from mqlab.course.widgets.frame.board import Board
from mqlab.course.widgets.frame.kept_runs import KeptRuns

BOARDS: dict[str, tuple[KeptRuns[Any], Callable[[], Board]]] = {
    "allocation": (ALLOCATION, lambda: allocation_board(queues=2, members=1)),
    "backlog": (BACKLOG, lambda: backlog_tank(traffic=(1, 0) * 6)),
    "long_poll": (LONG_POLL, lambda: long_poll_scope(rate=0.5)),
    "retry_clock": (RETRY_CLOCK, lambda: retry_clock(max_retries=2)),
}
EACH_RUN = [
    pytest.param(kept, name, marks=pytest.mark.long if at else (), id=f"{module}-{name}")
    for module, (kept, _) in BOARDS.items()
    for at, name in enumerate(kept.recorded)
]


@pytest.mark.parametrize(("kept", "name"), EACH_RUN)
def test_a_kept_run_is_what_is_played_now(kept: KeptRuns[Any], name: str) -> None:
    """If it is not: ``python -m mqlab.course.widgets.keep_runs`` writes the files again."""
    settings = kept.recorded[name]
    assert kept.shown_with(settings) == json.loads(json.dumps(kept.played(settings)))


@pytest.mark.parametrize("module", BOARDS)
def test_no_board_plays_what_is_kept(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, board = BOARDS[module]
    shown = board()
    monkeypatch.delattr(kept, "played")  # what is not kept would be played
    names = [run["name"] for run in shown.data()["runs"]]
    assert names[-len(kept.recorded) :] == list(kept.recorded)


def test_the_files_are_written_when_they_are_asked_for_and_not_by_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks for doctests imports every module: no test would find an old run if the file was new by then."""
    written: list[str] = []
    monkeypatch.setattr(KeptRuns, "write", lambda kept: written.append(kept.file.stem))
    monkeypatch.delitem(sys.modules, "mqlab.course.widgets.keep_runs", raising=False)
    program = importlib.import_module("mqlab.course.widgets.keep_runs")
    assert written == []
    program.main()
    assert sorted(written) == sorted(BOARDS)


def test_what_is_not_kept_is_played() -> None:
    kept, _ = BOARDS["retry_clock"]
    settings = type(kept.recorded["three retries"])(max_retries=1)
    assert kept.shown_with(settings) == kept.played(settings)


def test_each_file_is_read_by_a_board() -> None:
    assert sorted(file.stem for file in kept_runs.BOARDS.glob("*/*.json")) == sorted(BOARDS)
