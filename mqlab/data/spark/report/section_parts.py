"""The parts of a section of the report: heading, sentence, figures and tables; and how the cells are written.

Section ─┬─ Figure      a chart (mqlab.lab.views.day_charts), its caption, and the meaning of its colours
         └─ FactTable   columns and rows; page.html writes them as HTML
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.data.spark.report.tables import Facts
from mqlab.durations import rounded_text
from mqlab.lab.views.day_charts.day_chart import DayChart
from mqlab.scales import count_text, time_text

MAX_ROWS = 40  # a longer table reports how many rows are missing
MOST_ROWS_OPEN = 12  # longer tables are folded
WHOLE = 1040  # width of a picture that has its line for itself, in pixels
HALF = 510  # width of a picture that shares its line with another, in pixels
SMALL = 170  # its height
NO_NAMES, SHORT_NAMES = 16, 44  # room to the right of the lines, for their names

Columns = Sequence[tuple[str, str]]
"""(name, CSS class): "text", "number", "code", "where" or "wide"."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with its caption. ``colours``: (meaning, number of the colour). A notebook can show ``chart``."""

    chart: DayChart
    caption: str = ""
    kind: str = ""
    colours: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True, slots=True)
class FactTable:
    """A table; ``empty`` stands for no rows, ``folded`` hides it behind its heading. None is shown as a dash."""

    columns: Columns
    rows: Sequence[Sequence[Any]]
    empty: str = "none"
    heading: str = ""
    folded: bool = False


@dataclass(frozen=True, slots=True)
class RowsBehind:
    """Where the rows behind a section's numbers are: a table of the run, and the condition that selects them."""

    table: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One section. ``tables_folded``: under pictures, the tables can be folded away; long ones are at first.

    ``rows``: the rows behind its numbers, the first the most important.
    """

    anchor: str
    heading: str
    note: str
    figures: Sequence[Figure]
    tables: Sequence[FactTable]
    tables_folded: bool = True
    side_by_side: bool = False
    rows: Sequence[RowsBehind] = ()

    @property
    def opened(self) -> bool:
        """Whether its tables are unfolded when the page opens."""
        return sum(len(table.rows) for table in self.tables) <= MOST_ROWS_OPEN


def number(value: Any) -> str | None:
    """A count of a fact; None for null (None or NaN)."""
    return None if _is_null(value) else count_text(float(value))


def duration(value: Any) -> str | None:
    """A duration of a fact in ms; None for null."""
    return None if _is_null(value) else rounded_text(float(value))


def moment(value: Any) -> str | None:
    """A time of a fact in ms since the epoch; None for null."""
    return None if _is_null(value) else time_text(int(value), 1_000)


def text(value: Any) -> str | None:
    """A string of a fact; None for null."""
    return None if _is_null(value) else str(value)


def _is_null(value: Any) -> bool:
    return value is None or value != value  # NaN differs from itself


def stretches(facts: Facts) -> list[int]:
    """The beginnings of all stretches of the day, in ms."""
    first = facts.start_ms // facts.stretch_ms * facts.stretch_ms
    return list(range(first, facts.end_ms + 1, facts.stretch_ms))
