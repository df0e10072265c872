"""The leases of a popping group over time: what was out and until when, what was acknowledged, what came back.

No tool of RocketMQ shows it; the labs about POP draw it from a Lab's journal.

    order-0  ━━━━●                      leased, acknowledged
    order-1  ━━━━━━━━━━━━┃   ▲ ━━━●     its lease ended; stored again; leased again, acknowledged
    order-2  ━━━━━━━━━━━━┃ ✕ ▲          an ack after the end: answered 0, and without effect

Left out: orderly pops, which have no leases of single messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mqlab.counts import counted
from mqlab.durations import exact_text
from mqlab.lab.views.picture import Canvas, Look, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.theme import AMBER, BLUE, GREEN, MUTED, RED
from mqlab.rocketmq.wire.pop import ORDERLY_REVIVE_QUEUE, offsets_of, real_topic

MARGIN, ROW, AXIS = 18, 24, 460
LEASE_END = "the lease ends"
ACKED = Look(GREEN, "circle", "acknowledged")
LATE = Look(RED, "cross", "an ack without effect")
BACK = Look(AMBER, "triangle", "stored again for its group")
RUNS, ENDED, LONGER = "runs", "ended", "changed"


@dataclass(slots=True)
class LeaseSpan:
    """One lease: from a pop to its end, to an ack, or to a change of its invisible time (``how``: what ended it)."""

    from_ms: int
    until_ms: int
    how: str = RUNS

    @property
    def words(self) -> str:
        """What became of it."""
        return {ACKED.meaning: "acknowledged", ENDED: "ended", LONGER: "changed"}.get(self.how, "runs")


@dataclass(slots=True)
class MessageLeases:
    """What happened to one message of the group."""

    name: str
    spans: list[LeaseSpan] = field(default_factory=list)
    late_acks: list[int] = field(default_factory=list)
    revived: list[int] = field(default_factory=list)


class LeaseBars(Picture):
    """A row per message.

    >>> print(LeaseBars([MessageLeases("order-0", [LeaseSpan(0, 400, "acknowledged")])], start_ms=0, end_ms=1_000))
    order-0  +0 ms to +400 ms acknowledged
    """

    def __init__(self, messages: Iterable[MessageLeases], *, start_ms: int, end_ms: int, title: str = "") -> None:
        self.messages = list(messages)
        self.start_ms, self.end_ms, self.title = start_ms, max(end_ms, start_ms + 1), title

    @property
    def alt(self) -> str:
        leases = sum(len(message.spans) for message in self.messages)
        return f"{self.title or 'Leases'}: {counted(leases, 'leases')} of {counted(len(self.messages), 'messages')}"

    def table(self) -> Table:
        """One row per lease: message, from_ms and until_ms after the first pop, and what ended it."""
        rows = [
            {
                "message": message.name,
                "from_ms": span.from_ms - self.start_ms,
                "until_ms": span.until_ms - self.start_ms,
                "end": span.words,
            }
            for message in self.messages
            for span in message.spans
        ]
        columns = ["message", "from_ms", "until_ms", "end"]
        return Table(rows, columns=columns, title=self.title, empty="nothing was popped")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        for message in self.messages:
            leases = [
                f"{self._after(span.from_ms)} to {self._after(span.until_ms)} {span.words}" for span in message.spans
            ]
            leases += [f"late ack {self._after(ms)}" for ms in message.late_acks]
            leases += [f"stored again {self._after(ms)}" for ms in message.revived]
            lines.append(f"{message.name}  {', '.join(leases)}")
        return "\n".join(lines) or "nothing was popped"

    def _after(self, ms: int) -> str:
        return f"+{exact_text(ms - self.start_ms)}"

    def svg(self) -> str:
        left = MARGIN + max((text_pixels(message.name) for message in self.messages), default=0) + 14
        top = MARGIN + (24 if self.title else 0)
        bottom = top + ROW * max(len(self.messages), 1)
        keys = sum(text_pixels(look.meaning) + 40 for look in (ACKED, LATE, BACK)) + text_pixels(LEASE_END) + 14
        canvas = Canvas(max(left + AXIS + MARGIN + 20, keys + 2 * MARGIN), bottom + 58)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)

        def x(ms: int) -> int:
            inside = min(max(ms, self.start_ms), self.end_ms) - self.start_ms
            return left + round(AXIS * inside / (self.end_ms - self.start_ms))

        canvas.line(left, bottom + 4, left + AXIS, bottom + 4)
        canvas.text(left, bottom + 20, "first pop", MUTED, size=11)
        canvas.text(left + AXIS, bottom + 20, self._after(self.end_ms), MUTED, anchor="end", size=11)
        for number, message in enumerate(self.messages):
            y = top + ROW * number + ROW // 2
            canvas.text(left - 14, y + 4, message.name, anchor="end")
            for span in message.spans:
                canvas.line(x(span.from_ms), y, max(x(span.until_ms), x(span.from_ms) + 2), y, BLUE, thick=True)
                if span.how == ACKED.meaning:
                    canvas.mark(ACKED, x(span.until_ms), y)
                elif span.how == ENDED:
                    canvas.line(x(span.until_ms), y - 8, x(span.until_ms), y + 8, RED, thick=True)
            for ms in message.late_acks:
                canvas.mark(LATE, x(ms), y)
            for ms in message.revived:
                canvas.mark(BACK, x(ms), y)
        x_px = MARGIN
        for look in (ACKED, LATE, BACK):
            canvas.mark(look, x_px + 6, bottom + 40)
            canvas.text(x_px + 18, bottom + 44, look.meaning, MUTED)
            x_px += text_pixels(look.meaning) + 40
        canvas.line(x_px + 4, bottom + 32, x_px + 4, bottom + 48, RED, thick=True)
        canvas.text(x_px + 14, bottom + 44, LEASE_END, MUTED)
        return canvas.svg()


def show_leases(lab: Any, group: str, broker: str = "broker-a", *, title: str = "") -> LeaseBars:
    """The leases of a group at a Lab's broker, by message, in the order of the first pops."""
    names = {
        (message.topic, message.queue_id, message.queue_offset): message.keys or message.msg_id
        for message in lab.store(broker).messages()
    }
    by_name: dict[str, MessageLeases] = {}
    open_leases: dict[tuple[str, int, int, int], tuple[str, LeaseSpan]] = {}

    def of(name: str) -> MessageLeases:
        return by_name.setdefault(name, MessageLeases(name))

    for now_ms, kind, values in _events(lab, group, broker):
        if kind == "message.popped":
            for (topic_kind, queue_id), offsets in offsets_of(values["offsets"]).items():
                topic = real_topic(values["topic"], group, topic_kind)
                for offset in offsets:
                    name = names.get((topic, queue_id, offset), f"{topic} {queue_id} {offset}")
                    span = LeaseSpan(now_ms, values["pop_time"] + values["invisible_time"])
                    of(name).spans.append(span)
                    open_leases[topic, queue_id, offset, values["pop_time"]] = name, span
        elif kind == "message.revived":
            key = (values["popped_from"], values["popped_queue"], values["popped_offset"])
            of(names.get(key, str(values["msg_id"]))).revived.append(now_ms)
        else:
            key = (values["topic"], values["queue_id"], values["queue_offset"])
            name, lease = open_leases.get((*key, values["pop_time"]), (names.get(key, ""), None))
            if lease is None or lease.how != RUNS or now_ms >= lease.until_ms:
                of(name).late_acks.append(now_ms)
                continue
            lease.how = ACKED.meaning if kind == "message.acked" else LONGER
            lease.until_ms = now_ms
            if kind != "message.acked":
                longer = LeaseSpan(now_ms, values["visible_ms"])
                of(name).spans.append(longer)
                open_leases[(*key, values["new_pop_time"])] = name, longer
    for message in by_name.values():
        for span in message.spans:
            if span.how == RUNS and span.until_ms <= lab.now_ms:
                span.how = ENDED
            span.until_ms = min(span.until_ms, lab.now_ms)
    start_ms = min((span.from_ms for message in by_name.values() for span in message.spans), default=lab.now_ms)
    return LeaseBars(by_name.values(), start_ms=start_ms, end_ms=lab.now_ms, title=title)


def _events(lab: Any, group: str, broker: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """What a broker noted of the group's pops, acks, changes and revivals, in order; nothing of orderly pops."""
    orderly: set[tuple[str, int, int]] = set()
    kinds = ("message.popped", "message.acked", "message.invisible_time_changed", "message.revived")
    for record in lab.journal:
        if record.node != broker:
            continue
        for change in record.changes:
            values = change.values
            if change.kind not in kinds or values.get("group") != group:
                continue
            if values.get("revive_queue") == ORDERLY_REVIVE_QUEUE:
                for kind, queue_id in offsets_of(values["offsets"]):
                    orderly.add((real_topic(values["topic"], group, kind), queue_id, values["pop_time"]))
            elif (values["topic"], values.get("queue_id"), values.get("pop_time")) not in orderly:
                yield record.now_ms, change.kind, values
