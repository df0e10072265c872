"""Scored exercises: what an answer has found out is compared with the truth by measures, and nearness earns its share.

They are for questions whose answer has no exact value, but where a wrong idea must not pass.

    when = Scored(
        "lab42.when", "when(facts, incident)", points=3, about="incidents of a day", opens="with_facts",
        calls=asked, returns=tuple_of(since=int, until=int), judges=[not_local_time, overlaps],
    )

``judges`` are functions (call, value in the right form) -> Finding or None; of each call's value the first finding
counts, with the ``share`` that it leaves. A case with several calls keeps the mean of their shares, and shows the first
finding. Where one and the same value is right for many calls, ``floor`` says which share an answer earns that gives it
every time: it is worth nothing, and what is above it is worth more. ``opens`` names the lab's function that reads what
is on disk and calls the answer with it. Where an answer must not have everything at once, ``told_by`` gets what
``opens`` made of the answer and the call, and tells one thing after the other from the judge's side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mqlab.course.kit import slips as general
from mqlab.course.kit.calls import hearing, marked
from mqlab.course.kit.form import exercise_of, first
from mqlab.course.kit.rows import Store
from mqlab.course.kit.shapes import Misfit, described, fitted
from mqlab.course.teach.exercises import Answers, Call, Exercise, Finding
from mqlab.course.words import ExerciseWords

Judge = Callable[[Call, Any], Finding | None]
Floor = Callable[[Sequence[Call]], float]
Told = Callable[[Any, Call], Any]


@dataclass(frozen=True)
class Scores:
    """The form of Scored exercises."""

    id: str
    name: str
    signature: str
    about: str
    calls: Callable[[int], Iterable[Call]]
    returns: Any
    judges: Sequence[Judge]
    opens: str
    weights: Mapping[str, float]
    floor: Floor | None = None
    told: Told | None = None

    def make(self, seed: int) -> list[Call]:
        """The calls of a seed."""
        return list(self.calls(seed))

    def judge(self, answers: Answers, trial: Iterable[Call]) -> Finding | None:
        """All calls; the first finding, with the mean of what the calls leave."""
        every = list(trial)
        findings = [self._judged(answers, call) for call in every]
        wrong = first(findings)
        if wrong is None:
            return None
        shares = [1.0 if finding is None else finding.share for finding in findings]
        floor = self.floor(every) if self.floor is not None else 0.0
        return replace(wrong, share=above(sum(shares) / len(shares), floor))

    def _judged(self, answers: Answers, call: Call) -> Finding | None:
        arguments = [str(value) if isinstance(value, Store) else value for value in call.arguments.values()]
        answer = answers[self.name]
        with hearing() as heard, marked(call):
            returned = answers[self.opens](answer, *arguments) if self.opens else answer(*arguments)
            if self.told is not None:
                returned = self.told(returned, call)
        try:
            value = fitted(self.returns, returned)
        except Misfit as misfit:
            return self._misfit(call, returned, heard.text, misfit)
        return first(judge(call, value) for judge in self.judges)

    def _misfit(self, call: Call, returned: Any, printed: str, misfit: Misfit) -> Finding:
        rule = f"{self.name} returns {described(self.returns)}"
        if returned is None:
            rule = (general.PRINTED if printed.strip() else general.NOTHING).format(name=self.name)
        elif misfit.path and misfit.found != "no such key":
            rule += f": {misfit.path[-1]} is {described(misfit.shape)}"
        wrong = misfit.found if misfit.path else returned
        return Finding(rule, ": ".join([call.about, *misfit.path]), described(misfit.shape), wrong, call=call)


def above(share: float, floor: float) -> float:
    """How much of what lies above a floor was reached.

    >>> above(0.75, 0.5), above(0.4, 0.5), above(0.9, 1)
    (0.5, 0.0, 0.0)
    """
    return max(0.0, (share - floor) / (1 - floor)) if floor < 1 else 0.0


def Scored(
    id: str,
    signature: str,
    *,
    points: int,
    about: str,
    calls: Callable[[int], Iterable[Call]],
    returns: Any,
    judges: Sequence[Judge],
    opens: str = "",
    seeds: Sequence[int] = (1,),
    floor: Floor | None = None,
    told_by: Told | None = None,
    weights: Mapping[str, float] | None = None,
    words: ExerciseWords | None = None,
    limits: Mapping[str, float] | None = None,
    forbids: Sequence[str] = (),
) -> Exercise:
    """An exercise whose answer is measured; the head of this file has an example. Weights default to equal ones."""
    name = signature.partition("(")[0]
    form = Scores(
        id,
        name,
        signature,
        about,
        calls,
        returns,
        tuple(judges),
        opens,
        weights or {"": 1.0},
        floor,
        told_by,
    )
    beside = (opens,) if opens else ()
    return exercise_of(form, points=points, seeds=seeds, beside=beside, words=words, limits=limits, forbids=forbids)
