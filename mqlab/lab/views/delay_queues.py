"""The queues of the schedule topic: what waited in which level, and when it came.

Mirrors: SCHEDULE_TOPIC_XXXX and delayOffset.json, put together by hand. Lab 08 draws it.

    level 2, 5 s     ━━━━━━━━▶            order-0
                        ━━━━━━━━▶    ▶    order-1: came twice
    level 3, 10 s    ━━━━━━━━━━━━━━━━▶    order-2

A bar is one stored copy that waits; a triangle is a copy that was stored in the real topic. Left out: the consumer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.counts import counted
from mqlab.durations import exact_text
from mqlab.lab.views.picture import Canvas, Look, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.theme import BLUE, GREEN, MUTED, RED, RULE

MARGIN, ROW, AXIS = 18, 24, 440
CAME = Look(GREEN, "triangle", "stored in its real topic")
AGAIN = Look(RED, "triangle", "stored once more")
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"


@dataclass(frozen=True, slots=True)
class Waiting:
    """One message that waits in a level's queue: when it was stored, and when copies of it came."""

    name: str
    level: int
    stored_ms: int
    due_ms: int
    came_ms: tuple[int, ...]


class DelayQueues(Picture):
    """What waited where. ``down``: spans in which the broker was not there, as (from_ms, to_ms).

    >>> print(DelayQueues([Waiting("order-0", 1, 5, 1_005, (1_100,))], end_ms=2_000))
    level 1  order-0  stored +0 ms, due +1 s, came +1.095 s
    """

    def __init__(
        self, waiting: Iterable[Waiting], *, end_ms: int, down: Sequence[tuple[int, int]] = (), title: str = ""
    ) -> None:
        self.waiting = sorted(waiting, key=lambda message: (message.level, message.stored_ms))
        self.end_ms, self.down, self.title = end_ms, list(down), title

    @property
    def start_ms(self) -> int:
        """When the first one was stored."""
        return min((message.stored_ms for message in self.waiting), default=self.end_ms)

    @property
    def alt(self) -> str:
        came = sum(len(message.came_ms) for message in self.waiting)
        levels = len({message.level for message in self.waiting})
        return f"{self.title or 'Delay queues'}: {len(self.waiting)} waited in {counted(levels, 'levels')}, {came} came"

    def table(self) -> Table:
        """One row per message that waited: level, message, and after how many ms it was due and came."""
        rows = [
            {
                "level": message.level,
                "message": message.name,
                "stored_ms": message.stored_ms - self.start_ms,
                "due_ms": message.due_ms - self.start_ms,
                "came_ms": [ms - self.start_ms for ms in message.came_ms],
            }
            for message in self.waiting
        ]
        columns = ["level", "message", "stored_ms", "due_ms", "came_ms"]
        return Table(rows, columns=columns, title=self.title, empty="nothing waited")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        for message in self.waiting:
            came = " and ".join(self._after(ms) for ms in message.came_ms) or "not yet"
            words = f"stored {self._after(message.stored_ms)}, due {self._after(message.due_ms)}, came {came}"
            lines.append(f"level {message.level}  {message.name}  {words}")
        return "\n".join(lines)

    def _after(self, ms: int) -> str:
        return f"+{exact_text(ms - self.start_ms)}"

    def svg(self) -> str:
        names = [f"level {message.level}  {message.name}" for message in self.waiting]
        left = MARGIN + max(map(text_pixels, names), default=0) + 14
        top = MARGIN + (24 if self.title else 0)
        bottom = top + ROW * len(names)
        canvas = Canvas(max(left + AXIS + MARGIN + 30, 560), bottom + 58)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        long_ms = max(self.end_ms - self.start_ms, 1)

        def x(ms: int) -> int:
            return left + round(AXIS * (min(max(ms, self.start_ms), self.end_ms) - self.start_ms) / long_ms)

        # 1. When the broker was not there, and the axis.
        for from_ms, to_ms in self.down:
            canvas.box(x(from_ms), top, max(x(to_ms) - x(from_ms), 2), bottom - top, RULE, title="the broker is down")
        canvas.line(left, bottom + 4, left + AXIS, bottom + 4)
        canvas.text(left, bottom + 20, "+0", MUTED, size=11)
        canvas.text(left + AXIS, bottom + 20, self._after(self.end_ms), MUTED, anchor="end", size=11)
        # 2. Each message: its wait, and its copies.
        for number, (message, name) in enumerate(zip(self.waiting, names, strict=True)):
            y = top + ROW * number + ROW // 2
            canvas.text(left - 14, y + 4, name, anchor="end")
            last = max(message.came_ms, default=self.end_ms)
            canvas.line(x(message.stored_ms), y, x(min(message.due_ms, last)), y, BLUE, thick=True)
            canvas.line(x(min(message.due_ms, last)), y, x(last), y, BLUE, dashed=True)
            for index, ms in enumerate(message.came_ms):
                canvas.mark(AGAIN if index else CAME, x(ms), y)
        # 3. What is what.
        legend_x = MARGIN
        for look in (CAME, AGAIN):
            canvas.mark(look, legend_x + 6, bottom + 40)
            canvas.text(legend_x + 18, bottom + 44, look.meaning, MUTED)
            legend_x += text_pixels(look.meaning) + 40
        if self.down:
            canvas.box(legend_x, bottom + 33, 14, 14, RULE)
            canvas.text(legend_x + 20, bottom + 44, "the broker is down", MUTED)
        return canvas.svg()


def show_delays(lab: Any, broker: str = "broker-a") -> DelayQueues:
    """The delay queues of a Lab's broker, from its store and its journal."""
    came: dict[str, list[int]] = {}
    for record, values in lab.journal.changes("message.delivered_late"):
        if record.node == broker:
            came.setdefault(values["msg_id"], []).append(record.now_ms)
    waiting = []
    store = lab.store(broker)
    for message in store.messages(SCHEDULE_TOPIC):
        # A delivery before the copy was stored belongs to an earlier wait of the same message.
        due_ms = store.queue(SCHEDULE_TOPIC, message.queue_id).unit(message.queue_offset).tags_code
        own = tuple(ms for ms in came.get(message.msg_id, []) if ms >= message.store_timestamp)
        waiting.append(Waiting(message.keys, message.queue_id + 1, message.store_timestamp, due_ms, own))
    return DelayQueues(waiting, end_ms=lab.now_ms, down=list(_down(lab, broker)))


def _down(lab: Any, broker: str) -> Iterable[tuple[int, int]]:
    since: int | None = None
    for record in lab.journal:
        if record.kind != "fault" or record.node != broker:
            continue
        kinds = {change.kind for change in record.changes}
        if kinds & {"fault.killed", "fault.powered_off"} and since is None:
            since = record.now_ms
        elif "fault.start" in kinds and since is not None:
            yield since, record.now_ms
            since = None
    if since is not None:
        yield since, lab.now_ms
