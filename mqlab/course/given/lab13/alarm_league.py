"""The league table of alarms: how many bad days each heard in time, on how many it cried wolf, and how late it was.

    league({"yours": alarm})       next to the simple alarms below, on the recorded days

    alarm                 heard       false alarms       minutes
    yours                 12 of 12    on 0 of 32 days    5
    lag over 100          2 of 12     on 31 of 32 days   7.5

An alarm is a function of what is known so far, asked every five minutes. It hears a bad day that it reports within ten
minutes of the beginning of the harm; what it reports before that, or on a good day, is a false alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

from mqlab.course.given.lab13.day_answers import Rows, rung
from mqlab.course.given.lab13.watched_days import RecordedDay, watched_days
from mqlab.course.kit.scores import delay_ms
from mqlab.lab.views.table import Table
from mqlab.scales import MINUTE

IN_TIME_MS = 10 * MINUTE
Alarm = Callable[[list[Rows]], Any]


class HarmedDay(Protocol):
    """A day whose harm began at a moment, or a good one, of kind ""."""

    @property
    def kind(self) -> str: ...
    @property
    def since_ms(self) -> int: ...
    @property
    def until_ms(self) -> int: ...


def false_alarms(day: HarmedDay, fired: Sequence[int]) -> list[int]:
    """The moments at which it rang before any harm."""
    return [at_ms for at_ms in fired if not day.kind or at_ms < day.since_ms]


def heard_after_ms(day: HarmedDay, fired: Sequence[int]) -> int | None:
    """How long after its beginning the harm was reported; None for a good day, and where nothing rang."""
    if not day.kind:
        return None
    return delay_ms(fired, day.since_ms, max(day.until_ms, day.since_ms + IN_TIME_MS) + IN_TIME_MS)


@dataclass(frozen=True, slots=True)
class LeagueRow:
    """One alarm's row: bad days heard in time, all of them, days with a false alarm, all days, usual minutes."""

    alarm: str
    heard: int
    bad_days: int
    false_days: int
    days: int
    minutes: float | None


MODEL = LeagueRow("the model answer", 12, 12, 0, 32, 4.5)
"""What lab 13's model answer, which is not in this package, reaches on the recorded days; the tests measure it."""


def place_of(name: str, alarm: Alarm, days: Iterable[RecordedDay]) -> LeagueRow:
    """How an alarm does on some days."""
    heard: list[int] = []
    bad = false = count = 0
    for day in days:
        count += 1
        bad += bool(day.kind)
        fired = rung(alarm, day.moments)
        false += bool(false_alarms(day, fired))
        after_ms = heard_after_ms(day, fired)
        if after_ms is not None and after_ms <= IN_TIME_MS:
            heard.append(after_ms)
    return LeagueRow(name, len(heard), bad, false, count, round(median(heard) / MINUTE, 1) if heard else None)


def league(alarms: Mapping[str, Alarm], days: Sequence[RecordedDay] | None = None) -> Table:
    """These alarms and the simple ones on the recorded days, the best first: most days heard, fewest false alarms.

    ``days``: others than the recorded ones.
    """
    all_days = watched_days() if days is None else days
    places = [place_of(name, alarm, all_days) for name, alarm in {**alarms, **SIMPLE}.items()]
    places += [MODEL] if days is None else []
    # A bad day that was heard and a day with a false alarm weigh the same, as in a triage.
    places.sort(key=lambda row: (row.false_days - row.heard, row.minutes or 0, row.alarm))
    return Table(
        [
            {
                "alarm": row.alarm,
                "heard in time": f"{row.heard} of {row.bad_days}",
                "false alarms": f"on {row.false_days} of {row.days} days",
                "minutes": row.minutes,
            }
            for row in places
        ],
        columns=["alarm", "heard in time", "false alarms", "minutes"],
        title="Alarms on the recorded days",
    )


def _over(column: str, most: int) -> Alarm:
    def rings(so_far: list[Rows]) -> bool:
        return any(row[column] > most for row in so_far[-1])

    return rings


SIMPLE: Mapping[str, Alarm] = {
    "lag over 100": _over("lag", 100),
    "5 calls failed": _over("failed", 4),
    "one call failed": _over("failed", 0),
    "one waits for a minute": _over("oldest_s", 60),
    "one waits for an hour": _over("oldest_s", 3_600),
    "called again": _over("again", 0),
}
"""Rules that are found in many runbooks: a number, and what is over it."""
