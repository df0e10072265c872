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

from markupsafe import Markup

PAGE_PIXELS = 1_100  # the width that a notebook shows without shrinking it much


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
    """An SVG picture as an ``<img>`` that notebooks keep even when they are not trusted (bare SVG is dropped there).

    It shrinks to the page; one wider than PAGE_PIXELS shrinks to 85 % at most and scrolls, so that its text is legible.
    """
    data = base64.b64encode(svg.encode()).decode()
    found = re.search(r'<svg[^>]* width="(\d+)', svg)
    if found is None or int(found.group(1)) <= PAGE_PIXELS:
        return Markup('<img alt="{}" style="max-width:100%" src="data:image/svg+xml;base64,{}">').format(alt, data)
    least = max(int(found.group(1)) * 85 // 100, PAGE_PIXELS)
    picture = Markup('<img alt="{}" style="max-width:100%;min-width:{}px" src="data:image/svg+xml;base64,{}">')
    return Markup('<div style="overflow-x:auto">{}</div>').format(picture.format(alt, least, data))


def folded_text(summary: str, text: str) -> Markup:
    """The text twin of a picture, folded away under a line that opens with Enter or a click."""
    return Markup("<details><summary>{}</summary><pre>{}</pre></details>").format(summary, text)
