"""Hidden cases of lab 10: how many seeded days each exercise is judged by, and the store full of traps.

The known-wrong answers are in wrong/lab10.*.diff, one file per exercise.
"""

from __future__ import annotations

from mqlab.teach.cases.lab10 import judges
from mqlab.teach.cases.lab10.days import mixed_keys, odd_day
from mqlab.teach.exercises import Answers, Case, Finding

SEEDED = {
    "lab10.fullest": 1, "lab10.options": 4, "lab10.busiest": 1, "lab10.cost": 1, "lab10.parts": 1, "lab10.failures": 1,
}  # fmt: skip


def _odd_fullest(answers: Answers) -> Finding | None:
    """Equal queues, and one whose beginning is gone."""
    return judges.judge_fullest(answers, odd_day())


def _odd_keys(answers: Answers) -> Finding | None:
    """Messages without keys, with one, with several in any order."""
    return judges.judge_busiest(answers, odd_day(), 3)


def _odd_tags(answers: Answers) -> Finding | None:
    """No tags, tags that contain others."""
    return judges.judge_cost(answers, odd_day(), "orders", ["paid", "已付款"])


def _no_match(answers: Answers) -> Finding | None:
    """Tags that no message of the topic has."""
    return judges.judge_cost(answers, odd_day(), "letters", ["paid"])


def _few_parts(answers: Answers) -> Finding | None:
    """Another number of parts, on the day of a public case."""
    from mqlab.teach.cases.lab10.days import day

    return judges.judge_parts(answers, day(1), 5)


def _mixed_keys(answers: Answers) -> Finding | None:
    """Orders whose messages name their order in different texts of keys."""
    return judges.judge_parts(answers, mixed_keys(), 4)


def _odd_failures(answers: Answers) -> Finding | None:
    """Several copies of one message, one key for all, dead letters."""
    return judges.judge_failures(answers, odd_day())


HIDDEN = {
    "lab10.fullest": (Case("a store whose first file is gone", _odd_fullest),),
    "lab10.busiest": (Case("keys of all kinds", _odd_keys),),
    "lab10.cost": (Case("tags of all kinds", _odd_tags), Case("tags nobody used", _no_match)),
    "lab10.parts": (Case("five parts", _few_parts), Case("keys in any order", _mixed_keys)),
    "lab10.failures": (Case("several copies", _odd_failures),),
}
