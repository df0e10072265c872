"""What predict, reveal, check and hint return: a headline, a few facts, a note.

Every lab uses it.

    ✓ lab00.find: 3 of 3 public checks pass …      mark, headline
      where │ the commit log                       facts, one per row
    A note in a sentence or two.

JupyterLab breaks the lines of an error anywhere, even within a word, so the text of an error has lines that fit.
Colour is never the only sign: the mark says the same.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from mqlab.errors import UsageError
from mqlab.lab.views.view import View

MARKS = {"good": "✓", "bad": "✗", "open": "○", "note": "→"}
EDGES = {"good": "#1b7f4b", "bad": "#b3401a", "open": "#8a93a3", "note": "#0b5fa5"}
ERROR_COLUMNS = 88  # fit into the error box of a notebook next to an open sidebar


@dataclass(frozen=True, repr=False)
class Said(View):
    """One result. ``state`` is good, bad, open (nothing done yet) or note."""

    state: str
    headline: str
    facts: Sequence[tuple[str, str]] = ()
    note: str = ""

    def text(self) -> str:
        return "\n".join(head + words for head, words in self._lines())

    def text_of_error(self) -> str:
        """The same text in lines that fit into a notebook's error box; a long value continues below its beginning."""
        return "\n".join(_hanging(head, words) for head, words in self._lines())

    def _lines(self) -> list[tuple[str, str]]:
        names = max((len(name) for name, _ in self.facts), default=0)
        lines = [(f"{MARKS[self.state]} ", self.headline)]
        lines += [(f"  {name:<{names}}  ", value) for name, value in self.facts]
        return [*lines, ("  ", self.note)] if self.note else lines

    def html(self) -> Markup:
        table = self.facts_html()
        note = Markup("<div>{}</div>").format(with_marks(self.note)) if self.note else Markup("")
        head = Markup("<div>{} <b>{}</b></div>").format(MARKS[self.state], with_marks(self.headline))
        edge = f"border-left:4px solid {EDGES[self.state]};padding:4px 12px"
        return Markup('<div style="{}">{}{}{}</div>').format(edge, head, table, note)

    def facts_html(self) -> Markup:
        """The facts alone, as a table; nothing without facts."""
        facts = Markup("").join(
            Markup('<tr><td style="text-align:left">{}</td><td style="text-align:left">{}</td></tr>').format(
                name, with_marks(value)
            )
            for name, value in self.facts
        )
        return Markup("<table><tbody>{}</tbody></table>").format(facts) if self.facts else Markup("")

    def __repr__(self) -> str:
        return f"<{self.state}: {self.headline}>"


class AskedWrongly(UsageError):
    """A call of predict, check or hint with a wrong argument. A notebook shows two lines instead of a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [Said("bad", self.text, note=self.hint).text_of_error()]


def _hanging(head: str, words: str) -> str:
    """``words`` after ``head``, wrapped to lines that fit; every further line is indented to where the words begin."""
    margin = " " * len(head)
    fit = textwrap.TextWrapper(
        ERROR_COLUMNS, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )
    lines = [part for line in words.splitlines() for part in fit.wrap(line)]
    return (head + "\n".join(lines)[len(head) :]).rstrip()


MARKED = re.compile(r"`(?P<code>[^`]+)`|(?<![\w*])(?P<stars>\*\*?)(?=[\w✕])(?P<word>[^*`]*\w)(?P=stars)(?![\w*])")


def with_marks(text: str) -> Markup:
    """A text as HTML: `names between backticks` are set as code, *one star* and **two** as a notebook sets them.

    A star of a product stays a star.

    >>> str(with_marks("*few* of `a*b*c`, **all** of 2 * (3 + 4) * 5"))
    '<em>few</em> of <code>a*b*c</code>, <strong>all</strong> of 2 * (3 + 4) * 5'
    """
    markup, end = Markup(""), 0
    for match in MARKED.finditer(text):
        markup += text[end : match.start()]
        if match["code"]:
            markup += Markup("<code>{}</code>").format(match["code"])
        else:
            name = "em" if match["stars"] == "*" else "strong"
            markup += Markup(f"<{name}>{{}}</{name}>").format(match["word"])
        end = match.end()
    return markup + text[end:]
