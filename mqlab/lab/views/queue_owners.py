"""The owners of each queue over time, and the calls at work on it: a rebalance on a time axis.

Mirrors: nothing that RocketMQ shows; the log lines "drop unnecessary mq" and "add a new mq" of all members, side by
side. Lab 03 draws it.

    orders 3  billing-1  ├───────────────┤                   owned, from the moment it was added until it was dropped
                             ▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬ 0              a call of the listener with offset 0
              billing-2                       ├──────────    owned by the next one
                                                 ▬▬▬ 0       the same message once more

Input is plain spans and calls, so that it is drawn and tested without a world; ``lab.queue_owners`` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mqlab.counts import counted
from mqlab.durations import exact_text, rounded_text
from mqlab.lab.views.picture import Canvas, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.theme import BLUE, GREEN, MUTED, RED, RULE, colour
from mqlab.scales import spans as axis_of

AXIS_PIXELS, AXIS_CHARACTERS = 560, 60
MARGIN, SPAN_ROW, CALL_ROW = 18, 18, 11
LEGEND_PIXELS = 820
MOST_LANES, MOST_TRACKS = 40, 5


@dataclass(frozen=True, slots=True)
class Ownership:
    """A member owned a queue; ``until_ms`` None: it still does."""

    queue: str
    member: str
    from_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class GivenMessage:
    """A member's listener was given the message at an offset; ``until_ms`` None: it has not returned."""

    queue: str
    member: str
    queue_offset: int
    from_ms: int
    until_ms: int | None


