"""`mqlab progress`: counts what saved notebooks hold, and runs nothing of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mqlab import cli
from mqlab.course.grading.submissions.progress import progress
from mqlab.course.teach.answering import ANSWER_MIME
from mqlab.course.teach.clicking import PREDICTION_MIME, answer_data
from mqlab.course.teach.exercises import Manifest, manifest


def cell(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": {}, "execution_count": 1}


def shown(text: str, **more: Any) -> dict[str, Any]:
    return {"output_type": "execute_result", "data": {"text/plain": [text], **more}, "metadata": {}}


def save(path: Path, *cells: Any) -> None:
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), "utf-8")


def test_saved_notebooks_are_counted_and_not_run(tmp_path: Path) -> None:
    clicked = {PREDICTION_MIME: answer_data("lab00.audit", "0", before_reveal=True)}
    save(
        tmp_path / "00-a-messages-day.ipynb",
        cell("open('ran', 'w')"),
        cell('predict("lab00.audit")', shown("You predict 0", **clicked)),
        cell('predict("lab00.again", "3")'),
        cell('check("lab00.find")', shown("✓ lab00.find: 3 of 3 public checks pass")),
        cell(
            'check("lab00.timeline")', {"output_type": "error", "ename": "CheckFailed", "evalue": "", "traceback": []}
        ),
        cell('check("lab00.crash")', shown("○ lab00.crash: not started")),
        cell(
            'answer("lab00.lives", 1)',
            shown("✓", **{ANSWER_MIME: {"version": 1, "task": "lab00.lives", "right": True}}),
        ),
    )
    save(tmp_path / "00-copy.ipynb", cell('check("lab00.crash")', shown("✗ lab00.crash: wrong")))
    save(tmp_path / "01-what.ipynb", cell('check("lab01.unit")'), "no cell", {"cell_type": "code", "outputs": 7})
    save(tmp_path / "97-unknown.ipynb", cell('check("lab97.unit")'))  # lab99 is the small course of other tests
    (tmp_path / "broken.ipynb").write_text("{", "utf-8")
    first, second = progress(tmp_path)
    assert (first.lab, first.predicted, first.tried, first.passed) == ("lab00", (2, 4), (3, 4), (1, 4))
    assert first.minutes > 60 and first.your_turn == (1, 4)
    assert (second.lab, second.tried[0], second.passed[0]) == ("lab01", 0, 0)
    assert not (tmp_path / "ran").exists() and not Path("ran").exists()


def test_a_lab_whose_extra_is_missing_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of the site has Spark's labs to read, and neither numpy nor Spark."""

    def without_numpy(lab: str) -> Manifest:
        if lab == "lab10":
            raise ModuleNotFoundError("No module named 'numpy'")
        return manifest(lab)

    monkeypatch.setattr("mqlab.course.grading.submissions.progress.manifest", without_numpy)
    save(tmp_path / "00-a-messages-day.ipynb", cell('check("lab00.find")'))
    save(tmp_path / "10a-spark.ipynb", cell('check("lab10.cost")'))
    assert [row.lab for row in progress(tmp_path)] == ["lab00"]


def test_the_verb_prints_a_table_and_writes_a_page(tmp_path: Path) -> None:
    save(tmp_path / "00.ipynb", cell('check("lab00.find")', shown("✓ lab00.find: 3 of 3 public checks pass")))
    page = tmp_path / "page.html"
    (tmp_path / "mybroker").mkdir()
    (tmp_path / "mybroker" / "store.py").write_text("class MyStore:\n    pass\n", "utf-8")
    answer = CliRunner().invoke(cli.main, ["progress", str(tmp_path), "--page", str(page)])
    assert "Your broker" in answer.output and "store" in answer.output and "yours" in page.read_text("utf-8")
    assert answer.exit_code == 0 and "1 of 4" in answer.output and "public checks pass" in answer.output
    assert "<h1>My labs</h1>" in page.read_text("utf-8") and "1 of 4" in page.read_text("utf-8")
    assert 'name="viewport"' in page.read_text("utf-8")  # on a telephone as wide as it is
    empty = tmp_path / "empty"
    empty.mkdir()
    answer = CliRunner().invoke(cli.main, ["progress", str(empty)])
    assert answer.exit_code == 2 and "no notebook of a lab" in answer.output


def test_what_was_known_at_first_and_is_known_now_comes_from_the_record(tmp_path: Path) -> None:
    clicked = {PREDICTION_MIME: answer_data("lab00.audit", "0", before_reveal=True)}
    save(
        tmp_path / "00.ipynb",
        cell('predict("lab00.audit")', shown("You predict 0", **clicked)),
        cell('predict("lab00.again", "3")'),
    )
    (lab,) = progress(tmp_path)
    assert (lab.knew, lab.knows) == ((1, 2), (1, 2))
    on = {"on": "2026-11-27", "answer": "3", "right": True}
    lines = [
        {"question": "lab00.audit", "asked_in": "lab00", **on, "answer": "0", "right": False},
        {"question": "lab00.again", "asked_in": "lab00", **on},
        {"question": "lab00.audit", "asked_in": "lab02", **on, "right": False},
        {"question": "lab00.audit", "asked_in": "lab05", **on},
    ]
    (tmp_path / "progress.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (lab,) = progress(tmp_path)
    assert (lab.knew, lab.knows) == ((1, 2), (2, 2))
    page = tmp_path / "page.html"
    answer = CliRunner().invoke(cli.main, ["progress", str(tmp_path), "--page", str(page)])
    row = next(line for line in answer.output.splitlines() if "lab00.audit" in line)
    assert "Old questions" in answer.output and row.split()[-4:] == ["lab00.audit", "✗", "✓", "2"]
    assert "asked again" in page.read_text("utf-8") and "knows now" in page.read_text("utf-8")
