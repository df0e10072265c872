from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlab.course import predict, reveal
from mqlab.course.teach import clicking, exercises, predictions
from mqlab.course.teach.clicking import PREDICTION_MIME
from mqlab.course.teach.exercises import Manifest, Prediction
from mqlab.errors import UsageError

KEPT = Prediction(
    "labxx.kept",
    "Где сообщение после ack?",
    "It stays. 还在。",
    (("stays", "it stays"), ("gone", "deleted")),
    {"stays": "So it is.", "gone": "Nothing was deleted."},
)
COUNT = Prediction("labxx.count", "How many?", "Each group reads all.")


@pytest.fixture(autouse=True)
def a_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    true_manifest = exercises.manifest
    made_up = Manifest("labxx", (KEPT, COUNT), ())
    monkeypatch.setattr(exercises, "manifest", lambda lab: made_up if lab == "labxx" else true_manifest(lab))
    monkeypatch.setattr(predictions, "_noted", {})


def test_without_an_answer_it_only_asks() -> None:
    for said in (predict("labxx.kept", ...), predict("labxx.kept")):
        assert said.state == "open" and "'stays'  it stays" in str(said) and "Где сообщение" in str(said)
    assert "Noted" in str(predict("labxx.kept", "gone"))


def test_names_between_backticks_are_code_in_the_question_and_its_choices() -> None:
    asked = Prediction("labxx.code", "Is `a < b`?", "It is.", (("yes", "`a` is less"), ("no", "it is not")))
    shown = clicking.static_choices(asked, "yes")
    assert "Is <code>a &lt; b</code>?" in shown["text/html"] and "<code>a</code> is less" in shown["text/html"]
    assert shown["text/plain"].startswith("Is `a < b`?\n  ● yes: `a` is less")


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


def test_what_is_said_depends_on_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    predict("labxx.kept", "gone")
    assert reveal("labxx.kept", "stays").note == "Nothing was deleted. It stays. 还在。"
    monkeypatch.setattr(predictions, "_noted", {})
    predict("labxx.kept", "stays")
    assert reveal("labxx.kept", "stays").note == "So it is. It stays. 还在。"
    monkeypatch.setattr(predictions, "_noted", {})
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


def saved(said: object) -> object:
    return said._repr_mimebundle_().get(PREDICTION_MIME)  # type: ignore[attr-defined]


def test_the_output_carries_the_answer_as_data() -> None:
    assert saved(predict("labxx.kept")) is None
    expected = {"version": 1, "prediction": "labxx.kept", "answer": "gone", "before_reveal": True}
    assert saved(predict("labxx.kept", "gone")) == expected
    assert saved(predict("labxx.kept")) == expected
    reveal("labxx.kept", "stays")
    assert saved(predict("labxx.kept", "stays")) == expected
    json.dumps(expected)


def test_an_answer_after_the_reveal_is_kept_as_such() -> None:
    reveal("labxx.count", 3)
    late = {"version": 1, "prediction": "labxx.count", "answer": "3", "before_reveal": False}
    assert saved(predict("labxx.count", 3)) == late
    assert saved(predict("labxx.count")) is None


@pytest.fixture()
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[dict[str, Any]]]]:
    """What a notebook shows of each cell's outputs, the newest state last; every process counts as a notebook."""
    outputs: list[list[dict[str, Any]]] = []

    class Handle:
        def __init__(self, bundle: dict[str, Any]) -> None:
            self.states = [bundle]
            outputs.append(self.states)

        def update(self, bundle: dict[str, Any], raw: bool) -> None:
            assert raw
            self.states.append(bundle)

    monkeypatch.setattr(clicking, "show", Handle)
    monkeypatch.setattr(predictions, "can_be_clicked", lambda: True)
    yield outputs


