"""lab13.alarm: a rule that rings within ten minutes of each harm, and on no good day.

    moments so far ─▶ True or False, every five minutes      an alarm is asked with what is known, and never with more

Judged on a day of each kind that can be watched, and on good days, some with a campaign or a planned deploy.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from mqlab.scales import MINUTE, time_text
from mqlab.teach.cases.forbids import FORBIDS
from mqlab.teach.day_answers import save_moments
from mqlab.teach.exercises import Call, Finding
from mqlab.teach.kit import Store
from mqlab.teach.kit.scored import Scored
from mqlab.teach.kit.scores import delay_ms
from mqlab.teach.kit.stores import shared_folder
from mqlab.teach.words import refutation
from mqlab.traffic.model import FIRST_DAY_MS
from mqlab.traffic.offsets_and_truth import COUNTED_UNTIL
from mqlab.traffic.trouble.capstone import alarm_day
from mqlab.traffic.trouble.placing import ALARMING

MESSAGES, GOOD_DAYS, IN_TIME_MS = 16_000, 3, 10 * MINUTE
_SECRET = b"lab 13: days to try alarms on"
_EVENING = FIRST_DAY_MS + COUNTED_UNTIL * MINUTE


@dataclass(frozen=True)
class WatchedDay:
    """A day as it was watched, on disk; what went wrong on it, if anything, and when it harmed."""

    store: Store
    kind: str
    since_ms: int
    until_ms: int


@functools.cache
def watched_day(number: int, quiet: bool) -> WatchedDay:
    """The day of a number."""
    from mqlab.traffic.day_facts import facts_of
    from mqlab.traffic.day_watch import watched

    made = alarm_day(number, _SECRET, quiet=quiet, messages=MESSAGES)
    folder = shared_folder("lab13-alarm")
    made.write(folder / "stores")
    moments = [list(moment.rows) for moment in watched(facts_of(folder / "stores"))]
    shutil.rmtree(folder / "stores")
    save_moments(moments, folder)
    truth = made.truth()["incidents"]
    kind, since_ms, until_ms = ("", 0, 0) if quiet else (
        truth[0]["kind"], truth[0]["harm_since_ms"], truth[0]["harm_until_ms"]
    )  # fmt: skip
    about = f"good day {number}" if quiet else f"day {number}, {kind} of {truth[0]['group']}"
    return WatchedDay(Store(str(folder), about), kind, since_ms, until_ms)


def calls(seed: int) -> Iterator[Call]:
    """Good days, then one of each kind."""
    first = seed % 10**9 * 100
    days = [watched_day(first + number, True) for number in range(GOOD_DAYS)]
    days += [watched_day(first + number, False) for number in range(len(ALARMING))]
    for day in days:
        yield Call(moments=day.store, given=day, about=day.store.about)


def rings(call: Call, fired: list[int]) -> Finding | None:
    """An alarm about nothing, none at all, or one that comes late."""
    day: WatchedDay = call.given
    early = [at_ms for at_ms in fired if not day.kind or at_ms < day.since_ms]
    if early:
        if min(early) > _EVENING:
            return _told(call, "quiet", f"rings at {time_text(early[0])}", "lab13.lag_alarm")
        rule = "It rings when nobody is harmed: a campaign, a planned deploy and a failed call or two are everyday life"
        return _told(call, "quiet", f"rings at {time_text(early[0])}", rule=rule)
    if not day.kind:
        return None
    late_ms = delay_ms(fired, day.since_ms, max(day.until_ms, day.since_ms + IN_TIME_MS) + IN_TIME_MS)
    if late_ms is not None and late_ms <= IN_TIME_MS:
        return None
    expected = f"rings by {time_text(day.since_ms + IN_TIME_MS)}"
    if not fired:
        return _told(call, expected, "never rings", "lab13.failures_only")
    return _told(call, expected, f"rings at {time_text(fired[0])}", "lab13.end_of_day")


def _told(call: Call, expected: str, found: str, belief: str = "", rule: str = "") -> Finding:
    return Finding(rule or refutation(belief), call.about, expected, found, call=call, belief=belief)


ALARM = Scored(
    "lab13.alarm", "alarm(so_far)", points=6, about="good days and bad ones", opens="with_moments", calls=calls,
    returns=[int], judges=(rings,), forbids=FORBIDS["lab13.alarm"], limits={"seconds": 120, "total_seconds": 600},
)  # fmt: skip
