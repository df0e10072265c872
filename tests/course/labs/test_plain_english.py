"""The rules for a lab's sentences: each finds a planted sentence, and leaves the better wording alone."""

from __future__ import annotations

import pytest

from solutions.build import SOURCES
from solutions.cells import read
from solutions.plain_english import LONGEST_TEXT, RULES, allowed_sentences, sentences_against_the_rules

PLANTED = [
    ("do-support", "Which offset has the group?", "What is the group's offset?"),
    ("do-support", "How many rows has this table?", "How many rows does this table have?"),
    ("headless who", "Who sends with a selector has to handle failures.", "Who sends with a selector?"),
    ("per", "The table has one row a queue.", "The table has one row per queue."),
    ("per", "It reads so many bytes of the log.", "It reads that many bytes of the log."),
    ("what it is not", "The value is no list.", "The value is not a list; there is no list any longer."),
    ("so", "RocketMQ does it so.", "RocketMQ does it this way, so that it is fast."),
    ("so", "A classic queue works so.", "A classic queue works that way."),
    ("asked", "Asked for is how long the bars overlap.", "The question is how long the bars overlap."),
    ("words", "The client starts anew.", "The client starts again."),
    ("words", "Three sends were in vain.", "Three sends failed."),
    ("words", "The bars beside the line are pulls.", "The bars next to the line are pulls."),
    ("words", "The bug was mended.", "The bug was fixed, as I recommended."),
]


def rules_broken(text: str, where: str = "00_planted.py") -> list[str]:
    lines = "\n".join(f"# {line}" if line else "#" for line in text.splitlines())
    return [rule for rule, _, _ in sentences_against_the_rules(where, read(f"# %% [markdown]\n{lines}\n", where))]


@pytest.mark.parametrize(("rule", "planted", "better"), PLANTED)
def test_a_planted_sentence_is_found_and_the_better_one_is_not(rule: str, planted: str, better: str) -> None:
    assert rules_broken(f"A first sentence. {planted}") == [rule]
    assert rules_broken(f"A first sentence. {better}") == []


def test_every_rule_has_a_planted_sentence() -> None:
    assert {rule for rule, _, _ in PLANTED} == set(RULES)


def test_a_long_text_cell_is_found_and_a_long_list_is_not() -> None:
    assert rules_broken("word " * LONGEST_TEXT) == []
    assert rules_broken("word " * (LONGEST_TEXT + 1)) == ["length"]
    assert rules_broken("- " + "word " * (LONGEST_TEXT + 1)) == []


def test_code_is_left_alone() -> None:
    assert rules_broken("The call `client.start(anew)` works.") == []


def test_every_source_keeps_to_the_rules() -> None:
    wrong = [
        f"{path.name} line {line}: {words} ({rule})"
        for path in sorted(SOURCES.glob("*.py"))
        for rule, line, words in sentences_against_the_rules(path.name, read(path.read_text("utf-8"), path.name))
    ]
    assert wrong == []


def test_every_allowed_sentence_is_still_there() -> None:
    for _, source, words in allowed_sentences():
        text = " ".join((SOURCES / source).read_text("utf-8").replace("\n# ", " ").split())
        assert words in text
