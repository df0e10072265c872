"""What a lab asks, as data: its predictions, and its exercises with their public cases, hints and notes.

Every lab has one manifest, in mqlab.course.cases.

    Manifest lab00 ─┬─ Prediction  question, choices or a number, what to say after the run
                    └─ Exercise    id, points, names to define, cases, three hints, a note after success
                         └─ Case   name, run(answers) -> None or Finding(rule, first wrong thing, expected, found)

Expected values come from the world that a case plays: what the broker answered, what its files hold. Hidden cases,
reference answers and known-wrong answers are elsewhere: a learner's process must not be able to reach them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mqlab.course.teach.said import AskedWrongly
from mqlab.course.teach.tasks import Task

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab

Answers = Mapping[str, Callable[..., Any]]  # the names an exercise asks for, as the learner defined them


class Call:
    """One call of an answer: its arguments by name, in order, and what it has to return.

    ``about`` says in a few words what is special about it; ``to`` is the called name (default: the only one that the
    exercise defines); ``right`` is ``...`` where no single value is right; ``given`` holds what a judge needs to know
    and an answer is not told.

    >>> Call(levels="1s 5s", most=2, right=[(2, 5), (2, 10)], about="a short table")
    call(levels='1s 5s', most=2)
    """

    __slots__ = ("about", "arguments", "given", "right", "to")

    def __init__(
        self, *, right: Any = ..., about: str = "", to: str = "", given: Any = None, **arguments: object
    ) -> None:
        self.arguments: Mapping[str, object] = arguments
        self.right, self.about, self.to, self.given = right, about, to, given

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def __repr__(self) -> str:
        return f"{self.to or 'call'}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with an answer: the rule that it breaks, the first place where this shows, expected and found.

    What a check can show next to it: ``step`` of the journal where it shows first, the ``call`` with its arguments and
    right value, or the failing ``lab``; the ``belief`` (id) that answers like this; the ``share`` of the case's worth
    that the answer keeps, 0 to 1.
    """

    rule: str
    first_wrong: str
    expected: object
    found: object
    step: int | None = None
    call: Call | None = None
    lab: Lab | None = None
    belief: str = ""
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """One check of an answer. ``run`` calls the learner's functions and returns a Finding, or None if all is well.

    ``weight`` is what the case counts next to the exercise's other cases, for partial credit; where no case has a
    weight, it is all or nothing. ``prepare`` makes what the answer is judged by, before the answer is watched.
    """

    name: str
    run: Callable[[Answers], Finding | None]
    weight: float = 0.0
    prepare: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Exercise:
    """One question that code answers. ``case`` makes the case of a seed; a notebook checks ``public_seeds``.

    ``forbids`` names what of the package answers the exercise, with its full path: "mqlab.rocketmq.wire.record.decode".
    """

    id: str
    title: str
    points: int
    defines: tuple[str, ...]
    case: Callable[[int], Case]
    public_seeds: tuple[int, ...]
    hints: tuple[str, str, str]
    note: str  # shown after success
    limits: Mapping[str, float] = field(default_factory=dict)  # while graded: seconds, memory_mb, …; see grading.limits
    forbids: tuple[str, ...] = ()
    form: Any = None  # what the case is made of, if the exercise is one of mqlab.course.kit; see kit.form

    def public_cases(self) -> list[Case]:
        """The cases that ``check`` runs."""
        return [self.case(seed) for seed in self.public_seeds]


def is_table(value: object) -> bool:
    """Whether a value is a table of functions, such as handlers by their request codes."""
    return isinstance(value, dict) and bool(value) and all(map(callable, value.values()))


def why_unusable(answers: Mapping[str, object]) -> str:
    """Why a case cannot use these answers: one of them is a plain value. Empty if it can use all of them.

    A listener need not be callable, so an object of a learner's own class is an answer too; so is a table of functions.

    >>> why_unusable({"stand": 5})
    'stand is bound to an int, which cannot be called: the exercise asks for a function'
    >>> why_unusable({"HANDLERS": {310: print}})
    ''
    """
    for name, value in answers.items():
        kind = type(value)
        if not callable(value) and not is_table(value) and kind.__module__ != "__main__":
            article = "an" if kind.__name__[:1].lower() in "aeiou" else "a"
            what = f"{article} {kind.__name__}, which cannot be called"
            return f"{name} is bound to {what}: the exercise asks for a function"
    return ""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One question to answer before a run: one of ``choices`` (key -> text), or a whole number if there are none."""

    id: str
    question: str
    note: str  # shown when the run has answered
    choices: tuple[tuple[str, str], ...] = ()
    refutations: Mapping[str, str] = field(default_factory=dict)  # key of a choice -> what is said to who chose it

    def problem_with(self, answer: object) -> str:
        """Why this cannot be an answer; empty if it can."""
        if self.choices:
            keys = [key for key, _ in self.choices]
            return (
                ""
                if str(answer) in keys and not isinstance(answer, bool)
                else f"answer one of {', '.join(map(repr, keys))}, not {answer!r}"
            )
        is_number = isinstance(answer, int) and not isinstance(answer, bool)
        return "" if is_number else f"answer a whole number, not {answer!r}"

    def spelled(self, answer: object) -> str:
        """An answer with the text of its choice."""
        text = dict(self.choices).get(str(answer))
        return f"{answer}: {text}" if text else str(answer)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything one lab asks."""

    lab: str
    predictions: tuple[Prediction, ...]
    exercises: tuple[Exercise, ...]
    tasks: tuple[Task, ...] = ()


def manifest(lab: str) -> Manifest:
    """The manifest of a lab ("lab00"). UsageError if the lab does not exist."""
    try:
        module = importlib.import_module(f"mqlab.course.cases.{lab}")
    except ModuleNotFoundError as error:
        if error.name != f"mqlab.course.cases.{lab}":
            raise
        module = None
    asked: Manifest | None = getattr(module, "MANIFEST", None)
    if asked is None:
        raise AskedWrongly(f"there is no lab {lab!r}", hint='an id looks like "lab00.find"')
    return asked


def exercise(exercise_id: str) -> Exercise:
    """One exercise by its id. UsageError lists the existing ones."""
    asked = manifest(exercise_id.partition(".")[0]).exercises
    for exercise in asked:
        if exercise.id == exercise_id:
            return exercise
    raise AskedWrongly(f"there is no exercise {exercise_id!r}", hint=f"there are: {', '.join(e.id for e in asked)}")


def prediction(prediction_id: str) -> Prediction:
    """One prediction by its id. UsageError lists the existing ones."""
    asked = manifest(prediction_id.partition(".")[0]).predictions
    for prediction in asked:
        if prediction.id == prediction_id:
            return prediction
    raise AskedWrongly(f"there is no prediction {prediction_id!r}", hint=f"there are: {', '.join(p.id for p in asked)}")
