"""What a known-wrong answer must be told is a sentence of today's course, also where only long tests judge it."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import mqlab.course
from mqlab.course import words

wrong_module = importlib.import_module("solutions.wrong")
COURSE = Path(mqlab.course.__file__).parent
PARTS = COURSE.parent / "lab" / "parts"
"""Where the rules are of what a learner's broker can take over."""
PUT_TOGETHER = {
    "lab01.rebuild.nothing_is_none": "rebuild returns a tuple",
    "lab06.collide.only_upwards": "collide returned nothing",
    "lab06.three_valued.a_minus_is_text": "not supported between instances",
    "lab13.triage.called_messages_only": "is missing. Its sign: never called",
}
"""Sentences that are made of parts, and Python's own."""


@pytest.fixture(scope="module")
def sentences() -> str:
    """Every text of the course's code and words, one after another."""
    texts = [path.read_text("utf-8").replace('\\"', '"') for path in words.FOLDER.glob("*.json")]
    for path in (*COURSE.rglob("*.py"), *PARTS.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
                texts.append("".join(map(str, parts)))
    return "\n".join(texts)


def test_every_saying_is_a_sentence_of_today(sentences: str) -> None:
    unknown = {one.id: one.says for one in wrong_module.wrong_answers() if one.says not in sentences}
    assert unknown == PUT_TOGETHER
