"""Predict before the run, then see both: the answer is locked when it is given and cannot be made to fit afterwards.

Mirrors: nothing in RocketMQ. Every lab asks before it shows.

    predict(id, ...)        the question and its choices                     nothing locked
    predict(id, answer)     locked: the first answer stays                   until the kernel restarts
    reveal(id, happened)    both, statically, and what follows from it       later predictions are too late

Left out: marks for predictions. A wrong one teaches more than a right one.
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
    """Lock an answer; with ``...`` only show the question. UsageError for an answer of the wrong kind."""
    asked = prediction(prediction_id)
    lock = _locks.get(prediction_id)
    if answer is ...:
        if lock is not None and lock.answer is not ...:
            return _locked(asked, lock)
        return Said("open", asked.question, _choices(asked), note="Replace ... by your answer and run the cell.")
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
        why = "The run has been seen." if lock.revealed else "The first answer stays: it is the one worth looking at."
        return Said("note", asked.question, facts, note=f"{why} Restart the kernel to begin again.")
    return Said("note", asked.question, facts, note="Locked. Now run it.")


def reveal(prediction_id: str, happened: object) -> Said:
    """Show what was predicted beside what happened. From now on a first prediction comes too late."""
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
    """Unlock everything, as a restarted kernel does."""
    _locks.clear()
