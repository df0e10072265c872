"""Predict before the run, then see prediction and result side by side. You may change your mind until then.

Every lab asks for a prediction before it shows a run.

    predict(id)             shows the question with buttons to click (mqlab.course.teach.clicking)
    predict(id, answer)     the same in Python; another answer replaces it until the run has shown what happens
    reveal(id, happened)    shows both, what is to be said to this answer, and the note; then the answer stays

The output of a cell with ``predict`` carries the answer as data, so a saved notebook has it, and a new kernel takes it
from there (mqlab.course.teach.kept).
Predictions give no points: a wrong one teaches more than a right one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mqlab.course.teach.clicking import PREDICTION_MIME, CellQuestion, answer_data, can_be_clicked, show
from mqlab.course.teach.exercises import Prediction, prediction
from mqlab.course.teach.kept import kept_answer
from mqlab.course.teach.record import note_answer
from mqlab.course.teach.said import AskedWrongly, Said
from mqlab.course.words import words_of

CHANGEABLE = "Noted. You can change it until the run shows what happens."
TOO_LATE = "You have seen the run. Restart the kernel to start again."


@dataclass(slots=True)
class _Noted:
    """What is known of one prediction. ``answer`` is ``...`` before one was given; ``shown`` are the cells' outputs."""

    answer: object = ...
    revealed: bool = False
    shown: list[CellQuestion] = field(default_factory=list)


_noted: dict[str, _Noted] = {}


@dataclass(frozen=True, repr=False)
class Predicted(Said):
    """What ``predict`` says; ``data`` is what the saved output has next to it, None before an answer."""

    asked: Prediction | None = None
    data: dict[str, object] | None = None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(include, exclude)
        return bundle if self.data is None else bundle | {PREDICTION_MIME: self.data}


class ToClick(Predicted):
    """The question without an answer in Python: shown with buttons in a notebook."""

    def _ipython_display_(self) -> None:
        asked = self.asked
        if asked is None or not can_be_clicked():
            show(self._repr_mimebundle_())
            return
        noted = _noted[asked.id]
        chosen = "" if noted.answer is ... else str(noted.answer)
        noted.shown.append(CellQuestion(asked, chosen, _below(asked), lambda answer: _clicked(asked, answer)))


def predictions_of(lab: str) -> tuple[Prediction, ...]:
    """The predictions whose words are in the lab's source. UsageError for a lab without words."""
    return tuple(
        Prediction(
            name,
            words.question,
            words.note,
            tuple((choice.key, choice.text) for choice in words.choices),
            {choice.key: choice.refutation for choice in words.choices},
        )
        for name, words in words_of(lab).predictions.items()
    )


def predict(prediction_id: str, answer: object = ...) -> Said:
    """Note an answer; without one, show the question. UsageError for an answer of the wrong kind."""
    asked = prediction(prediction_id)
    noted = _noted.setdefault(prediction_id, _Noted())
    if answer is not ...:
        problem = asked.problem_with(answer)
        if problem:
            raise AskedWrongly(f"{prediction_id}: {problem}", hint=asked.question)
    # 1. What was seen cannot be predicted any more.
    if noted.revealed:
        return _too_late(asked, answer)
    # 2. A new answer replaces the one before it.
    if answer is not ...:
        noted.answer = answer
        return _answered(asked)
    # 3. Without an answer, the question; what was answered before stays chosen, before a restart of the kernel, too.
    if noted.answer is ...:
        noted.answer = _kept(asked)
    said = _answered(asked)
    if noted.answer is ...:
        note = f'Write your answer into the cell, predict("{asked.id}", ...), in place of the dots, and run it.'
        return ToClick("open", asked.question, _choices(asked), note=note, asked=asked)
    return ToClick(said.state, said.headline, said.facts, said.note, asked=asked, data=said.data)


def _kept(asked: Prediction) -> object:
    """What the saved notebook says that was chosen; ``...`` when that is nothing, or no answer to this question."""
    kept = kept_answer(asked.id)
    if kept is None:
        return ...
    answer: object = kept if asked.choices else int(kept) if kept.lstrip("-").isdecimal() else ...
    return ... if answer is ... or asked.problem_with(answer) else answer


def _answered(asked: Prediction) -> Predicted:
    """The question and the answer so far."""
    noted = _noted[asked.id]
    if noted.answer is ...:
        return Predicted("open", asked.question, asked=asked)
    facts = [("you predict", asked.spelled(noted.answer))]
    data = answer_data(asked.id, noted.answer, before_reveal=True)
    return Predicted("note", asked.question, facts, CHANGEABLE, asked=asked, data=data)


def _below(asked: Prediction) -> Predicted:
    """What stands below the buttons: the answer so far."""
    noted = _noted[asked.id]
    if noted.answer is ...:
        return Predicted("open", "Nothing chosen yet. You can change your choice until the run.", asked=asked)
    data = answer_data(asked.id, noted.answer, before_reveal=True)
    said = "You predicted" if noted.revealed else "You predict"
    note = "" if noted.revealed else CHANGEABLE
    return Predicted("note", f"{said} {asked.spelled(noted.answer)}", (), note, asked=asked, data=data)


def _too_late(asked: Prediction, answer: object) -> Predicted:
    """The answer from before the reveal stays; a first one after it is kept as what it is."""
    noted = _noted[asked.id]
    facts = [("you predicted", "nothing")]
    data = None if answer is ... else answer_data(asked.id, answer, before_reveal=False)
    if noted.answer is not ...:
        facts = [("you predicted", asked.spelled(noted.answer))]
        data = answer_data(asked.id, noted.answer, before_reveal=True)
    return Predicted("note", asked.question, facts, TOO_LATE, asked=asked, data=data)


def _clicked(asked: Prediction, answer: str) -> None:
    """A button was pressed: the answer's output changes, in every cell that shows the question."""
    noted = _noted[asked.id]
    if noted.revealed:
        return
    if not asked.choices:
        # The field of a number may be empty, or hold 1e3.
        if not answer.lstrip("-").isdecimal():
            return
        noted.answer = int(answer)
    else:
        noted.answer = answer
    for question in noted.shown:
        question.say(_below(asked), str(noted.answer))


def reveal(prediction_id: str, happened: object) -> Said:
    """Show the prediction next to what happened. After this, a first prediction comes too late."""
    asked = prediction(prediction_id)
    noted = _noted.setdefault(prediction_id, _Noted())
    noted.revealed = True
    _close(asked, noted)
    if noted.answer is ...:
        facts = [("you predicted", "nothing yet"), ("it happened", asked.spelled(happened))]
        return Said("open", asked.question, facts, note=asked.note)
    facts = [("you predicted", asked.spelled(noted.answer)), ("it happened", asked.spelled(happened))]
    right = str(noted.answer) == str(happened)
    note_answer(asked.id, str(noted.answer), right)
    # The refutation speaks to the choice that was made, the note to all.
    words = " ".join(part for part in (asked.refutations.get(str(noted.answer), ""), asked.note) if part)
    return Said("good" if right else "bad", asked.question, facts, note=words)


def _close(asked: Prediction, noted: _Noted) -> None:
    """The buttons in the cells above become text: what is saved can be read without a kernel."""
    chosen = "" if noted.answer is ... else str(noted.answer)
    final = _below(asked) if chosen else Predicted("open", "You predicted nothing.", asked=asked)
    for question in noted.shown:
        question.close(asked, chosen, final)
    noted.shown.clear()


def _choices(asked: Prediction) -> list[tuple[str, str]]:
    return [(repr(key), text) for key, text in asked.choices] or [("answer", "a whole number")]
