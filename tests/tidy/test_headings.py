"""No rulers between parts of a file, no word against the formatter, and tests are named after what they hold."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.tidy.sources import PACKAGE, ROOT, assert_none

FOLDERS = (PACKAGE, ROOT / "tests", ROOT / "benchmarks", ROOT / "solutions")
RULER = re.compile(r"^[-=─═]{2,}(\s|$)|[-=─═]{4,}$")
AGAINST_THE_FORMATTER = re.compile(r"\bfmt: *(skip|off|on)\b|\bprettier-ignore\b")
MAY_BE_WRONG = re.compile(rf"#.*(?:[-=─═]{{2}}|{AGAINST_THE_FORMATTER.pattern})")  # tokens take fifty times as long
NUMBERED = re.compile(r"^test_(section|rows?)?_?\d+(_\d+_|_to_\d+$)|^test_(section|row)_\d+|_section_\d")
SECTION_OF_A_PAGE = re.compile(r"\b[a-z_]+\.md,? (section )?\d")


def comments(text: str) -> Iterator[tuple[int, str, bool]]:
    """Line, text and whether it has its line for itself, of every comment."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string, token.line.strip() == token.string


def wrong_comments(text: str) -> Iterator[str]:
    if not MAY_BE_WRONG.search(text):
        return
    for line, comment, alone in comments(text):
        if AGAINST_THE_FORMATTER.search(comment):
            yield f"{line}: the formatter decides: {comment}"
        elif alone and RULER.search(comment.removeprefix("#").strip()):
            yield f"{line}: a ruler: {comment}"


def wrong_names(text: str, stem: str) -> Iterator[str]:
    """Names of tests, and words on them, that send the reader to a page that is not here."""
    names = [(1, stem), *((text[: m.start()].count("\n") + 1, m[1]) for m in re.finditer(r"def (test_\w+)", text))]
    yield from (f"{line}: {name}: name it after the behaviour" for line, name in names if NUMBERED.search(name))
    for line, words in enumerate(text.splitlines(), 1):
        if SECTION_OF_A_PAGE.search(words):
            yield f"{line}: name the RocketMQ class: {words.strip()}"


def test_no_rulers_and_no_word_against_the_formatter() -> None:
    assert_none(
        f"{path.relative_to(ROOT)}:{wrong}"
        for folder in FOLDERS
        for path in sorted(folder.rglob("*.py"))
        if path.parent.name != "source"  # texts of labs: marks of cells are comments there
        for wrong in wrong_comments(path.read_text("utf-8"))
    )


def test_no_rulers_in_javascript() -> None:
    assert_none(
        f"{path.relative_to(ROOT)}:{line}: {words}"
        for path in sorted(PACKAGE.rglob("*.js"))
        for line, words in enumerate(path.read_text("utf-8").splitlines(), 1)
        if words.strip().startswith("//") and RULER.search(words.strip().strip("/ "))
    )


def test_tests_are_named_after_behaviour() -> None:
    assert_none(
        f"{path.relative_to(ROOT)}:{wrong}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.parent.name != "tidy"
        for wrong in wrong_names(path.read_text("utf-8"), path.stem)
    )


@pytest.mark.parametrize(
    "comment",
    ["# ── reading ──", "# sending ----------", "# -- checks", "# ====", "x = 1  # fmt: " + "skip", "# fmt: " + "off"],
)
def test_such_comments_are_seen(comment: str) -> None:
    assert list(wrong_comments(f"{comment}\n"))


@pytest.mark.parametrize("comment", ["# a --> b", "# 1. The topic.", "# --yes is given", "x = [1]  # -- not alone"])
def test_other_comments_are_not(comment: str) -> None:
    assert not list(wrong_comments(f"{comment}\n"))


@pytest.mark.parametrize(
    ("text", "stem"),
    [
        ("def test_5_2_brokers_register() -> None:\n", "test_a"),
        ("def test_row_44_sixteen_retries() -> None:\n", "test_a"),
        ("", "test_section_01_allocation"),
        ("", "test_rows_01_to_21"),
        ('"""more' + '.md 1.9: what the two sides say."""\n', "test_a"),
        ("# runtime" + ".md section 4\n", "test_a"),
    ],
)
def test_such_names_are_seen(text: str, stem: str) -> None:
    assert list(wrong_names(text, stem))


@pytest.mark.parametrize("name", ["test_404_is_answered", "test_two_of_3_replicas", "test_rows_are_read"])
def test_other_names_are_not(name: str) -> None:
    assert not list(wrong_names(f"def {name}() -> None:\n", name))
