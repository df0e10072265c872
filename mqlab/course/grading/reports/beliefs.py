"""Which wrong ideas a class has: how many students met each, named by belief where the check knows it.

Reports of mqlab.course.grading; for the instructor, in class.html and heat_map.html.

    the case's finding names a belief   ─▶ its claim, in the words of the lab's source
    it names none                       ─▶ the rule that was broken
    the answer raised an exception      ─▶ "the code raised NameError", without the exception's own text
    the answer was stopped              ─▶ "it took too long and was stopped"

A student counts once per idea and exercise, however many cases met it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mqlab.course.grading.judging.cases import UNUSABLE
from mqlab.course.grading.judging.verdict import NOT_JUDGED, NOT_RUN, PASSED, RAISED, STOPPED, CaseResult, GradeRecord
from mqlab.course.grading.reports.redaction import RAISED_RULE, STOPPED_RULES
from mqlab.course.words import has_words, words_of

EXCEPTION = re.compile(r"your code raised (\w+)")
NO_IDEA = (PASSED, NOT_RUN, NOT_JUDGED)


@dataclass(frozen=True, slots=True)
class Met:
    """A wrong idea: how many ``students`` met it in an exercise. ``belief`` is its id, "" where there is none."""

    students: int
    exercise: str
    text: str
    belief: str = ""


def met(records: Sequence[GradeRecord]) -> list[Met]:
    """The wrong ideas of a class, the most frequent first."""
    count: Counter[tuple[str, str, str]] = Counter()
    for record in records:
        for exercise in record.exercises:
            count.update({(exercise.id, *idea_of(exercise.id, case)) for case in exercise.cases if _is_wrong(case)})
    ideas = [Met(students, exercise, text, belief) for (exercise, belief, text), students in count.items()]
    return sorted(ideas, key=lambda idea: (-idea.students, idea.exercise, idea.text))


def _is_wrong(case: CaseResult) -> bool:
    return case.state not in NO_IDEA and bool(case.rule)


def idea_of(exercise: str, case: CaseResult) -> tuple[str, str]:
    """The belief's id ("" where there is none) and the text of the idea that a failed case met."""
    if case.belief:
        return case.belief, _claim(exercise, case.belief) or case.rule
    if case.state == STOPPED:
        return "", STOPPED_RULES.get(case.cause, "it was stopped")
    if case.state == RAISED and case.rule.startswith(UNUSABLE):
        return "", UNUSABLE
    if case.state == RAISED:
        kind = EXCEPTION.match(case.rule)
        return "", f"the code raised {kind[1]}" if kind else RAISED_RULE
    return "", case.rule


def _claim(exercise: str, belief: str) -> str:
    """The claim of a belief; "" if the lab's source has no words for it."""
    lab = exercise.partition(".")[0]
    words = words_of(lab).beliefs if has_words(lab) else {}
    return words[belief].claim if belief in words else ""
