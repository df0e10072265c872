"""Slides of a lab: an answer follows its question, no answer of an exercise is told, and no server is asked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mqlab.course.site.slides import exported, slide_cells, write_slides
from mqlab.course.words import words_of
from mqlab.errors import UsageError
from tests.course.labs.notebooks import ROOT

PAGE = "04a-how-far-have-we-read.ipynb"


def slides() -> list[dict[str, Any]]:
    handed_out, solved = (json.loads((ROOT / folder / PAGE).read_text("utf-8")) for folder in ("labs", "solutions"))
    return list(slide_cells(handed_out["cells"], solved["cells"]))


def test_each_answer_is_on_the_slide_after_its_question() -> None:
    texts = [cell["source"] for cell in slides() if cell["cell_type"] == "markdown"]
    asked = [number for number, text in enumerate(texts) if text.startswith("**Predict.**")]
    questions = {prediction.question: prediction for prediction in words_of("lab04").predictions.values()}
    assert len(asked) == 9
    for number in asked:
        words = next(words for question, words in questions.items() if f"**{question}**" in texts[number + 1])
        right = next(choice for choice in words.choices if choice.key == words.right)
        assert "✓" not in texts[number] and f"**✓ {right.text}**" in texts[number + 1]
        assert all(choice.refutation in texts[number + 1] for choice in words.choices)


def test_a_model_answer_has_a_slide_of_its_own_and_no_exercise_is_answered() -> None:
    texts = [cell["source"] for cell in slides() if cell["cell_type"] == "markdown"]
    model = words_of("lab04").reflections["lab04.certificate"].answer
    (number,) = (number for number, text in enumerate(texts) if model in text)
    assert "You must change the certificate today" in texts[number - 1] and model not in texts[number - 1]
    pictures = [cell for cell in slides() if cell["cell_type"] == "code"]
    assert len(pictures) > 15
    sources = "\n".join("".join(cell["source"]) for cell in pictures)
    assert re.findall(r"# exercise: |^check\(|^answer\(|^reveal\(|^old_questions\(", sources, re.MULTILINE) == []


def test_the_page_holds_reveal_and_asks_no_server(tmp_path: Path) -> None:
    dist = tmp_path / "reveal.js" / "dist"
    dist.mkdir(parents=True)
    (dist / "reveal.js").write_text("const revealed = 1;", "utf-8")
    (dist / "reveal.css").write_text(".reveal { top: 0; }", "utf-8")
    cells = [{"cell_type": "markdown", "metadata": {"slideshow": {"slide_type": "slide"}}, "source": "[b](b.ipynb)"}]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    text = exported(notebook, "a lab", tmp_path)
    assert "const revealed = 1;" in text and ".reveal { top: 0; }" in text
    assert re.findall(r'(?:src|href)="[^"#][^"]*"|import [^"\';]*["\']https?:', text) == []


def test_an_unknown_notebook_is_refused_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no notebook '99z'") as refused:
        write_slides("99z", ROOT, tmp_path)
    assert "04a" in str(refused.value)
