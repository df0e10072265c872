"""The words that a lab says in addition to its prose: questions, refutations, hints, notes, model answers.

They are written in the lab's source, between its prose and its code. ``make labs`` puts them here: one file per lab,
for all its parts. Manifests, predictions, tasks and hints read them; they are not written by hand.

    solutions/source/07a_retries.py ─┐
    solutions/source/07b_dead.py    ─┴─▶ mqlab/course/words/lab07.json ─▶ words_of("lab07")

``parts.py`` says how long each notebook takes and what it asks; ``paths.py`` are ways through them.
How the source spells them is at the head of solutions/words.py.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mqlab.errors import UsageError

FOLDER = Path(__file__).parent
NEVER = "-"


class Choice(NamedTuple):
    """One answer to choose. ``refutation`` is what its choice is answered, right or wrong."""

    key: str
    text: str
    refutation: str


@dataclass(frozen=True, slots=True)
class PredictionWords:
    """A question before a run. Without choices it asks for a whole number. ``right``: the key that a run will give.

    ``beliefs`` maps the key of a choice to the id of the belief that it stands for. ``later`` is the question as
    ``old_questions`` asks it in a later lab, "" where it is the same, NEVER where it needs its run.
    """

    question: str
    choices: tuple[Choice, ...]
    right: str
    note: str
    beliefs: Mapping[str, str] = field(default_factory=dict)
    later: str = ""


@dataclass(frozen=True, slots=True)
class ExerciseWords:
    """An exercise's title, its three hints, and what is said when its checks pass."""

    title: str
    hints: tuple[str, str, str]
    note: str


@dataclass(frozen=True, slots=True)
class TaskWords:
    """A question about what the learner changed. ``wrong`` maps a name of a wrong answer to what is said to it.

    The name "" stands for every other wrong answer.
    """

    question: str
    wrong: Mapping[str, str]
    note: str


@dataclass(frozen=True, slots=True)
class ReflectionWords:
    """A question without a check, and a model answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class BeliefWords:
    """A wrong belief: the question that brings it out, its claim, and what refutes it."""

    question: str
    claim: str
    refutation: str


@dataclass(frozen=True, slots=True)
class LabWords:
    """All words of one lab."""

    lab: str
    predictions: Mapping[str, PredictionWords] = field(default_factory=dict)
    exercises: Mapping[str, ExerciseWords] = field(default_factory=dict)
    tasks: Mapping[str, TaskWords] = field(default_factory=dict)
    reflections: Mapping[str, ReflectionWords] = field(default_factory=dict)
    beliefs: Mapping[str, BeliefWords] = field(default_factory=dict)


@functools.cache
def words_of(lab: str) -> LabWords:
    """The words of a lab ("lab07"). UsageError if its source has none, or was not built."""
    path = FOLDER / f"{lab}.json"
    if not path.is_file():
        raise UsageError(f"there are no words of {lab}", hint="write them in its source, then run: make labs")
    return from_data(lab, json.loads(path.read_text("utf-8")))


def refutation(belief: str) -> str:
    """What refutes a belief ("lab10.queue_number"), without its full stop, as rules are.

    UsageError for a belief without words.
    """
    lab = belief.partition(".")[0]
    words = words_of(lab).beliefs.get(belief)
    if words is None:
        hint = "write it in the lab's source as a [belief] cell or as a choice, then run: make labs"
        raise UsageError(f"{lab} has no words for the belief {belief!r}", hint=hint)
    return words.refutation.removesuffix(".")


def has_words(lab: str) -> bool:
    """Whether the lab's words are in its source. (Those of older labs are in their manifests.)"""
    return lab.isidentifier() and (FOLDER / f"{lab}.json").is_file()


def from_data(lab: str, data: Mapping[str, Any]) -> LabWords:
    """The words in the content of a file. KeyError or TypeError for content of another form."""
    return LabWords(
        lab,
        predictions={
            name: PredictionWords(**words | {"choices": tuple(Choice(*choice) for choice in words["choices"])})
            for name, words in data["predictions"].items()
        },
        exercises={
            name: ExerciseWords(words["title"], tuple(words["hints"]), words["note"])
            for name, words in data["exercises"].items()
        },
        tasks={name: TaskWords(**words) for name, words in data["tasks"].items()},
        reflections={name: ReflectionWords(**words) for name, words in data["reflections"].items()},
        beliefs={name: BeliefWords(**words) for name, words in data["beliefs"].items()},
    )
