"""The minutes of a lab: written once, in the headings of its sections, and summed wherever they are told.

# %% [markdown] minutes=10         a heading's cell: the minutes until the next heading that has minutes
# About {minutes} minutes.         in a text cell: the sum of this notebook
# | lab 07 | {minutes:07} |        the sum of lab 07; {minutes:07b}: of one of its parts

<!-- minutes 07 -->180<!-- end -->          in docs/instructors.md: ``make labs`` puts the sum between the two
<!-- hours 07 -->3 h<!-- end -->            the same in hours, rounded up to half an hour
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from mqlab.course.words import has_words, words_of
from mqlab.errors import UsageError

IN_A_SOURCE = re.compile(r"\{minutes(?::(\w+))?\}")
IN_A_PAGE = re.compile(r"(<!-- (minutes|hours) (\w+) -->)[^<]*(<!-- end -->)")


def heading(source: str) -> str:
    """The text of a text cell's first heading that is not the notebook's title; "" without one.

    >>> heading("# Lab 07\\n\\n## Why\\n\\nBecause.")
    'Why'
    """
    found = re.search(r"^##+ (.+)$", source, re.MULTILINE)
    return found[1].strip() if found else ""


def sections(cells: Iterable[tuple[str, int, str]]) -> dict[str, int]:
    """Section -> minutes, of cells given as (text, minutes or 0, where). UsageError for minutes without a heading."""
    found: dict[str, int] = {}
    for text, minutes, where in cells:
        if minutes and not heading(text):
            raise UsageError(f"{where}: minutes belong to a cell that has a heading")
        if minutes:
            found[heading(text)] = found.get(heading(text), 0) + minutes
    return found


def minutes_of(part: str, where: str) -> int:
    """The sum of a lab ("07") or of a part ("07b"). UsageError if it is not known."""
    lab = f"lab{part[:2]}"
    known = words_of(lab).total_minutes(part if part[2:] else "") if has_words(lab) else 0
    if not known:
        raise UsageError(f"{where}: no minutes are known of {part!r}", hint="give the headings of its source minutes=…")
    return known


def filled(text: str, own: int, where: str) -> str:
    """A text cell with the minutes in place of ``{minutes}``. ``own``: the sum of this notebook."""
    return IN_A_SOURCE.sub(lambda found: str(minutes_of(found[1], where) if found[1] else own), text)


def filled_page(text: str, where: str) -> str:
    """A page of docs with the minutes between its marks.

    >>> filled_page("about an hour", "page.md")
    'about an hour'
    """

    def told(found: re.Match[str]) -> str:
        minutes = minutes_of(found[3], where)
        number = str(minutes) if found[2] == "minutes" else f"{math.ceil(minutes / 30) / 2:g} h"
        return f"{found[1]}{number}{found[4]}"

    return IN_A_PAGE.sub(told, text)
