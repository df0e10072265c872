"""lab13.alarm: a rule that rings within ten minutes of each harm, and on no good day.

    moments so far ─▶ True or False, every five minutes      its process is told one moment after the other

All students see the recorded days (mqlab.course.given.lab13.watched_days). Hidden days are made from their seed:
two of each kind that can be watched, and good ones, some with a campaign or a planned deploy.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.given.lab13.alarm_league import IN_TIME_MS, false_alarms, heard_after_ms
from mqlab.course.given.lab13.day_answers import heard
from mqlab.course.given.lab13.watched_days import MESSAGES, RecordedDay, watch, watched_days
from mqlab.course.kit.scored import Scored
from mqlab.course.teach.exercises import Call, Finding
from mqlab.course.words import refutation
from mqlab.data.traffic.model import FIRST_DAY_MS
from mqlab.data.traffic.trouble.capstone import alarm_day
from mqlab.data.traffic.trouble.placing import ALARMING
from mqlab.data.traffic.writing.offsets_and_truth import COUNTED_UNTIL
from mqlab.scales import MINUTE, time_text

PUBLIC_SEED = 1
GOOD_DAYS = 6
BAD_DAYS = len(ALARMING)
_SECRET = b"lab 13: days to judge alarms by"
_EVENING = FIRST_DAY_MS + COUNTED_UNTIL * MINUTE


def hidden_days(seed: int) -> tuple[RecordedDay, ...]:
    """The days of a seed, good ones first. A day costs about half a second."""
    first = seed % 10**9 * 100
    quiet = [alarm_day(first + number, _SECRET, quiet=True, messages=MESSAGES) for number in range(GOOD_DAYS)]
    bad = [alarm_day(first + number, _SECRET, quiet=False, messages=MESSAGES) for number in range(BAD_DAYS)]
    return tuple(watch(day) for day in (*quiet, *bad))


@functools.cache
def days_of(seed: int) -> tuple[RecordedDay, ...]:
    """The recorded days for students, those of a seed for grading."""
    return watched_days() if seed == PUBLIC_SEED else hidden_days(seed)


def calls(seed: int) -> Iterator[Call]:
    """A call for each day. The moments are no argument: the judge tells one after the other."""
    for day in days_of(seed):
        yield Call(given=day, about=day.about)


def rings(call: Call, fired: list[int]) -> Finding | None:
    """An alarm about nothing, none at all, or one that comes late."""
    day: RecordedDay = call.given
    early = false_alarms(day, fired)
    if early:
        if min(early) > _EVENING:
            return _told(call, "quiet", f"rings at {time_text(early[0])}", "lab13.lag_alarm")
        rule = "It rings without harm: a campaign, a planned deploy and a failed call or two are normal"
        return _told(call, "quiet", f"rings at {time_text(early[0])}", rule=rule)
    if not day.kind:
        return None
    late_ms = heard_after_ms(day, fired)
    if late_ms is not None and late_ms <= IN_TIME_MS:
        return None
    expected = f"rings by {time_text(day.since_ms + IN_TIME_MS)}"
    if not fired:
        return _told(call, expected, "never rings", "lab13.failures_only")
    return _told(call, expected, f"rings at {time_text(fired[0])}", "lab13.end_of_day")


def _told(call: Call, expected: str, found: str, belief: str = "", rule: str = "") -> Finding:
    return Finding(rule or refutation(belief), call.about, expected, found, call=call, belief=belief)


ALARM = Scored(
    "lab13.alarm",
    "alarm(so_far)",
    points=6,
    about="good days and bad ones",
    opens="with_moments",
    calls=calls,
    told_by=lambda hear, call: heard(hear, call.given.moments),
    seeds=(PUBLIC_SEED,),
    returns=[int],
    judges=(rings,),
    forbids=FORBIDS["lab13.alarm"],
    limits={"seconds": 120, "total_seconds": 600},
)
