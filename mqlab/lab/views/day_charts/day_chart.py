"""The base of the charts of a day: the bare drawing for a page with its own colours, and the picture for a notebook.

Mirrors: nothing of RocketMQ.

    DayChart ── drawing()   SVG whose parts have classes (s0 line, f0 area, tick, grid); the page's style colours them
             └─ svg()       the same on a card, with title, legend and colours of the notebook's theme

Left out: interaction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC
from typing import Any

from markupsafe import Markup, escape

from mqlab.lab.views.day_charts.drawing import COLOURS
from mqlab.lab.views.picture import FONT, Picture, legend_places, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.theme import AMBER, BLUE, GREEN, INK, MUTED, PAPER, RED, RULE, VIOLET

PALETTE = (BLUE, AMBER, GREEN, VIOLET, RED, MUTED, RULE)  # the same meanings as --c0 to --c6 of the report's page
assert len(PALETTE) == COLOURS
TITLE, LEGEND_ROW, EMPTY = 26, 20, 32
NOTEBOOK_WIDTH = 760

STYLE = (
    f".mq-day text{{font:12px {FONT};fill:{INK}}}"
    f".mq-day .tick{{fill:{MUTED};font-size:11px}}.mq-day .cell{{font-size:11px}}"
    f".mq-day .grid{{stroke:{RULE};fill:none}}.mq-day .heat{{fill:{BLUE}}}"
    ".mq-day .line{fill:none;stroke-width:1.8;stroke-linejoin:round}"
    f".mq-day .area{{fill-opacity:.78;stroke:{PAPER};stroke-width:.6}}.mq-day .name{{font-weight:600}}"
    + "".join(
        f".mq-day .s{number}{{stroke:{colour}}}.mq-day .f{number}{{fill:{colour}}}"
        for number, colour in enumerate(PALETTE)
    )
    + "".join(f".mq-day text.t{number}{{fill:{colour}}}" for number, colour in enumerate(PALETTE[:-1]))
)


class DayChart(Picture):
    """Subclasses give ``drawing``, ``table`` and ``said``, the alternative text without the title."""

    title = ""

    def drawing(self) -> Markup:
        """The SVG without colours of its own."""
        raise NotImplementedError

    def said(self) -> str:
        """What the chart shows, in one sentence."""
        raise NotImplementedError

    def legend(self) -> Sequence[tuple[str, int]]:
        """What the colours mean, where the drawing does not say it: (meaning, number of the colour)."""
        return ()

    @property
    def alt(self) -> str:
        return f"{self.title}: {self.said()}" if self.title else self.said()

    def table(self) -> Table:
        raise NotImplementedError

    def text(self) -> str:
        return str(self.table())

    def svg(self) -> str:
        drawn = str(self.drawing())
        view_box = re.search(r'viewBox="0 0 (\d+) (\d+)"', drawn)
        assert view_box is not None
        wide, high = int(view_box.group(1)), int(view_box.group(2))
        inner = drawn[drawn.index(">") + 1 : -len("</svg>")]
        if not len(self.table()):
            high = max(high, EMPTY)
            middle = f'x="{wide // 2}" y="{high // 2 + 4}" text-anchor="middle"'
            inner += f'<text {middle} class="tick">{escape(self.said())}</text>'
        # The title stands above the drawing and the legend below it, so the view box grows both ways.
        top = TITLE if self.title else 0
        keys, rows = self._legend(wide, high)
        height = top + high + LEGEND_ROW * rows
        title = f'<text x="16" y="-8" class="name">{escape(self.title)}</text>' if self.title else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="mq-day" width="{wide}" height="{height}" '
            f'viewBox="0 {-top} {wide} {height}"><title>{escape(self.title or type(self).__name__)}</title>'
            f"<desc>{escape(self.alt)}</desc><style>{STYLE}</style>"
            f'<rect y="{-top}" width="{wide}" height="{height}" rx="8" fill="{PAPER}"/>{title}{inner}{keys}</svg>'
        )

    def _legend(self, wide: int, high: int) -> tuple[str, int]:
        """The entries of the legend, and how many rows they need."""
        entries = self.legend()
        places = legend_places([meaning for meaning, _ in entries], wide - 32)
        drawn = [
            f'<rect class="f{colour}" x="{16 + x}" y="{high + LEGEND_ROW * row + 2}" width="11" height="11" rx="2"/>'
            f'<text x="{32 + x}" y="{high + LEGEND_ROW * row + 12}">{escape(meaning)}</text>'
            for (meaning, colour), (x, row) in zip(entries, places, strict=True)
        ]
        return "".join(drawn), max((row + 1 for _, row in places), default=0)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title!r}>"


def time_ms(time: Any) -> int:
    """A time as ms since the epoch: of a number, of a pandas or numpy time, or of a datetime (UTC without a zone).

    >>> from datetime import datetime
    >>> time_ms(1767225600012), time_ms(datetime(2026, 1, 1))
    (1767225600012, 1767225600000)
    """
    if hasattr(time, "astype"):  # numpy
        return int(time.astype("datetime64[ms]").astype("int64") if time.dtype.kind == "M" else time)
    if hasattr(time, "timestamp"):
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        milliseconds: float = aware.timestamp() * 1000
        return round(milliseconds)
    return int(time)


def known(value: Any) -> float | None:
    """A value as a number; None for what is not known (None, NaN, pandas' NA).

    >>> known(3), known(float("nan")), known(None)
    (3.0, None, None)
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return None if number != number else number


def label_width(names: Sequence[str], least: int, most: int) -> int:
    """Pixels for names next to a chart."""
    return min(max([least, *(text_pixels(name) + 16 for name in names)]), most)
