"""What a class predicted: read as data from outputs and from text, whatever a student wrote there."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqlab.course.grading.reports import write_predictions
from mqlab.course.grading.reports.predictions import csv_text, page
from mqlab.course.grading.submissions.finding import find_submissions
from mqlab.course.grading.submissions.lab_files import CourseLab, open_lab
from mqlab.course.grading.submissions.predictions import class_predictions, predicted
from mqlab.course.material import home
from mqlab.course.teach.asked_again import OLD_MIME, question_of
from mqlab.course.teach.clicking import PREDICTION_MIME
from mqlab.course.teach.exercises import Prediction, manifest
from mqlab.course.words import words_of
from tests.course.grading.course import save


@pytest.fixture(scope="module")
def lab() -> CourseLab:
    return open_lab(home(), "00", with_hidden=False)


@pytest.fixture(scope="module")
def asked() -> Prediction:
    """A question with choices."""
    return next(one for one in manifest("lab00").predictions if one.choices)


def clicked(name: str, answer: object, **more: object) -> dict[str, Any]:
    said = {"version": 1, "prediction": name, "answer": answer, "before_reveal": True, **more}
    outputs = [{"output_type": "display_data", "data": {PREDICTION_MIME: said, "text/html": "<b>"}, "metadata": {}}]
    return {"cell_type": "code", "source": f'predict("{name}")', "outputs": outputs}


def written(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": []}


def hand_in(folder: Path, **students: list[Any]) -> Path:
    for student, cells in students.items():
        save({"cells": cells, "nbformat": 4}, folder / f"{student}.ipynb")
    return folder


def counts(lab: CourseLab, folder: Path, name: str) -> tuple[dict[str, int], int, int]:
    found = {one.prediction: one for one in class_predictions([lab], find_submissions(folder, [lab]))}[name]
    return {bar.key: bar.students for bar in found.bars if bar.students}, found.silent, found.late


def test_clicks_and_python_are_counted_once_per_student(lab: CourseLab, asked: Prediction, tmp_path: Path) -> None:
    name, (first, second) = asked.id, [key for key, _ in asked.choices[:2]]
    hand_in(
        tmp_path,
        anna=[clicked(name, first)],
        boris=[written(f"predict({name!r}, {second!r})")],
        chen=[clicked(name, second), clicked(name, first), written(f"predict({name!r}, {second!r})")],
        dora=[written(f"predict({name!r}, ...)"), written("x = 1")],
        emil=[clicked(name, first, before_reveal=False)],
        gao=[clicked(name, second, before_reveal=False), written(f"predict({name!r}, {second!r})")],
        fay=[written(f"shown = predict({name!r}, answer={second!r})"), clicked(name, first, before_reveal=False)],
    )
    assert counts(lab, tmp_path, name) == ({first: 3, second: 3}, 1, 2)


HOSTILE = [
    10**30,
    -(10**40),
    1.5,
    float("inf"),
    True,
    ["a"],
    {"a": 1},
    "<script>alert(1)</script>",
    "x" * 1_000_000,
    "9" * 5_000,
    "=1+1",
    "\ud800",
]


@pytest.mark.parametrize("answer", HOSTILE, ids=[f"{type(one).__name__} {n}" for n, one in enumerate(HOSTILE)])
def test_what_is_no_answer_counts_as_another_and_is_kept_nowhere(
    answer: object, lab: CourseLab, asked: Prediction, tmp_path: Path
) -> None:
    folder, out = hand_in(tmp_path / "in", eve=[clicked(asked.id, answer)]), tmp_path / "out"
    assert counts(lab, folder, asked.id)[0] == {"": 1}
    out.mkdir()
    write_predictions(out, class_predictions([lab], find_submissions(folder, [lab])))
    texts = [path.read_text("utf-8") for path in out.iterdir()]
    assert len(texts) == 2
    assert all("alert" not in text and "9999999" not in text and len(text) < 100_000 for text in texts)


@pytest.mark.parametrize(
    "source",
    [
        "predict({name!r}, open({flag!r}, 'w'))",
        "predict({name!r}, *['a'])",
        "predict(",
        "predict()",
        "predict({name!r}, " + "(" * 500 + ")" * 500 + ")",
        "predict(" + "x" * 30_000 + ")",
        "predict('a', 'b'\0)",
        "predict({name!r}, " + "9" * 6_000 + ")",
        "predict({name!r}, 0x" + "f" * 9_000 + ")",
        "predict(7, 8)",
        "predict({name!r}, b'a')",
    ],
)
def test_text_is_read_and_never_run(source: str, lab: CourseLab, asked: Prediction, tmp_path: Path) -> None:
    flag = tmp_path / "was-run"
    text = source.format(name=asked.id, flag=str(flag)) if "{name" in source else source
    folder = hand_in(tmp_path, eve=[written(text)])
    found, silent, _ = counts(lab, folder, asked.id)
    assert set(found) <= {""} and sum(found.values()) + silent == 1
    assert not flag.exists()


@pytest.mark.parametrize(
    "cell",
    [
        7,
        {"outputs": 3},
        {"outputs": [4, {"data": []}, {"data": {PREDICTION_MIME: "text"}}]},
        {"outputs": [{"data": {PREDICTION_MIME: {"prediction": ["x"], "answer": 1}}}]},
        {"outputs": [{"data": {PREDICTION_MIME: {"prediction": "nobody.asked", "answer": "a"}}}] * 3},
    ],
)
def test_outputs_of_any_form_are_harmless(cell: Any, lab: CourseLab, asked: Prediction, tmp_path: Path) -> None:
    folder = hand_in(tmp_path, eve=[cell, clicked(asked.id, asked.choices[0][0])])
    assert counts(lab, folder, asked.id)[0] == {asked.choices[0][0]: 1}


def test_a_file_that_is_no_notebook_predicts_nothing(tmp_path: Path) -> None:
    assert predicted([save("no notebook", tmp_path / "a.ipynb"), tmp_path / "nowhere.ipynb"]) == {}


def test_numbers_are_put_in_order(
    lab: CourseLab, asked: Prediction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = replace(asked, choices=(), refutations={})  # every question of mqlab's own labs has choices
    monkeypatch.setattr("mqlab.course.cases.lab00.MANIFEST", replace(manifest("lab00"), predictions=(number,)))
    answers: list[Any] = [
        [clicked(number.id, "10")],
        [written(f"predict({number.id!r}, 10)")],
        [written(f"predict({number.id!r}, -9)")],
        [clicked(number.id, 9)],
    ]
    folder = hand_in(tmp_path, **{f"s{place}": cells for place, cells in enumerate(answers)})
    found, _, _ = counts(lab, folder, number.id)
    assert list(found.items()) == [("-9", 1), ("9", 1), ("10", 2)]


def test_the_page_shows_every_question_with_its_shares(lab: CourseLab, asked: Prediction, tmp_path: Path) -> None:
    folder = hand_in(tmp_path, anna=[clicked(asked.id, asked.choices[0][0])], boris=[])
    histograms = class_predictions([lab], find_submissions(folder, [lab]))
    text = page(histograms)
    assert text.count("<section>") == len(manifest("lab00").predictions) == len(histograms)
    assert "1 answered, 1 did not" in text and "100 %" in text
    out = tmp_path / "out"
    out.mkdir()
    write_predictions(out, histograms)
    rows = list(csv.DictReader((out / "predictions.csv").read_text("utf-8").splitlines()))
    assert {
        "lab": "lab00",
        "prediction": asked.id,
        "answer": "",
        "text": "no answer",
        "students": "1",
        "asked_again": "0",
    } in rows


def test_a_notebook_of_deep_json_predicts_nothing(tmp_path: Path) -> None:
    path = save('{"cells": [' + "[" * 50_000 + "]" * 50_000 + "]}", tmp_path / "deep.ipynb")
    assert predicted([path]) == {}


def asked_again(name: object, answer: object, in_lab: str = "lab02") -> dict[str, Any]:
    said = {"version": 1, "question": name, "answer": answer, "asked_in": in_lab}
    outputs = [{"output_type": "display_data", "data": {OLD_MIME: said, "text/html": "<b>"}, "metadata": {}}]
    return {"cell_type": "code", "source": f'old_questions("{in_lab}")', "outputs": outputs}


def test_what_later_labs_ask_again_is_counted_per_question_and_belief(
    lab: CourseLab, asked: Prediction, tmp_path: Path
) -> None:
    later = open_lab(home(), "02", with_hidden=False)
    name, right = asked.id, words_of("lab00").predictions[asked.id].right
    wrong = next(key for key, _ in asked.choices if key != right)
    belief = "lab00.committed_is_done"
    said = question_of(belief)
    assert said is not None
    folder = tmp_path / "in"
    hand_in(
        folder / "anna",
        **{"00-x": [clicked(name, wrong)], "02a-x": [asked_again(name, wrong), asked_again(name, right)]},
    )
    hand_in(
        folder / "boris",
        **{"00-x": [clicked(name, wrong)], "02a-x": [asked_again(name, wrong), asked_again(belief, said.right)]},
    )
    hand_in(
        folder / "chen",
        **{
            "00-x": [clicked(name, right)],
            "02a-x": [asked_again(["x"], 1), asked_again("lab00.nothing", "a"), asked_again(belief, "<b>")],
        },
    )
    histograms = class_predictions([lab, later], find_submissions(folder, [lab, later]))
    by_name = {histogram.prediction: histogram for histogram in histograms}
    assert {bar.key: bar.students for bar in by_name[name].again if bar.students} == {right: 1, wrong: 1}
    assert {bar.key: bar.students for bar in by_name[belief].again if bar.students} == {said.right: 1, "": 1}
    assert by_name[belief].bars == () and "lab00.nothing" not in by_name
    text = page(histograms)
    assert "Asked again in later labs" in text and "1 of 3" in text and "1 of 2" in text and "<b>&lt;" not in text
    rows = list(csv.DictReader(csv_text(histograms).splitlines()))
    row = next(row for row in rows if (row["prediction"], row["answer"]) == (name, right))
    assert (row["students"], row["asked_again"]) == ("1", "1")
    assert not any(row["prediction"] == belief and row["text"] == "no answer" for row in rows)
