"""What predict, reveal, check and hint answer: a line, a few facts, a note.

Mirrors: nothing in RocketMQ. Every lab shows it.

    ✓ lab00.find: 3 of 3 public checks pass …      mark, headline
      where │ the commit log                       facts, a row each
    A note in a sentence or two.

Left out: colour as the only sign (the mark and the words say it).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from mqlab.views.view import View

MARKS = {"good": "✓", "bad": "✗", "open": "○", "note": "→"}
EDGES = {"good": "#1b7f4b", "bad": "#b3401a", "open": "#8a93a3", "note": "#0b5fa5"}


@dataclass(frozen=True, repr=False)
class Said(View):
    """One answer. ``state`` is good, bad, open (nothing done yet) or note."""

    state: str
    headline: str
    facts: Sequence[tuple[str, str]] = ()
    note: str = ""

    def text(self) -> str:
        lines = [f"{MARKS[self.state]} {self.headline}"]
        names = max((len(name) for name, _ in self.facts), default=0)
        lines += [f"  {name:<{names}}  {value}" for name, value in self.facts]
        if self.note:
            lines.append(f"  {self.note}")
        return "\n".join(lines)

    def html(self) -> Markup:
        facts = Markup("").join(
            Markup('<tr><td style="text-align:left">{}</td><td style="text-align:left">{}</td></tr>').format(*fact)
            for fact in self.facts
        )
        table = Markup("<table><tbody>{}</tbody></table>").format(facts) if self.facts else Markup("")
        note = Markup("<div>{}</div>").format(_with_code(self.note)) if self.note else Markup("")
        head = Markup("<div>{} <b>{}</b></div>").format(MARKS[self.state], _with_code(self.headline))
        edge = f"border-left:4px solid {EDGES[self.state]};padding:4px 12px"
        return Markup('<div style="{}">{}{}{}</div>').format(edge, head, table, note)

    def __repr__(self) -> str:
        return f"<{self.state}: {self.headline}>"


def _with_code(text: str) -> Markup:
    """A text in which `names between backticks` are set as code."""
    parts = re.split("`([^`]+)`", text)
    return Markup("").join(Markup("<code>{}</code>" if n % 2 else "{}").format(part) for n, part in enumerate(parts))
