"""Bars in parts, cells and spans of a day.

Mirrors: the topic and consumer pages of RocketMQ Dashboard.

    Stacked   a level bar per name, divided      Heat   a cell per row and column      Spans   from a time to a time

Left out: values below 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from mqlab.lab.views.day_charts import drawing
from mqlab.lab.views.day_charts.day_chart import NOTEBOOK_WIDTH, DayChart, known, label_width
from mqlab.lab.views.table import Table
from mqlab.scales import count_text

NARROWEST_LABEL, WIDEST_LABEL = 80, 260
Cells = Mapping[str, Mapping[Any, Any]]


class Stacked(DayChart):
    """A level bar for each name, divided into parts; the longest has the full width, so that lengths can be compared.

    ``bars``: name -> part -> value. ``colours``: part -> number of its colour, by default in order of appearance.
    ``notes``: name -> text at the end of its bar, by default the sum.

    >>> print(Stacked({"billing": {"consumed": 97, "lost": 3}, "audit": {"consumed": 100}}, title="outcomes"))
    outcomes
    name     consumed  lost
    -------  --------  ----
    billing        97     3
    audit         100     0
    """

    def __init__(
        self,
        bars: Cells,
        *,
        title: str = "",
        colours: Mapping[str, int] | None = None,
        notes: Mapping[str, str] | None = None,
        said: str = "",
        width: int = NOTEBOOK_WIDTH,
        label: int | None = None,
    ) -> None:
        self.title, self._said, self._width = title, said, width
        self.bars = {name: {part: known(value) or 0.0 for part, value in parts.items()} for name, parts in bars.items()}
        self.parts = list(dict.fromkeys(part for parts in self.bars.values() for part in parts))
        self._colours = colours or {part: min(index, drawing.COLOURS - 1) for index, part in enumerate(self.parts)}
        self._notes = notes or {}
        self._label = label or label_width(list(self.bars), NARROWEST_LABEL, WIDEST_LABEL)

    def drawing(self) -> Markup:
        rows = [
            (
                name,
                [(value, self._colours[part], part) for part, value in parts.items()],
                self._notes.get(name, count_text(sum(parts.values()))),
            )
            for name, parts in self.bars.items()
        ]
        return drawing.bars(rows, self.alt, self._width, self._label)

    def legend(self) -> Sequence[tuple[str, int]]:
        return [(part, self._colours[part]) for part in self.parts] if len(self.parts) > 1 else []

    def said(self) -> str:
        if self._said:
            return self._said
        phrases = [
            f"{name} " + ", ".join(f"{count_text(value)} {part}" for part, value in parts.items() if value)
            for name, parts in list(self.bars.items())[:6]
        ]
        return "; ".join(phrases) or "nothing to compare"

    def table(self) -> Table:
        """One row per bar: its name, and a column per part."""
        rows = [
            {"name": name, **{part: _whole(parts.get(part, 0.0)) for part in self.parts}}
            for name, parts in self.bars.items()
        ]
        return Table(rows, columns=["name", *self.parts], title=self.title, empty="nothing to compare")


class Heat(DayChart):
    """A cell per row and column, its colour stronger for more.

    ``cells``: row -> column -> value (or a pandas frame, its index the rows). ``hints``: (row, column) -> what is shown
    where the pointer rests. A wide cell has its value written in it. A missing value has no cell.

    >>> print(Heat({"broker-a": {"0": 12, "1": 9}, "broker-b": {"0": 3}}, title="messages of each queue"))
    messages of each queue
    row        0  1
    --------  --  -
    broker-a  12  9
    broker-b   3  -
    """

    def __init__(
        self,
        cells: Any,
        *,
        title: str = "",
        hints: Mapping[tuple[str, str], str] | None = None,
        said: str = "",
        width: int = NOTEBOOK_WIDTH,
    ) -> None:
        rows: Cells = cells.to_dict("index") if hasattr(cells, "columns") else cells
        self.title, self._said, self._width, self._told = title, said, width, hints or {}
        self.cells: dict[str, dict[str, float]] = {}
        for row, values in rows.items():
            numbers = {str(column): known(value) for column, value in values.items()}
            self.cells[str(row)] = {column: value for column, value in numbers.items() if value is not None}
        self.columns = list(dict.fromkeys(str(column) for values in rows.values() for column in values))

    def drawing(self) -> Markup:
        most = max((value for cells in self.cells.values() for value in cells.values()), default=0) or 1
        rows = []
        for row, cells in self.cells.items():
            drawn = []
            for column in self.columns:
                value = cells.get(column)
                hint = self._told.get((row, column), f"{row}, {column}: {count_text(value or 0)}")
                drawn.append(None if value is None else (count_text(value), value / most, hint))
            rows.append((row, drawn))
        return drawing.heat(rows, self.alt, self._width, self.columns)

    def said(self) -> str:
        if self._said:
            return self._said
        every = [(value, row, column) for row, cells in self.cells.items() for column, value in cells.items()]
        if not every:
            return "no cells"
        value, row, column = max(every)
        return f"{len(every)} cells, most in {row}, {column}: {count_text(value)}"

    def table(self) -> Table:
        """One row per row of cells; None where there is none."""
        rows = [
            {"row": row, **{column: _whole(value) for column, value in cells.items()}}
            for row, cells in self.cells.items()
        ]
        return Table(rows, columns=["row", *self.columns], title=self.title, empty="no cells")


class Spans(DayChart):
    """One row per span, from a time to a time; one without an end lasts, one without times is a line through the day.

    >>> told = drawing.DrawnSpan("burst: orders", 1767225600000, 1767229200000, "3 times the usual messages")
    >>> print(Spans([told], (1767225600000, 1767312000000)))
    name           since_ms                 until_ms                 told
    -------------  -----------------------  -----------------------  --------------------------
    burst: orders  2026-01-01 00:00:00.000  2026-01-01 01:00:00.000  3 times the usual messages
    """

    def __init__(
        self,
        spans: Sequence[drawing.DrawnSpan],
        span_ms: tuple[int, int],
        *,
        title: str = "",
        said: str = "",
        width: int = NOTEBOOK_WIDTH,
    ) -> None:
        self.spans, self.span_ms, self.title, self._said, self._width = list(spans), span_ms, title, said, width

    def drawing(self) -> Markup:
        return drawing.spans(*self.span_ms, self.spans, self.alt, self._width)

    def said(self) -> str:
        return self._said or "; ".join(span.name for span in self.spans[:6]) or "nothing"

    def table(self) -> Table:
        """One row per span: name, since_ms, until_ms, told."""
        rows = [
            {"name": span.name, "since_ms": span.start_ms, "until_ms": span.end_ms, "told": span.told}
            for span in self.spans
        ]
        return Table(rows, columns=["name", "since_ms", "until_ms", "told"], title=self.title, empty="nothing")


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value
