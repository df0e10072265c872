"""Docstrings, comments and error texts of the package keep to the exact rules of plain English.

docs/writing-labs.md has their reasons, solutions/plain_english.py the patterns.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from solutions.plain_english import RULES, breaches
from tests.course.labs.test_plain_english import PLANTED
from tests.tidy.sources import Module, assert_none, modules, parse

ALLOWED: set[tuple[str, str]] = set()
"""File and words that a rule finds and that must stay, each with its reason in a comment. So far none must."""
CODE = re.compile(r"``[^`]*``|--[\w-]+|\w+\(|[\w./]*_[\w./]*|>>> .*")
"""Options, names, calls and doctests are not sentences."""
COMMENT = re.compile(r"(?:^\s*|  )# ?(.*)$")


def texts_of(module: Module) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring, of what an error says, and of every block of comments."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield from ((part.lineno, _as_read(part)) for part in ast.walk(node.exc) if isinstance(part, ast.JoinedStr))
            yield from (
                (part.lineno, part.value)
                for part in ast.walk(node.exc)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )
    yield from _comments(module.text)


def _as_read(text: ast.JoinedStr) -> str:
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "``" for part in text.values)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Comments on lines that follow each other are one text."""
    block, first = list[str](), 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        comment = COMMENT.search(line) if "#" in line else None
        if comment is not None:
            first = first or number
            block.append(comment[1])
        elif block:
            yield first, " ".join(block)
            block, first = [], 0


def rules_broken(module: Module) -> Iterator[tuple[str, int, str, str]]:
    for line, text in texts_of(module):
        for rule, words, around in breaches(CODE.sub("``", text)):
            yield rule, line, words, around


def test_docstrings_comments_and_errors_keep_to_the_rules() -> None:
    assert_none(
        f"{module.at(line)} {rule}: {words!r} in {around!r}"
        for module in modules()
        for rule, line, words, around in rules_broken(module)
        if (str(module.path.name), words) not in ALLOWED
    )


FORMS = {
    "docstring": '"""A first sentence.\n\n{}\n"""\n',
    "comment": "x = 1\n# A first sentence.\n# {}\n",
    "error": "def f(x: int) -> None:\n    raise ValueError(f'{{x}}. {}')\n",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("rule", "planted", "better"), PLANTED)
def test_a_planted_sentence_is_found_in_each_kind_of_text(form: str, rule: str, planted: str, better: str) -> None:
    for sentence, rules in ((planted, {rule}), (better, set())):
        text = FORMS[form].format(sentence.replace("'", "’"))
        module = parse("mqlab.planted", modules()[0].path, text)
        assert {broken for broken, *_ in rules_broken(module)} == rules
    assert set(RULES) == {planted_rule for planted_rule, *_ in PLANTED}
