"""Predict before the run, then see prediction and result side by side. You may change your mind until then.

Every lab asks for a prediction before it shows a run.

    predict(id)             shows the question and its choices
    predict(id, answer)     notes an answer; another one replaces it until the run has shown what happens
    reveal(id, happened)    shows both, what is to be said to this answer, and the note; then the answer stays

Predictions give no points: a wrong one teaches more than a right one.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.teach.exercises import Prediction, prediction
from mqlab.teach.said import AskedWrongly, Said
from mqlab.teach.words import words_of

CHANGEABLE = "Noted. You can change it until the run shows what happens."


@dataclass(slots=True)
class _Noted:
    answer: object
    revealed: bool = False


_noted: dict[str, _Noted] = {}


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
    """Note an answer; without one, only show the question. UsageError for an answer of the wrong kind."""
    asked = prediction(prediction_id)
    noted = _noted.setdefault(prediction_id, _Noted(...))
    if answer is not ...:
        problem = asked.problem_with(answer)
        if problem:
            raise AskedWrongly(f"{prediction_id}: {problem}", hint=asked.question)
    # 1. What was seen cannot be predicted any more.
    if noted.revealed:
        facts = [("you predicted", asked.spelled(noted.answer) if noted.answer is not ... else "nothing")]
        return Said("note", asked.question, facts, note="You have seen the run. Restart the kernel to start again.")
    # 2. A new answer replaces the one before it.
    if answer is not ...:
        noted.answer = answer
    if noted.answer is ...:
        return Said("open", asked.question, _choices(asked), note="Replace ... with your answer and run the cell.")
    return Said("note", asked.question, [("you predict", asked.spelled(noted.answer))], note=CHANGEABLE)


def reveal(prediction_id: str, happened: object) -> Said:
    """Show the prediction beside what happened. After this, a first prediction comes too late."""
    asked = prediction(prediction_id)
    noted = _noted.setdefault(prediction_id, _Noted(...))
    noted.revealed = True
    if noted.answer is ...:
        facts = [("you predicted", "nothing yet"), ("it happened", asked.spelled(happened))]
        return Said("open", asked.question, facts, note=asked.note)
    facts = [("you predicted", asked.spelled(noted.answer)), ("it happened", asked.spelled(happened))]
    # The refutation speaks to the choice that was made, the note to everybody.
    words = " ".join(part for part in (asked.refutations.get(str(noted.answer), ""), asked.note) if part)
    return Said("good" if str(noted.answer) == str(happened) else "bad", asked.question, facts, note=words)


def _choices(asked: Prediction) -> list[tuple[str, str]]:
    return [(repr(key), text) for key, text in asked.choices] or [("answer", "a whole number")]


def forget_predictions() -> None:
    """Forget all predictions, as after a restart of the kernel."""
    _noted.clear()
