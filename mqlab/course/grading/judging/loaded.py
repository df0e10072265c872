"""A piece of source that a worker has loaded, and how it stops: used by the desk, seen by checks and the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqlab.course.grading.running.meter import Spent
from mqlab.course.grading.sandbox.limits import Limits


class AnswerStopped(BaseException):
    """An answer gave no result: it took too long, ended its process, or wrote garbage.

    It is not an ``Exception``, so that no check and no simulated node takes it for an error that an answer may raise.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


@dataclass(slots=True)
class Loaded:
    """One piece of source in the worker: an exercise's answer, or a set-up cell."""

    exercise: str
    source: str
    names: tuple[str, ...]
    limits: Limits
    spent: Spent = field(default_factory=Spent)
    stopped: AnswerStopped | None = None
    numbers: dict[str, int] = field(default_factory=dict)
