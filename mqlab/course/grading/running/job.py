"""One submission's work order: what the trusted kernel needs to judge it, as a file.

Written by mqlab.course.grading.running.execute, read by mqlab.course.grading.running.kernel.

    lab  seed  own  sandbox  answers[exercise: source, names, limits]  set_up[source]  hidden_file  cases_folder
    fresh_workers   a new worker for each exercise: not where a JVM would start in each

It does not say who the student is: nothing in a kernel may depend on that. What a lab makes for each student is made
from ``own``, a text without a name.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from mqlab.course.grading.sandbox.limits import Limits
from mqlab.course.grading.sandbox.walled import Sandbox


@dataclass(frozen=True, slots=True)
class Answer:
    """The text of one answer cell, the names it must define, and the part of the lab that it belongs to."""

    source: str
    names: tuple[str, ...]
    limits: Limits
    part: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A work order; paths are absolute. ``hidden_file`` is empty where only public cases run.

    The first text of ``set_up`` is the lab's own; the others are a submission's, and may fail. Where a lab has parts,
    ``set_up`` is the first part's, and ``later_set_up`` has that of each later part. ``own`` is empty where all
    students are asked the same.
    """

    lab: str
    seed: str
    sandbox: Sandbox
    answers: dict[str, Answer]
    set_up: tuple[str, ...] = ()
    hidden_file: str = ""
    cases_folder: str = ""
    fresh_workers: bool = True
    later_set_up: dict[str, tuple[str, ...]] = field(default_factory=dict)
    own: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Job:
        """The job of ``to_json``."""
        answers = {
            name: Answer(saved["source"], tuple(saved["names"]), Limits.of(saved["limits"]), saved["part"])
            for name, saved in data["answers"].items()
        }
        return cls(
            **{
                **data,
                "answers": answers,
                "sandbox": Sandbox.from_json(data["sandbox"]),
                "set_up": tuple(data["set_up"]),
                "later_set_up": {name: tuple(texts) for name, texts in data["later_set_up"].items()},
            }
        )
