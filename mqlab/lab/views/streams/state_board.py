"""What a stream keeps from batch to batch: a bar of rows in state, the watermark, and the rows that came too late.

Lab 12 shows it next to each answer.

    batch 1  ████████████      31 rows kept    watermark 09:09:45
    batch 2  ████████████      31 rows kept    watermark 09:29:45   ✗ 9 rows dropped: too late

A state that is bounded has bars that stop growing. Left out: bytes of the state, and operators one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wcwidth import ljust

from mqlab.counts import counted
from mqlab.errors import UsageError
from mqlab.lab.views.picture import Canvas, Look, Picture, text_pixels
from mqlab.lab.views.table import Row, Table, as_row
from mqlab.lab.views.text_width import width
from mqlab.lab.views.theme import BLUE, MUTED, RED, RULE

BAR_PIXELS, BAR_CHARACTERS, ROW_PIXELS, MARGIN = 300, 30, 26, 18
MOST_BATCHES = 30
NEEDED = ("batch", "rows_in_state", "dropped", "watermark")
TOO_LATE = Look(RED, "cross", "too late")


class StateBoard(Picture):
    """Rows of ``mqlab.data.spark.state_of`` drawn, the last thirty batches.

    >>> print(StateBoard([dict(batch=0, rows_in_state=30, dropped=2, watermark="2024-11-11 09:09:45")]))
    batch 0  ██████████████████████████████  30 rows kept  watermark 09:09:45  ✗ 2 rows dropped
    """

    def __init__(self, batches: Iterable[object], *, title: str = "") -> None:
        self._rows = [as_row(row) for row in batches]
        self.title = title
        for row in self._rows:
            missing = [name for name in NEEDED if name not in row.as_dict()]
            if missing:
                raise UsageError(
                    f"a state board needs the column {missing[0]}, and the rows do not have it",
                    hint="give what mqlab.data.spark.state_of(query) returns",
                )

    @property
    def _drawn(self) -> list[dict[str, Any]]:
        return [row.as_dict() for row in self._rows[-MOST_BATCHES:]]

    @property
    def _most(self) -> int:
        return max((row["rows_in_state"] for row in self._drawn), default=0) or 1

    @property
    def alt(self) -> str:
        said = "; ".join(f"batch {row['batch']}: {', '.join(_words(row))}" for row in self._drawn)
        return f"{self.title or 'State'}: {said or 'no batches'}"

    def table(self) -> Table:
        """The rows as given."""
        rows: list[Row] = self._rows
        return Table(rows, title=self.title, empty="no batches")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        names = [f"batch {row['batch']}" for row in self._drawn]
        kept = [_words(row)[0] for row in self._drawn]
        wide, long = (max(map(width, texts), default=0) for texts in (names, kept))
        for name, words, row in zip(names, kept, self._drawn, strict=True):
            bar = "█" * self._length(row, BAR_CHARACTERS)
            _, mark, *late = _words(row)
            dropped = f"  ✗ {late[0]}" if late else ""
            lines.append(f"{ljust(name, wide)}  {bar:<{BAR_CHARACTERS}}  {ljust(words, long)}  {mark}{dropped}")
        return "\n".join(lines if self._rows else [*lines, "no batches"])

    def svg(self) -> str:
        names = [f"batch {row['batch']}" for row in self._drawn]
        left = MARGIN + max(map(text_pixels, names), default=0) + 10
        words = left + BAR_PIXELS + 12
        kept = max((text_pixels(_words(row)[0]) for row in self._drawn), default=0)
        mark = max((text_pixels(_words(row)[1]) for row in self._drawn), default=0)
        late = max((text_pixels(text) for row in self._drawn for text in _words(row)[2:]), default=0)
        top = MARGIN + (24 if self.title else 0)
        right = words + kept + 18 + mark + (late + 36 if late else 0) + MARGIN
        canvas = Canvas(right, top + ROW_PIXELS * max(len(names), 1) + 8)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        for number, (name, row) in enumerate(zip(names, self._drawn, strict=True)):
            y = top + ROW_PIXELS * number
            said, when, *dropped = _words(row)
            canvas.text(left - 10, y + 13, name, anchor="end")
            canvas.line(left, y - 3, left, y + ROW_PIXELS - 5, RULE)
            if long := self._length(row, BAR_PIXELS):
                canvas.box(left, y, long, 16, BLUE, round_by=2, title=f"{name}: {said}")
            canvas.text(words, y + 13, said)
            canvas.text(words + kept + 18, y + 13, when, MUTED)
            if dropped:
                canvas.mark(TOO_LATE, words + kept + mark + 38, y + 9)
                canvas.text(words + kept + mark + 50, y + 13, dropped[0])
        if not names:
            canvas.text(MARGIN, top + 12, "no batches", MUTED)
        return canvas.svg(self.title or "What a stream keeps", self.alt)

    def _length(self, row: dict[str, Any], length: int) -> int:
        kept = row["rows_in_state"]
        return max(round(kept / self._most * length), 1) if kept else 0

    def __repr__(self) -> str:
        return f"<StateBoard of {len(self._rows)} batches>"


def _words(row: dict[str, Any]) -> list[str]:
    """What is kept, the watermark, and, if there are any, the rows that were dropped."""
    kept, dropped = row["rows_in_state"], row["dropped"]
    mark = f"watermark {row['watermark'][11:]}" if row["watermark"] else "no watermark"
    late = [f"{counted(dropped, 'rows')} dropped"] if dropped else []
    return [f"{counted(kept, 'rows')} kept", mark, *late]
