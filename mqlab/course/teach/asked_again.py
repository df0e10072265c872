"""old_questions("lab05"): three questions of labs done before, at the beginning of a lab. Two minutes, no points.

    the record (progress.jsonl)  ──▶ what was wrong, and how long ago  ──▶ three questions to click
                                 ◀── right or wrong, today

    a prediction    asked again with its choices; with words of its own where its lab's cells are needed ("later:")
    a belief        what a failed check has met: its claim and what is true, in either order

A question waits for a day after a wrong answer, and for 7, 28, 112 … days after one, two, three right ones in a row.
The three that have waited longest for their time come first. The first click counts; the saved output keeps it as data
(OLD_MIME), and an instructor's tally reads it there.
"""

from __future__ import annotations

import datetime
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.course.teach.clicking import CellQuestion, can_be_clicked, show, static_choices
from mqlab.course.teach.exercises import Prediction
from mqlab.course.teach.record import AnswerNoted, lab_of, learner_answers, note_answer
from mqlab.course.teach.said import AskedWrongly, Said
from mqlab.course.words import NEVER, has_words, words_of

OLD_MIME = "application/vnd.mqlab.old-question+json"
MOST = 3
HEADLINE = "Old questions: two minutes, no points"
NOTHING = "Nothing to ask yet. What you predict and what your checks find is asked again in later labs."


@dataclass(frozen=True, slots=True)
class OldQuestion:
    """A question that can be asked again: the key of its right choice, and the beliefs that other choices stand for."""

    asked: Prediction
    right: str
    beliefs: tuple[str, ...] = ()

    def answered(self, key: str, lab: str) -> AskedAgain:
        """What is said to an answer, with what a saved output keeps of it."""
        is_right = key == self.right
        facts = [] if is_right else [("right", self.asked.spelled(self.right))]
        words = " ".join(part for part in (self.asked.refutations.get(key, ""), self.asked.note) if part)
        data = {"version": 1, "question": self.asked.id, "answer": key, "asked_in": lab}
        chosen = f"You answered {self.asked.spelled(key)}"
        return AskedAgain("good" if is_right else "bad", chosen, facts, words, data=data)


@dataclass(frozen=True, repr=False)
class AskedAgain(Said):
    """What is said to one answer; ``data`` is what the saved output has next to it."""

    data: dict[str, object] | None = None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(include, exclude)
        return bundle if self.data is None else bundle | {OLD_MIME: self.data}


@dataclass(frozen=True, repr=False)
class OldQuestions(Said):
    """The three questions of a lab, with buttons in a notebook."""

    lab: str = ""
    questions: Sequence[tuple[OldQuestion, str]] = ()  # with the answer of today's lab, "" before it

    def text(self) -> str:
        """The headline, then each question with its choices and what is said to its answer."""
        shown = [_as_text(question, answer, self.lab) for question, answer in self.questions]
        return "\n\n".join([super().text(), *shown])

    def _ipython_display_(self) -> None:
        clicks = can_be_clicked()
        show(Said(self.state, self.headline, note="" if clicks and self.questions else self.note)._repr_mimebundle_())
        for question, answer in self.questions:
            if answer or not clicks:
                show(static_choices(question.asked, answer))
            if answer:
                show(question.answered(answer, self.lab)._repr_mimebundle_())
            elif clicks:
                _Clicked(question, self.lab)


class _Clicked:
    """A question with buttons; its first click counts."""

    def __init__(self, question: OldQuestion, lab: str) -> None:
        self._question, self._lab, self._open = question, lab, True
        waiting = AskedAgain("open", "Your first click counts.")
        # No cell of text above asks it.
        self._cell = CellQuestion(question.asked, "", waiting, self._click, legend=question.asked.question)

    def _click(self, key: str) -> None:
        if self._open:
            self._open = False
            _note(self._question, key, self._lab)
            self._cell.close(self._question.asked, key, self._question.answered(key, self._lab))


