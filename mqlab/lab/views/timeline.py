"""What happened, from top to bottom: one column per node, one row per moment, one arrow per call.

It shows what you would draw from the logs of all processes. Lab 00 begins with it.

       time   shop          broker-a      billing-1
      +0 ms   ■ stored …                                 Moment(now_ms, lane, kind, text)
      +1 ms                 ────────────▶ 1 message      Moment(…, to="billing-1")

Input is plain moments, so that it is drawn and tested without a world; mqlab.lab.views.moments makes them of a journal.
The drawing is in mqlab.lab.views.timeline_drawing. Left out: more than 80 rows in one picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from wcwidth import ljust

from mqlab.counts import counted
from mqlab.durations import calendar, exact_text
from mqlab.errors import UsageError
from mqlab.lab.views.on_demand import OnDemand
from mqlab.lab.views.picture import Look, Picture
from mqlab.lab.views.table import Table
from mqlab.lab.views.text_width import width
from mqlab.lab.views.theme import AMBER, BLUE, GREEN, MUTED, RED, VIOLET

LOOKS = {
    "stored": Look(BLUE, "square", "written by the broker"),
    "read": Look(GREEN, "triangle", "read or handled by a consumer"),
    "progress": Look(VIOLET, "diamond", "progress of a group"),
    "trouble": Look(RED, "cross", "a fault or a failure"),
    "held": Look(AMBER, "bar", "a pull that the broker holds, until it is answered"),
    "other": Look(MUTED, "dot", "anything else"),
    "frame": Look(MUTED, "arrow", "a call or an answer on the network"),
}
COLUMNS = ("step", "now_ms", "after_ms", "node", "kind", "to", "sent_ms", "until_ms", "text", "values")
MAX_ROWS_DRAWN = 80
LONG_PAUSE_MS = 1000  # from here on a jump in time gets a line of its own
SLOW_MS = 10  # a frame that took as long is told when it was sent
TIME_COLUMNS = 10
SCALES = ("rows", "linear", "log")


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened at ``now_ms`` in ``lane``; an arrow to another lane when ``to`` is given.

    ``kind`` is the journal's word for it, ``look`` a name in LOOKS, ``step`` its step in the journal,
    ``values`` the facts that the journal recorded (queue offsets, groups, ids). An arrow was sent at ``sent_ms`` by the
    step ``sent_step`` and arrives at ``now_ms``. What lasts (a held pull) ends at ``until_ms``, in the step
    ``until_step``; without them it still lasts.
    """

    now_ms: int
    lane: str
    kind: str
    text: str
    look: str = "other"
    to: str | None = None
    step: int | None = None
    values: tuple[tuple[str, object], ...] = ()
    sent_ms: int | None = None
    sent_step: int | None = None
    until_ms: int | None = None
    until_step: int | None = None

    @property
    def arrived_ms(self) -> int:
        """When it arrived, for an arrow; else when it happened."""
        return self.now_ms

    @property
    def lane_names(self) -> tuple[str, ...]:
        """The lane, or the two lanes, that it takes part in."""
        return (self.lane, self.to) if self.to else (self.lane,)

    @property
    def is_arrow(self) -> bool:
        """Whether it goes from one lane to another."""
        return bool(self.to) and self.to != self.lane

    @property
    def look_name(self) -> str:
        """The name of its look: of an arrow always "frame"."""
        return "frame" if self.is_arrow else self.look

    def words(self, start_ms: int) -> str:
        """Its text, with how long it lasted or, of a slow arrow, when it was sent."""
        if self.look == "held":
            if self.until_ms is None:
                return f"{self.text}, not answered yet"
            return f"{self.text}, answered after {exact_text(self.until_ms - self.now_ms)}"
        if self.is_arrow and self.sent_ms is not None and self.now_ms - self.sent_ms >= SLOW_MS:
            return f"{self.text} (sent {after(self.sent_ms - start_ms)})"
        return self.text


class MomentsOnDemand(OnDemand[Moment]):
    """Moments made when they are read; ``lanes`` has all their lanes in order, ``start_ms`` the time called +0."""

    def __init__(
        self, items: Sequence[Any], make: Callable[[Any], Moment], lanes: Iterable[str], *, start_ms: int | None = None
    ) -> None:
        super().__init__(items, make)
        self.lanes = tuple(lanes)
        self.start_ms = start_ms


