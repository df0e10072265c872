"""Random days of `mqlab sim --mine` for lab 16d: on the broker in a folder, or on that broker with other groups.

days(home, 8)                        outcomes of the days 0 to 7
forgetful = with_groups(home, text)  a copy whose groups.py is this text
first_broken(forgetful, most=40)     the first day that breaks a promise
made_small(forgetful, outcome)       its plan, without what is not needed to break it
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

from mqlab.lab.parts import FOLDER
from mqlab.lab.simulation import Outcome, RunPlan, draw, on_own_parts, run, shrink

TRIES = 40


def days(home: Path, count: int) -> list[Outcome]:
    """Returns the outcomes of the first days."""
    with contextlib.chdir(home):
        return [run(on_own_parts(draw(seed))) for seed in range(count)]


def with_groups(home: Path, text: str) -> Path:
    """Returns a copy of a broker's folder with other groups in it."""
    copy = Path(tempfile.mkdtemp(prefix="mqlab-16d-"))
    shutil.copytree(home / FOLDER, copy / FOLDER)
    (copy / FOLDER / "groups.py").write_text(text, "utf-8")
    return copy


def first_broken(home: Path, *, most: int) -> Outcome | None:
    """Returns the first day that breaks a promise; None if ``most`` days break none."""
    with contextlib.chdir(home):
        outcomes = (run(on_own_parts(draw(seed))) for seed in range(most))
        return next((outcome for outcome in outcomes if outcome.wrong), None)


def made_small(home: Path, outcome: Outcome) -> RunPlan:
    """Returns the plan of a broken day without the events that it does not need."""
    with contextlib.chdir(home):
        return shrink(outcome.plan, lambda plan: bool(run(plan).wrong), tries=TRIES)