def old_questions(lab: str, *answers: object) -> Said:
    """Ask three questions of labs before ``lab``; ``answers`` are their keys in order, where buttons cannot be clicked.

    UsageError for a lab without words, or for an answer that is not one of the choices.
    """
    if not has_words(lab):
        raise AskedWrongly(f"there is no lab {lab!r}", hint='write it as in old_questions("lab05")')
    record = learner_answers()
    today = {answered.question: answered.answer for answered in record if _is_of(answered, lab)}
    chosen = _chosen(lab, record, datetime.date.today())
    for question, answer in zip(chosen, answers, strict=False):
        if answer is not ... and question.asked.id not in today:
            problem = question.asked.problem_with(answer)
            if problem:
                raise AskedWrongly(f"{question.asked.id}: {problem}", hint=question.asked.question)
            _note(question, str(answer), lab)
            today[question.asked.id] = str(answer)
    asked = [(question, today.get(question.asked.id, "")) for question in chosen]
    if not asked:
        return Said("open", HEADLINE, note=NOTHING)
    note = f'Write your answers into the cell, as in old_questions("{lab}", {", ".join(["..."] * len(asked))}).'
    return OldQuestions("note", HEADLINE, note=note, lab=lab, questions=asked)


def _is_of(answered: AnswerNoted, lab: str) -> bool:
    """Whether an answer was given to this lab's old questions."""
    return answered.asked_in == lab and not answered.is_first


def _note(question: OldQuestion, key: str, lab: str) -> None:
    note_answer(question.asked.id, key, key == question.right, lab)


def _as_text(question: OldQuestion, answer: str, lab: str) -> str:
    choices = static_choices(question.asked, answer)["text/plain"]
    return f"{choices}\n{question.answered(answer, lab).text()}" if answer else choices


def _chosen(lab: str, record: Sequence[AnswerNoted], today: datetime.date) -> list[OldQuestion]:
    """Up to three questions: those this lab has asked already, then those that have waited longest for their time."""
    history: dict[str, list[AnswerNoted]] = {}
    for answered in record:
        if lab_of(answered.question) < lab and not _is_of(answered, lab):
            history.setdefault(answered.question, []).append(answered)
    asked_before = {answered.question for answered in record if _is_of(answered, lab)}
    waiting = sorted(history, key=lambda name: -_waited(history[name], today))
    can_be_asked = [question for name in waiting if (question := question_of(name)) is not None]
    # A prediction asks what its choices believe, so such a belief is not asked next to it.
    doubled = {belief for question in can_be_asked for belief in question.beliefs} - asked_before
    can_be_asked = [question for question in can_be_asked if question.asked.id not in doubled]
    first = sorted(can_be_asked, key=lambda question: question.asked.id not in asked_before)[:MOST]
    return [question for question in can_be_asked if question in first]


def _waited(answers: Sequence[AnswerNoted], today: datetime.date) -> float:
    """How long a question has waited, in units of its own waiting time; the day of the answer counts as one."""
    streak = next((number for number, old in enumerate(reversed(answers)) if not old.right), len(answers))
    days = (today - datetime.date.fromisoformat(answers[-1].on)).days + 1
    return days / (7 * 4 ** (streak - 1) if streak else 1)


def question_of(name: str) -> OldQuestion | None:
    """The question of a prediction's or a belief's id; None for one that has no words, or is asked in its lab only."""
    words = words_of(lab_of(name)) if has_words(lab_of(name)) else None
    if words is None:
        return None
    if name in words.predictions:
        asked = words.predictions[name]
        choices = tuple((choice.key, choice.text) for choice in asked.choices)
        refutations = {choice.key: choice.refutation for choice in asked.choices}
        question = Prediction(name, asked.later or asked.question, asked.note, choices, refutations)
        return (
            OldQuestion(question, asked.right, tuple(asked.beliefs.values()))
            if choices and asked.later != NEVER
            else None
        )
    if name in words.beliefs:
        belief = words.beliefs[name]
        claim_first = zlib.crc32(name.encode()) % 2 == 0
        texts = (belief.claim, belief.refutation) if claim_first else (belief.refutation, belief.claim)
        asked_again = Prediction(name, belief.question, "", tuple(zip("ab", texts, strict=True)))
        return OldQuestion(asked_again, "b" if claim_first else "a")
    return None
