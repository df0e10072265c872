"""A page for one student: points, what passed, what did not and why, and the answers that were judged.

Reports of mqlab.grading; safe to hand out (it shows as much of hidden cases as the instructor chose).

    lab01: 7 of 10 points
      lab01.unit   3 of 3   ✓
      lab01.queue  0 of 4   ✗ Entry n of a queue is at byte 20 * n ..   first wrong, expected, found

Other students do not appear in it.
"""

from __future__ import annotations

from markupsafe import Markup

from mqlab.grading.reports.page import frame, mark, table
from mqlab.grading.reports.redaction import told_cases, told_reason, told_status
from mqlab.grading.verdict import FAILED, GRADED, HIDDEN, PASSED, PUBLIC, CaseResult, ExerciseResult, Record


def page(record: Record, show_hidden: str) -> str:
    """The student's page."""
    points = Markup("<p><b>{} of {} points</b></p>").format(record.scored, record.points)
    status = Markup("")
    if record.status != GRADED:
        status = Markup("<p>Status: <b>{}</b>. {}</p>").format(
            record.status.replace("_", " "), told_status(record, show_hidden)
        )
    rows = [(mark(e.state == PASSED), e.id, e.title, f"{e.scored} of {e.points}", e.state) for e in record.exercises]
    overview = table(["", "exercise", "title", "points", "state"], rows, numbers=[3])
    parts = [_exercise(exercise, show_hidden) for exercise in record.exercises]
    notes = [note for note in record.notes if note.kind in ("duplicate", "not code", "files", "marker")]
    listed = Markup("").join(Markup("<li>{}</li>").format(note.text) for note in notes)
    remarks = Markup("<h2>Remarks</h2><ul>{}</ul>").format(listed) if notes else Markup("")
    return frame(f"{record.lab}: {record.student}", points, status, overview, *parts, remarks)


def _exercise(exercise: ExerciseResult, show_hidden: str) -> Markup:
    # 1. Title, points, and the reason if there are none.
    head = Markup("<h2>{} {} <span class='grey'>{} of {}</span></h2>").format(
        exercise.id, exercise.title, exercise.scored, exercise.points
    )
    reason = told_reason(exercise, show_hidden)
    words = Markup("<p>{}: {}</p>").format(exercise.state, reason) if reason else Markup("")
    # 2. The cases. Only the first public failure is open: it is the one to repair first.
    told = told_cases(exercise, show_hidden)
    first = next((case for case in told if not case.passed and case.kind == PUBLIC), None)
    cases = Markup("").join(_case(case, reason, case is first) for case in told)
    if exercise.state == FAILED and first is not None:
        words += Markup("<p class='grey'>In the notebook, <code>hint(\"{}\")</code> helps.</p>").format(exercise.id)
    # 3. How many cases pass. Of hidden cases this may be all that a student sees.
    counts = [
        f"{passed} of {count} {kind} cases pass"
        for kind in (PUBLIC, HIDDEN)
        for passed, count in [exercise.count(kind)]
        if count
    ]
    summary = Markup("<p>{}</p>").format("; ".join(counts)) if counts else Markup("")
    # 4. The answer, so that a student sees which version was graded.
    source = Markup("")
    if exercise.source:
        source = Markup("<details><summary>Your answer, as it was judged</summary><pre><code>{}</code></pre></details>")
        source = source.format(exercise.source)
    return Markup("{}{}{}{}{}").format(head, words, summary, cases, source)


def _case(case: CaseResult, said: str, opened: bool) -> Markup:
    facts = [("first wrong", case.first_wrong), ("expected", case.expected), ("found", case.found)]
    told = Markup("").join(
        Markup("<dt>{}</dt><dd><code>{}</code></dd>").format(name, value) for name, value in facts if value
    )
    details = Markup("<dl>{}</dl>").format(told) if told else Markup("")
    details += Markup("<pre class='trace'>{}</pre>").format(case.trace) if case.trace else Markup("")
    if details and not opened:
        details = Markup("<details><summary>what was wrong</summary>{}</details>").format(details)
    rule = Markup(": {}").format(case.rule) if case.rule and case.rule != said else Markup("")
    return Markup("<div>{} {} case <i>{}</i>{}{}</div>\n").format(
        mark(case.passed), case.kind, case.name, rule, details
    )
