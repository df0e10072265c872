"""Lab 14's your-turn tasks: what is right follows from the day that the learner's own cell has played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mqlab.simulation.planted import history
from mqlab.teach.cases.lab14.book import breaches
from mqlab.teach.tasks import Task


def _quiet_day(alarm: Sequence[Any], lab: Any) -> int | None:
    """The day, if no alarm was raised though a rule is broken. A day's number is the seed of its Lab."""
    return lab.seed if not alarm and breaches(history(lab)) else None


def _sound_day(alarm: Sequence[Any], lab: Any) -> int | None:
    return lab.seed if not alarm and not breaches(history(lab)) else None


def _loud_day(alarm: Sequence[Any], lab: Any) -> int | None:
    return lab.seed if alarm else None


def _first_step(machine: Any) -> int | None:
    found = breaches(history(machine.recording.lab))
    return found[0].step if found else None


def _last_step(machine: Any) -> int | None:
    found = breaches(history(machine.recording.lab))
    return found[-1].step if len(found) > 1 else None


def _no_whole_day(machine: Any) -> str:
    if _first_step(machine) is None:
        return "with these events nothing goes wrong any more: give more of them, and play again"
    return ""


TASKS = (
    Task("lab14.twice", right=_first_step, wrong={"last": _last_step}, unready=_no_whole_day),
    Task("lab14.quiet", right=_quiet_day, wrong={"sound": _sound_day, "loud": _loud_day}),
)
