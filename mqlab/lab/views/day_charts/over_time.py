"""Lines and areas over the time of a day.

Mirrors: the trend charts of RocketMQ Dashboard.

    Lines   one line per name; broken where a value is not known      Areas   on each other; not known counts as 0

Left out: values below 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from mqlab.durations import rounded_text
from mqlab.errors import UsageError
from mqlab.lab.views.day_charts import drawing
from mqlab.lab.views.day_charts.day_chart import NOTEBOOK_WIDTH, DayChart, known, time_ms
from mqlab.lab.views.table import Table
from mqlab.scales import Scale, count_text, durations, linear, spans

MOST = drawing.COLOURS - 1
NO_NAMES = 16
Points = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


def _points(points: Any) -> list[tuple[int, float | None]]:
    pairs = points.items() if hasattr(points, "items") else points
    return sorted((time_ms(time), known(value)) for time, value in pairs)


class _OverTime(DayChart):
    """What lines and areas have in common."""

    def __init__(
        self,
        lines: Mapping[str, Points],
        *,
        title: str = "",
        unit: str = "",
        span_ms: tuple[int, int] | None = None,
        said: str = "",
        width: int = NOTEBOOK_WIDTH,
        height: int = 200,
        right: int | None = None,
        colours: Sequence[int] = (),
        log: bool = True,
    ) -> None:
        if len(lines) > MOST + 1:
            raise UsageError(f"{len(lines)} lines in one chart cannot be distinguished", hint=f"at most {MOST + 1}")
        self.title, self.unit, self._said, self._log = title, unit, said, log
        self.lines = {str(name): _points(points) for name, points in lines.items()}
        times = [time for points in self.lines.values() for time, _ in points]
        self.span_ms = span_ms or (min(times, default=0), max(times, default=0))
        self._colours = tuple(colours) or tuple(range(len(self.lines)))
        self._room = (width, height, right if right is not None else drawing.RIGHT if any(self.lines) else NO_NAMES)

    def _scale(self) -> Scale:
        values = self._values()
        if self.unit == "ms" and not self._log:
            return spans(max(values, default=1))
        if self.unit == "ms":
            return durations(min(values, default=1), max(values, default=1))
        return linear(max(values, default=0))

    def _values(self) -> list[float]:
        return [value for points in self.lines.values() for _, value in points if value is not None]

    def _write(self, value: float) -> str:
        return rounded_text(value) if self.unit == "ms" else count_text(value)

    def _frame(self) -> drawing.ChartFrame:
        width, height, right = self._room
        return drawing.ChartFrame(*self.span_ms, self._scale(), self._write, width, height, right)

    def said(self) -> str:
        if self._said:
            return self._said
        parts = []
        for name, points in self.lines.items():
            values = [value for _, value in points if value is not None]
            reach = f"{self._write(min(values))} to {self._write(max(values))}" if values else "nothing known"
            parts.append(f"{name} {reach}".strip())
        unit = f" {self.unit}" if self.unit and self.unit != "ms" else ""
        return ", ".join(parts) + unit if parts else "nothing to show"

    def table(self) -> Table:
        """One row per time: ``time_ms``, and a column per line; None where its value is not known."""
        by_time: dict[int, dict[str, Any]] = {}
        for name, points in self.lines.items():
            for time, value in points:
                row = by_time.setdefault(time, {"time_ms": time})
                row[name or "value"] = int(value) if value is not None and value == int(value) else value
        columns = ["time_ms", *(name or "value" for name in self.lines)]
        return Table([by_time[time] for time in sorted(by_time)], columns=columns, title=self.title)


class Lines(_OverTime):
    """One line per name over the time of a day, broken where a value is not known.

    ``lines``: name -> (time, value) pairs, a mapping or a pandas Series; at most seven. ``unit="ms"`` writes durations
    and makes the axis logarithmic, unless ``log=False``: then it begins at 0. ``span_ms``: first and last time of the
    axis, by default those of the points.
    Raises UsageError for too many lines.

    >>> print(Lines({"p50": {1767225600000: 20, 1767225660000: 25}, "p99": {1767225600000: 900}}, unit="ms"))
    time_ms                  p50  p99
    -----------------------  ---  ---
    2026-01-01 00:00:00.000   20  900
    2026-01-01 00:01:00.000   25    -
    """

    def drawing(self) -> Markup:
        series = [
            drawing.Series(name, points, colour, drawing.DASHES[number % len(drawing.DASHES)])
            for number, ((name, points), colour) in enumerate(zip(self.lines.items(), self._colours, strict=True))
        ]
        return drawing.lines(self._frame(), series, self.alt)


class Areas(_OverTime):
    """Areas on each other over the time of a day, the first at the bottom: the upper edge is the sum.

    ``lines`` as those of Lines; a time that an area lacks counts as 0.

    >>> chart = Areas({"paid": {1767225600000: 3, 1767225660000: 1}, "shipped": {1767225600000: 2}}, unit="messages")
    >>> chart.alt
    'paid 1 to 3, shipped 2 to 2 messages'
    """

    def _sums(self) -> list[float]:
        sums: dict[int, float] = {}
        for points in self.lines.values():
            for time, value in points:
                sums[time] = sums.get(time, 0.0) + (value or 0.0)
        return list(sums.values())

    def _scale(self) -> Scale:
        return linear(max(self._sums(), default=0))

    def drawing(self) -> Markup:
        times = sorted({time for points in self.lines.values() for time, _ in points})
        series = []
        for (name, points), colour in zip(self.lines.items(), self._colours, strict=True):
            values = dict(points)
            series.append(drawing.Series(name, [(time, values.get(time)) for time in times], colour))
        return drawing.areas(self._frame(), series, self.alt)
