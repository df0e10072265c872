"""The class in numbers: how points are distributed, how hard each exercise was, and which wrong ideas were met.

Reports of mqlab.course.grading; for the instructor.

    points      how many students have 0, 1, 2 .. points of a lab (in about ten steps where a lab has more than 12)
    solved      the share of the students with all points of an exercise
    tells apart the correlation of an exercise's points with the points of all other exercises, -1 to 1

As in classical test theory. Students who handed nothing in are left out: they say nothing about an exercise.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from mqlab.course.grading.judging.verdict import MALFORMED, MISSING, NOT_JUDGED, ExerciseResult, GradeRecord
from mqlab.course.grading.reports.beliefs import met
from mqlab.course.grading.reports.page import filled
from mqlab.course.grading.reports.tables import csv_of, points

MOST_IDEAS = 30
SINGLE_POINTS = 12
FEWEST_FOR_A_CORRELATION = 5
SMALL_CLASS = 50
WEAK = 0.2


@dataclass(frozen=True, slots=True)
class PointsStep:
    """One step of a distribution: "7" or "11 to 15" points, and how many students have them."""

    text: str
    students: int


@dataclass(frozen=True, slots=True)
class Difficulty:
    """One exercise: ``solved`` is a share of ``students``, ``mean`` the mean share of its points.

    ``tells_apart`` is None where it cannot be computed: too few students, or all have the same points.
    """

    exercise: str
    title: str
    students: int
    solved: float
    mean: float
    tells_apart: float | None


def judged(records: Sequence[GradeRecord]) -> list[GradeRecord]:
    """The records that say something about the exercises: of those who handed in a notebook that can be read."""
    return [record for record in records if record.status not in (MISSING, MALFORMED)]


def distribution(records: Sequence[GradeRecord]) -> list[PointsStep]:
    """How many students have how many points of one lab."""
    most = max((record.points for record in records), default=0)
    width = 1 if most <= SINGLE_POINTS else -(-most // 10)
    steps = []
    # Partial credit may give 3.5 points: a student belongs to the step of the whole points that were reached.
    for low in range(0, most + 1, width):
        high = min(low + width - 1, most)
        count = sum(low <= int(record.scored) <= high for record in records)
        steps.append(PointsStep(str(low) if low == high else f"{low} to {high}", count))
    return steps


def difficulties(records: Sequence[GradeRecord]) -> list[Difficulty]:
    """Each exercise of one lab. Exercises that could not be judged are left out, student by student."""
    rows = []
    order = list(dict.fromkeys(exercise.id for record in records for exercise in record.exercises))
    for exercise in order:
        pairs = [
            (result, record.scored - result.scored)
            for record in records
            for result in record.exercises
            if result.id == exercise and result.state != NOT_JUDGED
        ]
        if not pairs:
            continue
        shares = [_share(result) for result, _ in pairs]
        rows.append(
            Difficulty(
                exercise,
                pairs[0][0].title,
                len(pairs),
                sum(share == 1 for share in shares) / len(shares),
                statistics.fmean(shares),
                correlation(shares, [float(rest) for _, rest in pairs]),
            )
        )
    return rows


def _share(exercise: ExerciseResult) -> float:
    return exercise.scored / exercise.points if exercise.points else 0.0


def correlation(shares: Sequence[float], rest: Sequence[float]) -> float | None:
    """Pearson's correlation; None for too few students, or where all of them have the same points."""
    if len(shares) < FEWEST_FOR_A_CORRELATION or len(set(shares)) < 2 or len(set(rest)) < 2:
        return None
    return round(statistics.correlation(shares, rest), 2)


def page(records: Sequence[GradeRecord]) -> str:
    """The page: per lab the distribution and the difficulties, then the wrong ideas."""
    judged_records = judged(records)
    labs = [
        {
            "name": lab,
            "students": len(own),
            "points": points(own[0].points),
            "mean": points(round(statistics.fmean(record.scored for record in own), 2)),
            "median": points(statistics.median(record.scored for record in own)),
            "steps": distribution(own),
            "largest": max(step.students for step in distribution(own)),
            "exercises": difficulties(own),
        }
        for lab, own in _by_lab(judged_records)
    ]
    return str(
        filled(
            "class.html",
            title="The class in numbers",
            labs=labs,
            ideas=met(judged_records)[:MOST_IDEAS],
            small=SMALL_CLASS,
            weak=WEAK,
            students=len({record.student for record in judged_records}),
        )
    )


def csv_text(records: Sequence[GradeRecord]) -> str:
    """The difficulties as CSV."""
    head: list[object] = ["lab", "exercise", "students", "share_solved", "mean_share", "tells_apart"]
    rows: list[list[object]] = [
        [
            lab,
            difficulty.exercise,
            difficulty.students,
            f"{difficulty.solved:.2f}",
            f"{difficulty.mean:.2f}",
            "" if difficulty.tells_apart is None else Decimal(f"{difficulty.tells_apart:.2f}"),
        ]  # a number may begin with a minus
        for lab, own in _by_lab(judged(records))
        for difficulty in difficulties(own)
    ]
    return csv_of([head, *rows])


def ideas_csv(records: Sequence[GradeRecord]) -> str:
    """The wrong ideas as CSV, all of them."""
    head: list[object] = ["students", "exercise", "belief", "idea"]
    return csv_of([head, *([idea.students, idea.exercise, idea.belief, idea.text] for idea in met(judged(records)))])


def _by_lab(records: Sequence[GradeRecord]) -> list[tuple[str, list[GradeRecord]]]:
    labs = sorted({record.lab for record in records})
    return [(lab, [record for record in records if record.lab == lab]) for lab in labs]
