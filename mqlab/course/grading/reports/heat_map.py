"""Which cases fail for whom, and which rules are broken most: topics for the next lecture.

Reports of mqlab.course.grading; for the instructor.

    case                         fail   anna  boris  chen ..
    lab01.queue  public  ..      67 %    ✓     ✗      ✗

Students who handed nothing in are left out: they would colour every row.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from mqlab.course.grading.judging.verdict import HIDDEN, MALFORMED, MISSING, NOT_JUDGED, GradeRecord
from mqlab.course.grading.reports.beliefs import met
from mqlab.course.grading.reports.page import frame, table
from mqlab.course.grading.reports.tables import csv_of
from mqlab.course.grading.running.attempts import Effort

MOST_BROKEN = 15
SIGNS = {"passed": "✓", "failed": "✗", "raised": "!", "stopped": "‖", "not run": "·", "not judged": "?"}
Key = tuple[str, str, str]


def page(records: Sequence[GradeRecord], efforts: Sequence[Effort] = ()) -> str:
    """The heat map, the rules broken most, and how often those students checked who handed in a log."""
    known = "✓ passed, ✗ wrong, ! raised, ‖ stopped, · not run, ? failed here and not judged; an empty cell: not begun"
    ideas = [(idea.students, idea.exercise, idea.text) for idea in met(records)[:MOST_BROKEN]]
    rules = Markup("<h2>Rules broken most</h2>{}").format(
        table(["students", "exercise", "idea or rule"], ideas, numbers=[0])
    )
    students, rows = _grid(records)
    shown = [
        [exercise, kind, name, _heat(share), *map(_sign, states)] for (exercise, kind, name), share, states in rows
    ]
    head = ["exercise", "kind", "case", "fail", *students]
    grid = table(head, shown, kind="grid")
    cases = Markup("<h2>Cases</h2><p>{}</p>{}").format(known, grid)
    return frame("Which cases fail", rules, cases, _checks(efforts))


def _checks(efforts: Sequence[Effort]) -> Markup:
    """How often an exercise was checked before it passed: the median of the attempt logs."""
    if not efforts:
        return Markup("")
    rows = []
    for exercise in sorted({effort.exercise for effort in efforts}):
        own = [effort for effort in efforts if effort.exercise == exercise]
        before = sorted(effort.before_pass for effort in own if effort.before_pass is not None)
        rows.append(
            (exercise, len(own), len(before), before[len(before) // 2] if before else "", sum(e.checks for e in own))
        )
    head = ["exercise", "students with a log", "of them passed", "failed checks before passing (median)", "checks"]
    return Markup("<h2>Attempts</h2>{}").format(table(head, rows, numbers=range(1, 5)))


def csv_text(records: Sequence[GradeRecord]) -> str:
    """The same grid as CSV."""
    students, rows = _grid(records)
    head: list[object] = ["exercise", "kind", "case", "share_failed", *students]
    return csv_of([head, *([*key, f"{share:.2f}", *states] for key, share, states in rows)])


def _grid(records: Sequence[GradeRecord]) -> tuple[list[str], list[tuple[Key, float, list[str]]]]:
    handed_in = [record for record in records if record.status not in (MISSING, MALFORMED)]
    students = list(dict.fromkeys(record.student for record in handed_in))
    states: dict[Key, dict[str, str]] = {}
    for record in handed_in:
        for exercise in record.exercises:
            for case in exercise.cases:
                states.setdefault((exercise.id, case.kind, case.name), {})[record.student] = case.state
    rows = []
    # A case that the grader could not judge counts neither as failed nor as passed.
    for key, of_student in states.items():
        judged = [state for state in of_student.values() if state != NOT_JUDGED]
        failed = sum(state != "passed" for state in judged)
        rows.append((key, failed / max(len(judged), 1), [of_student.get(student, "") for student in students]))
    order = {name: index for index, name in enumerate(dict.fromkeys(exercise for exercise, _, _ in states))}
    return students, sorted(rows, key=lambda row: (order[row[0][0]], row[0][1] == HIDDEN, row[0][2]))


def _heat(share: float) -> Markup:
    return Markup('<span class="heat" style="background:rgba(211,84,36,{:.2f})">{:.0f} %</span>').format(
        share * 0.7, share * 100
    )


def _sign(state: str) -> Markup:
    sign = SIGNS.get(state, "")
    if state in ("", "passed"):
        return Markup("{}").format(sign)
    return Markup('<span class="heat" style="background:rgba(211,84,36,.25)">{}</span>').format(sign)
