"""The results of grading: of a case, an exercise, a submission. Plain values that go to JSON and back.

The reports are made of these and of nothing else.

    Record  student lab status reason notes
      └─ ExerciseResult  id points scored state
           └─ CaseResult  name state rule first_wrong expected found call step
    status   graded · timeout · kernel_died · tampered · malformed · missing
    state of an exercise   passed · failed · not started · missing · stopped · not judged
    state of a case        passed · failed · raised · stopped · not run · not judged

An exercise has its points when every public and hidden case passed. If not, it has none, or the share that its cases
weigh where the exercise gives them weights.
Durations are in the record's ``seconds`` only, so that two runs give the same grades to the byte.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

GRADED, TIMEOUT, KERNEL_DIED = "graded", "timeout", "kernel_died"
TAMPERED, MALFORMED, MISSING = "tampered", "malformed", "missing"
STATUSES = (GRADED, TIMEOUT, KERNEL_DIED, TAMPERED, MALFORMED, MISSING)

PASSED, FAILED, NOT_STARTED, STOPPED = "passed", "failed", "not started", "stopped"
RAISED, NOT_RUN = "raised", "not run"
NOT_JUDGED = "not judged"  # the grader's own failure, not the student's: it has to be graded again

PUBLIC, HIDDEN = "public", "hidden"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case: ``rule`` is what was broken (or raised), the rest shows where; all are strings.

    ``cause`` says how a stopped answer ended: timeout, died, garbled, lost. ``belief`` is the id of the wrong idea that
    answers like this, where the case knows it. ``call`` has the arguments with which the answer was called, ``step``
    is the first wrong step of the world that was played. ``weight`` is what the case counts next to the others
    for partial credit, ``share`` what a failed answer keeps of it, 0 to 1.
    """

    name: str
    kind: str
    state: str
    rule: str = ""
    first_wrong: str = ""
    expected: str = ""
    found: str = ""
    trace: str = ""
    cause: str = ""
    belief: str = ""
    call: str = ""
    step: int | None = None
    weight: float = 0.0
    share: float = 0.0

    @property
    def passed(self) -> bool:
        return self.state == PASSED


@dataclass(frozen=True, slots=True)
class Override:
    """Points that the instructor gave by hand, and why. ``by`` and ``at`` say who and when, where that was noted."""

    points: float
    comment: str
    by: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class ExerciseResult:
    """One exercise of one submission. ``source`` is the answer as it was judged.

    ``override`` is there only while reports are made: records keep what was judged.
    """

    id: str
    title: str
    points: int
    state: str
    reason: str = ""
    cases: tuple[CaseResult, ...] = ()
    source: str = ""
    cause: str = ""
    override: Override | None = None

    @property
    def judged_points(self) -> float:
        """The points that the judge gives."""
        return self.points if self.state == PASSED else round(self.points * self.share, 2)

    @property
    def share(self) -> float:
        """What the answer earned of the points, 0 to 1: all or nothing unless the exercise weighs its cases."""
        whole = sum(case.weight for case in self.cases)
        if self.state != FAILED or not whole:
            return float(self.state == PASSED)
        return sum(case.weight * (1.0 if case.passed else case.share) for case in self.cases) / whole

    @property
    def scored(self) -> float:
        """The points that count: the judge's, unless the instructor gave others."""
        return self.judged_points if self.override is None else self.override.points

    def count(self, kind: str) -> tuple[int, int]:
        """How many cases of a kind passed, and how many there are."""
        cases = [case for case in self.cases if case.kind == kind]
        return sum(case.passed for case in cases), len(cases)


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on a submission. ``grave``: it makes sense only as an attempt to manipulate the grading."""

    kind: str
    text: str
    grave: bool = False


@dataclass(frozen=True, slots=True)
class GradeRecord:
    """One submission's grade: there is always one."""

    student: str
    lab: str
    status: str
    reason: str = ""
    file: str = ""
    exercises: tuple[ExerciseResult, ...] = ()
    notes: tuple[Note, ...] = ()
    fingerprint: str = ""
    seconds: float = field(default=0.0, compare=False)

    @property
    def scored(self) -> float:
        return sum(exercise.scored for exercise in self.exercises)

    @property
    def points(self) -> int:
        return sum(exercise.points for exercise in self.exercises)

    @property
    def not_judged(self) -> tuple[str, ...]:
        """The exercises that the grader itself failed to judge, and that got no points by hand."""
        return tuple(
            exercise.id for exercise in self.exercises if exercise.state == NOT_JUDGED and exercise.override is None
        )

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> GradeRecord:
        """The record of ``to_json``; KeyError or TypeError for anything else."""
        exercises = [
            ExerciseResult(
                **{
                    **exercise,
                    "cases": tuple(CaseResult(**case) for case in exercise["cases"]),
                    "override": Override(**exercise["override"]) if exercise.get("override") else None,
                }
            )
            for exercise in data["exercises"]
        ]
        return cls(**{**data, "exercises": tuple(exercises), "notes": tuple(Note(**note) for note in data["notes"])})


def settle(public: list[CaseResult], hidden: list[CaseResult]) -> tuple[str, str]:
    """The state and reason of an exercise that was judged."""
    cases = [*public, *hidden]
    for case in cases:
        if case.state == STOPPED:
            return STOPPED, case.rule
    own = next((case for case in cases if case.state == NOT_JUDGED), None)
    wrong = next((case for case in cases if not case.passed and case.state != NOT_JUDGED), None)
    if own is not None and wrong is None:
        return NOT_JUDGED, own.rule
    if wrong is not None:
        return FAILED, wrong.rule
    return (PASSED, "") if cases else (FAILED, "no case was run")
