"""A number and its noun agree: in ``counted``, and in every output that is stored in the solutions."""

from __future__ import annotations

import json
import re

import pytest

from mqlab.counts import counted
from solutions.build import SOURCES

ONE_THINGS = re.compile(
    r"(?<![\w.,:/%-])(?<!queue )(?<!entry )(?<!and )1 (?:(?!of )[a-z]+ |of 1 (?:[a-z]+ )?)?"
    r"(?:acknowledged orders|attempts|bytes|calls|cases|checks|columns|copies|deliveries|entries|instances|letters|"
    r"members|messages|minutes|orders|pulls|queues|requests|retries|rows|seconds|stages|tasks|threads|times|topics|units)\b"
)


@pytest.mark.parametrize(
    ("things", "one"),
    [
        ("messages", "1 message"),
        ("retries", "1 retry"),
        ("processes", "1 process"),
        ("queue entries", "1 queue entry"),
        ("times charged", "1 time charged"),
        ("copies in the retry topic", "1 copy in the retry topic"),
        ("acknowledged orders lost", "1 acknowledged order lost"),
        ("ms a call", "1 ms a call"),
        ("s until the queues move", "1 s until the queues move"),
        ("% of the messages", "1 % of the messages"),
        ("", "1"),
    ],
)
def test_one_is_singular_and_two_are_plural(things: str, one: str) -> None:
    assert counted(1, things) == one
    assert counted(2, things) == f"2 {things}".rstrip()


def test_a_large_number_has_no_power_of_ten() -> None:
    assert [counted(ms, "ms") for ms in (47_657.5, 999.5, 2.25)] == ["47,658 ms", "999.5 ms", "2.25 ms"]


def test_the_solutions_show_no_plural_after_one() -> None:
    wrong = [
        f"{path.name}: {text[max(found.start() - 30, 0) : found.end() + 20]!r}"
        for path in sorted(SOURCES.parent.glob("*.ipynb"))
        for cell in json.loads(path.read_text("utf-8"))["cells"]
        for text in _texts(cell.get("outputs", []))
        for found in ONE_THINGS.finditer(text)
    ]
    assert wrong == []


def _texts(outputs: list[dict[str, object]]) -> list[str]:
    """What is printed and shown as text: every picture has a text of its own."""
    shown = [output.get("text", (output.get("data") or {}).get("text/plain", "")) for output in outputs]
    return ["".join(text) for text in shown]
