"""One message that fails: each delivery, and where and how long it waited for the next, on an axis of durations.

Mirrors: what an operator reconstructs from message trace and from the queues of SCHEDULE_TOPIC_XXXX. Lab 07 draws it.

    log       ├ 1 s ───── 10 s ──── 1 min ─── 10 min ──── 1 h ──┤   a bar is as long as the wait: 10 s and 2 h both show
    linear    ├ 0 ──────────── 1 h ──────────── 2 h ────────────┤   a bar stands where and when the message waited

Left out: what a broker did while the message waited (the timeline has it).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mqlab.counts import counted
from mqlab.durations import exact_text, rounded_text
from mqlab.errors import UsageError
from mqlab.lab.views.picture import Canvas, Look, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.text_width import cut
from mqlab.lab.views.theme import BLUE, GREEN, INK, MUTED, RED, RULE, colour
from mqlab.scales import Scale, durations, spans

MAX_ROWS_DRAWN = 40
AXIS_PIXELS, AXIS_CHARACTERS = 460, 30
ROW = 26
MARGIN = 18
GOOD = Look(GREEN, "triangle", "delivered: it succeeded")
FAILED = Look(RED, "cross", "delivered: it failed")
DEAD = Look(INK, "square", "dead letter")
WAITS = Look(BLUE, "bar", "waits")
SCALES = ("log", "linear")
MAX_WHERE_COLUMNS = 40
SUCCESS = ("CONSUME_SUCCESS", "SUCCESS", "COMMIT", "POLLED")


@dataclass(frozen=True, slots=True)
class ListenerCall:
    """One delivery to a listener. ``ended_ms`` None: it did not return."""

    started_ms: int
    ended_ms: int | None
    status: str
    reconsume_times: int
    client: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the listener succeeded."""
        return self.status in SUCCESS


@dataclass(frozen=True, slots=True)
class Wait:
    """The message waited in ``where`` from one time to another; ``until_ms`` None: it still does."""

    from_ms: int
    until_ms: int | None
    where: str


