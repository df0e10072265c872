"""Old questions: which are chosen, what the record keeps, and what is said to an answer."""

from __future__ import annotations

import datetime
import json
import time
from pathlib import Path
from typing import Any

import pytest

from mqlab.course import check, old_questions, predict, reveal
from mqlab.course.teach import asked_again as module
from mqlab.course.teach import clicking, predictions
from mqlab.course.teach.asked_again import MOST, OLD_MIME, OldQuestions, question_of
from mqlab.course.teach.checking import CheckFailed
from mqlab.course.teach.clicking import PREDICTION_MIME, answer_data
from mqlab.course.teach.record import FILE, answers_in, note_answer
from mqlab.course.words import words_of
from mqlab.errors import UsageError

TODAY = datetime.date.today()


@pytest.fixture(autouse=True)
def a_learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "04a.ipynb"))
    monkeypatch.setattr(predictions, "_noted", {})


def remember(question: str, right: bool, days_ago: int = 0, asked_in: str = "", answer: str = "x") -> None:
    on = (TODAY - datetime.timedelta(days_ago)).isoformat()
    lab = asked_in or question.partition(".")[0]
    line = {"question": question, "answer": answer, "right": right, "on": on, "asked_in": lab}
    with open(FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def asked(said: object) -> list[str]:
    assert isinstance(said, OldQuestions)
    return [question.asked.id for question, _ in said.questions]


def test_what_was_wrong_comes_before_what_was_right_and_what_was_long_ago_before_both() -> None:
    remember("lab00.audit", True, 3)
    remember("lab01.power", False, 3)
    remember("lab00.again", True, 90)
    remember("lab00.known_when", True, 2)
    assert asked(old_questions("lab02")) == ["lab00.again", "lab01.power", "lab00.audit"]


def test_a_belief_is_not_asked_next_to_the_prediction_that_brings_it_out() -> None:
    remember("lab12.filter_begins", False, 3)
    remember("lab12.first_batch", False, 2)
    remember("lab12.comes_once", False, 1)  # lab12.killed, whose choice it is, is asked in its lab only
    remember("lab12.killed", False, 1)
    assert asked(old_questions("lab13")) == ["lab12.first_batch", "lab12.comes_once"]


def test_three_right_answers_in_a_row_give_a_question_a_long_rest() -> None:
    remember("lab00.audit", False, 60)
    for lab in ("lab01", "lab02", "lab03"):
        remember("lab00.audit", True, 30, lab)
    remember("lab00.again", True, 20)
    assert asked(old_questions("lab05")) == ["lab00.again", "lab00.audit"]


def test_only_labs_before_are_asked_and_only_questions_that_stand_alone() -> None:
    for name in ("lab02.killed", "lab02.refused", "lab04.report", "lab77.nothing", "lab00.never_was"):
        remember(name, False)
    said = old_questions("lab04")
    assert asked(said) == ["lab02.killed"]
    assert "A broker's process is killed" in str(said)  # the question in words of its own


def test_a_lab_asks_the_same_three_until_they_are_answered_and_shows_them_afterwards() -> None:
    for name in ("lab00.audit", "lab00.again", "lab00.known_when", "lab01.power"):
        remember(name, False, 5)
    before = asked(old_questions("lab02"))
    said = old_questions("lab02", "3", ..., "later")
    remember("lab01.retention", False, 50)
    assert asked(said) == before
    assert "✓ You answered 3: all three" in str(said) and "○" in str(said)
    kept = [line for line in answers_in(Path()) if line.asked_in == "lab02"]
    assert [(line.question, line.right) for line in kept] == [(before[0], True), (before[2], True)]
    # One that waits longer comes after those that were answered; the first answer counts.
    assert asked(old_questions("lab02", ..., "0", "at_once")) == ["lab01.retention", before[0], before[2]]
    assert [line for line in answers_in(Path()) if line.asked_in == "lab02"] == kept


def test_a_wrong_answer_is_told_what_is_right_and_why() -> None:
    remember("lab00.audit", False)
    said = str(old_questions("lab02", "0"))
    refutation = next(c.refutation for c in words_of("lab00").predictions["lab00.audit"].choices if c.key == "0")
    assert "✗ You answered 0" in said and "right  3: all three" in said and refutation in said
    with pytest.raises(UsageError, match="answer one of '3'"):
        old_questions("lab03", "maybe")


def test_a_belief_is_asked_as_its_claim_against_what_is_so() -> None:
    keys = set()
    for name, belief in words_of("lab00").beliefs.items():
        question = question_of(name)
        assert question is not None
        texts = dict(question.asked.choices)
        assert texts[question.right] == belief.refutation and set(texts.values()) == {belief.claim, belief.refutation}
        keys.add(question.right)
    assert keys == {"a", "b"}  # the right one is not always first


def a_read_one_too_far(stored: int, offsets: dict[str, int], groups: list[str]) -> dict[str, list[int]]:
    return {group: list(range(offsets.get(group, -1) + 1, stored)) for group in groups}


def test_a_reveal_and_a_failed_check_are_recorded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for answer in ("0", "3"):  # a second run of the notebook changes nothing
        monkeypatch.setattr(predictions, "_noted", {})
        predict("lab00.audit", answer)
        reveal("lab00.audit", "3")
    reveal("lab00.again", "3")  # nothing was predicted
    for _ in range(2):
        with pytest.raises(CheckFailed):
            check("lab00.unread", {"unread": a_read_one_too_far})
    lines = [(line.question, line.right) for line in answers_in(Path())]
    assert lines[0] == ("lab00.audit", False)
    assert lines[1:] == [("lab00.committed_is_done", False)]


def test_without_a_learners_notebook_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JPY_SESSION_NAME")
    note_answer("lab00.audit", "0", False)
    assert not Path(FILE).exists() and old_questions("lab02").state == "open"


def test_work_of_before_the_record_is_read_from_the_notebooks() -> None:
    data = {PREDICTION_MIME: answer_data("lab00.audit", "0", before_reveal=True)}
    cell = {"cell_type": "code", "source": "", "outputs": [{"output_type": "display_data", "data": data}]}
    Path("00.ipynb").write_text(json.dumps({"cells": [cell]}), "utf-8")
    assert asked(old_questions("lab02")) == ["lab00.audit"]
    note_answer("lab00.audit", "0", False)  # what the notebook says already
    assert len(Path(FILE).read_text("utf-8").splitlines()) == 1
    Path("00.ipynb").unlink()
    assert asked(old_questions("lab02")) == ["lab00.audit"]


def test_a_broken_line_of_the_record_is_left_out() -> None:
    remember("lab00.audit", False)
    with open(FILE, "a", encoding="utf-8") as file:
        file.write(
            '{"question": "lab00.again"\n[]\n{"question": 7, "answer": 1, "right": 1, "on": "x", "asked_in": 1}\n'
        )
    assert [line.question for line in answers_in(Path())] == ["lab00.audit"]


def test_the_first_click_counts_and_the_output_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cells: list[Any] = []

    class Question:
        def __init__(self, asked: Any, chosen: str, answered: Any, on_click: Any, legend: str) -> None:
            self.click, self.closed, self.legend = on_click, [], legend
            cells.append(self)

        def close(self, asked: Any, chosen: str, answered: Any) -> None:
            self.closed.append((chosen, answered._repr_mimebundle_()[OLD_MIME]))

    monkeypatch.setattr(module, "can_be_clicked", lambda: True)
    monkeypatch.setattr(module, "CellQuestion", Question)
    monkeypatch.setattr(module, "show", lambda bundle: None)
    remember("lab00.audit", False)
    said = old_questions("lab02")
    assert isinstance(said, OldQuestions)
    said._ipython_display_()
    cells[0].click("3")
    cells[0].click("0")
    data = {"version": 1, "question": "lab00.audit", "answer": "3", "asked_in": "lab02"}
    # Nothing else of the cell asks it while it can be clicked.
    assert cells[0].legend == said.questions[0][0].asked.question and cells[0].closed == [("3", data)]
    assert [(line.answer, line.right) for line in answers_in(Path())][1:] == [("3", True)]


def test_the_first_cell_stays_fast_with_a_terms_record() -> None:
    names = [name for lab in range(10) for name in words_of(f"lab{lab:02d}").predictions]
    for number in range(2000):
        remember(names[number % len(names)], number % 3 == 0, number % 100, f"lab{number % 10:02d}")
    began = time.perf_counter()
    assert len(asked(old_questions("lab15"))) == MOST
    assert time.perf_counter() - began < 0.5
    assert clicking.PREDICTION_MIME != OLD_MIME
