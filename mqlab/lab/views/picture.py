"""Drawing: a small SVG canvas with explicit colours, and the view that shows a drawing with its text twin.

Every picture of every lab is drawn on it.

    canvas = Canvas(400, 80); canvas.line(…); canvas.text(…); canvas.mark("square", …)
    class Timeline(Picture): svg() text() table() alt

Colours are those of mqlab.lab.views.theme, so that a picture follows the notebook's theme, light or dark.
Shapes and words repeat what colours mean. Numbers are whole: the same facts give the same bytes on every machine.
Left out: layout (each picture knows its own), animation and links.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from mqlab.lab.views.table import Table
from mqlab.lab.views.text_width import width
from mqlab.lab.views.theme import INK, MUTED, PAPER, RULE
from mqlab.lab.views.view import View, folded_text, image

if TYPE_CHECKING:
    import pandas

FONT = "system-ui, 'Segoe UI', 'Noto Sans', 'Noto Sans CJK SC', 'PingFang SC', sans-serif"
CHARACTER = 7  # an average character of 12 px text, a little generous


@dataclass(frozen=True, slots=True)
class Look:
    """How one kind of fact is drawn: a colour and a shape with the same meaning, and that meaning in words."""

    colour: str
    shape: str
    meaning: str


class Canvas:
    """An SVG under construction. Positions are whole pixels from the top left corner.

    >>> canvas = Canvas(20, 10); canvas.text(1, 9, "<&>"); "&lt;&amp;&gt;" in canvas.svg()
    True
    """

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self._parts: list[str] = []

    def line(
        self, x1: int, y1: int, x2: int, y2: int, colour: str = RULE, *, dashed: bool = False, thick: bool = False
    ) -> None:
        """A straight line, one pixel and a half wide, or three when ``thick``."""
        dashes = ' stroke-dasharray="3 4"' if dashed else ""
        self._parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" '
            f'stroke-width="{3 if thick else 1.5}"{dashes}/>'
        )

    def path(self, points: Iterable[tuple[int, int]], colour: str, *, dashed: bool = False) -> None:
        """A line through points, two pixels wide."""
        dashes = ' stroke-dasharray="6 4"' if dashed else ""
        places = "L".join(f"{x} {y}" for x, y in points)
        self._parts.append(f'<path d="M{places}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')

    def bow(self, x: int, y1: int, y2: int, out: int, colour: str = RULE, *, thick: bool = False) -> None:
        """A bow that leaves (x, y1) to the right, goes ``out`` pixels away and comes back at (x, y2) with a point."""
        wide = 3 if thick else 1.5
        self._parts.append(
            f'<path d="M{x} {y1} C{x + out} {y1} {x + out} {y2} {x + 2} {y2}" fill="none" stroke="{colour}" '
            f'stroke-width="{wide}"/><path d="M{x} {y2} l7 -4 v8 Z" fill="{colour}"/>'
        )

    def arrow(
        self, x1: int, x2: int, y: int, colour: str = MUTED, *, to_y: int | None = None, thick: bool = False
    ) -> None:
        """An arrow from (x1, y) to (x2, to_y); level without ``to_y``."""
        to_y = y if to_y is None else to_y
        self.line(x1, y, x2, to_y, colour, thick=thick)
        # The point is a triangle that lies back along the line, in whole pixels.
        length = math.hypot(x2 - x1, to_y - y) or 1.0
        along_x, along_y = (x2 - x1) / length, (to_y - y) / length
        sides = [
            (round(x2 - 8 * along_x - side * along_y), round(to_y - 8 * along_y + side * along_x)) for side in (4, -4)
        ]
        points = " ".join(f"L{x} {y}" for x, y in sides)
        self._parts.append(f'<path d="M{x2} {to_y} {points} Z" fill="{colour}"/>')

    def box(
        self,
        x: int,
        y: int,
        width: int,
        height: int,
        fill: str,
        *,
        border: str = "none",
        round_by: int = 0,
        title: str = "",
        thick: bool = False,
    ) -> None:
        """A rectangle; ``round_by`` rounds its corners, ``title`` is shown where the pointer rests on it."""
        wide = ' stroke-width="3"' if thick else ""
        shape = (
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{round_by}" fill="{fill}" '
            f'stroke="{border}"{wide}'
        )
        self._parts.append(f"{shape}><title>{escape(title)}</title></rect>" if title else f"{shape}/>")

    def mark(self, look: Look, x: int, y: int) -> None:
        """A small shape, its centre at (x, y)."""
        shapes = {
            "square": f"M{x - 5} {y - 5} h10 v10 h-10 Z",
            "circle": f"M{x - 5} {y} a5 5 0 1 0 10 0 a5 5 0 1 0 -10 0",
            "diamond": f"M{x} {y - 7} L{x + 7} {y} L{x} {y + 7} L{x - 7} {y} Z",
            "triangle": f"M{x - 5} {y - 6} L{x + 7} {y} L{x - 5} {y + 6} Z",
            "dot": f"M{x - 3} {y} a3 3 0 1 0 6 0 a3 3 0 1 0 -6 0",
        }
        if look.shape == "cross":
            d = f"M{x - 5} {y - 5} L{x + 5} {y + 5} M{x - 5} {y + 5} L{x + 5} {y - 5}"
            self._parts.append(f'<path d="{d}" stroke="{look.colour}" stroke-width="3" fill="none"/>')
        else:
            self._parts.append(f'<path d="{shapes[look.shape]}" fill="{look.colour}"/>')

    def text(
        self,
        x: int,
        y: int,
        text: str,
        colour: str = INK,
        *,
        anchor: str = "start",
        bold: bool = False,
        size: int = 12,
        halo: bool = True,
    ) -> None:
        """One line of text, its baseline at ``y``; a halo of paper keeps it readable where lines pass."""
        weight = ' font-weight="600"' if bold else ""
        end = f' text-anchor="{anchor}"' if anchor != "start" else ""
        bigger = f' font-size="{size}"' if size != 12 else ""
        bare = "" if halo else ' style="stroke:none"'
        self._parts.append(f'<text x="{x}" y="{y}" fill="{colour}"{end}{weight}{bigger}{bare}>{escape(text)}</text>')

    def svg(self, title: str = "", described: str = "") -> str:
        """The whole drawing on its card. ``title`` and ``described`` name it for those who do not see it."""
        words = f"<title>{escape(title)}</title>" if title else ""
        words += f"<desc>{escape(described)}</desc>" if described else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="mq" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}">{words}'
            f"<style>.mq text{{font:12px {FONT};paint-order:stroke;stroke:{PAPER};stroke-width:4px;"
            "stroke-linejoin:round}"
            '.mq [font-weight="600"]{font-weight:600}.mq [font-size="11"]{font-size:11px}'
            '.mq [font-size="10"]{font-size:10px}</style>'
            f'<rect width="{self.width}" height="{self.height}" rx="8" fill="{PAPER}"/>'
            f"{''.join(self._parts)}</svg>"
        )


def text_pixels(text: str) -> int:
    """About how wide a 12 px text is drawn; Chinese characters and emoji count double."""
    return width(text) * CHARACTER


def legend_places(meanings: Iterable[str], most: int) -> list[tuple[int, int]]:
    """Where the entries of a legend begin, in pixels, and in which row: a row is at most ``most`` pixels long.

    >>> legend_places(["one", "another", "third"], 140)
    [(0, 0), (55, 0), (0, 1)]
    """
    places, x, row = [], 0, 0
    for meaning in meanings:
        wide = 34 + width(meaning) * CHARACTER
        if x and x + wide > most:
            x, row = 0, row + 1
        places.append((x, row))
        x += wide
    return places


class Picture(View):
    """A drawing, a table and a text with the same facts: subclasses give ``svg``, ``text``, ``table``
    and ``alt``, one sentence for those who cannot see the picture.
    """

    @property
    def alt(self) -> str:
        """The picture in one sentence."""
        raise NotImplementedError

    def svg(self) -> str:
        """The drawing as SVG text."""
        raise NotImplementedError

    def table(self) -> Table:
        """The drawn facts, one row each."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a DataFrame."""
        return self.table().to_pandas()

    def html(self) -> Markup:
        return Markup("<div>{}{}</div>").format(image(self.svg(), self.alt), folded_text("the same as text", str(self)))
