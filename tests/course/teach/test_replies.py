"""What a reply names is in the case that it is about: no clock time, order or client of another day.

The answers are the known-wrong ones. A rule is written once for all days, so it may name only what every day has.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

from mqlab.course.grading.submissions.lab_files import lab_numbers
from mqlab.course.material import course_folder
from mqlab.course.teach.exercises import Exercise, exercise, manifest
from tests.course.teach.notebook_answers import names_after

CLOCK_TIME = re.compile(r"\b\d\d:\d\d(?::\d\d)?\b")
"""A time of day, which belongs to one day."""
NUMBERED = re.compile(r"\b(?:order|invoice|member)-\d+\b")
"""An object of one day, by its number. Nodes (billing-1) are named alike in all days."""

wrong_module = importlib.import_module("solutions.wrong")
EXERCISES = [one for number in lab_numbers(course_folder()) for one in manifest(f"lab{number}").exercises]
SAYINGS = [(wrong.id, wrong.says) for wrong in wrong_module.wrong_answers()]


def foreign(text: str) -> list[str]:
    """What a text names that belongs to one day."""
    return [*CLOCK_TIME.findall(text), *NUMBERED.findall(text)]


def rules_of(asked: Exercise) -> list[str]:
    """The rules and the slips' words that an exercise's form holds."""
    form = asked.form
    rules = getattr(form, "rules", {})
    slips = getattr(form, "slips", ())
    return [*(rules.values() if hasattr(rules, "values") else ()), *(slip.says for slip in slips)]


@pytest.mark.parametrize("asked", EXERCISES, ids=lambda asked: asked.id)
def test_no_rule_names_what_belongs_to_one_day(asked: Exercise) -> None:
    assert [(rule, foreign(rule)) for rule in rules_of(asked) if foreign(rule)] == []


def test_no_refutation_that_a_check_says_names_what_belongs_to_one_day() -> None:
    assert [(name, foreign(says)) for name, says in SAYINGS if foreign(says)] == []


@pytest.mark.long
@pytest.mark.parametrize(
    "wrong",
    [one for one in wrong_module.wrong_answers() if one.exercise[3:5] not in ("10", "11", "12")],
    ids=lambda wrong: wrong.id,
)
def test_a_reply_names_only_what_is_in_its_case(wrong: Any) -> None:
    """The rule of a finding may name an order or a time that its own facts show."""
    asked, names = exercise(wrong.exercise), names_after(wrong.exercise, wrong.source())
    given = {name: names[name] for name in asked.defines}
    for case in asked.public_cases():
        try:
            finding = case.run(given)
        except Exception:  # the reply is the exception's own words
            continue
        if finding is not None:
            arguments = finding.call.arguments if finding.call is not None else ""
            facts = f"{finding.first_wrong} {finding.expected} {finding.found} {arguments}"
            assert [one for one in foreign(finding.rule) if one not in facts] == []
            return


def test_what_belongs_to_one_day_is_found() -> None:
    assert foreign("The order-17 of 10:05 waits, 2026-01-01 00:00:07.113") == ["10:05", "00:00:07", "order-17"]
    assert foreign("billing-1 reads 16 queues in 1:2 shares") == []