class MessageWaits(Picture):
    """Deliveries and waits of one message, in order. ``scale`` is "log" (bars as long as the waits) or "linear".

    ``dead_ms``: when it became a dead letter; ``now_ms``: where a wait that is not over ends in the picture.
    Raises UsageError for another scale.

    >>> calls = [ListenerCall(0, 5, "RECONSUME_LATER", 0), ListenerCall(10_005, 10_006, "CONSUME_SUCCESS", 1)]
    >>> print(MessageWaits(calls, [Wait(5, 10_005, "level 3")]))
      +0 ms  delivery 1, reconsume_times 0: RECONSUME_LATER
             waits 10 s              ██████████████████████████████  level 3
      +10.005 s  delivery 2, reconsume_times 1: CONSUME_SUCCESS
    """

    def __init__(
        self,
        calls: Iterable[ListenerCall],
        waits: Iterable[Wait] = (),
        *,
        dead_ms: int | None = None,
        now_ms: int | None = None,
        scale: str = "log",
        title: str = "",
    ) -> None:
        if scale not in SCALES:
            raise UsageError(f"there is no scale {scale!r}", hint='scale="log" or scale="linear"')
        self.calls = sorted(calls, key=lambda call: call.started_ms)
        self.waits = sorted(waits, key=lambda wait: wait.from_ms)
        self.dead_ms, self.now_ms, self.scale, self.title = dead_ms, now_ms, scale, title

    @property
    def start_ms(self) -> int:
        """The time called +0: the first thing that happened."""
        times = [call.started_ms for call in self.calls[:1]] + [wait.from_ms for wait in self.waits[:1]]
        return min(times, default=self.dead_ms or 0)

    @property
    def end_ms(self) -> int:
        """The last thing that happened."""
        times = [call.ended_ms or call.started_ms for call in self.calls] + [self._until(wait) for wait in self.waits]
        return max([*times, *([self.dead_ms] if self.dead_ms is not None else [])], default=self.start_ms)

    def _until(self, wait: Wait) -> int:
        if wait.until_ms is not None:
            return wait.until_ms
        return max(wait.from_ms, self.now_ms or 0)

    def _long(self, wait: Wait) -> int:
        return self._until(wait) - wait.from_ms

    def _rows(self) -> list[tuple[int, ListenerCall | Wait | None]]:
        """(when, what) in order; None stands for the death."""
        rows: list[tuple[int, ListenerCall | Wait | None]] = [(call.started_ms, call) for call in self.calls]
        rows += [(wait.from_ms, wait) for wait in self.waits]
        rows += [(self.dead_ms, None)] if self.dead_ms is not None else []
        return sorted(rows, key=lambda row: (row[0], row[1] is None))

    @property
    def alt(self) -> str:
        longest = max((self._long(wait) for wait in self.waits), default=0)
        end = f", dead after {exact_text(self.dead_ms - self.start_ms)}" if self.dead_ms is not None else ""
        words = (
            f"{counted(len(self.calls), 'deliveries')}, {counted(len(self.waits), 'waits')}, "
            f"the longest {exact_text(longest)}{end}"
        )
        return f"{self.title or 'Deliveries and waits'}: {words}"

    def table(self) -> Table:
        """One row per delivery, wait or death: after_ms, what, long_ms, where or result, reconsume_times."""
        rows = []
        for at_ms, what in self._rows():
            row: dict[str, object] = {"after_ms": at_ms - self.start_ms, "what": "dead"}
            if isinstance(what, ListenerCall):
                ended = None if what.ended_ms is None else what.ended_ms - what.started_ms
                row |= {"what": "delivery", "long_ms": ended, "where": what.client, "status": what.status}
                row["reconsume_times"] = what.reconsume_times
            elif what is not None:
                row |= {"what": "wait", "long_ms": self._long(what), "where": what.where}
            rows.append(row)
        columns = ["after_ms", "what", "long_ms", "where", "status", "reconsume_times"]
        return Table(rows, columns=columns, title=self.title, empty="nothing happened to it")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        rows, axis, number = self._rows(), self._axis(), 0
        for at_ms, what in rows[:MAX_ROWS_DRAWN]:
            time = f"+{exact_text(at_ms - self.start_ms)}"
            if isinstance(what, Wait):
                begin, end = self._reach(what, axis)
                blank, bar = round(begin * AXIS_CHARACTERS), max(round((end - begin) * AXIS_CHARACTERS), 1)
                long = f"waits {exact_text(self._long(what))}" + ("" if what.until_ms is not None else " and longer")
                lines.append(f"{'':>12}  {long:<22} {' ' * blank}{'█' * bar:<{AXIS_CHARACTERS - blank}}  {what.where}")
                continue
            number += what is not None
            lines.append(f"{time:>12}  {self._told(what, number)}")
        lines += [self._rest(rows)] if self._rest(rows) else []
        return "\n".join(lines if rows else [*lines, "nothing happened to it"])

    @staticmethod
    def _told(call: ListenerCall | None, number: int) -> str:
        if call is None:
            return "dead letter"
        return f"delivery {number}, reconsume_times {call.reconsume_times}: {call.status}"

    @staticmethod
    def _rest(rows: Sequence[object]) -> str:
        more = len(rows) - MAX_ROWS_DRAWN
        return f"… {counted(more, 'more rows')}; .table() has all {len(rows):,}" if more > 0 else ""

    def _axis(self) -> Scale:
        """An axis of durations: logarithmic over the lengths of the waits, or linear over the whole time."""
        whole = self.end_ms - self.start_ms
        if self.scale == "linear":
            return spans(whole)
        lengths = [self._long(wait) for wait in self.waits if self._long(wait) > 0]
        # The axis begins below the shortest wait, so that this one has a length, too.
        return durations(min(lengths, default=2) / 2, max(lengths, default=2))

    def _reach(self, wait: Wait, axis: Scale) -> tuple[float, float]:
        """Where the bar of a wait begins and ends on the axis, 0 to 1."""
        if self.scale == "log":
            return 0.0, axis.part(max(self._long(wait), axis.low))
        return axis.part(wait.from_ms - self.start_ms), axis.part(self._until(wait) - self.start_ms)

    def svg(self) -> str:
        # 1. Measure.
        rows, axis = self._rows(), self._axis()
        drawn = rows[:MAX_ROWS_DRAWN]
        times = [f"+{exact_text(at_ms - self.start_ms)}" for at_ms, _ in drawn]
        left = MARGIN + max(map(text_pixels, times), default=40) + 14
        top = MARGIN + (24 if self.title else 0) + 34
        foot = top + ROW * max(len(drawn), 1)
        right = left + AXIS_PIXELS + 324
        canvas = Canvas(max(right, text_pixels(self.title) + MARGIN) + MARGIN, foot + 60)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        words = "length of a wait (logarithmic)" if self.scale == "log" else "time since the first delivery"
        canvas.text(left, top - 24, words, MUTED, size=11)
        for tick in axis.ticks:
            x = left + round(axis.part(tick) * AXIS_PIXELS)
            canvas.line(x, top - 2, x, foot)
            canvas.text(x, top - 8, rounded_text(tick), MUTED, anchor="middle", size=11)
        # 2. One row each.
        number = 0
        for row, (at_ms, what) in enumerate(drawn):
            y = top + ROW * row + ROW // 2
            if isinstance(what, Wait):
                self._draw_wait(canvas, what, axis, left, y)
            else:
                number += what is not None
                self._draw_call(canvas, what, number, axis, left, y, at_ms)
                canvas.text(left - 14, y + 4, times[row], MUTED, anchor="end")
        if not drawn:
            canvas.text(left, top + 14, "nothing happened to it", MUTED)
        # 3. What is not drawn, and the legend.
        if self._rest(rows):
            canvas.text(MARGIN, foot + 16, self._rest(rows), MUTED)
        x = MARGIN
        for look in (FAILED, GOOD, WAITS, DEAD):
            if look is WAITS:
                canvas.box(x, canvas.height - 21, 14, 10, colour("pale-blue"), border=BLUE, round_by=2)
            else:
                canvas.mark(look, x + 6, canvas.height - 16)
            canvas.text(x + 18, canvas.height - 12, look.meaning, MUTED, size=11)
            x += 34 + 6 * len(look.meaning)
        return canvas.svg()

    def _draw_wait(self, canvas: Canvas, wait: Wait, axis: Scale, left: int, y: int) -> None:
        begin, end = (left + round(part * AXIS_PIXELS) for part in self._reach(wait, axis))
        long = exact_text(self._long(wait)) + ("" if wait.until_ms is not None else " and longer")
        where = cut(wait.where, MAX_WHERE_COLUMNS)
        canvas.box(
            begin,
            y - 8,
            max(end - begin, 2),
            16,
            colour("pale-blue"),
            border=BLUE,
            round_by=2,
            title=f"{long} in {wait.where}",
        )
        words = f"{long} in {where}"
        # Words that fit stand in the bar; others stand after it, or before it at the end of the axis.
        if text_pixels(words) + 12 <= end - begin:
            canvas.text(begin + 8, y + 4, words, halo=False)
        elif self.scale == "linear" and end - left > AXIS_PIXELS and text_pixels(words) < begin - left:
            canvas.text(begin - 8, y + 4, words, anchor="end")
        else:
            canvas.text(max(end, begin + 2) + 8, y + 4, words)

    def _draw_call(
        self, canvas: Canvas, call: ListenerCall | None, number: int, axis: Scale, left: int, y: int, at_ms: int
    ) -> None:
        look = DEAD if call is None else GOOD if call.is_good else FAILED
        x = left if self.scale == "log" else left + round(axis.part(at_ms - self.start_ms) * AXIS_PIXELS)
        canvas.line(left - 6, y, left, y, RULE)
        canvas.mark(look, x, y)
        canvas.text(x + 12, y + 4, self._told(call, number))

    def __repr__(self) -> str:
        return f"<Waits {self.alt}>"
