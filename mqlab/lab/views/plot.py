"""The frame of a chart with two axes: where a value is drawn, ticks, grid lines, names of axes and of lines.

Curves and histograms are drawn in it.

    y name
    100 ┤ · · · · · · ·
        │                  ── name of a line
      1 └┬──────┬──────┬   x name

Left out: the marks themselves, which each chart draws.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.lab.views.picture import Canvas, text_pixels
from mqlab.lab.views.text_width import cut
from mqlab.lab.views.theme import INK, MUTED
from mqlab.scales import Scale, tick_text

WIDTH, HEIGHT = 520, 240
MARGIN = 18
NAME_ROW = 18
MAX_NAME_COLUMNS = 48


@dataclass(frozen=True, slots=True)
class Plot:
    """Two scales and their names; positions are whole pixels from the picture's top left corner."""

    across: Scale
    up: Scale
    title: str = ""
    x: str = ""
    y: str = ""

    @property
    def left(self) -> int:
        """Where the plot begins, next to the numbers of the y axis."""
        return MARGIN + max(text_pixels(tick_text(tick)) for tick in self.up.ticks) + 8

    @property
    def top(self) -> int:
        """Where the plot begins, below the title and the name of the y axis."""
        return MARGIN + (22 if self.title else 0) + (18 if self.y else 0)

    def at(self, x: float, y: float) -> tuple[int, int]:
        """The place of a value; one outside the axes is put on their end."""
        across, up = (min(max(part, 0.0), 1.0) for part in (self.across.part(x), self.up.part(y)))
        return self.left + round(across * WIDTH), self.top + HEIGHT - round(up * HEIGHT)

    def canvas(self, names: int) -> Canvas:
        """A canvas with axes and room for the names of so many lines."""
        bottom, right = self.top + HEIGHT, self.left + WIDTH
        widest = max(right + 2 * MARGIN, text_pixels(self.title) + 2 * MARGIN)
        canvas = Canvas(widest, bottom + 24 + (18 if self.x else 0) + NAME_ROW * names + 8)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        if self.y:
            canvas.text(MARGIN, self.top - 10, cut(self.y, MAX_NAME_COLUMNS), MUTED)
        for tick in self.up.ticks:
            _, y = self.at(self.across.low, tick)
            canvas.line(self.left, y, right, y)
            canvas.text(self.left - 8, y + 4, tick_text(tick), MUTED, anchor="end", size=11)
        for tick in self.across.ticks:
            x, _ = self.at(tick, self.up.low)
            canvas.line(x, self.top, x, bottom + 4)
            canvas.text(x, bottom + 18, tick_text(tick), MUTED, anchor="middle", size=11)
        if self.x:
            canvas.text(right, bottom + 36, cut(self.x, MAX_NAME_COLUMNS), MUTED, anchor="end")
        return canvas

    def name(self, canvas: Canvas, number: int, name: str, colour: str, *, dashed: bool) -> None:
        """The name of a line below the plot, behind a piece of the line."""
        y = self.top + HEIGHT + 24 + (18 if self.x else 0) + NAME_ROW * number + 6
        canvas.path([(self.left, y - 4), (self.left + 30, y - 4)], colour, dashed=dashed)
        canvas.text(self.left + 38, y, cut(name, MAX_NAME_COLUMNS), INK)
