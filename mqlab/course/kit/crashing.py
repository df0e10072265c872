"""Exercises whose answer lives in a process that may die anywhere: its day is played once per crash point.

    Crashing("lab04.once", "once(lab)", points=5, about="…", node="billing-1",
             days=[calm_day, day_with_two_owners], crash_day=short_day, at="line", promises=[paid_once])

    first                      what can be asked of the answer alone, before anything is played
    the days as they are       each promise, in order
    the crash day, calm        counts the places at which the node can die: before a step, or before a line; where an
                               answer is graded, also before whatever it asks of the judge
    the crash day, once each   the node dies there and is started again: each promise, in order
    with a meeting, once more  before each line another client does what the meeting says; no process dies

A finding of a crashed day says where the node died, or before which line the other one came. A crash day should end
soon after its last event: it is played again and again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from mqlab.course.kit.days import Day, NotMade, Played
from mqlab.course.kit.form import exercise_of
from mqlab.course.kit.promises import Promise
from mqlab.course.teach.exercises import Answers, Exercise, Finding
from mqlab.course.words import ExerciseWords
from mqlab.lab.runtime.line_watch import LineWatch
from mqlab.lab.world.crashes import calm_run, with_crash
from mqlab.lab.world.lab import Lab, play
from mqlab.lab.world.state import CrashPoint
from mqlab.lab.world.story import Story

RESTART_AFTER = "1s"


@dataclass(frozen=True, slots=True)
class Meeting:
    """What another client does between two lines of the answer; ``who`` begins the sentence that says when."""

    who: str
    does: Callable[[Any], None]


Alone = Callable[[Answers, int], Finding | None]
"""Looks at the answers without a Lab; gets the seed of the case."""


@dataclass(frozen=True, slots=True)
class Days:
    """What one seed makes: days that are played as they are, and the day that is played once per crash point."""

    calm: tuple[Day, ...]
    crash: Day
    seed: int


@dataclass(frozen=True)
class Crashing:
    """The form of these exercises. ``at``: "line" or "step"; ``most``: so many crash points at most."""

    in_a_lab: ClassVar[bool] = True
    id: str
    name: str
    signature: str
    about: str
    days: Sequence[Callable[[int], Day]]
    crash_day: Callable[[int], Day]
    node: str
    at: str
    most: int
    first: Sequence[Alone]
    promises: Sequence[Promise]
    weights: Mapping[str, float]
    meeting: Meeting | None = None

    def make(self, seed: int) -> Days:
        """The days of a seed."""
        return Days(tuple(day(seed) for day in self.days), self.crash_day(seed), seed)

    def judge(self, answers: Answers, days: Days) -> Finding | None:
        """Play the days, then the crash day with each of its crashes; the first promise that is broken."""
        try:
            for look in self.first:
                finding = look(answers, days.seed)
                if finding is not None:
                    return finding
            for day in days.calm:
                finding = self._broken(day.play(answers, days.seed))
                if finding is not None:
                    return finding
            return self._crashed(answers, days)
        except NotMade as error:
            return Finding(error.rule, error.where, error.expected, error.found)

    def _crashed(self, answers: Answers, days: Days) -> Finding | None:
        played: list[Played] = []
        story, settings = days.crash.story(answers, played), days.crash.settings
        calm, points = calm_run(story, node=self.node, seed=days.seed, **settings)
        finding = self._broken(played[-1])
        if finding is not None:
            return finding
        finding = self._met(story, played, [point for point in points if point.kind == "line"], days)
        if finding is not None:
            return finding
        for point in self._chosen(points, calm):
            # Played as a story, so that show_me can tell it again.
            crashing = with_crash(story, point, node=self.node, restart_after=RESTART_AFTER)
            play(crashing, seed=days.seed, **settings)
            finding = self._broken(played[-1])
            if finding is not None:
                where = f"{self.node} killed {point} and started again: {finding.first_wrong}"
                return replace(finding, first_wrong=where)
        return None

    def _met(self, story: Story, played: list[Played], lines: Sequence[CrashPoint], days: Days) -> Finding | None:
        """Play the day once per line with the meeting before it."""
        meeting = self.meeting
        if meeting is None:
            return None
        for point in lines:

            def meets(lab: Lab, point: CrashPoint = point) -> None:
                watch = LineWatch(self.node, ("line", point.number), lambda: meeting.does(played[-1]), kills=False)
                lab.simulation("a meeting").line_watch = watch
                story(lab)

            play(meets, seed=days.seed, **days.crash.settings)
            finding = self._broken(played[-1])
            if finding is not None:
                return replace(finding, first_wrong=f"{meeting.who} {point}: {finding.first_wrong}")
        return None

    def _chosen(self, points: Sequence[CrashPoint], calm: Lab) -> list[CrashPoint]:
        """The points of the wanted kind. Of many lines some that are evenly spread, of many steps some of all times."""
        wanted = [point for point in points if point.kind == self.at]
        if self.at == "line":
            # The judge itself has counted the requests, and plays each: no answer can hide one among many lines.
            asked = [point for point in points if point.kind == "request"]
            return [*_spread(wanted, max(self.most - len(asked), 0)), *asked]
        if len(wanted) <= self.most:
            return wanted
        # Most steps come at the beginning; what goes wrong may need a report, which comes much later.
        times = [calm.journal[point.number].now_ms for point in wanted]
        span_ms = times[-1] - times[0]
        moments = [times[0] + number * span_ms // (self.most - 1) for number in range(self.most)]
        return [wanted[number] for number in dict.fromkeys(bisect_left(times, moment) for moment in moments)]

    def _broken(self, played: Played) -> Finding | None:
        for promise in self.promises:
            finding = promise(played)
            if finding is not None:
                return replace(finding, lab=played.lab)
        return None


def _spread(points: list[CrashPoint], most: int) -> list[CrashPoint]:
    """So many of some points at most, evenly spread."""
    return points if len(points) <= most else [points[number * len(points) // most] for number in range(most)]


def EveryCrash(
    id: str,
    signature: str,
    *,
    points: int,
    about: str,
    crash_day: Callable[[int], Day],
    promises: Sequence[Promise],
    node: str,
    at: str = "line",
    days: Sequence[Callable[[int], Day]] = (),
    most: int = 60,
    first: Sequence[Alone] = (),
    seeds: Sequence[int] = (1, 2),
    weights: Mapping[str, float] | None = None,
    words: ExerciseWords | None = None,
    limits: Mapping[str, float] | None = None,
    forbids: Sequence[str] = (),
    meeting: Meeting | None = None,
) -> Exercise:
    """An exercise whose answer must hold wherever a node dies; the head of this file has an example."""
    name = signature.partition("(")[0]
    form = Crashing(
        id,
        name,
        signature,
        about,
        days,
        crash_day,
        node,
        at,
        most,
        tuple(first),
        tuple(promises),
        weights or {},
        meeting,
    )
    return exercise_of(form, points=points, seeds=seeds, words=words, limits=limits, forbids=forbids)
