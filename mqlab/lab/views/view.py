"""The base of everything that a notebook shows: plain text, and HTML with the same facts.

Every lab shows its results through it.

    View ── text()   plain, stable, aligned; what print() shows and what tests compare
         └─ html()   the same facts, escaped, readable in a light and in a dark theme

A view has no state: it is made from facts and never changes.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from markupsafe import Markup, escape

from mqlab.lab.views.theme import STYLE

SMALLEST_SHARE = 80  # percent: at less, 12 px text is hard to read


class View:
    """Base of everything that can be shown: subclasses give ``text()`` and ``html()``."""

    def text(self) -> str:
        """The whole view as plain text, without a newline at its end."""
        raise NotImplementedError

    def html(self) -> Markup:
        """The whole view as HTML that needs no style sheet and no script."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.text(), "text/html": str(self.html())}


def image(svg: str, alt: str) -> Markup:
    """An SVG picture in the colours of the notebook's theme, and as an ``<img>`` where those are not allowed.

    A notebook that is not trusted drops SVG and style sheets, but keeps ``<img>``; see mqlab.lab.views.theme.
    A picture never shrinks below SMALLEST_SHARE of its size, so that its text stays legible: a narrow page scrolls it.
    """
    data = base64.b64encode(svg.encode()).decode()
    match = re.search(r'<svg[^>]* width="(\d+)', svg)
    least = int(match.group(1)) * SMALLEST_SHARE // 100 if match else 0
    inline = svg[svg.index("<svg") :].replace(
        "<svg ",
        f'<svg role="img" aria-label="{escape(alt)}" style="max-width:100%;min-width:{least}px;height:auto" ',
        1,
    )
    return Markup(
        '<div class="mqlab-view"><style>{}</style>'
        '<div class="mqlab-drawing" tabindex="0" style="display:none;overflow-x:auto">{}</div>'
        '<img class="mqlab-image" alt="{}" style="max-width:100%" src="data:image/svg+xml;base64,{}"></div>'
    ).format(Markup(STYLE), Markup(inline), alt, data)


def folded_text(summary: str, text: str) -> Markup:
    """The text twin of a picture, folded away under a line that opens with Enter or a click."""
    return Markup('<details><summary>{}</summary><pre style="overflow-x:auto">{}</pre></details>').format(summary, text)
