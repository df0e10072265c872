"""Charts of numbers: bars with labels, curves over numbers or ranks, and histograms, each with a text twin.

Lab 10 compares numbers of partitions and shows how uneven keys are with them; other labs show latencies and lags.

    Bars({"order-1": 12, "order-2": 3}, unit="messages")        order-1  ████████████  12 messages
                                                                order-2  ███            3 messages
    Curve(ranked(counts), log_x=True, log_y=True)               a Zipf curve: a straight line if the counts are Zipf's
    Histogram(latencies_ms, unit="ms", log=True)                how many values are in each range

Hand-written: none of the libraries of the environment draws charts; a new one would bring scripts or a drawing stack.
Left out: charts over times of day (mqlab.lab.views.day_charts has them), colours chosen by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wcwidth import ljust

from mqlab.counts import counted
from mqlab.errors import UsageError
from mqlab.lab.views.picture import Canvas, Picture, text_pixels
from mqlab.lab.views.plot import Plot
from mqlab.lab.views.table import Table
from mqlab.lab.views.text_width import cut, printable, width
from mqlab.lab.views.theme import AMBER, BLUE, GREEN, MUTED, PAPER, RED, RULE, VIOLET
from mqlab.scales import Scale, linear, powers

MAX_BARS_DRAWN = 40
MAX_POINTS_DRAWN = 800
BAR_PIXELS, BAR_CHARACTERS = 320, 40
BAR_ROW = 24
MAX_LABEL_COLUMNS = 32
MARGIN = 18
LINES = ((BLUE, False), (RED, True), (GREEN, False), (VIOLET, True), (AMBER, False))
MOST_ROWS_OF_TEXT = 16
BINS = 20

Pairs = Mapping[Any, float] | Iterable[tuple[Any, float]]


def _pairs(values: Pairs) -> list[tuple[Any, float]]:
    """Label and number, of a mapping, a pandas Series or an iterable of pairs."""
    items: Any = values.items() if hasattr(values, "items") else values
    try:
        pairs = [(label, _number(value)) for label, value in items]
    except (TypeError, ValueError):
        raise UsageError(
            "bars need a label and a number each", hint='Bars({"a": 3, "b": 5}) or Bars([("a", 3), ("b", 5)])'
        ) from None
    return pairs


def _number(value: Any) -> float:
    """A finite number; whole numbers stay whole, so that they are written without a point."""
    number = float(value)
    if not math.isfinite(number):
        raise UsageError(f"a chart cannot show {value!r}", hint="leave such values out")
    return int(number) if number == int(number) else number


class Bars(Picture):
    """One bar per label, in the order given; the longest has the full length, so that lengths can be compared.

    ``values``: a mapping, a pandas Series, or pairs of label and number (0 or more). ``unit`` stands after each number.
    Raises UsageError for a number below 0.

    >>> print(Bars({"orders": 12, "订单": 3}, title="messages per topic"))
    messages per topic
    orders  ████████████████████████████████████████  12
    订单    ██████████                                3
    """

    def __init__(self, values: Pairs, *, title: str = "", unit: str = "") -> None:
        self.values = [(printable(str(label)), value) for label, value in _pairs(values)]
        if any(value < 0 for _, value in self.values):
            raise UsageError("a bar cannot be shorter than nothing", hint="give numbers of 0 or more")
        self.title = title
        self.unit = unit

    @property
    def alt(self) -> str:
        said = "; ".join(f"{label} {counted(value, self.unit)}" for label, value in self._drawn[:6])
        more = f"; {len(self.values) - 6} more" if len(self.values) > 6 else ""
        return f"{self.title or 'Bars'}: {said or 'nothing'}{more}"

    @property
    def _drawn(self) -> list[tuple[str, float]]:
        return self.values[:MAX_BARS_DRAWN]

    @property
    def _most(self) -> float:
        return max((value for _, value in self.values), default=0) or 1

    def table(self) -> Table:
        """One row per bar: label, value."""
        rows = [{"label": label, "value": value} for label, value in self.values]
        return Table(rows, columns=["label", "value"], title=self.title, empty="nothing to compare")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        names = [cut(label, MAX_LABEL_COLUMNS) for label, _ in self._drawn]
        wide = max(map(width, names), default=0)
        for name, (_, value) in zip(names, self._drawn, strict=True):
            bar = "█" * _share(value, self._most, BAR_CHARACTERS)
            lines.append(f"{ljust(name, wide)}  {bar:<{BAR_CHARACTERS}}  {counted(value, self.unit)}")
        lines += [self._rest()] if self._rest() else []
        return "\n".join(lines if self.values else [*lines, "nothing to compare"])

    def _rest(self) -> str:
        more = len(self.values) - len(self._drawn)
        return f"… {counted(more, 'more bars')}; .table() has all {len(self.values):,}" if more else ""

    def svg(self) -> str:
        names = [cut(label, MAX_LABEL_COLUMNS) for label, _ in self._drawn]
        left = MARGIN + max(map(text_pixels, names), default=0) + 10
        words = [counted(value, self.unit) for _, value in self._drawn]
        longs = [_share(value, self._most, BAR_PIXELS) for _, value in self._drawn]
        # The words of a long bar stand in it, so that the picture fits a narrow page.
        right = max([BAR_PIXELS, *(_end_of(long, text) for long, text in zip(longs, words, strict=True))])
        top = MARGIN + (24 if self.title else 0)
        height = top + BAR_ROW * max(len(names), 1) + (22 if self._rest() else 0) + 8
        canvas = Canvas(max(left + right, text_pixels(self.title) + MARGIN) + MARGIN, height)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        for number, (name, (label, _)) in enumerate(zip(names, self._drawn, strict=True)):
            y, long, text = top + BAR_ROW * number, longs[number], words[number]
            canvas.text(left - 10, y + 13, name, anchor="end")
            canvas.line(left, y - 2, left, y + BAR_ROW - 4, RULE)
            if long:
                canvas.box(left, y, long, 16, BLUE, round_by=2, title=f"{label}: {text}")
            if _end_of(long, text) > long:
                canvas.text(left + long + 8, y + 13, text, MUTED)
            else:
                canvas.text(left + long - 8, y + 13, text, PAPER, anchor="end", halo=False)
        if not names:
            canvas.text(MARGIN, top + 12, "nothing to compare", MUTED)
        if self._rest():
            canvas.text(MARGIN, height - 10, self._rest(), MUTED)
        return canvas.svg(self.title or "Bars", self.alt)

    def __repr__(self) -> str:
        return f"<Bars {self.title!r}: {len(self.values)}>"


def _share(value: float, most: float, length: int) -> int:
    """The length of a bar; a value above 0 is at least one wide."""
    return max(round(value / most * length), 1) if value > 0 else 0


def _end_of(long: int, text: str) -> int:
    """Where a bar and its words end: the words stand in the bar if they fit, else behind it."""
    wide = text_pixels(text) + 16
    return long if wide <= long and long + wide > BAR_PIXELS else long + wide


def ranked(counts: Iterable[float] | Mapping[Any, float]) -> list[tuple[int, float]]:
    """Numbers as (rank, number), the largest first with rank 1: what a Zipf curve is drawn from.

    >>> ranked({"order-1": 2, "order-2": 9})
    [(1, 9), (2, 2)]
    """
    numbers = counts.values() if isinstance(counts, Mapping) else counts
    return list(enumerate(sorted(map(_number, numbers), reverse=True), 1))


class Curve(Picture):
    """One or more lines over numbers. A logarithmic axis (``log_x``, ``log_y``) has no place for points at 0 or below.

    ``lines``: points (x, y), or a mapping of names to such points, at most five. ``x`` and ``y`` name the axes.

    >>> print(Curve([(1, 100), (10, 10), (100, 1)], log_x=True, log_y=True, x="rank", y="messages"))
    rank  messages
       1       100
      10        10
     100         1
    """

    def __init__(
        self,
        lines: Iterable[tuple[float, float]] | Mapping[str, Iterable[tuple[float, float]]],
        *,
        title: str = "",
        x: str = "x",
        y: str = "y",
        log_x: bool = False,
        log_y: bool = False,
    ) -> None:
        named = lines if isinstance(lines, Mapping) else {"": lines}
        if len(named) > len(LINES):
            raise UsageError(f"{len(named)} lines in one picture cannot be distinguished", hint=f"at most {len(LINES)}")
        self.lines = {str(name): sorted((_number(a), _number(b)) for a, b in points) for name, points in named.items()}
        self.title, self.x, self.y, self.log_x, self.log_y = title, x, y, log_x, log_y

    @property
    def alt(self) -> str:
        points = self._points()
        if not points:
            return f"{self.title or 'Curve'}: no points"
        reach = f"{self.x} {points[0][0]:,} to {points[-1][0]:,}"
        ys = [y for _, y in points]
        return f"{self.title or 'Curve'}: {self.y} from {min(ys):,} to {max(ys):,} over {reach}"

    def table(self) -> Table:
        """One row per point: line (if the lines have names), x and y under their names."""
        rows = [
            {**({"line": name} if name else {}), self.x: x, self.y: y}
            for name, points in self.lines.items()
            for x, y in points
        ]
        return Table(rows, title=self.title, empty="no points")

    def text(self) -> str:
        """Some points of each line, evenly chosen along its drawing."""
        rows: list[dict[str, Any]] = []
        for name, points in self.lines.items():
            chosen = _spread(points, MOST_ROWS_OF_TEXT, logarithmic=self.log_x)
            rows += [{**({"line": name} if name else {}), self.x: x, self.y: y} for x, y in chosen]
        lines = str(Table(rows, title=self.title, empty="no points")).splitlines()
        return "\n".join(line for line in lines if set(line) - {"-", " "})

    def _points(self) -> list[tuple[float, float]]:
        """The points that can be drawn, of all lines, by x."""
        return sorted(point for points in self.lines.values() for point in self._drawable(points))

    def _drawable(self, points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(x, y) for x, y in points if (x > 0 or not self.log_x) and (y > 0 or not self.log_y)]

    def svg(self) -> str:
        # 1. The axes, from the points that can be drawn.
        points = self._points()
        xs, ys = [x for x, _ in points], [y for _, y in points]
        plot = Plot(
            _scale(xs, self.log_x).up_to(max(xs, default=0)), _scale(ys, self.log_y), self.title, self.x, self.y
        )
        names = [name for name in self.lines if name]
        canvas = plot.canvas(len(names))
        # 2. The lines; a line of one point is a mark.
        for number, (name, line) in enumerate(self.lines.items()):
            colour, dashed = LINES[number]
            places = [plot.at(x, y) for x, y in _spread(self._drawable(line), MAX_POINTS_DRAWN, logarithmic=self.log_x)]
            if len(places) > 1:
                canvas.path(places, colour, dashed=dashed)
            for x, y in places if len(places) <= MOST_ROWS_OF_TEXT else ():
                canvas.box(x - 3, y - 3, 6, 6, colour)
            if name:
                plot.name(canvas, number, name, colour, dashed=dashed)
        if not points:
            canvas.text(plot.left + 12, plot.top + 24, "no points", MUTED)
        return canvas.svg(self.title or "Curve", self.alt)

    def __repr__(self) -> str:
        return f"<Curve {self.title!r}: {', '.join(f'{len(points)} points' for points in self.lines.values())}>"


def _spread(points: Sequence[tuple[float, float]], most: int, *, logarithmic: bool) -> list[tuple[float, float]]:
    """At most so many of many points, the first and the last among them, as evenly as they are drawn."""
    if len(points) <= most:
        return list(points)
    last = len(points) - 1
    if logarithmic:
        places = [round((len(points)) ** (number / (most - 1))) - 1 for number in range(most)]
    else:
        places = [round(number * last / (most - 1)) for number in range(most)]
    return [points[index] for index in dict.fromkeys(min(max(index, 0), last) for index in places)]


class Histogram(Picture):
    """How many values are in each range. ``log`` makes the ranges grow by a factor instead of by a sum.

    ``values``: numbers; with ``log``, those of 0 or below count in the first range. ``unit`` is that of the values.

    >>> print(Histogram([1, 1, 2, 9], bins=3, unit="ms"))
      1 to 3.667 ms      ████████████████████████████████████████  3
      3.667 to 6.333 ms                                            0
      6.333 to 9 ms      █████████████                             1
    """

    def __init__(
        self, values: Iterable[float], *, bins: int = BINS, title: str = "", unit: str = "", log: bool = False
    ) -> None:
        if bins < 1:
            raise UsageError(f"a histogram needs at least one range, got {bins}", hint=f"bins={BINS}")
        self.values = [_number(value) for value in values]
        self.title, self.unit, self.log = title, unit, log
        self.ranges = _ranges(self.values, bins, log=log)

    @property
    def alt(self) -> str:
        if not self.values:
            return f"{self.title or 'Histogram'}: no values"
        low, high, count = max(self.ranges, key=lambda span: span[2])
        most = f"most ({count:,}) from {counted(low, '')} to {counted(high, self.unit)}"
        return f"{self.title or 'Histogram'} of {len(self.values):,} values: {most}"

    def table(self) -> Table:
        """One row per range: from, to (not included, except in the last), count."""
        rows = [{"from": low, "to": high, "count": count} for low, high, count in self.ranges]
        return Table(rows, columns=["from", "to", "count"], title=self.title, empty="no values")

    def text(self) -> str:
        labels = [f"{counted(low, '')} to {counted(high, '')} {self.unit}".rstrip() for low, high, _ in self.ranges]
        counts = [(label, count) for label, (_, _, count) in zip(labels, self.ranges, strict=True)]
        lines = [f"  {line}" for line in str(Bars(counts)).splitlines()] if counts else ["no values"]
        return "\n".join([*([self.title] if self.title else []), *lines])

    def svg(self) -> str:
        most = max((count for _, _, count in self.ranges), default=0)
        ends = [low for low, _, _ in self.ranges] + [high for _, high, _ in self.ranges[-1:]]
        plot = Plot(
            _scale(ends, self.log).up_to(max(ends, default=0)), linear(max(most, 4)), self.title, self.unit, "values"
        )
        canvas = plot.canvas(0)
        for low, high, count in self.ranges:
            (left, top), (right, bottom) = plot.at(low, count), plot.at(high, 0)
            title = f"{counted(low, '')} to {counted(high, self.unit)}: {count:,}"
            if count:
                top = min(top, bottom - 1)
                canvas.box(left, top, max(right - left - 1, 1), bottom - top, BLUE, title=title)
        if not self.ranges:
            canvas.text(plot.left + 12, plot.top + 24, "no values", MUTED)
        return canvas.svg(self.title or "Histogram", self.alt)

    def __repr__(self) -> str:
        return f"<Histogram {self.title!r} of {len(self.values)} values in {len(self.ranges)} ranges>"


def _ranges(values: Sequence[float], bins: int, *, log: bool) -> list[tuple[float, float, int]]:
    above = [value for value in values if value > 0] if log else list(values)
    if not above:
        return [(0, 1, len(values))] if values else []
    low, high = min(above), max(above)
    # All values are equal: one range around them.
    if low == high:
        return [(low, low + 1, len(values))]
    if log:
        ends = [low * (high / low) ** (number / bins) for number in range(bins + 1)]
    else:
        ends = [low + (high - low) * number / bins for number in range(bins + 1)]
    counts = [0] * bins
    for value in values:
        if log:
            position = math.log(max(value, low) / low) / math.log(high / low) * bins
        else:
            position = (value - low) / (high - low) * bins
        counts[min(int(position), bins - 1)] += 1
    return [(ends[number], ends[number + 1], count) for number, count in enumerate(counts)]


def _scale(values: Sequence[float], log: bool) -> Scale:
    if not values:
        return powers(1, 10) if log else linear(1)
    if log:
        return powers(min(values), max(values))
    if min(values) < 0:
        reach = linear(max(abs(min(values)), abs(max(values)), 1))
        return Scale(-reach.high, reach.high, tuple(sorted({sign * tick for tick in reach.ticks for sign in (-1, 1)})))
    return linear(max(values))
