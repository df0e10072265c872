"""How far a stream has read each broker's log: one ribbon per broker, from the log's start to the end of its files.

Lab 12 shows it between batches, after a kill, and when a broker comes late.

    broker-a  ████████████▓▓▓▓▓▓░░░░░░····  batch 3 reads 6461..8622, not finished; 12 units, 3.4 s behind
              log start   committed, batch, confirmed end, file end

Free space at the end of the files is drawn as a seventh of the ribbon at most: a new file of RocketMQ is 1 GB of it.
Left out: a time axis; a Curve of seconds_behind by batch shows one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wcwidth import ljust

from mqlab.counts import counted
from mqlab.errors import UsageError
from mqlab.lab.views.picture import Canvas, Picture, legend_places, text_pixels
from mqlab.lab.views.table import Row, Table, as_row
from mqlab.lab.views.text_width import width
from mqlab.lab.views.theme import AMBER, BLUE, INK, MUTED, PAPER, RULE, VIOLET, WASH, colour

if TYPE_CHECKING:
    import pandas

BAR_PIXELS, BAR_CHARACTERS = 460, 44
ROW_PIXELS, BAR_HEIGHT, MARGIN = 58, 24, 18
MOST_FREE = 7  # free space is at most so large a part of the ribbon

READ, DONE, BEGUN, UNREAD, FREE = VIOLET, colour("pale-violet"), colour("pale-amber"), WASH, PAPER
LEGEND = (
    (READ, "█", "read by finished batches"),
    (DONE, "▓", "newest batch, finished"),
    (BEGUN, "▒", "newest batch, not finished"),
    (UNREAD, "░", "not read"),
    (FREE, "·", "not complete, or free"),
)
MARKS = ((BLUE, "committed: a new start reads from here"), (AMBER, "confirmed end: a batch can read up to here"))
LETTERS = {fill: letter for fill, letter, _ in LEGEND}
NEEDED = ("broker_name", "log_start", "committed", "batch_end", "confirmed_end", "file_end")


@dataclass(frozen=True, slots=True)
class Ribbon:
    """One broker's log in physical offsets; ``batch_start``, ``batch_end`` and ``committed`` may be unknown (None)."""

    name: str
    log_start: int
    batch_start: int | None
    committed: int | None
    batch_end: int | None
    confirmed_end: int
    file_end: int
    batch_id: int | None = None
    finished: bool = True
    units_behind: int | None = None
    seconds_behind: float | None = None
    lost_bytes: int = 0

    def parts(self) -> list[tuple[int, int, str]]:
        """First offset, end and fill of each part that is not empty, from left to right."""
        start = self.log_start
        batch_end = start if self.batch_end is None else max(self.batch_end, start)
        batch_start = min(max(start if self.batch_start is None else self.batch_start, start), batch_end)
        complete = max(self.confirmed_end, batch_end)
        parts = [
            (start, batch_start, READ),
            (batch_start, batch_end, DONE if self.finished else BEGUN),
            (batch_end, complete, UNREAD),
            (complete, max(self.file_end, complete), FREE),
        ]
        return [part for part in parts if part[0] < part[1]]

    def drawn(self, length: int) -> list[tuple[int, int, int, int, str]]:
        """The parts on a ribbon of some length: place, width, first offset, end, fill. Each is at least one wide."""
        parts = self.parts()
        if not parts:
            return []
        free = sum(end - first for first, end, fill in parts if fill == FREE)
        rest = parts[-1][1] - parts[0][0] - free
        # Free space takes its own share, but no more than the bound; the others divide what it leaves.
        free_length = length if not rest else min(length * free // (free + rest), length // MOST_FREE)
        widths = [
            max(1, free_length if fill == FREE else (length - free_length) * (end - first) // max(rest, 1))
            for first, end, fill in parts
        ]
        widths[widths.index(max(widths))] += length - sum(widths)
        places = [sum(widths[:number]) for number in range(len(widths))]
        return [(x, wide, *part) for x, wide, part in zip(places, widths, parts, strict=True)]

    @property
    def words(self) -> str:
        """The ribbon as a sentence."""
        phrases = []
        if self.batch_end is None:
            phrases.append("no batch has read it")
        else:
            start = "?" if self.batch_start is None else self.batch_start
            verb = "read" if self.finished else "reads"
            number = "" if self.batch_id is None else f" {self.batch_id}"
            end = "" if self.finished else ", not finished"
            phrases.append(
                f"batch{number} {verb} nothing of it{end}"
                if start == self.batch_end
                else f"batch{number} {verb} {start}..{self.batch_end}{end}"
            )
        if self.lost_bytes:
            phrases.append(f"{self.lost_bytes:,} bytes were deleted before they were read")
        phrases.append(self._behind())
        return "; ".join(phrases)

    def _behind(self) -> str:
        if self.units_behind is None:
            behind = self.confirmed_end - max(self.log_start, self.committed or 0)
            return f"{behind:,} bytes behind" if behind > 0 else "nothing behind"
        if not self.units_behind:
            return "nothing behind"
        age = "" if self.seconds_behind is None else f", {self.seconds_behind:,.1f} s"
        return f"{counted(self.units_behind, 'units')}{age} behind"


class BatchStrip(Picture):
    """Rows of ``mqlab.data.spark.progress_of`` drawn: a pandas frame, or any rows with these columns.

    >>> row = dict(broker_name="broker-a", log_start=0, batch_start=200, committed=300, batch_end=300, batch_id=2)
    >>> print(BatchStrip([row | dict(confirmed_end=400, file_end=440, finished=True)]))
    broker-a  ████████████████████▓▓▓▓▓▓▓▓▓▓░░░░░░░░░░····  batch 2 read 200..300; 100 bytes behind
    █ read by finished batches  ▓ newest batch, finished  ░ not read  · not complete, or free
    """

    def __init__(self, progress: pandas.DataFrame | Iterable[object], *, title: str = "") -> None:
        self._rows = _rows_of(progress)
        sources = {row.as_dict().get("source") or 0 for row in self._rows}
        self.ribbons = [_ribbon(row.as_dict(), with_source=len(sources) > 1) for row in self._rows]
        self.title = title

    @property
    def alt(self) -> str:
        return f"{self.title or 'Stream'}: " + "; ".join(f"{ribbon.name} {ribbon.words}" for ribbon in self.ribbons)

    def table(self) -> Table:
        """The rows as given."""
        return Table(self._rows, title=self.title, empty="no brokers")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        if not self.ribbons:
            return "\n".join([*lines, "no brokers"])
        names = max(width(ribbon.name) for ribbon in self.ribbons)
        for ribbon in self.ribbons:
            bar = "".join(LETTERS[fill] * wide for _, wide, _, _, fill in ribbon.drawn(BAR_CHARACTERS))
            lines.append(f"{ljust(ribbon.name, names)}  {ljust(bar or 'an empty log', BAR_CHARACTERS)}  {ribbon.words}")
        return "\n".join([*lines, "  ".join(f"{letter} {words}" for _, letter, words in self._legend())])

    def svg(self) -> str:
        left = max((text_pixels(ribbon.name) for ribbon in self.ribbons), default=0) + MARGIN + 12
        head = 26 if self.title else 0
        words = max((text_pixels(ribbon.words) for ribbon in self.ribbons), default=0)
        fills = [(fill, meaning) for fill, _, meaning in self._legend()]
        legend = [*fills, *(MARKS if fills else ())]
        places = legend_places([meaning for _, meaning in legend], max(BAR_PIXELS, words))
        bottom = MARGIN + head + ROW_PIXELS * len(self.ribbons)
        rows = max((row for _, row in places), default=-1) + 1
        canvas = Canvas(left + max(BAR_PIXELS, words) + 2 * MARGIN, bottom + 20 * rows + 10)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        for number, ribbon in enumerate(self.ribbons):
            self._ribbon(canvas, ribbon, left, MARGIN + head + ROW_PIXELS * number)
        for number, ((ink, meaning), (x, row)) in enumerate(zip(legend, places, strict=True)):
            y = bottom + 20 * row
            if number < len(fills):
                canvas.box(left + x, y, 12, 12, ink, border=RULE)
            else:
                canvas.line(left + x + 6, y, left + x + 6, y + 12, ink, thick=True)
            canvas.text(left + x + 18, y + 10, meaning, MUTED, size=11)
        return canvas.svg(self.title or "How far a stream has read", self.alt)

    def _ribbon(self, canvas: Canvas, ribbon: Ribbon, left: int, y: int) -> None:
        canvas.text(MARGIN, y + 16, ribbon.name)
        canvas.box(left, y, BAR_PIXELS, BAR_HEIGHT, PAPER, border=RULE)
        parts = ribbon.drawn(BAR_PIXELS)
        meanings = {fill: meaning for fill, _, meaning in LEGEND}
        for x, wide, first, end, fill in parts:
            canvas.box(left + x, y, wide, BAR_HEIGHT, fill, border=RULE, title=f"{first}..{end}: {meanings[fill]}")
        # Two places are marked: where a query that starts again reads from, and how far it could read now.
        ends = {first: x for x, _, first, _, _ in parts} | {end: x + wide for x, wide, _, end, _ in parts}
        (committed, _), (confirmed, _) = MARKS
        if ribbon.committed in ends:
            x = left + ends[ribbon.committed]
            canvas.line(x, y - 6, x, y + BAR_HEIGHT, committed, thick=True)
        if ribbon.confirmed_end in ends:
            x = left + ends[ribbon.confirmed_end]
            canvas.line(x, y, x, y + BAR_HEIGHT + 6, confirmed, thick=True)
        canvas.text(left, y + BAR_HEIGHT + 17, ribbon.words, INK)

    def _legend(self) -> list[tuple[str, str, str]]:
        """The fills that occur."""
        drawn = {fill for ribbon in self.ribbons for _, _, fill in ribbon.parts()}
        return [entry for entry in LEGEND if entry[0] in drawn]

    def __repr__(self) -> str:
        return f"<BatchStrip of {len(self.ribbons)} logs>"


def _rows_of(progress: Any) -> list[Row]:
    if hasattr(progress, "to_dict") and hasattr(progress, "notna"):
        progress = progress.astype(object).where(progress.notna(), None).to_dict("records")
    rows = [as_row(row) for row in progress]
    for row in rows:
        missing = [name for name in NEEDED if name not in row.as_dict()]
        if missing:
            raise UsageError(
                f"a batch strip needs the column {missing[0]}, and the rows do not have it",
                hint="give what mqlab.data.spark.progress_of(query, stores) returns",
            )
    return rows


def _ribbon(values: dict[str, Any], *, with_source: bool) -> Ribbon:
    numbers = {
        name: None if values.get(name) is None else int(values[name])
        for name in ("batch_start", "committed", "batch_end", "batch_id", "units_behind")
    }
    seconds = values.get("seconds_behind")
    source = f" (source {values.get('source') or 0})" if with_source else ""
    return Ribbon(
        name=f"{values['broker_name']}{source}",
        log_start=int(values["log_start"]),
        confirmed_end=int(values["confirmed_end"]),
        file_end=int(values["file_end"]),
        finished=bool(values.get("finished")),
        seconds_behind=None if seconds is None else float(seconds),
        lost_bytes=int(values.get("lost_bytes") or 0),
        **numbers,
    )
