"""One queue as a row of entries, and under it what each group will read next.

Mirrors: a consume queue and the offsets of ConsumerOffsetManager. Lab 00 shows with it that reading removes nothing.

    orders, queue 0 of broker-a
    ┌ 0 ──────┐┌ 1 ──────┐┌ 2 ──────┐┌ 3: next ┐
    │ order-1 ││ order-2 ││ order-3 │
       ▲ audit                ▲ billing              the next offset to read, not the last one read

Left out: queues of more than sixteen entries (the newest are drawn, the table has all).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from wcwidth import ljust

from mqlab.counts import counted
from mqlab.lab.views.picture import Canvas, Look, Picture, text_pixels
from mqlab.lab.views.table import Table, as_row
from mqlab.lab.views.text_width import cut
from mqlab.lab.views.theme import INK, MUTED, PAPER, RULE, VIOLET, colour

DRAWN_ENTRIES = 16
LABEL_COLUMNS = 12
CELL_HEIGHT = 44
MARGIN = 18
GROUP_LOOK = Look(VIOLET, "triangle", "next to read")
ENTRY_FILL = colour("pale-blue")
NEXT_FILL = PAPER


class QueueView(Picture):
    """Entries of one queue in order, and the next offset of each group.

    ``entries``: rows with ``queue_offset`` and, where known, ``label`` (a key, a tag); further columns go to the table.
    ``groups``: group name -> the offset it reads next.

    >>> print(QueueView("orders, queue 0", [{"queue_offset": 0, "label": "订单-1"}], {"audit": 0, "billing": 1}))
    orders, queue 0
    0: 订单-1  ◀ audit reads this next
    1: (next)  ◀ billing reads this next
    """

    def __init__(self, name: str, entries: Iterable[object], groups: Mapping[str, int] | None = None) -> None:
        self.name = name
        self.entries = [as_row(entry) for entry in entries]
        self.groups = dict(groups or {})

    @property
    def alt(self) -> str:
        where = ", ".join(f"{group} reads {offset} next" for group, offset in self.groups.items())
        return f"{self.name}: {counted(len(self.entries), 'entries')}{'; ' + where if where else ''}"

    @property
    def next_offset(self) -> int:
        """The queue offset of the next message."""
        return int(self.entries[-1]["queue_offset"]) + 1 if self.entries else 0

    def table(self) -> Table:
        """One row per entry, with the groups past it (``passed_by``) and those that read it next (``next_of``)."""
        rows = []
        for entry in self.entries:
            entry_offset = entry["queue_offset"]
            rows.append(
                entry.as_dict()
                | {
                    "passed_by": [group for group, offset in self.groups.items() if offset > entry_offset],
                    "next_of": [group for group, offset in self.groups.items() if offset == entry_offset],
                }
            )
        return Table(rows, title=self.name, empty="an empty queue")

    def _slots(self) -> list[tuple[int, str]]:
        """The drawn cells: (queue offset, label) of the newest entries, and of the next one to come."""
        shown = [(int(entry["queue_offset"]), self._label(entry)) for entry in self.entries[-DRAWN_ENTRIES:]]
        return [*shown, (self.next_offset, "(next)")]

    @staticmethod
    def _label(entry: object) -> str:
        return cut(str(getattr(entry, "label", "") or ""), LABEL_COLUMNS)

    def text(self) -> str:
        slots = self._slots()
        head = [self.name]
        earlier = len(self.entries) - len(slots) + 1
        if earlier > 0:
            head.append(f"… {counted(earlier, 'earlier entries')}; .table() has all")
        behind = {g: o for g, o in self.groups.items() if o < slots[0][0]}
        head += [f"{group} reads {offset} next, before what is shown" for group, offset in behind.items()]
        # One line per entry; groups that read it next are named after it.
        numbers = max(len(str(offset)) for offset, _ in slots)
        lines = []
        for offset, label in slots:
            here = [group for group, position in self.groups.items() if position == offset]
            mark = f"  ◀ {' and '.join(here)} {'read' if len(here) > 1 else 'reads'} this next" if here else ""
            padded = ljust(label, LABEL_COLUMNS) if mark and any(len(text) > 8 for _, text in slots) else label
            lines.append(f"{offset:>{numbers}}: {padded}{mark}".rstrip())
        return "\n".join(head + lines)

    def svg(self) -> str:
        # 1. The canvas: one cell per entry, one row per group below.
        slots = self._slots()
        cell = max(64, *(text_pixels(label) + 16 for _, label in slots))
        groups = list(self.groups.items())
        capitals = 3 * sum(map(str.isupper, self.name))  # they are wider than others
        width = max(cell * len(slots), text_pixels(self.name) + capitals) + 2 * MARGIN
        names = max((text_pixels(group) + 130 for group, _ in groups), default=0)
        canvas = Canvas(width + names, 44 + CELL_HEIGHT + 26 * len(groups) + 18)
        canvas.text(MARGIN, MARGIN + 8, self.name, bold=True)
        # 2. The entries, and the place of the next one in another colour.
        for number, (offset, label) in enumerate(slots):
            is_next = number == len(slots) - 1
            x = MARGIN + number * cell
            canvas.box(x, 40, cell - 4, CELL_HEIGHT, NEXT_FILL if is_next else ENTRY_FILL, border=RULE, round_by=4)
            canvas.text(x + 8, 57, str(offset), MUTED if is_next else INK, bold=True, halo=False)
            canvas.text(x + 8, 75, label, MUTED if is_next else INK, size=11, halo=False)
        # 3. The groups: an offset outside the drawn entries is drawn at the nearest end.
        for number, (group, offset) in enumerate(groups):
            y = 40 + CELL_HEIGHT + 20 + 26 * number
            column = min(max(offset - slots[0][0], 0), len(slots) - 1)
            x = MARGIN + column * cell + 12
            canvas.line(x, 40 + CELL_HEIGHT + 2, x, y - 6, GROUP_LOOK.colour)
            canvas.mark(Look(GROUP_LOOK.colour, "diamond", ""), x, y)
            canvas.text(x + 12, y + 4, f"{group} reads {offset} next")
        return canvas.svg()

    def __repr__(self) -> str:
        return f"<QueueView {self.alt}>"


class HasBrokers(Protocol):
    """The part of a Lab that is used here: the files of a broker, and the broker itself."""

    def store(self, broker: str = ...) -> Any: ...

    def broker(self, name: str = ...) -> Any: ...


def show_queue(lab: HasBrokers, topic: str, queue_id: int = 0, broker: str = "broker-a") -> QueueView:
    """One queue of a running broker: entries come from its files, groups from its offset table."""
    store, offsets = lab.store(broker), lab.broker(broker).offset_table
    entries = []
    for queue_offset, unit in store.queue(topic, queue_id).units():
        message = store.message_at(unit.physical_offset)
        entries.append(
            {
                "queue_offset": queue_offset,
                "label": (message.keys or message.tags or "") if message else "",
                "physical_offset": unit.physical_offset,
                "size": unit.size,
                "tags_code": unit.tags_code,
            }
        )
    groups = {}
    for group in sorted(offsets.groups_of(topic)):
        groups[group] = (offsets.queues_of(group, topic) or {}).get(queue_id, 0)
    return QueueView(f"{topic}, queue {queue_id} of {broker}", entries, groups)
