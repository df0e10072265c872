"""What happened, from top to bottom: one column per node, one row per moment, one arrow per call.

It shows what you would draw from the logs of all processes. Lab 00 begins with it.

       time   shop          broker-a      billing-1
      +0 ms   ■ stored …                                 Moment(now_ms, lane, kind, text)
      +1 ms                 ────────────▶ 1 message      Moment(…, to="billing-1")

Input is plain moments, so that it is drawn and tested without a world; mqlab.views.moments makes them of a journal.
Left out: time to scale (days are beside milliseconds; jumps are marked), more than 80 rows in one picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import Any

from wcwidth import ljust

from mqlab.durations import exact_text
from mqlab.views.on_demand import OnDemand
from mqlab.views.picture import CHARACTER, Canvas, Look, Picture, text_pixels
from mqlab.views.table import Table, calendar
from mqlab.views.text_width import width
from mqlab.views.theme import BLUE, GREEN, INK, MUTED, RED, RULE, VIOLET

LOOKS = {
    "stored": Look(BLUE, "square", "written by the broker"),
    "read": Look(GREEN, "triangle", "read or handled by a consumer"),
    "progress": Look(VIOLET, "diamond", "progress of a group"),
    "trouble": Look(RED, "cross", "a fault or a failure"),
    "other": Look(MUTED, "dot", "anything else"),
    "frame": Look(MUTED, "arrow", "a call or an answer on the network"),
}
COLUMNS = ("step", "now_ms", "after_ms", "node", "kind", "to", "text", "values")
MAX_ROWS_DRAWN = 80
LONG_PAUSE_MS = 1000  # from here on a jump in time gets a line of its own
ROW_PIXELS = 28
TIME_PIXELS = 96  # wide enough for TIME_CHARACTERS; hours need more
TIME_CHARACTERS = 14
TIME_COLUMNS = 10
MIN_LANE_PIXELS = 110
MAX_LANE_PIXELS = 330
MARGIN = 18


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened at ``now_ms`` in ``lane``; an arrow to another lane when ``to`` is given.

    ``kind`` is the journal's word for it, ``look`` a name in LOOKS, ``step`` its step in the journal,
    ``values`` the facts that the journal recorded (queue offsets, groups, ids).
    """

    now_ms: int
    lane: str
    kind: str
    text: str
    look: str = "other"
    to: str | None = None
    step: int | None = None
    values: tuple[tuple[str, object], ...] = ()


class MomentsOnDemand(OnDemand[Moment]):
    """Moments made when they are read; ``lanes`` has all their lanes in order of appearance."""

    def __init__(self, items: Sequence[Any], make: Callable[[Any], Moment], lanes: Iterable[str]) -> None:
        super().__init__(items, make)
        self.lanes = tuple(lanes)