class Timeline(Picture):
    """A picture of moments in order. ``lanes`` fixes the columns and their order, ``start_ms`` the time called +0.

    ``scale``: "rows" gives each moment a row; "linear" and "log" draw time to scale ("log": seconds and hours both
    show). UsageError for another one. The text is the same for all.

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
        scale: str = "rows",
    ) -> None:
        if scale not in SCALES:
            raise UsageError(f"there is no scale {scale!r}", hint='scale="rows", "linear" or "log"')
        self.scale = scale
        self.moments: Sequence[Moment] = moments if isinstance(moments, MomentsOnDemand) else tuple(moments)
        self._start_ms = start_ms
        if start_ms is None and isinstance(moments, MomentsOnDemand):
            self._start_ms = moments.start_ms
        if lanes is None and isinstance(moments, MomentsOnDemand):
            lanes = moments.lanes
        elif lanes is None:
            lanes = tuple(dict.fromkeys(name for m in self.moments for name in (m.lane, m.to) if name))
        self.lanes = tuple(lanes)
        self.title = title

    @property
    def alt(self) -> str:
        return (
            f"{self.title or 'Timeline'}: "
            f"{counted(len(self.moments), 'moments')} in {', '.join(self.lanes) or 'no lane'}"
        )

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
                "step": m.step,
                "now_ms": m.now_ms,
                "after_ms": m.now_ms - start_ms,
                "node": m.lane,
                "kind": m.kind,
                "to": m.to,
                "sent_ms": m.sent_ms,
                "until_ms": m.until_ms,
                "text": m.text,
                "values": dict(m.values),
            }

        return Table(OnDemand(self.moments, row), columns=COLUMNS, title=self.title, empty="nothing happened")

    def text(self) -> str:
        if not self.moments:
            return f"{self.title}: nothing happened" if self.title else "nothing happened"
        column = max(22, *(width(name) + 2 for name in self.lanes))
        head = "".join(ljust(name, column) for name in self.lanes)
        lines = [self.title] if self.title else []
        times = max([TIME_COLUMNS, *(len(after(moment.now_ms - self.start_ms)) for moment in self.drawn)])
        lines.append(f"{'time':>{times}}  {head}".rstrip())
        before = self._first_ms()
        for moment in self.drawn:
            if moment.now_ms - before >= LONG_PAUSE_MS:
                lines.append(f"{'⋮':>{times}}  {exact_text(moment.now_ms - before)} later")
            before = moment.now_ms
            time = after(moment.now_ms - self.start_ms)
            lines.append(f"{time:>{times}}  {self._text_row(moment, column)}".rstrip())
        return "\n".join([*lines, *self.rest()])

    def _text_row(self, moment: Moment, column: int) -> str:
        here = self._position(moment.lane)
        there = self._position(moment.to) if moment.to else here
        left, words = " " * (column * min(here, there)), moment.words(self.start_ms)
        if there == here:
            return left + words
        room = max(column * abs(there - here) - width(words) - 4, 1)
        return f"{left}{words} {'─' * room}▶" if there > here else f"{left}◀{'─' * room} {words}"

    def svg(self) -> str:
        from mqlab.lab.views.timeline_drawing import Drawing

        return Drawing(self.drawn, self.lanes, self.start_ms, self.scale, self.title, self.rest()).svg()

    def _first_ms(self) -> int:
        drawn = self.drawn
        return drawn[0].now_ms if drawn else self.start_ms

    def _position(self, lane: str) -> int:
        return self.lanes.index(lane)

    @cached_property
    def drawn(self) -> tuple[Moment, ...]:
        """The moments of the picture: the first ones whose lanes are shown."""
        lanes = frozenset(self.lanes)
        known = (m for m in self.moments if m.lane in lanes and (m.to is None or m.to in lanes))
        return tuple(islice(known, MAX_ROWS_DRAWN))

    def rest(self) -> list[str]:
        """What is said of the moments that are not drawn."""
        more = len(self.moments) - len(self.drawn)
        if not more:
            return []
        choice = "a message's id, first_step= or last_step= choose"
        return [f"… {counted(more, 'more moments')}; .table() has all {len(self.moments):,}; {choice}"]

    def __repr__(self) -> str:
        lanes = ", ".join(self.lanes)
        return f"<Timeline of {counted(len(self.moments), 'moments')} from {calendar(self.start_ms)}, lanes {lanes}>"


def after(elapsed_ms: int) -> str:
    """A moment as time since the first, exact.

    >>> after(0), after(1250), after(17_140_000)
    ('+0 ms', '+1.250 s', '+4:45:40')
    """
    sign, rest = ("-", -elapsed_ms) if elapsed_ms < 0 else ("+", elapsed_ms)
    return sign + exact_text(rest)
