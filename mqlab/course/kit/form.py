"""What an exercise of the kit is made of: its form makes cases from seeds, for the notebook and for grading.

    Exercise.form ─┬─ Values  (Pure, Fields)   calls ─▶ an answer's value ─▶ shape, slips, rules ─▶ Finding
                   ├─ Tables  (Rows)           calls ─▶ an answer's rows ─▶ slips, rules, promises ─▶ Finding
                   └─ World                    a Day ─▶ played with the answer ─▶ promises ─▶ Finding

``variants`` is for what is not in the package: hidden cases of the same generator, with names of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mqlab.course.teach.exercises import Answers, Case, Exercise, Finding
from mqlab.course.words import ExerciseWords, has_words, words_of

SECONDS = 5.0
"""How long a public check may take."""

NO_WORDS = ExerciseWords("", ("", "", ""), "")


class Form(Protocol):
    """What makes an exercise's cases."""

    @property
    def id(self) -> str:
        """The exercise's id, such as "lab07.schedule"."""

    @property
    def name(self) -> str:
        """The name that the exercise asks for."""

    @property
    def about(self) -> str:
        """What its cases are, in a few words."""

    @property
    def weights(self) -> Mapping[str, float]:
        """What its cases count, by name; "" for those made from a seed. Empty: all or nothing."""

    def judge(self, answers: Answers, trial: Any) -> Finding | None:
        """The first thing that is wrong with the answers, for what a maker made; None if all is well."""

    def make(self, seed: int) -> Any:
        """What the answers are judged by, from a seed."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A special case: its name, and what makes it from a seed. The exercise's ``weights`` may name it."""

    name: str
    make: Callable[[int], Any]


def case_of(form: Form, name: str, make: Callable[[], Any], weight_of: str | None = None) -> Case:
    """One case; what it is judged by is made when it is run."""
    ready: list[Any] = []

    def prepare() -> None:
        ready[:] = [make()]

    def run(answers: Answers) -> Finding | None:
        return form.judge(answers, ready.pop() if ready else make())

    weight = form.weights.get(name if weight_of is None else weight_of, 0.0)
    return Case(name, run, weight, prepare)


def seeded(form: Form) -> Callable[[int], Case]:
    """The maker of an exercise's cases from seeds."""
    return lambda seed: case_of(form, f"{form.about}, seed {seed}", lambda: form.make(seed), "")


def exercise_of(
    form: Form,
    *,
    points: int,
    seeds: Sequence[int],
    beside: Sequence[str] = (),
    words: ExerciseWords | None = None,
    limits: Mapping[str, float] | None = None,
    forbids: Sequence[str] = (),
) -> Exercise:
    """The exercise that a form judges. It asks for the form's name and those ``beside`` it.

    ``words``: title, hints and note; without them those of the lab's source.
    """
    lab = form.id.partition(".")[0]
    said = words or (words_of(lab).exercises.get(form.id, NO_WORDS) if has_words(lab) else NO_WORDS)
    return Exercise(
        form.id,
        said.title,
        points,
        (form.name, *beside),
        seeded(form),
        tuple(seeds),
        said.hints,
        said.note,
        limits or {},
        tuple(forbids),
        form,
    )


def variants(asked: Exercise, *special: Variant) -> Callable[[int], tuple[Case, ...]]:
    """Special cases of an exercise, for a lab's hidden file: each is made from the class's seed and its own number."""

    def cases(seed: int) -> tuple[Case, ...]:
        return tuple(
            case_of(asked.form, variant.name, functools.partial(variant.make, seed + number))
            for number, variant in enumerate(special)
        )

    return cases


def first(findings: Iterable[Finding | None]) -> Finding | None:
    """The first finding there is."""
    return next((finding for finding in findings if finding is not None), None)
