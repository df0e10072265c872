"""The rules for sentences that a pattern can hold: of the labs, and of comments and strings in Python and JavaScript.

docs/writing-labs.md has their reasons.

    do-support      "What is the group's offset?", not "Which offset has the group?"
    headless who    "If you send …", not "Who sends … has to …"
    per             "one row per queue", not "a row a queue"; "20 bytes", not "so many bytes"
    what it is not  "must be a list", not "is no list"
    so              "works that way", not "works so"
    asked           "The question is how long …", not "Asked for is how long …"
    words           not "anew", "in vain", "beside", "mend"
    length          a text cell has at most 90 words, not counting its headings, lists, tables and code

A sentence that must stay as it is stands in plain_english_allowed.txt, with its rule and its source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from solutions.cells import Cell, read_words
from solutions.words import KINDS

LONGEST_TEXT = 90
ALLOWED = Path(__file__).with_name("plain_english_allowed.txt")
COUNTED = "rows?|entry|entries|numbers?|requests?|cop(?:y|ies)|lines?|bytes|messages?|calls?|orders?|threads?|pulls?"
EACH = "queue|message|delivery|order|group|member|key|broker|topic|pull|batch|partition|thread|consumer"
RULES = {
    "do-support": r"\b(?:Which|How many) (?:\w+ )?\w+ ha(?:s|ve|d) (?:the|a|an|its|this|that)\b",
    "headless who": r"(?:^|(?<=[.:;!?] ))Who [^.?!·]*\.(?=\s|$)",
    "per": rf"(?<!to )\b(?:{COUNTED}) an? (?:{EACH})\b|\bso many (?:bytes|messages|minutes|seconds|orders|rows)\b",
    "what it is not": r"(?<![Tt]here )\b(?:is|was) no (?!longer\b|more\b|such\b)\w+",
    "so": r"\b(?:does|do|did|have|has) it so\b|\bworks? so\b|\b(?:is|are) so\b[.,;:]|\blooks so\b",
    "asked": r"\bAsked (?:for )?(?:is|are)\b",
    "words": r"\banew\b|\bin vain\b|\bbeside\b|\b[Mm]end(?:s|ed|ing)?\b",
}


def sentences_against_the_rules(where: str, cells: Sequence[Cell]) -> Iterator[tuple[str, int, str]]:
    """Yields (rule, line, words) for each place of a source that breaks a rule. ``cells``: as ``read`` returns them."""
    allowed = allowed_sentences()
    for cell in cells:
        if cell.kind == "code":
            continue
        text = cell.source
        # A heading is a sentence of its own, whatever follows it.
        text = re.sub(r"^#+ (.*)$", r"\1 ·", text, flags=re.MULTILINE)
        for rule, words, around in breaches(text):
            if (rule, where, words) not in allowed:
                yield rule, cell.line, f"{words!r} in {around!r}"
        length = words_of_prose(read_words(cell, where).prose if cell.kind in KINDS else cell.source)
        if length > LONGEST_TEXT:
            yield "length", cell.line, f"the text has {length} words, at most {LONGEST_TEXT}"


def breaches(text: str) -> Iterator[tuple[str, str, str]]:
    """Yields (rule, words, what is around them) for each place of a text that breaks a rule, code in backticks apart.

    >>> list(breaches("The value is no list."))
    [('what it is not', 'is no list', 'The value is no list.')]
    """
    text = " ".join(re.sub(r"`[^`]*`", "``", text).split())
    for rule, pattern in RULES.items():
        for found in re.finditer(pattern, text):
            yield rule, found[0].strip(), text[max(found.start() - 30, 0) : found.end() + 30]


def words_of_prose(text: str) -> int:
    """Counts the words of a text cell; headings, lists, tables, code and HTML do not count.

    >>> words_of_prose("## Why\\n\\nOne word.\\n\\n- not this\\n  nor that\\n")
    2
    """
    counted, skipping = 0, False
    for paragraph in re.sub(r"```.*?```", "", text, flags=re.DOTALL).split("\n\n"):
        for line in paragraph.splitlines():
            skipping = bool(re.match(r"\s*(#|\||- |\d+\. |<)", line)) or (skipping and line.startswith("  "))
            counted += 0 if skipping else len(line.split())
        skipping = False
    return counted


def allowed_sentences() -> set[tuple[str, str, str]]:
    """Returns what plain_english_allowed.txt excuses: rule, source, and the words that the pattern finds."""
    lines = (line for line in ALLOWED.read_text("utf-8").splitlines() if line and not line.startswith("#"))
    return {(rule, source, words) for rule, source, words in (line.split(" | ", 2) for line in lines)}
