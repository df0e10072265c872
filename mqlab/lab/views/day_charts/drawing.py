"""How the charts of a day are drawn: SVG without scripts and without colours, for a style sheet to colour.

    lines, areas   over the day, areas on each other               spans   bars from a time to a time
    bars           level bars, each in parts                       heat    cells, stronger for more

A line's name is at its end; dashes and order repeat what colours mean; every part has its value as a title.
Left out: the same as text; each view of this folder has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from mqlab.scales import Scale, Writer, count_text, linear, time_text, time_ticks

LEFT, RIGHT, TOP, BOTTOM = 58, 116, 14, 24
CHARACTER = 6.6
COLOURS = 7  # the last is for everything without a colour of its own
DASHES = ("", "6 3", "2 3")


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its name, and (ms, value) by time; a value is None where nothing was counted."""

    name: str
    points: Sequence[tuple[int, float | None]]
    colour: int = 0
    dash: str = ""


@dataclass(frozen=True, slots=True)
class ChartFrame:
    """The room of a picture: from when to when, how wide and high, and its value axis."""

    start_ms: int
    end_ms: int
    scale: Scale
    write: Writer = count_text
    width: int = 1040
    height: int = 200
    right: int = RIGHT  # room for the names of the lines

    def x(self, time_ms: float) -> float:
        """Pixels from the left."""
        return LEFT + (time_ms - self.start_ms) / max(self.end_ms - self.start_ms, 1) * (self.width - LEFT - self.right)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        return TOP + (1 - min(self.scale.part(value), 1)) * (self.height - TOP - BOTTOM)


def _svg(width: int, height: int, alt: str, parts: Sequence[str]) -> Markup:
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        width, height, alt, Markup("".join(parts))
    )


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def _time_axis(frame: ChartFrame) -> list[str]:
    ticks, step = time_ticks(frame.start_ms, frame.end_ms)
    bottom = frame.height - BOTTOM
    parts = []
    for tick in ticks:
        x = frame.x(tick)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>')
        parts.append(_text(x, bottom + 16, time_text(tick, step), "tick", "middle"))
    return parts


def _axes(frame: ChartFrame) -> list[str]:
    parts = _time_axis(frame)
    for tick in frame.scale.ticks:
        y = frame.y(tick)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{frame.width - frame.right}"/>')
        parts.append(_text(LEFT - 6, y + 4, frame.write(tick), "tick", "end"))
    return parts


def _names(frame: ChartFrame, named: Sequence[tuple[str, int, float]]) -> list[str]:
    """Names next to the right edge, moved apart where they would cover each other."""
    parts, lowest = [], float(TOP)
    for name, colour, y in sorted(named, key=lambda label: label[2]):
        lowest = max(y + 4, lowest + 12)
        most = int((frame.right - 10) / CHARACTER)
        shown = name if len(name) <= most else name[: most - 1] + "…"
        parts.append(_text(frame.width - frame.right + 8, lowest, shown, f"name t{colour % COLOURS}"))
    return parts


def lines(frame: ChartFrame, series: Sequence[Series], alt: str) -> Markup:
    """One line per series, broken where the series does not have a value."""
    parts, named = _axes(frame), []
    for line in series:
        # 1. A missing value ends a run; each run is drawn as a line of its own.
        runs: list[list[tuple[float, float]]] = [[]]
        for time_ms, value in line.points:
            if value is None:
                runs.append([])
            else:
                runs[-1].append((frame.x(time_ms), frame.y(value)))
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        for run in filter(None, runs):
            # A path of one point is invisible.
            if len(run) == 1:
                parts.append(
                    f'<circle class="f{line.colour % COLOURS}" cx="{run[0][0]:.1f}" cy="{run[0][1]:.1f}" r="2"/>'
                )
                continue
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run)
            parts.append(f'<path class="line s{line.colour % COLOURS}" d="{path}"{dash}/>')
        # 2. The name goes to the height of the last point.
        last = next((y for run in reversed(runs) for x, y in reversed(run)), None)
        if last is not None and line.name:
            named.append((line.name, line.colour, last))
    return _svg(frame.width, frame.height, alt, [*parts, *_names(frame, named)])


def areas(frame: ChartFrame, series: Sequence[Series], alt: str) -> Markup:
    """Series stacked on each other, the first at the bottom; all have the same times, a missing value counts as 0."""
    parts, named = _axes(frame), []
    floor = [0.0] * (len(series[0].points) if series else 0)
    for area in series:
        top = [low + (value or 0) for low, (_, value) in zip(floor, area.points, strict=True)]
        xs = [frame.x(time_ms) for time_ms, _ in area.points]
        up = "L".join(f"{x:.1f} {frame.y(value):.1f}" for x, value in zip(xs, top, strict=True))
        back = "L".join(f"{x:.1f} {frame.y(v):.1f}" for x, v in reversed(list(zip(xs, floor, strict=True))))
        total = count_text(sum(value or 0 for _, value in area.points))
        parts.append(
            f'<path class="area f{area.colour % COLOURS}" d="M{up}L{back}Z">'
            f"<title>{escape(area.name)}: {total}</title></path>"
        )
        # The name goes where the area is at three quarters of the day.
        middle = len(xs) * 3 // 4
        if xs and area.name:
            named.append((area.name, area.colour, frame.y((floor[middle] + top[middle]) / 2)))
        floor = top
    return _svg(frame.width, frame.height, alt, [*parts, *_names(frame, named)])


