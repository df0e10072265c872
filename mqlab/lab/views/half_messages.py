"""Half messages over time: when each was stored, when the broker asked for it, and how it ended.

Mirrors: RMQ_SYS_TRANS_HALF_TOPIC and its op topic, put together by hand. Lab 08 draws it.

    order-0   ━━━━━━━━◆━━━━━━━━◆▲            asked twice, then committed
    order-1   ━━━━━━━━●━━━━━━━━●━━━━━━━      nobody was there to be asked

All copies of a half message are one row. Left out: the op messages, and which copy a question names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.counts import counted
from mqlab.durations import exact_text
from mqlab.lab.views.picture import Canvas, Look, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.theme import AMBER, BLUE, GREEN, MUTED, RED, RULE
from mqlab.rocketmq.wire import names

MARGIN, ROW, AXIS = 18, 24, 440
ASKED = Look(AMBER, "diamond", "the broker asks")
UNHEARD = Look(RED, "circle", "no process is there to be asked")
COMMITTED = Look(GREEN, "triangle", "committed: in its topic")
ROLLED_BACK = Look(RED, "square", "rolled back")
GIVEN_UP = Look(RED, "cross", "put aside")
LOOKS = {"committed": COMMITTED, "rolled back": ROLLED_BACK, "put aside": GIVEN_UP}
ENDS = {
    "transaction.committed": "committed",
    "transaction.rolled_back": "rolled back",
    "transaction.given_up": "put aside",
}


@dataclass(frozen=True, slots=True)
class Half:
    """One half message: when it was stored; its questions (ms, was a producer there); its ends (ms, how)."""

    name: str
    stored_ms: int
    asked: tuple[tuple[int, bool], ...] = ()
    ends: tuple[tuple[int, str], ...] = ()


class HalfMessages(Picture):
    """The half messages of a broker. ``down``: (from_ms, to_ms, node), spans in which a node was not there.

    >>> print(HalfMessages([Half("order-0", 5, ((30_005, True),), ((30_010, "committed"),))], end_ms=40_000))
    order-0  stored +0 ms, asked for +30 s, committed +30.005 s
    """

    def __init__(
        self, halves: Iterable[Half], *, end_ms: int, down: Sequence[tuple[int, int, str]] = (), title: str = ""
    ) -> None:
        self.halves = sorted(halves, key=lambda half: half.stored_ms)
        self.end_ms, self.down, self.title = end_ms, list(down), title

    @property
    def start_ms(self) -> int:
        """When the first one was stored."""
        return min((half.stored_ms for half in self.halves), default=self.end_ms)

    @property
    def alt(self) -> str:
        asked = sum(len(half.asked) for half in self.halves)
        return (
            f"{self.title or 'Half messages'}: {len(self.halves)} stored, {counted(asked, 'questions')} of the broker"
        )

    def table(self) -> Table:
        """One row per half message: its questions and how it ended, in ms after the first was stored."""
        rows = [
            {
                "message": half.name,
                "stored_ms": half.stored_ms - self.start_ms,
                "asked_ms": [ms - self.start_ms for ms, _ in half.asked],
                "heard": [heard for _, heard in half.asked],
                "ended": [how for _, how in half.ends],
                "ended_ms": [ms - self.start_ms for ms, _ in half.ends],
            }
            for half in self.halves
        ]
        columns = ["message", "stored_ms", "asked_ms", "heard", "ended", "ended_ms"]
        return Table(rows, columns=columns, title=self.title, empty="no half message was stored")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        for half in self.halves:
            phrases = [f"stored {self._after(half.stored_ms)}"]
            phrases += [f"asked for {self._after(ms)}{'' if heard else ' (nobody there)'}" for ms, heard in half.asked]
            phrases += [f"{how} {self._after(ms)}" for ms, how in half.ends] or ["not ended"]
            lines.append(f"{half.name}  {', '.join(phrases)}")
        lines += [f"{node} down from {self._after(began)} to {self._after(ended)}" for began, ended, node in self.down]
        return "\n".join(lines)

    def _after(self, ms: int) -> str:
        return f"+{exact_text(ms - self.start_ms)}" if ms >= self.start_ms else f"-{exact_text(self.start_ms - ms)}"

    def svg(self) -> str:
        nodes = list(dict.fromkeys(node for _, _, node in self.down))
        labels = [*(half.name for half in self.halves), *nodes]
        left = MARGIN + max(map(text_pixels, labels), default=0) + 14
        top = MARGIN + (24 if self.title else 0)
        bottom = top + ROW * len(labels)
        canvas = Canvas(max(left + AXIS + MARGIN + 30, 560), bottom + 82)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        long_ms = max(self.end_ms - self.start_ms, 1)

        def x(ms: int) -> int:
            return left + round(AXIS * (min(max(ms, self.start_ms), self.end_ms) - self.start_ms) / long_ms)

        # 1. The axis, and who was not there.
        canvas.line(left, bottom + 4, left + AXIS, bottom + 4)
        canvas.text(left, bottom + 20, "+0", MUTED, size=11)
        canvas.text(left + AXIS, bottom + 20, self._after(self.end_ms), MUTED, anchor="end", size=11)
        for number, label in enumerate(labels):
            canvas.text(left - 14, top + ROW * number + ROW // 2 + 4, label, anchor="end")
        for began, ended, node in self.down:
            y = top + ROW * (len(self.halves) + nodes.index(node))
            canvas.box(x(began), y + 5, max(x(ended) - x(began), 2), ROW - 10, RULE, title=f"{node} is down")
        # 2. Each half message: its wait, the questions, its end.
        for number, half in enumerate(self.halves):
            y = top + ROW * number + ROW // 2
            last = max([ms for ms, _ in half.ends], default=self.end_ms)
            canvas.line(x(half.stored_ms), y, x(last), y, BLUE, thick=True)
            for ms, heard in half.asked:
                canvas.mark(ASKED if heard else UNHEARD, x(ms), y)
            for ms, how in half.ends:
                canvas.mark(LOOKS[how], x(ms) + 9, y)
        self._legend(canvas, bottom + 40)
        return canvas.svg()

    def _legend(self, canvas: Canvas, y: int) -> None:
        for row, looks in enumerate(((COMMITTED, ROLLED_BACK, GIVEN_UP), (ASKED, UNHEARD))):
            x = MARGIN
            for look in looks:
                canvas.mark(look, x + 6, y + 24 * row)
                canvas.text(x + 18, y + 24 * row + 4, look.meaning, MUTED)
                x += text_pixels(look.meaning) + 40
            if row and self.down:
                canvas.box(x, y + 24 * row - 7, 14, 14, RULE)
                canvas.text(x + 20, y + 24 * row + 4, "down", MUTED)


def show_halves(lab: Any, broker: str = "broker-a") -> HalfMessages:
    """The half messages of a Lab's broker, from its store and its journal."""
    asked: dict[str, list[tuple[int, bool]]] = {}
    for record, values in lab.journal.changes("transaction.checked"):
        if record.node == broker:  # the one who is asked notes it under the same name
            asked.setdefault(values["msg_id"], []).append((record.now_ms, values["asked"] is not None))
    ends: dict[str, list[tuple[int, str]]] = {}
    for kind, how in ENDS.items():
        for record, values in lab.journal.changes(kind):
            if record.node == broker:
                ends.setdefault(values["msg_id"], []).append((record.now_ms, how))
    halves: dict[str, Half] = {}
    for message in lab.store(broker).messages(names.HALF_TOPIC):
        key = message.msg_id
        if key not in halves:
            halves[key] = Half(
                message.keys or key, message.store_timestamp, tuple(asked.get(key, ())), tuple(ends.get(key, ()))
            )
    return HalfMessages(halves.values(), end_ms=lab.now_ms, down=list(_down(lab)))


def _down(lab: Any) -> Iterable[tuple[int, int, str]]:
    since: dict[str, int] = {}
    for record in lab.journal:
        if record.kind != "fault":
            continue
        kinds = {change.kind for change in record.changes}
        if kinds & {"fault.killed", "fault.powered_off"}:
            since.setdefault(record.node, record.now_ms)
        elif "fault.start" in kinds and record.node in since:
            yield since.pop(record.node), record.now_ms, record.node
    for node, began in since.items():
        yield began, lab.now_ms, node
