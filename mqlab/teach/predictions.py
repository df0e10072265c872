"""Predict before the run, then see prediction and result side by side. The first answer is locked.

Every lab asks for a prediction before it shows a run.

    predict(id, ...)        shows the question and its choices, locks nothing
    predict(id, answer)     locks the first answer until the kernel restarts
    reveal(id, happened)    shows both and the note; a first prediction after this comes too late

Predictions give no points: a wrong one teaches more than a right one.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.teach.exercises import Prediction, prediction
from mqlab.teach.said import AskedWrongly, Said


@dataclass(slots=True)
class _Lock:
    answer: object
    revealed: bool = False


_locks: dict[str, _Lock] = {}


def predict(prediction_id: str, answer: object = ...) -> Said:
    """Lock an answer; ``...`` only shows the question. UsageError for an answer of the wrong kind."""
    asked = prediction(prediction_id)
    lock = _locks.get(prediction_id)
    if answer is ...:
        if lock is not None and lock.answer is not ...:
            return _locked(asked, lock)
        return Said("open", asked.question, _choices(asked), note="Replace ... with your answer and run the cell.")
    problem = asked.problem_with(answer)
    if problem:
        raise AskedWrongly(f"{prediction_id}: {problem}", hint=asked.question)
    if lock is None:
        _locks[prediction_id] = _Lock(answer)
        return Said("note", asked.question, [("you predict", asked.spelled(answer))], note="Locked. Now run it.")
    return _locked(asked, lock, answer)


def _locked(asked: Prediction, lock: _Lock, answer: object = ...) -> Said:
    facts = [("you predict", asked.spelled(lock.answer) if lock.answer is not ... else "nothing")]
    if answer is not ... and answer != lock.answer:
        why = "You have seen the run." if lock.revealed else "The first answer stays: it is the one worth discussing."
        return Said("note", asked.question, facts, note=f"{why} Restart the kernel to start again.")
    return Said("note", asked.question, facts, note="Locked. Now run it.")


def reveal(prediction_id: str, happened: object) -> Said:
    """Show the prediction beside what happened. After this, a first prediction comes too late."""
    asked = prediction(prediction_id)
    lock = _locks.setdefault(prediction_id, _Lock(...))
    lock.revealed = True
    if lock.answer is ...:
        facts = [("you predicted", "nothing yet"), ("it happened", asked.spelled(happened))]
        return Said("open", asked.question, facts, note=asked.note)
    facts = [("you predicted", asked.spelled(lock.answer)), ("it happened", asked.spelled(happened))]
    return Said("good" if lock.answer == happened else "bad", asked.question, facts, note=asked.note)


def _choices(asked: Prediction) -> list[tuple[str, str]]:
    return [(repr(key), text) for key, text in asked.choices] or [("answer", "a whole number")]


def forget_predictions() -> None:
    """Unlock all predictions, as after a restart of the kernel."""
    _locks.clear()