class QueueOwners(Picture):
    """Spans and calls between two times. ``start_ms`` is called +0; both times default to what there is.

    >>> spans = [Ownership("orders 0", "billing-1", 0, 5_000), Ownership("orders 0", "billing-2", 5_010, None)]
    >>> print(QueueOwners(spans, [GivenMessage("orders 0", "billing-1", 0, 1_000, 8_000)], end_ms=10_000))
    orders 0  billing-1  owned +0 ms to +5 s
              billing-1  offset 0: +1 s to +8 s
              billing-2  owned +5.010 s to the end
    """

    def __init__(
        self,
        spans: Iterable[Ownership],
        calls: Iterable[GivenMessage] = (),
        *,
        start_ms: int | None = None,
        end_ms: int | None = None,
        title: str = "",
    ) -> None:
        spans, calls = list(spans), list(calls)
        both: list[Ownership | GivenMessage] = [*spans, *calls]
        times = [span.from_ms for span in both]
        self.start_ms = min(times, default=0) if start_ms is None else start_ms
        ends = [span.until_ms for span in both if span.until_ms is not None]
        self.end_ms = max([*times, *ends], default=self.start_ms) if end_ms is None else end_ms
        self.spans = [span for span in spans if self._is_seen(span)]
        self.calls = [call for call in calls if self._is_seen(call)]
        self.title = title

    def _is_seen(self, span: Ownership | GivenMessage) -> bool:
        return span.from_ms < self.end_ms and (span.until_ms is None or span.until_ms > self.start_ms)

    def lanes(self) -> list[tuple[str, str]]:
        """(queue, member) of each lane, members of a queue in the order in which they came to it."""
        both: list[Ownership | GivenMessage] = [*self.spans, *self.calls]
        seen = sorted(both, key=lambda span: span.from_ms)
        pairs = dict.fromkeys((span.queue, span.member) for span in seen)
        order = {pair: number for number, pair in enumerate(pairs)}
        return sorted(pairs, key=lambda pair: (_natural(pair[0]), order[pair]))

    def twice(self) -> set[tuple[str, int]]:
        """The messages that more than one member was given: (queue, offset)."""
        members: dict[tuple[str, int], set[str]] = {}
        for call in self.calls:
            members.setdefault((call.queue, call.queue_offset), set()).add(call.member)
        return {message for message, names in members.items() if len(names) > 1}

    @property
    def alt(self) -> str:
        queues = {span.queue for span in self.spans}
        words = (
            f"{counted(len(queues), 'queues')}, {counted(len(self.calls), 'calls')}, "
            f"{counted(len(self.twice()), 'messages')} given to two members"
        )
        return f"{self.title or 'Owners of queues over time'}: {words}"

    def table(self) -> Table:
        """One row per span and call: queue, member, what, queue_offset, from_ms, until_ms (after the start)."""
        rows = []
        for span in self._in_order():
            what = "call" if isinstance(span, GivenMessage) else "owned"
            offset = span.queue_offset if isinstance(span, GivenMessage) else None
            until = None if span.until_ms is None else span.until_ms - self.start_ms
            rows.append(
                {
                    "queue": span.queue,
                    "member": span.member,
                    "what": what,
                    "queue_offset": offset,
                    "from_ms": span.from_ms - self.start_ms,
                    "until_ms": until,
                }
            )
        columns = ["queue", "member", "what", "queue_offset", "from_ms", "until_ms"]
        return Table(rows, columns=columns, title=self.title, empty="nobody owned a queue")

    def _in_order(self) -> list[Ownership | GivenMessage]:
        lanes = {lane: number for number, lane in enumerate(self.lanes())}
        both: list[Ownership | GivenMessage] = [*self.spans, *self.calls]
        return sorted(
            both, key=lambda span: (lanes[span.queue, span.member], isinstance(span, GivenMessage), span.from_ms)
        )

    def text(self) -> str:
        lines, before, twice = [self.title] if self.title else [], "", self.twice()
        every = self._in_order()
        wide = max((len(span.queue) for span in every), default=0)
        for span in every:
            queue = span.queue if span.queue != before else ""
            before = span.queue
            what = "owned" if isinstance(span, Ownership) else f"offset {span.queue_offset}:"
            until = "the end" if span.until_ms is None else self._after(span.until_ms)
            again = (
                ", given to two members"
                if isinstance(span, GivenMessage) and (span.queue, span.queue_offset) in twice
                else ""
            )
            lines.append(f"{queue:{wide}}  {span.member}  {what} {self._after(span.from_ms)} to {until}{again}")
        return "\n".join(lines) if every else "\n".join([*lines, "nobody owned a queue"])

    def _after(self, at_ms: int) -> str:
        return (
            f"+{exact_text(at_ms - self.start_ms)}"
            if at_ms >= self.start_ms
            else f"-{exact_text(self.start_ms - at_ms)}"
        )

    def _tracks(self, lane: tuple[str, str]) -> list[list[GivenMessage]]:
        """A lane's calls, spread over rows so that calls at one time do not cover each other."""
        tracks: list[list[GivenMessage]] = []
        for call in sorted(
            (call for call in self.calls if (call.queue, call.member) == lane), key=lambda call: call.from_ms
        ):
            free = (track for track in tracks if (end := track[-1].until_ms) is not None and end <= call.from_ms)
            track = next(free, None)
            if track is None and len(tracks) < MOST_TRACKS:
                tracks.append([call])
            else:
                (track or tracks[-1]).append(call)
        return tracks or [[]]

    def svg(self) -> str:
        # 1. Measure: a lane is as high as it has calls at one time.
        lanes, axis = self.lanes()[:MOST_LANES], axis_of(max(self.end_ms - self.start_ms, 1))
        tracks = {lane: self._tracks(lane) for lane in lanes}
        queue_wide = max((text_pixels(queue) for queue, _ in lanes), default=40)
        left = MARGIN + queue_wide + 14 + max((text_pixels(member) for _, member in lanes), default=40) + 14
        top = MARGIN + (24 if self.title else 0) + 24
        foot = top + sum(SPAN_ROW + CALL_ROW * len(tracks[lane]) for lane in lanes) + (0 if lanes else SPAN_ROW)
        wide = max(left + AXIS_PIXELS + 60, text_pixels(self.title) + MARGIN, LEGEND_PIXELS)
        canvas = Canvas(wide + MARGIN, foot + 44)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        for tick in axis.ticks:
            x = left + round(axis.part(tick) * AXIS_PIXELS)
            canvas.line(x, top - 2, x, foot)
            canvas.text(x, top - 8, f"+{rounded_text(tick)}", MUTED, anchor="middle", size=11)

        def x_at(at_ms: int | None) -> int:
            inside = min(max(self.end_ms if at_ms is None else at_ms, self.start_ms), self.end_ms)
            return left + round(axis.part(inside - self.start_ms) * AXIS_PIXELS)

        # 2. A lane for each queue and member: the span above, calls below.
        before, y = "", top
        for lane in lanes:
            if lane[0] != before:
                canvas.line(MARGIN, y - 1, left + AXIS_PIXELS, y - 1, RULE)
                canvas.text(MARGIN, y + 14, lane[0], bold=True)
                before = lane[0]
            canvas.text(left - 14, y + 14, lane[1], anchor="end")
            for span in (span for span in self.spans if (span.queue, span.member) == lane):
                x = x_at(span.from_ms)
                canvas.box(
                    x,
                    y + 3,
                    max(x_at(span.until_ms) - x, 2),
                    11,
                    colour("pale-blue"),
                    border=BLUE,
                    round_by=2,
                    title=f"{lane[1]} owns {lane[0]}",
                )
            for number, track in enumerate(tracks[lane]):
                self._draw_calls(canvas, track, y + SPAN_ROW + CALL_ROW * number, x_at)
            y += SPAN_ROW + CALL_ROW * len(tracks[lane])
        # 3. The legend, and what is not drawn.
        self._draw_legend(canvas, foot + 26)
        return canvas.svg()

    def _draw_calls(
        self, canvas: Canvas, calls: Sequence[GivenMessage], y: int, x_at: Callable[[int | None], int]
    ) -> None:
        """Calls one after the other; the offset is written behind a call if there is room for it."""
        twice = self.twice()
        ends = [*(x_at(call.from_ms) for call in calls[1:]), canvas.width]
        for call, until in zip(calls, ends, strict=False):
            x, end = x_at(call.from_ms), x_at(call.until_ms)
            shade = RED if (call.queue, call.queue_offset) in twice else GREEN
            canvas.box(x, y, max(end - x, 2), 7, shade, round_by=2, title=f"offset {call.queue_offset}")
            if until - end > 7 * len(str(call.queue_offset)):
                canvas.text(max(end, x + 2) + 3, y + 7, str(call.queue_offset), size=10)

    def _draw_legend(self, canvas: Canvas, y: int) -> None:
        x = MARGIN
        marks = (
            (colour("pale-blue"), "the member owns the queue"),
            (GREEN, "a call of its listener, with its offset"),
            (RED, "the message was given to two members"),
        )
        for shade, words in marks:
            canvas.box(x, y - 9, 16, 9, shade, border=BLUE if "owns" in words else "none", round_by=2)
            canvas.text(x + 22, y, words, MUTED, size=11)
            x += 48 + text_pixels(words)
        more = len(self.lanes()) - MOST_LANES
        if more > 0:
            canvas.text(x, y, f"… {counted(more, 'more lanes')}; .table() has all", MUTED, size=11)

    def __repr__(self) -> str:
        return f"<QueueOwners {self.alt}>"


def _natural(queue: str) -> tuple[str, int]:
    """Queue 10 comes after queue 9."""
    name, _, number = queue.rpartition(" ")
    return (name, int(number)) if number.isdigit() else (queue, -1)
