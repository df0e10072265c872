"""How far each group has read each of its queues: one strip per queue, with done, in flight, waiting.

Mirrors: mqadmin consumerProgress (broker offset, consumer offset, diff). Lab 00 shows it.

    orders 0  billing  ████████▒▒░░░░░  done to 8, 2 in flight, 5 waiting of 15
                       min     committed  pulled  max

Left out: a time axis (mqlab.data.spark shows lag over time).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from wcwidth import ljust

from mqlab.lab.views.picture import Canvas, Picture, text_pixels
from mqlab.lab.views.table import Row, Table, as_row
from mqlab.lab.views.text_width import width
from mqlab.lab.views.theme import INK, MUTED, PAPER, RULE, VIOLET, WASH, colour

BAR_PIXELS = 360
BAR_CHARACTERS = 30
ROW_PIXELS = 34
MARGIN = 18
DONE, FLIGHT, WAITING = VIOLET, colour("pale-violet"), WASH


@dataclass(frozen=True, slots=True)
class Strip:
    """One queue of one group, in queue offsets: first kept, next to read (committed), next to pull, next to write."""

    name: str
    min_offset: int
    consumer_offset: int
    pull_offset: int
    broker_offset: int

    @property
    def is_empty(self) -> bool:
        """Whether the queue holds nothing."""
        return self.broker_offset <= self.min_offset

    @property
    def words(self) -> str:
        """The strip as a sentence."""
        if self.is_empty:
            return "nothing stored"
        flight = self.pull_offset - self.consumer_offset
        waiting = self.broker_offset - self.pull_offset
        return f"next is {self.consumer_offset}, {flight} in flight, {waiting} waiting of {self.broker_offset}"

    def share(self, offset: int, length: int) -> int:
        """The place of an offset on a bar of some length; a part that is not empty is at least one wide."""
        span = self.broker_offset - self.min_offset
        if span <= 0 or offset <= self.min_offset:
            return 0
        # A single message of many must remain visible.
        return max(1, min(length, (offset - self.min_offset) * length // span))


class OffsetStrip(Picture):
    """Progress rows drawn: topic and queue_id (or message_queue), broker_offset, consumer_offset, pull_offset.

    >>> print(OffsetStrip([{"topic": "orders", "queue_id": 0, "broker_offset": 4, "consumer_offset": 2}]))
    orders 0  ███████████████░░░░░░░░░░░░░░░  next is 2, 0 in flight, 2 waiting of 4
    """

    def __init__(self, rows: Iterable[object], *, title: str = "") -> None:
        self._rows = [as_row(row) for row in rows]
        brokers = {_broker(row.as_dict()) for row in self._rows}
        self.strips = [_strip(row, with_broker=len(brokers) > 1) for row in self._rows]
        self.title = title

    @property
    def alt(self) -> str:
        return f"{self.title or 'Progress'}: " + "; ".join(f"{s.name} {s.words}" for s in self.strips)

    def table(self) -> Table:
        """The progress rows as given."""
        return Table(self._rows, title=self.title, empty="no queues")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        names = max((width(strip.name) for strip in self.strips), default=0)
        for strip in self.strips:
            done = strip.share(strip.consumer_offset, BAR_CHARACTERS)
            pulled = max(done, strip.share(strip.pull_offset, BAR_CHARACTERS))
            rest = " " if strip.is_empty else "░"
            bar = "█" * done + "▒" * (pulled - done) + rest * (BAR_CHARACTERS - pulled)
            lines.append(f"{ljust(strip.name, names)}  {bar}  {strip.words}")
        return "\n".join(lines if self.strips else [f"{self.title}: no queues" if self.title else "no queues"])

    def svg(self) -> str:
        names = max((text_pixels(strip.name) for strip in self.strips), default=0) + MARGIN + 12
        words = max((text_pixels(strip.words) for strip in self.strips), default=0)
        head = 26 if self.title else 0
        canvas = Canvas(names + BAR_PIXELS + words + 2 * MARGIN, MARGIN + head + ROW_PIXELS * len(self.strips) + 30)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        for number, strip in enumerate(self.strips):
            y = MARGIN + head + ROW_PIXELS * number
            done = strip.share(strip.consumer_offset, BAR_PIXELS)
            pulled = max(done, strip.share(strip.pull_offset, BAR_PIXELS))
            canvas.text(MARGIN, y + 15, strip.name)
            # Each box lies on the one before it: waiting, then in flight, then done.
            canvas.box(names, y, BAR_PIXELS, 22, PAPER if strip.is_empty else WAITING, border=RULE)
            canvas.box(names, y, pulled, 22, FLIGHT)
            canvas.box(names, y, done, 22, DONE)
            canvas.text(names + BAR_PIXELS + 12, y + 15, strip.words, INK)
        self._legend(canvas, names)
        return canvas.svg()

    @staticmethod
    def _legend(canvas: Canvas, x: int) -> None:
        y = canvas.height - 22
        for fill, words in ((DONE, "done"), (FLIGHT, "in flight"), (WAITING, "waiting")):
            canvas.box(x, y, 12, 12, fill, border=RULE)
            canvas.text(x + 18, y + 10, words, MUTED, size=11)
            x += 34 + text_pixels(words)

    def __repr__(self) -> str:
        return f"<OffsetStrip of {len(self.strips)} queues>"


def _broker(values: dict[str, Any]) -> str:
    return str(values.get("broker") or getattr(values.get("message_queue"), "broker_name", ""))


def _strip(row: Row, *, with_broker: bool) -> Strip:
    values = row.as_dict()
    broker = f" {_broker(values)}" if with_broker else ""
    queue = values.get("message_queue")
    topic = values.get("topic", getattr(queue, "topic", "?"))
    queue_id = values.get("queue_id", getattr(queue, "queue_id", "?"))
    group = f"  {values['group']}" if values.get("group") else ""
    consumer = max(int(values.get("consumer_offset") or 0), 0)
    return Strip(
        name=f"{topic}{broker} {queue_id}{group}",
        min_offset=int(values.get("min_offset") or 0),
        consumer_offset=consumer,
        pull_offset=max(int(values.get("pull_offset") or 0), consumer),
        broker_offset=int(values["broker_offset"]),
    )
