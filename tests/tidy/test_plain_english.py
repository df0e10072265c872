"""Everything a person reads in the package keeps to the exact rules of plain English, in Python and JavaScript.

docs/writing-labs.md has their reasons, solutions/plain_english.py the patterns.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from solutions.plain_english import RULES, breaches
from tests.course.labs.test_plain_english import PLANTED
from tests.tidy.sources import PACKAGE, ROOT, assert_none, modules

ALLOWED = {
    ("knows/board.py", "Who knows what."),  # the name of a board, not a sentence
    ("allocation/allocation.js", "Who reads which queue."),  # the name of a board, not a sentence
}
"""Folder, file and words that a rule finds and that must stay, each with its reason in a comment."""
CODE = re.compile(r"``[^`]*``|--[\w-]+|\w+\(|[\w./]*_[\w./]*|>>> .*")
"""Options, names, calls and doctests are not sentences."""
COMMENT = {"python": re.compile(r"(?:^\s*|  )# ?(.*)$"), "script": re.compile(r"(?:^\s*|[ ;])// ?(.*)$")}
PIECE = r'(?:"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)'
JOIN = r"\s*\+\s*"
SCRIPT_TEXT = re.compile(f"{PIECE}(?:{JOIN}{PIECE})*", re.DOTALL)
"""A text of JavaScript, of one or more pieces."""


def python_texts(text: str, tree: ast.Module | None = None) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring, of every string with a blank in it, and of every block of comments.

    Among the strings are error texts, the words of boards and pages, and the rules of cases, which have no full stop.
    """
    tree = tree or ast.parse(text)
    parts = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, _as_read(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.lineno, node.value
    yield from _comments(text, COMMENT["python"])


def _as_read(text: ast.JoinedStr) -> str:
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "``" for part in text.values)


def script_texts(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of every string, template and block of comments of a page's JavaScript."""
    for written in SCRIPT_TEXT.finditer(text):
        words = re.sub(f'["`]{JOIN}["`]', "", written[0][1:-1])
        yield text.count("\n", 0, written.start()) + 1, re.sub(r"\$\{[^{}]*\}", "``", words)
    yield from _comments(text, COMMENT["script"])


def _comments(text: str, comment: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Comments on lines that follow each other are one text."""
    block, first = list[str](), 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        words = comment.search(line)
        if words is not None:
            first = first or number
            block.append(words[1])
        elif block:
            yield first, " ".join(block)
            block, first = [], 0


def rules_broken(texts: Iterable[tuple[int, str]]) -> Iterator[tuple[str, int, str, str]]:
    """Rule, line, words and what is around them. A text that ends without a full stop is read as if it had one."""
    for line, text in texts:
        sentence = CODE.sub("``", text).strip()
        if " " in sentence:
            for rule, words, around in breaches(sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."):
                yield rule, line, words, around


def _named(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def test_docstrings_comments_and_strings_keep_to_the_rules() -> None:
    assert_none(
        f"{module.at(line)} {rule}: {words!r} in {around!r}"
        for module in modules()
        for rule, line, words, around in rules_broken(python_texts(module.text, module.tree))
        if (_named(module.path), words) not in ALLOWED
    )


def test_the_pages_keep_to_the_rules() -> None:
    assert_none(
        f"{path.relative_to(ROOT)}:{line} {rule}: {words!r} in {around!r}"
        for path in sorted(PACKAGE.rglob("*.js"))
        for rule, line, words, around in rules_broken(script_texts(path.read_text("utf-8")))
        if (_named(path), words) not in ALLOWED
    )


FORMS = {
    "docstring": (python_texts, '"""A first sentence.\n\n{}\n"""\n'),
    "comment": (python_texts, "x = 1\n# A first sentence.\n# {}\n"),
    "error": (python_texts, "def f(x: int) -> None:\n    raise ValueError(f'{{x}}. {}')\n"),
    "rule of a case": (python_texts, "RULE = (\n    'A first sentence. '\n    '{}'\n)\n"),
    "string of a page": (script_texts, 'toTry("A first sentence. " +\n  "{}"),\n'),
    "template of a page": (script_texts, "const text = `${{value}} s. {}`;\n"),
    "comment of a page": (script_texts, "draw(); // A first sentence.\n// {}\n"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("rule", "planted", "better"), PLANTED)
def test_a_planted_sentence_is_found_in_each_kind_of_text(form: str, rule: str, planted: str, better: str) -> None:
    texts_of, frame = FORMS[form]
    for sentence, rules in ((planted, {rule}), (better, set())):
        words = sentence.replace("'", "’")
        if form == "rule of a case":
            words = words.removesuffix(".")
        assert {broken for broken, *_ in rules_broken(texts_of(frame.format(words)))} == rules
    assert set(RULES) == {planted_rule for planted_rule, *_ in PLANTED}
