from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlab.errors import UsageError
from mqlab.teach import exercises, predict, reveal
from mqlab.teach.exercises import Manifest, Prediction
from mqlab.teach.predictions import forget_predictions

KEPT = Prediction(
    "labxx.kept",
    "Где сообщение после ack?",
    "It stays. 还在。",
    (("stays", "it stays"), ("gone", "deleted")),
    {"stays": "So it is.", "gone": "Nothing was deleted."},
)
COUNT = Prediction("labxx.count", "How many?", "Each group reads all.")


@pytest.fixture(autouse=True)
def a_lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    true_manifest = exercises.manifest
    made_up = Manifest("labxx", (KEPT, COUNT), ())
    monkeypatch.setattr(exercises, "manifest", lambda lab: made_up if lab == "labxx" else true_manifest(lab))
    forget_predictions()
    yield
    forget_predictions()


def test_without_an_answer_it_only_asks() -> None:
    for said in (predict("labxx.kept", ...), predict("labxx.kept")):
        assert said.state == "open" and "'stays'  it stays" in str(said) and "Где сообщение" in str(said)
    assert "Noted" in str(predict("labxx.kept", "gone"))


def test_an_answer_can_be_changed_until_the_run_has_shown_what_happens() -> None:
    predict("labxx.kept", "stays")
    assert "gone: deleted" in str(predict("labxx.kept", "gone"))
    assert "gone: deleted" in str(predict("labxx.kept"))
    assert dict(reveal("labxx.kept", "stays").facts) == {
        "you predicted": "gone: deleted",
        "it happened": "stays: it stays",
    }
    late = predict("labxx.kept", "stays")
    assert "gone: deleted" in str(late) and "You have seen the run" in str(late)
    assert reveal("labxx.kept", "stays").state == "bad"


def test_what_is_said_depends_on_the_choice() -> None:
    predict("labxx.kept", "gone")
    assert reveal("labxx.kept", "stays").note == "Nothing was deleted. It stays. 还在。"
    forget_predictions()
    predict("labxx.kept", "stays")
    assert reveal("labxx.kept", "stays").note == "So it is. It stays. 还在。"
    forget_predictions()
    assert reveal("labxx.kept", "stays").note == "It stays. 还在。"


def test_keys_that_are_numbers_compare_with_numbers() -> None:
    predict("lab00.after_ack", 3)
    assert reveal("lab00.after_ack", 3).state == "good" and reveal("lab00.after_ack", "3").state == "good"


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
    assert predict("labxx.kept", "stays").note.startswith("Noted")


@pytest.mark.parametrize("answer", ["3", 3.0, True])
def test_a_number_must_be_a_whole_number(answer: object) -> None:
    with pytest.raises(UsageError, match="answer a whole number"):
        predict("labxx.count", answer)


def test_unknown_ids_name_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"labxx\.kept, labxx\.count"):
        predict("labxx.nothing", 1)
