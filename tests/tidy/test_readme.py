"""The README shows what happens, and no page speaks of the future or counts by hand."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator

import pytest

from docs import moving_picture
from tests.tidy.sources import ROOT, assert_none

PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks" / "README.md", ROOT / "datasets" / "README.md"]
README_LINES, PICTURE_BYTES = 90, 300_000
REFUSED = {  # what is false as soon as somebody works on the tree: why
    r"\bexists? (?:today|now|already)\b|\btaught today\b": "a page describes the tree that it is in",
    r"(?i)\b(?:labs?|parts?|verbs?|code)\b[^.|]{0,20}\b(?:is|are) planned\b": "plans",
    r"(?i)\bplanned (?:labs?|parts?|verbs?)\b": "plans",
    r"\bUntil the last\b|\bwill be added\b|\bcoming soon\b|\bnot (?:written|built|implemented) yet\b|\bTODO\b": "plans",
    r"\b\d\d(?:, \d\d){4,}": "a list of labs; the folder has them",
    r"\b\d[\d,]+ (?:lines of (?:code|Python|tests|package)|tests|files of)\b": "a size; make measure prints it",
}


def objections(name: str, text: str) -> Iterator[str]:
    """The lines of a page that have what is refused."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, why in REFUSED.items():
            if found := re.search(pattern, line):
                yield f"{name}:{number}: {found[0]!r}: {why}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_speaks_of_the_future_or_counts_by_hand(page: object) -> None:
    path = ROOT / str(page)
    assert_none(objections(path.name, path.read_text("utf-8")))


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("Labs 00, 01, 02, 03, 04 and 05 are here.", True),
        ("**Labs 00 to 05 exist today.**", True),
        ("the code for all planned labs works already", True),
        ("Lab 13 is planned", True),
        ("The package has 112,000 lines of code.", True),
        ("an order of 1,500,000 messages; some with a planned deploy", False),
        ("Labs 00 to 09 need no Java", False),
    ],
)
def test_the_rule_sees_what_it_should(line: str, refused: bool) -> None:
    assert bool(list(objections("page", line))) is refused


def test_the_example_prints_what_the_readme_shows() -> None:
    shown = re.search(r"```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(moving_picture.example(), "README.md", "exec"), {})
    assert shown is not None and printed.getvalue() == shown[1]


def test_the_moving_picture_is_the_run_of_the_example() -> None:
    kept = moving_picture.PICTURE.read_text("utf-8")
    assert kept == moving_picture.draw(), "python -m docs.moving_picture"
    assert len(kept.encode()) < PICTURE_BYTES and "@keyframes" in kept and "prefers-reduced-motion" in kept


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= README_LINES
