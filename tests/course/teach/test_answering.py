"""Your-turn questions: the learner's own world decides what is right, and a wrong answer is told what it counted."""

from __future__ import annotations

import pytest

from mqlab.course import answer
from mqlab.course.teach import answering
from mqlab.course.teach.answering import ANSWER_MIME
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.tasks import Task
from mqlab.course.words import LabWords, TaskWords
from mqlab.errors import UsageError

RULE = Task(
    "labxx.waiting",
    right=lambda queue: sum(one > 3 for one in queue),
    wrong={"all": len, "done": lambda queue: sum(one <= 3 for one in queue)},
    unready=lambda queue: "" if queue else "send something first",
)
WORDS = TaskWords("How many wait?", {"all": "Those are all.", "done": "Those are done.", "": "Count again."}, "Yes.")


@pytest.fixture(autouse=True)
def a_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "manifest", lambda lab: Manifest(lab, (), (), (RULE,)))
    monkeypatch.setattr(answering, "words_of", lambda lab: LabWords(lab, tasks={"labxx.waiting": WORDS}))


def test_nothing_answered_yet_asks() -> None:
    said = answer("labxx.waiting", ..., [1, 5])
    assert said.state == "open" and said.headline == "How many wait?"
    assert ANSWER_MIME not in said._repr_mimebundle_()


@pytest.mark.parametrize(
    ("value", "queue", "state", "note"),
    [
        (2, [1, 5, 6], "good", "Yes."),
        (3, [1, 5, 6], "bad", "Those are all."),
        (1, [1, 5, 6], "bad", "Those are done."),
        (9, [1, 5, 6], "bad", "Count again."),
        (1, [9], "good", "Yes."),  # another world, another right answer; it is not told what a wrong one counts
        ("2", [1, 5, 6], "bad", "Count again."),
    ],
)
def test_the_world_that_was_given_decides(value: object, queue: list[int], state: str, note: str) -> None:
    said = answer("labxx.waiting", value, queue)
    assert (said.state, said.note) == (state, note)
    kept = {"version": 1, "task": "labxx.waiting", "right": state == "good"}
    assert said._repr_mimebundle_()[ANSWER_MIME] == kept


def test_a_world_that_the_question_does_not_fit_is_told_why() -> None:
    said = answer("labxx.waiting", 0, [])
    assert said.state == "open" and "send something first" in said.headline


def test_wrong_calls_are_told_what_is_missing() -> None:
    with pytest.raises(UsageError, match="cannot be judged by what was given"):
        answer("labxx.waiting", 2)
    with pytest.raises(UsageError, match=r"there are: labxx\.waiting"):
        answer("labxx.nothing", 2)
    with pytest.raises(TypeError):  # a mistake in a rule is not the learner's
        answer("labxx.waiting", 2, ["a"])
