"""What became of each message of a topic for one group: one strip per queue, one box per message.

Lab 06 shows with it who got what when the members of a group want different tags.

    orders 0, read by billing     0 paid ✕ broker   1 shipped ✕ client   2 paid ✓ billing
      ✓ member   a listener got it                   ✕ broker   the broker's filter let it lie
      ✕ client   sent, and dropped by the member     … waits    no pull has come to it yet

Left out: retries (they are in another topic); messages that were delivered more than once show their last delivery.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from wcwidth import ljust

from mqlab.lab.views.picture import Canvas, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.text_width import width
from mqlab.lab.views.theme import AMBER, BLUE, INK, MUTED, PAPER, RULE, WASH, colour

MAX_DRAWN = 12
BOX_HEIGHT, ROW_HEIGHT, MARGIN = 40, 70, 18
BROKER, CLIENT, WAITS = "✕ broker", "✕ client", "… waits"
MISSED = {"FILTERED_BY_BROKER": BROKER, "FILTERED_BY_CLIENT": CLIENT, "NOT_PULLED": WAITS}
FILLS = {BROKER: (WASH, RULE), CLIENT: (colour("pale-amber"), AMBER), WAITS: (PAPER, RULE)}
DELIVERED = (colour("pale-blue"), BLUE)
LEGEND = (
    (DELIVERED, "✓ a listener got it"),
    (FILLS[BROKER], "✕ broker: filtered by the broker"),
    (FILLS[CLIENT], "✕ client: sent, then dropped by the member"),
    (FILLS[WAITS], "… not pulled yet"),
)


@dataclass(frozen=True, slots=True)
class Fate:
    """One message of a queue: its tag, and who got it or who dropped it."""

    queue_id: int
    queue_offset: int
    tag: str
    status: str
    client: str

    @property
    def words(self) -> str:
        """What became of it, in a word or two."""
        return MISSED.get(self.status) or f"✓ {self.client}"


class Fates(Picture):
    """The messages of a topic as boxes, queue by queue. ``owners``: queue id -> the member that reads it now.

    >>> print(Fates([Fate(0, 0, "paid", "CONSUME_SUCCESS", "billing")], {0: "billing"}, title="orders"))
    orders
    queue 0, read by billing
      0 paid   ✓ billing
    """

    def __init__(self, fates: Iterable[Fate], owners: Mapping[int, str], *, title: str = "") -> None:
        self.fates = sorted(fates, key=lambda fate: (fate.queue_id, fate.queue_offset))
        self.owners = dict(owners)
        self.title = title

    @property
    def alt(self) -> str:
        counts: dict[str, int] = {}
        for fate in self.fates:
            counts[fate.words] = counts.get(fate.words, 0) + 1
        said = ", ".join(f"{words} {count}" for words, count in counts.items())
        return f"{self.title or 'Messages'}: {said or 'no messages'}"

    def of_queue(self, queue_id: int) -> list[Fate]:
        """The messages of one queue."""
        return [fate for fate in self.fates if fate.queue_id == queue_id]

    def _queues(self) -> list[int]:
        return sorted({fate.queue_id for fate in self.fates} | self.owners.keys())

    def _name(self, queue_id: int) -> str:
        owner = self.owners.get(queue_id)
        return f"queue {queue_id}, read by {owner}" if owner else f"queue {queue_id}, read by nobody"

    def table(self) -> Table:
        """One row per message: queue_id, queue_offset, tag, status, client."""
        columns = ["queue_id", "queue_offset", "tag", "status", "client"]
        return Table(self.fates, columns=columns, title=self.title, empty="no messages")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        tags = max((width(fate.tag) for fate in self.fates), default=0)
        for queue_id in self._queues():
            fates = self.of_queue(queue_id)
            lines.append(self._name(queue_id))
            lines += [f"  {fate.queue_offset} {ljust(fate.tag, tags)}   {fate.words}" for fate in fates[:MAX_DRAWN]]
            lines += [f"  and {len(fates) - MAX_DRAWN} more"] if len(fates) > MAX_DRAWN else []
        return "\n".join(lines if self._queues() else [*lines, "no messages"])

    def svg(self) -> str:
        # 1. One width for all boxes, so that queues can be compared from top to bottom.
        texts = [text for fate in self.fates for text in (f"{fate.queue_offset} {fate.tag}", fate.words)]
        box = max((text_pixels(text) for text in texts), default=60) + 26
        most = max((min(len(self.of_queue(queue)), MAX_DRAWN) for queue in self._queues()), default=1)
        legend = sum(text_pixels(words) * 6 // 7 + 34 for _, words in LEGEND)
        head = 26 if self.title else 0
        canvas = Canvas(
            max(box * most + 90, legend, text_pixels(self.title)) + 2 * MARGIN,
            MARGIN + head + ROW_HEIGHT * len(self._queues()) + 30,
        )
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        # 2. A strip per queue.
        for number, queue_id in enumerate(self._queues()):
            y = MARGIN + head + ROW_HEIGHT * number
            canvas.text(MARGIN, y + 8, self._name(queue_id), MUTED)
            fates = self.of_queue(queue_id)
            for index, fate in enumerate(fates[:MAX_DRAWN]):
                self._box(canvas, MARGIN + index * box, y + 16, box - 6, fate)
            if len(fates) > MAX_DRAWN:
                canvas.text(MARGIN + MAX_DRAWN * box + 4, y + 40, f"+ {len(fates) - MAX_DRAWN} more", MUTED)
        # 3. What the boxes mean.
        x = MARGIN
        for (fill, border), words in LEGEND:
            canvas.box(x, canvas.height - 26, 12, 12, fill, border=border)
            canvas.text(x + 18, canvas.height - 16, words, MUTED, size=11)
            x += text_pixels(words) * 6 // 7 + 34
        return canvas.svg()

    @staticmethod
    def _box(canvas: Canvas, x: int, y: int, wide: int, fate: Fate) -> None:
        fill, border = FILLS.get(fate.words, DELIVERED)
        canvas.box(x, y, wide, BOX_HEIGHT, fill, border=border, round_by=4)
        canvas.text(x + 8, y + 16, f"{fate.queue_offset} {fate.tag}", INK, bold=True, halo=False)
        canvas.text(x + 8, y + 33, fate.words, INK, size=11, halo=False)

    def __repr__(self) -> str:
        return f"<Fates of {len(self.fates)} messages>"


class HasDeliveries(Protocol):
    """The part of a Lab that is used here."""

    def store(self, broker: str = ...) -> Any: ...

    def deliveries(self, group: str) -> Any: ...

    def progress(self, group: str) -> Any: ...


def show_fates(lab: HasDeliveries, group: str, topic: str = "orders", broker: str = "broker-a") -> Fates:
    """What became of each message of a topic for a group: tags from the broker's files, the rest from deliveries."""
    last = {
        (row.message_queue.queue_id, row.queue_offset): row
        for row in lab.deliveries(group)
        if row.message_queue.topic == topic and row.message_queue.broker_name == broker
    }
    fates = []
    for message in lab.store(broker).messages(topic):
        row = last.get((message.queue_id, message.queue_offset))
        status, client = (row.status, row.client or "") if row is not None else ("NOT_PULLED", "")
        fates.append(Fate(message.queue_id, message.queue_offset, message.tags or "no tag", status, client))
    owners = {
        row.queue_id: row.client
        for row in lab.progress(group)
        if row.topic == topic and row.broker == broker and row.client
    }
    return Fates(fates, owners, title=f"{topic}, as group {group} got it")
