"""Lab 14's your-turn tasks: what is right follows from the day that the learner's own cell has played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mqlab.course.cases.lab14.book import breaches
from mqlab.course.teach.tasks import Task
from mqlab.lab.simulation.planted import history


def _quiet_day(alarm: Sequence[Any], lab: Any) -> int | None:
    """The day, if no alarm was raised though a rule is broken. A day's number is the seed of its Lab."""
    return lab.seed if not alarm and breaches(history(lab)) else None


def _sound_day(alarm: Sequence[Any], lab: Any) -> int | None:
    return lab.seed if not alarm and not breaches(history(lab)) else None


def _loud_day(alarm: Sequence[Any], lab: Any) -> int | None:
    return lab.seed if alarm else None


def _first_step(machine: Any) -> int | None:
    broken = breaches(history(machine.recording.lab))
    return broken[0].step if broken else None


def _last_step(machine: Any) -> int | None:
    broken = breaches(history(machine.recording.lab))
    return broken[-1].step if len(broken) > 1 else None


SHOWN_DAY = 1
"""The day of Bern that the lab itself goes through."""


def _no_whole_day(machine: Any) -> str:
    if machine.recording.lab.seed == SHOWN_DAY:
        return f"it is still day {SHOWN_DAY}, which the lab has gone through: choose another one with *seed* first"
    if _first_step(machine) is None:
        return "with these events nothing goes wrong any more: give more of them, and play again"
    return ""


def _silent_room(_alarm: Sequence[Any], rooms: Mapping[str, int]) -> str:
    return next(room for room, lines in rooms.items() if not lines)


def _loud_room(number: int) -> Any:
    """The answer that names one of the rooms without which the alarm still comes."""
    return lambda _alarm, rooms: [room for room, lines in rooms.items() if lines][number]


def _no_alarm(alarm: Sequence[Any], _rooms: Mapping[str, int]) -> str:
    return "" if alarm else "on this day there is no alarm that could go silent: change ROLLED_BACK_DAY first"


TASKS = (
    Task("lab14.twice", right=_first_step, wrong={"last": _last_step}, unready=_no_whole_day),
    Task("lab14.room", right=_silent_room, wrong={"loud": _loud_room(0), "last": _loud_room(1)}, unready=_no_alarm),
    Task("lab14.quiet", right=_quiet_day, wrong={"sound": _sound_day, "loud": _loud_day}),
)
