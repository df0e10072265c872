from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlab.errors import UsageError
from mqlab.teach import exercises, predict, reveal
from mqlab.teach.exercises import Manifest, Prediction
from mqlab.teach.predictions import forget_predictions

KEPT = Prediction(
    "labxx.kept", "Где сообщение после ack?", "It stays. 还在。", (("stays", "it stays"), ("gone", "deleted"))
)
COUNT = Prediction("labxx.count", "How many?", "Each group reads all.")


@pytest.fixture(autouse=True)
def a_lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(exercises, "manifest", lambda lab: Manifest(lab, (KEPT, COUNT), ()))
    forget_predictions()
    yield
    forget_predictions()


def test_ellipsis_asks_and_locks_nothing() -> None:
    said = predict("labxx.kept", ...)
    assert said.state == "open" and "'stays'  it stays" in str(said) and "Где сообщение" in str(said)
    assert "Locked" in str(predict("labxx.kept", "gone"))


def test_the_first_answer_stays() -> None:
    predict("labxx.kept", "gone")
    said = predict("labxx.kept", "stays")
    assert "gone: deleted" in str(said) and "The first answer stays" in str(said)
    assert dict(reveal("labxx.kept", "stays").facts) == {
        "you predicted": "gone: deleted",
        "it happened": "stays: it stays",
    }


def test_running_the_cell_again_says_the_same() -> None:
    assert str(predict("labxx.kept", "gone")) == str(predict("labxx.kept", "gone"))


def test_reveal_shows_both_and_the_note() -> None:
    predict("labxx.count", 3)
    assert reveal("labxx.count", 6).state == "bad"
    assert reveal("labxx.count", 3).state == "good"
    assert "Each group reads all." in str(reveal("labxx.count", 6).html())


def test_after_the_reveal_a_prediction_comes_too_late() -> None:
    said = reveal("labxx.kept", "stays")
    assert said.state == "open" and "nothing yet" in str(said)
    late = predict("labxx.kept", "stays")
    assert "nothing" in str(late) and "You have seen the run" in str(late)
    assert reveal("labxx.kept", "stays").state == "open"


@pytest.mark.parametrize("answer", ["vanishes", 3, None, True])
def test_a_choice_must_be_one_of_the_choices(answer: object) -> None:
    with pytest.raises(UsageError, match="answer one of 'stays', 'gone'"):
        predict("labxx.kept", answer)
    assert predict("labxx.kept", "stays").note.startswith("Locked")


@pytest.mark.parametrize("answer", ["3", 3.0, True])
def test_a_number_must_be_a_whole_number(answer: object) -> None:
    with pytest.raises(UsageError, match="answer a whole number"):
        predict("labxx.count", answer)


def test_unknown_ids_name_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"labxx\.kept, labxx\.count"):
        predict("labxx.nothing", 1)
