"""World exercises: a listener, strategy, class or story takes part in a Lab, and is judged by promises.

    World("lab07.stuck", "pay(messages, context)", points=4, about="a bank that hangs", day=stuck_day,
          promises=[no_surprise("billing", ("TimeoutError",)), no_call_longer_than("billing", "10s", "Whenever …")])

``day`` makes a Day from a seed; the promises are looked at in their order, so what a shop would notice first comes
first. A finding keeps the Lab, to be looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mqlab.course.kit.days import Day, NotMade
from mqlab.course.kit.form import exercise_of
from mqlab.course.kit.promises import Promise
from mqlab.course.teach.exercises import Answers, Exercise, Finding
from mqlab.course.words import ExerciseWords


@dataclass(frozen=True)
class Worlds:
    """The form of World exercises."""

    in_a_lab: ClassVar[bool] = True
    id: str
    name: str
    signature: str
    about: str
    day: Callable[[int], Day]
    promises: Sequence[Promise]
    weights: Mapping[str, float]

    def make(self, seed: int) -> tuple[Day, int]:
        """The day of a seed, and the seed for its Lab."""
        return self.day(seed), seed

    def judge(self, answers: Answers, trial: tuple[Day, int]) -> Finding | None:
        """Play the day; the first promise that is broken."""
        day, seed = trial
        try:
            played = day.play(answers, seed)
        except NotMade as error:
            return Finding(error.rule, error.where, error.expected, error.found)
        for promise in self.promises:
            finding = promise(played)
            if finding is not None:
                return replace(finding, lab=played.lab)
        return None


def World(
    id: str,
    signature: str,
    *,
    points: int,
    about: str,
    day: Callable[[int], Day],
    promises: Sequence[Promise],
    seeds: Sequence[int] = (1, 2),
    weights: Mapping[str, float] | None = None,
    words: ExerciseWords | None = None,
    limits: Mapping[str, float] | None = None,
    forbids: Sequence[str] = (),
) -> Exercise:
    """An exercise whose answer takes part in a Lab; the head of this file has an example."""
    name = signature.partition("(")[0]
    form = Worlds(id, name, signature, about, day, tuple(promises), weights or {})
    return exercise_of(form, points=points, seeds=seeds, words=words, limits=limits, forbids=forbids)
