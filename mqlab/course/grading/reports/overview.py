"""The class at a glance: all scores, with links to the feedback pages.

Reports of mqlab.course.grading; for the instructor.

    student   status   score   lab00   lab01   ..        links to each feedback page
    exercise  points   passed  failed  not started ..

Students are not ranked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

from markupsafe import Markup

from mqlab.course.grading.judging.verdict import FAILED, MISSING, NOT_JUDGED, NOT_STARTED, PASSED, STOPPED, GradeRecord
from mqlab.course.grading.reports.page import frame, table
from mqlab.course.grading.reports.tables import by_student, labs_of, points, worst
from mqlab.course.grading.running.gradebook import file_name


def base_name(record: GradeRecord) -> str:
    """The name of a record's files, without suffix."""
    return f"{file_name(record.student)}.{record.lab}"


def page(records: Sequence[GradeRecord], seed: str) -> str:
    """The overview page."""
    counts = Counter(record.status for record in records)
    said = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in sorted(counts.items()))
    top = Markup(
        "<p>{} submissions: {}. Class seed: <code>{}</code>.</p>"
        '<p><a href="predictions.html">What the class predicted</a> · <a href="class.html">The class in numbers</a> · '
        '<a href="heat_map.html">Which cases fail</a> · <a href="tampering.html">Possible manipulation</a> · '
        '<a href="grades.csv">grades.csv</a> · <a href="grades.json">grades.json</a> · '
        '<a href="junit.xml">junit.xml</a></p>'
    ).format(len(records), said or "none", seed)
    unjudged = [record for record in records if record.not_judged]
    if unjudged:
        top += Markup(
            '<p class="bad"><b>{} submissions have exercises that could not be judged</b>: a case failed on this '
            "machine before it called the answer. No student caused this. See “why” below, remove the cause, and "
            "repeat the command with --resume: these are graded again.</p>"
        ).format(len(unjudged))
    exercises = Markup("<h2>Exercises</h2>{}").format(_exercises(records))
    return frame("Grades", top, _students(records), _by_hand(records), exercises)


def _by_hand(records: Sequence[GradeRecord]) -> Markup:
    """The points that were given by hand, with their comments; nothing where there are none."""
    rows = [
        (
            record.student,
            exercise.id,
            points(exercise.override.points),
            points(exercise.judged_points),
            exercise.override.comment,
            exercise.override.by,
            exercise.override.at[:10],
        )
        for record in records
        for exercise in record.exercises
        if exercise.override is not None
    ]
    if not rows:
        return Markup("")
    head = ["student", "exercise", "given", "judged", "comment", "by", "on"]
    return Markup("<h2>* Points given by hand</h2>{}").format(table(head, rows, numbers=[2, 3]))


def _students(records: Sequence[GradeRecord]) -> Markup:
    labs = list(labs_of(records))
    rows = []
    for student, own in by_student(records).items():
        cells: list[object] = [student, worst(record.status for record in own).replace("_", " ")]
        cells.append(f"{points(sum(record.scored for record in own))} of {sum(record.points for record in own)}")
        by_lab = {record.lab: record for record in own}
        for lab in labs:
            record = by_lab.get(lab)
            cells.append(_link(record) if record is not None else "")
        cells.append("; ".join(record.reason for record in own if record.reason))
        rows.append(cells)
    return table(["student", "status", "points", *labs, "why"], rows, numbers=range(2, 3 + len(labs)))


def _link(record: GradeRecord) -> Markup:
    star = "*" if any(exercise.override for exercise in record.exercises) else ""
    return Markup('<a href="feedback/{}.html">{} of {}{}</a>').format(
        quote(base_name(record)), points(record.scored), record.points, star
    )


def _exercises(records: Sequence[GradeRecord]) -> Markup:
    unjudged = (NOT_JUDGED,) if any(record.not_judged for record in records) else ()
    states = (PASSED, FAILED, STOPPED, NOT_STARTED, MISSING, *unjudged)
    counts: dict[str, Counter[str]] = {}
    heads = {}
    for record in records:
        for exercise in record.exercises:
            counts.setdefault(exercise.id, Counter())[exercise.state] += 1
            heads[exercise.id] = (exercise.id, exercise.title, exercise.points)
    rows = [[*heads[name], *(count[state] for state in states)] for name, count in sorted(counts.items())]
    return table(["exercise", "title", "points", *states], rows, numbers=range(2, 9))