def test_a_click_changes_the_answers_output_and_the_reveal_takes_the_buttons_away(
    shown: list[list[dict[str, Any]]],
) -> None:
    predict("labxx.kept")._ipython_display_()  # type: ignore[attr-defined]
    question, answer = shown
    assert set(question[0]) == {"text/plain", "text/html"} and "Где" in question[0]["text/plain"]
    assert "data-mqlab-place" in question[0]["text/html"] and "Run this cell to choose" in question[0]["text/html"]
    assert "Nothing chosen yet" in answer[0]["text/plain"] and PREDICTION_MIME not in answer[0]
    buttons = predictions._noted["labxx.kept"].shown[0]._buttons
    buttons.answer = "stays"
    buttons.answer = "gone"
    assert [state[PREDICTION_MIME]["answer"] for state in answer[1:]] == ["stays", "gone"]
    assert len(question) == 1  # the focus stays on the button
    assert reveal("labxx.kept", "stays").note.startswith("Nothing was deleted.")
    assert "<script" not in question[-1]["text/html"] and "● gone" in question[-1]["text/plain"]
    assert answer[-1][PREDICTION_MIME]["answer"] == "gone"
    buttons.answer = "stays"
    assert "gone" in str(predict("labxx.kept")) and len(answer) == 4


def test_the_field_of_a_number_takes_whole_numbers_only(shown: list[list[dict[str, Any]]]) -> None:
    predict("labxx.count")._ipython_display_()  # type: ignore[attr-defined]
    buttons = predictions._noted["labxx.count"].shown[0]._buttons
    for typed in ("", "1e3", "7"):
        buttons.answer = typed
    assert [state.get(PREDICTION_MIME, {}).get("answer") for state in shown[1]] == [None, "7"]
    assert reveal("labxx.count", 7).state == "good"


def test_without_anywidget_or_a_kernel_there_is_the_python_form(monkeypatch: pytest.MonkeyPatch) -> None:
    bundles: list[dict[str, Any]] = []
    monkeypatch.setattr(predictions, "show", bundles.append)
    predict("labxx.kept")._ipython_display_()  # type: ignore[attr-defined]
    assert 'predict("labxx.kept", ...)' in bundles[0]["text/plain"]

    class Shell:
        kernel = object()

    monkeypatch.setattr(clicking, "running_shell", Shell)
    assert clicking.can_be_clicked()
    monkeypatch.setitem(sys.modules, "anywidget", None)
    assert not clicking.can_be_clicked()


def kept_cell(prediction_id: str, answer: object, *, before_reveal: bool = True) -> dict[str, Any]:
    """A cell whose saved output keeps an answer."""
    data = clicking.answer_data(prediction_id, answer, before_reveal=before_reveal)
    return {"cell_type": "code", "outputs": [{"output_type": "display_data", "data": {PREDICTION_MIME: data}}]}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([kept_cell("labxx.kept", "gone")], "gone: deleted"),
        ([kept_cell("labxx.kept", "stays"), kept_cell("labxx.kept", "gone")], "gone: deleted"),
        ([kept_cell("labxx.count", 3)], None),
        ([kept_cell("labxx.kept", "something else")], None),
        ([kept_cell("labxx.kept", "gone", before_reveal=False)], None),
        ([{"cell_type": "code", "outputs": [7, None, {"data": []}]}, 5, {"outputs": {}}], None),
    ],
    ids=["kept", "the last one counts", "of another question", "no answer to it", "given too late", "not a notebook"],
)
def test_a_new_kernel_takes_yesterdays_answer_from_the_saved_notebook(
    cells: list[Any], expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "my lab.ipynb"
    path.write_text(json.dumps({"cells": cells}), "utf-8")
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    said = predict("labxx.kept")
    assert said.state == ("open" if expected is None else "note")
    assert expected is None or expected in str(said)


def test_a_notebook_that_cannot_be_read_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "broken.ipynb"
    text = json.dumps({"cells": [kept_cell("labxx.kept", "gone")]})
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    assert predict("labxx.kept").state == "open"
    for end in range(0, len(text), 7):
        path.write_text(text[:end], "utf-8")
        assert predict("labxx.kept").state == "open"
    path.write_text(text, "utf-8")
    assert predict("labxx.count").state == "open"
    assert predict("labxx.kept").state == "note"