class Timeline(Picture):
    """A picture of moments in order. ``lanes`` fixes the columns and their order, ``start_ms`` the time called +0.

    >>> print(Timeline([Moment(1000, "shop", "call", "send", to="broker-a"), Moment(1001, "broker-a", "x", "stored")]))
          time  shop                  broker-a
         +0 ms  send ──────────────▶
         +1 ms                        stored
    """

    def __init__(
        self,
        moments: Iterable[Moment],
        *,
        lanes: Sequence[str] | None = None,
        title: str = "",
        start_ms: int | None = None,
    ) -> None:
        self.moments: Sequence[Moment] = moments if isinstance(moments, MomentsOnDemand) else tuple(moments)
        self._start_ms = start_ms
        if lanes is None and isinstance(moments, MomentsOnDemand):
            lanes = moments.lanes
        elif lanes is None:
            lanes = tuple(dict.fromkeys(name for m in self.moments for name in (m.lane, m.to) if name))
        self.lanes = tuple(lanes)
        self.title = title

    @property
    def alt(self) -> str:
        return f"{self.title or 'Timeline'}: {len(self.moments)} moments in {', '.join(self.lanes) or 'no lane'}"

    @property
    def start_ms(self) -> int:
        """The time that is shown as +0: the argument, else the time of the first moment."""
        if self._start_ms is not None:
            return self._start_ms
        return self.moments[0].now_ms if self.moments else 0

    def table(self) -> Table:
        """One row per moment: step, now_ms, after_ms (since the first), node, kind, to, text, and the values noted."""
        start_ms = self.start_ms

        def row(m: Moment) -> dict[str, Any]:
            return {
                "step": m.step, "now_ms": m.now_ms, "after_ms": m.now_ms - start_ms,
                "node": m.lane, "kind": m.kind, "to": m.to, "text": m.text, "values": dict(m.values),
            }  # fmt: skip

        return Table(OnDemand(self.moments, row), columns=COLUMNS, title=self.title, empty="nothing happened")

    def text(self) -> str:
        if not self.moments:
            return f"{self.title}: nothing happened" if self.title else "nothing happened"
        column = max(22, *(width(name) + 2 for name in self.lanes))
        head = "".join(ljust(name, column) for name in self.lanes)
        lines = [self.title] if self.title else []
        times = max([TIME_COLUMNS, *(len(after(moment.now_ms - self.start_ms)) for moment in self._drawn)])
        lines.append(f"{'time':>{times}}  {head}".rstrip())
        before = self._first_ms()
        for moment in self._drawn:
            if moment.now_ms - before >= LONG_PAUSE_MS:
                lines.append(f"{'⋮':>{times}}  {exact_text(moment.now_ms - before)} later")
            before = moment.now_ms
            time = after(moment.now_ms - self.start_ms)
            lines.append(f"{time:>{times}}  {self._text_row(moment, column)}".rstrip())
        return "\n".join([*lines, *self._rest()])

    def _text_row(self, moment: Moment, column: int) -> str:
        here = self._position(moment.lane)
        there = self._position(moment.to) if moment.to else here
        left = " " * (column * min(here, there))
        if there == here:
            return left + moment.text
        room = max(column * abs(there - here) - width(moment.text) - 4, 1)
        return f"{left}{moment.text} {'─' * room}▶" if there > here else f"{left}◀{'─' * room} {moment.text}"

    def svg(self) -> str:
        # 1. Measure: the rows with their pauses, the widest of lanes, title and legend.
        spots = self._lane_spots()
        drawn = self._drawn
        pauses = sum(b.now_ms - a.now_ms >= LONG_PAUSE_MS for a, b in pairwise(drawn))
        top = MARGIN + (22 if self.title else 0)
        foot = top + 34 + ROW_PIXELS * (len(drawn) + pauses)
        looks = [look for name, look in LOOKS.items() if any(_look_name(m) == name for m in drawn)]
        right = spots[self.lanes[-1]] + self._label_room(self.lanes[-1]) if self.lanes else self._time_pixels()
        legend = sum(_legend_pixels(look) for look in looks)
        canvas = Canvas(max(right, text_pixels(self.title), legend) + MARGIN, foot + 34 + 18 * len(self._rest()))
        # 2. Draw the title and the lanes, then the moments over them.
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        for lane in self.lanes:
            canvas.text(spots[lane], top + 12, lane, bold=True, anchor="middle")
            canvas.line(spots[lane], top + 20, spots[lane], foot)
        self._draw_rows(canvas, drawn, spots, top + 20)
        for number, line in enumerate(self._rest()):
            canvas.text(MARGIN, foot + 14 + 18 * number, line, MUTED)
        # 3. The legend explains only the looks that occur.
        x = MARGIN
        for look in looks:
            if look.shape == "arrow":
                canvas.arrow(x, x + 14, canvas.height - 16, look.colour)
            else:
                canvas.mark(look, x + 6, canvas.height - 16)
            canvas.text(x + 18, canvas.height - 12, look.meaning, MUTED, size=11)
            x += _legend_pixels(look)
        return canvas.svg()

    def _draw_rows(self, canvas: Canvas, drawn: Sequence[Moment], spots: dict[str, int], y: int) -> None:
        before, shown_time, right = self._first_ms(), "", self._time_pixels() - 8
        for moment in drawn:
            y += ROW_PIXELS
            if moment.now_ms - before >= LONG_PAUSE_MS:
                canvas.line(right + 6, y - 5, canvas.width - MARGIN, y - 5, RULE, dashed=True)  # not through its words
                canvas.text(right, y - 1, f"{exact_text(moment.now_ms - before)} later", MUTED, anchor="end")
                y += ROW_PIXELS
            before = moment.now_ms
            time = after(moment.now_ms - self.start_ms)
            if time != shown_time:
                canvas.text(right, y - 1, time, MUTED, anchor="end")
            shown_time = time
            self._draw_moment(canvas, moment, spots, y - 5)

    def _draw_moment(self, canvas: Canvas, moment: Moment, spots: dict[str, int], y: int) -> None:
        look, x = LOOKS[_look_name(moment)], spots[moment.lane]
        if moment.to and moment.to != moment.lane:
            target = spots[moment.to]
            inset = 4 if target > x else -4
            canvas.text((x + target) // 2, y - 3, moment.text, INK, anchor="middle", size=11)
            canvas.arrow(x + inset, target - inset, y + 3, look.colour)
        else:
            canvas.mark(look, x, y)
            canvas.text(x + 12, y + 4, moment.text)

    def _time_pixels(self) -> int:
        """Room for the longest time or pause at the left edge."""
        drawn = self._drawn
        pauses = (exact_text(b.now_ms - a.now_ms) + " later" for a, b in pairwise(drawn))
        longest = max(map(len, [*pauses, *(after(moment.now_ms - self.start_ms) for moment in drawn)]), default=0)
        return TIME_PIXELS + CHARACTER * max(0, longest - TIME_CHARACTERS)

    def _lane_spots(self) -> dict[str, int]:
        """The place of each lane's line: room to its right for its own labels, within limits."""
        spots, x = {}, self._time_pixels()
        for index, lane in enumerate(self.lanes):
            x += max(text_pixels(lane) // 2 + 8, 24) if index == 0 else 0
            spots[lane] = x
            x += max(MIN_LANE_PIXELS, min(self._label_room(lane), MAX_LANE_PIXELS))
        return spots

    def _label_room(self, lane: str) -> int:
        texts = [text_pixels(m.text) + 24 for m in self._drawn if m.lane == lane and not m.to]
        for moment in self._drawn:
            if moment.to and lane in (moment.lane, moment.to) and abs(self._gap(moment)) == 1:
                left = self.lanes[min(self._position(moment.lane), self._position(moment.to))]
                if left == lane:
                    texts.append(text_pixels(moment.text) + 30)
        return max([text_pixels(lane) // 2 + 8, *texts])

    def _first_ms(self) -> int:
        drawn = self._drawn
        return drawn[0].now_ms if drawn else self.start_ms

    def _gap(self, moment: Moment) -> int:
        return self._position(moment.to or moment.lane) - self._position(moment.lane)

    def _position(self, lane: str) -> int:
        return self.lanes.index(lane)

    @cached_property
    def _drawn(self) -> tuple[Moment, ...]:
        lanes = frozenset(self.lanes)
        known = (m for m in self.moments if m.lane in lanes and (m.to is None or m.to in lanes))
        return tuple(islice(known, MAX_ROWS_DRAWN))

    def _rest(self) -> list[str]:
        more = len(self.moments) - len(self._drawn)
        if not more:
            return []
        choice = "a message's id, first_step= or last_step= choose"
        return [f"… {more} more moments; .table() has all {len(self.moments)}; {choice}"]

    def __repr__(self) -> str:
        lanes = ", ".join(self.lanes)
        return f"<Timeline of {len(self.moments)} moments from {calendar(self.start_ms)}, lanes {lanes}>"


def _look_name(moment: Moment) -> str:
    return "frame" if moment.to and moment.to != moment.lane else moment.look


def _legend_pixels(look: Look) -> int:
    return 34 + len(look.meaning) * 6


def after(elapsed_ms: int) -> str:
    """A moment as time since the first, exact.

    >>> after(0), after(1250), after(17_140_000)
    ('+0 ms', '+1.250 s', '+4:45:40')
    """
    sign, rest = ("-", -elapsed_ms) if elapsed_ms < 0 else ("+", elapsed_ms)
    return sign + exact_text(rest)