@dataclass(frozen=True, slots=True)
class DrawnSpan:
    """Something that lasted from one time to another; None: the time is unknown, or it still lasts."""

    name: str
    start_ms: int | None
    end_ms: int | None
    told: str
    colour: int = 0


def spans(start_ms: int, end_ms: int, rows: Sequence[DrawnSpan], alt: str, width: int = 1040) -> Markup:
    """One row per span; a span without times is its name and a line through the day."""
    label, row_height = 250, 26
    height = TOP + row_height * len(rows) + BOTTOM
    room = ChartFrame(start_ms, end_ms, linear(1), width=width, height=height)

    def x(time_ms: int) -> float:
        inside = min(max(time_ms, start_ms), end_ms)
        return label + (inside - start_ms) / max(end_ms - start_ms, 1) * (width - label - 16)

    # 1. Round times as vertical lines.
    ticks, step = time_ticks(room.start_ms, room.end_ms)
    parts = []
    for tick in ticks:
        parts.append(f'<path class="grid" d="M{x(tick):.1f} {TOP}V{height - BOTTOM}"/>')
        parts.append(_text(x(tick), height - 8, time_text(tick, step), "tick", "middle"))
    # 2. One row per span, at least four pixels long so that it can be seen.
    for number, row in enumerate(rows):
        middle = TOP + row_height * number + row_height // 2
        most = int((label - 12) / CHARACTER)
        shown = row.name if len(row.name) <= most else row.name[: most - 1] + "…"
        parts.append(_text(label - 10, middle + 4, shown, "", "end"))
        if row.start_ms is None:
            parts.append(f'<path class="grid" d="M{label} {middle}H{width - 16}" stroke-dasharray="2 5"/>')
            continue
        left = x(row.start_ms)
        right = x(end_ms if row.end_ms is None else row.end_ms)
        parts.append(
            f'<rect class="f{row.colour % COLOURS}" x="{left:.1f}" y="{middle - 7}" width="{max(right - left, 4):.1f}" '
            f'height="14" rx="3"><title>{escape(row.told)}</title></rect>'
        )
    return _svg(width, height, alt, parts)


def bars(
    rows: Sequence[tuple[str, Sequence[tuple[float, int, str]], str]], alt: str, width: int = 1040, label: int = 200
) -> Markup:
    """Horizontal bars: (name, parts of (value, colour, meaning), text at its end); the longest has the full width."""
    row_height, end = 26, 150
    # All bars share one scale, so that their lengths can be compared.
    longest = max((sum(value for value, _, _ in parts) for _, parts, _ in rows), default=0) or 1
    drawn = []
    for number, (name, values, text) in enumerate(rows):
        y = 6 + row_height * number
        most = int((label - 12) / CHARACTER)
        drawn.append(_text(label - 10, y + 14, name if len(name) <= most else name[: most - 1] + "…", "", "end"))
        x = float(label)
        for value, colour, what in values:
            long = value / longest * (width - label - end)
            if long > 0:
                drawn.append(
                    f'<rect class="f{colour % COLOURS}" x="{x:.1f}" y="{y + 2}" width="{max(long, 1):.1f}" '
                    f'height="16">'
                    f"<title>{escape(what)}: {count_text(value)}</title></rect>"
                )
            x += long
        drawn.append(_text(x + 8, y + 14, text, "tick"))
    return _svg(width, 12 + row_height * len(rows), alt, drawn)


Cell = tuple[str, float, str]
"""Text, share of the fullest cell from 0 to 1, title."""


def heat(
    rows: Sequence[tuple[str, Sequence[Cell | None]]], alt: str, width: int = 1040, columns: Sequence[str] = ()
) -> Markup:
    """Cells: (row name, cells); None leaves a gap. Texts stand in cells, and names of columns below, where they fit."""
    label, cell_height = 120, 30
    count = max((len(cells) for _, cells in rows), default=1) or 1
    cell = min((width - label) / count, 90)
    gap = 3 if cell > 12 else 0.5
    longest = max((len(content[0]) for _, cells in rows for content in cells if content is not None), default=0)
    parts = []
    for number, (name, cells) in enumerate(rows):
        y = 4 + (cell_height + 3) * number
        parts.append(_text(label - 10, y + 19, name, "", "end"))
        for column, content in enumerate(cells):
            if content is None:
                continue
            text, share, title = content
            x = label + cell * column
            parts.append(
                f'<rect class="heat" x="{x:.1f}" y="{y}" width="{cell - gap:.1f}" height="{cell_height}" '
                f'rx="{min(gap, 3)}" fill-opacity="{0.08 + 0.72 * min(max(share, 0), 1):.2f}">'
                f"<title>{escape(title)}</title></rect>"
            )
            if longest * CHARACTER <= cell:
                parts.append(_text(x + (cell - gap) / 2, y + 19, text, "cell", "middle"))
    bottom = 4 + (cell_height + 3) * len(rows)
    every = max(1, -(-int(max(map(len, columns), default=1) * CHARACTER + 8) // max(int(cell), 1)))
    for column in range(0, len(columns), every):
        parts.append(_text(label + cell * column + (cell - gap) / 2, bottom + 14, columns[column], "tick", "middle"))
    return _svg(width, bottom + (20 if columns else 4), alt, parts)
