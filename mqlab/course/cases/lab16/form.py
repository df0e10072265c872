"""The form of lab 16's exercises: a learner's part in a broker, and one small world for each promise of that part.

    "a crash loses nothing"   a Day in a Lab(parts=…): the learner's part, and the course's for those that it needs
         ├─ BrokenPart        the part broke a rule at this step: the rule, the call, expected, found
         └─ what clients saw  the promises of the day's end

Each promise is worth something, and a part that breaks one of them keeps the worth of the others. In each further life
of the broker the part is the same cell in a new process (``anew``), on the disk that the life before has left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from mqlab.course.kit.days import Day, Played
from mqlab.course.kit.form import exercise_of
from mqlab.course.kit.promises import Promise
from mqlab.course.teach.exercises import Answers, Exercise, Finding
from mqlab.course.teach.lives import anew
from mqlab.lab.parts import OwnParts
from mqlab.lab.parts.broken import ANSWERS, RAISES, BrokenPart
from mqlab.lab.world.lab import play


@dataclass(frozen=True, slots=True)
class BrokerPromise:
    """One promise of a part: what it is called, what it is worth, the day that shows it, what must be true at its end.

    ``day`` makes the day from a seed; ``ends`` are looked at when the day is over.
    """

    name: str
    day: Callable[[int], Day]
    ends: Sequence[Promise] = ()
    worth: float = 1.0


@dataclass(frozen=True)
class BrokerParts:
    """The form of these exercises. ``file`` is the part's name in OwnParts; ``others`` are the parts next to it."""

    in_a_lab: ClassVar[bool] = True
    id: str
    name: str
    file: str
    about: str
    promises: Sequence[BrokerPromise]
    others: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=lambda: {"": 1.0})

    def make(self, seed: int) -> int:
        """The seed: each promise makes its day from it."""
        return seed

    def judge(self, answers: Answers, seed: int) -> Finding | None:
        """Play the day of every promise; the first finding, with the share of the promises that are kept."""
        findings = [self.look(answers, promise, seed) for promise in self.promises]
        wrong = next((finding for finding in findings if finding is not None), None)
        if wrong is None:
            return None
        pairs = zip(self.promises, findings, strict=True)
        kept = sum(promise.worth for promise, finding in pairs if finding is None)
        return replace(wrong, share=kept / sum(promise.worth for promise in self.promises))

    def look(self, answers: Answers, promise: BrokerPromise, seed: int) -> Finding | None:
        """Play the day of one promise. NotImplementedError of a method that is not written goes on."""
        day, plays = promise.day(seed), list[Played]()
        try:
            play(day.story(answers, plays), seed=seed, parts=self._parts(answers), **day.settings)
        except BrokenPart as broken:
            if isinstance(broken.__cause__, NotImplementedError):
                raise broken.__cause__ from None
            lab = plays[-1].lab if plays else None
            wrong = finding_of(broken, promise.name)
            return wrong if lab is None else replace(wrong, lab=lab, step=lab.journal.next_step - 1)
        for ends in promise.ends:
            finding = ends(plays[-1])
            if finding is not None:
                return replace(finding, first_wrong=f"{finding.first_wrong} ({promise.name})", lab=plays[-1].lab)
        return None

    def _parts(self, answers: Answers) -> OwnParts:
        def next_life(name: str, part: Any) -> Any:
            return anew(part, name) if name in answers else part

        return OwnParts(**{**self.others, self.file: answers[self.name]}, renew=next_life)


def finding_of(broken: BrokenPart, promise: str) -> Finding:
    """A broken rule as a finding; ``promise`` is the one whose day it was."""
    general = broken.rule in (RAISES, ANSWERS)
    rule = f"{broken.part}: {broken.rule}" if general else broken.rule
    return Finding(rule, f"{broken.where} ({promise})", InWords(broken.expected), InWords(broken.found))


class InWords(str):
    """A value that is text already, shown as it is.

    >>> [InWords("3 after the crash")]
    [3 after the crash]
    """

    def __repr__(self) -> str:
        return str(self)


def PartOfBroker(
    id: str,
    name: str,
    file: str,
    *,
    points: int,
    about: str,
    promises: Sequence[BrokerPromise],
    others: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (1,),
) -> Exercise:
    """An exercise whose answer is a part of a broker; the head of this file says how it is judged."""
    form = BrokerParts(id, name, file, about, tuple(promises), others or {})
    return exercise_of(form, points=points, seeds=seeds)
