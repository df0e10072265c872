"""Partial credit in the notebook: what an answer has earned so far, where the exercise weighs its public cases.

    lab01.torn: 3 of 5 public cases hold   ─▶   "so far  2.4 of 4 points in the public checks; hidden checks count too"

It says how many cases hold and not which, so it tells nothing of the hidden cases, which are not in this process.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence

from mqlab.course.teach.exercises import Answers, Case, Exercise
from mqlab.course.teach.forbidden import run_watched


def points_so_far(
    asked: Exercise, cases: Sequence[Case], answers: Answers, held: int, share: float
) -> list[tuple[str, str]]:
    """The fact to show next to the first wrong case, before which ``held`` others held; none if nothing is earned.

    ``share`` is what the answer keeps of the wrong case's worth. The cases after it are judged here.
    """
    whole = sum(case.weight for case in cases)
    if not whole:
        return []
    earned = sum(case.weight for case in cases[:held]) + cases[held].weight * share
    earned += sum(case.weight * _share(case, asked, answers) for case in cases[held + 1 :])
    if not earned:
        return []
    points = f"{asked.points * earned / whole:.1f}".removesuffix(".0")
    return [("so far", f"{points} of {asked.points} points in the public checks; hidden checks count too")]


def _share(case: Case, asked: Exercise, answers: Answers) -> float:
    """What of a case's worth an answer keeps, 0 to 1. What it prints was seen before, or is of no use here."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            finding = run_watched(case, answers, asked.forbids)
        except Exception:
            return 0.0
    return 1.0 if finding is None else finding.share
