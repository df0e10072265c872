"""The files of a store side by side: queues, log, index; arrows lead from entries to units, and along the chains.

Mirrors: the picture of CommitLog, ConsumeQueue and IndexFile in RocketMQ's design pages, drawn from real files.

    consume queues        commit log             index: entries          slots
    orders 0   0 ───────▶ 0    orders 0  ◀────── 1           ◀────────── slot 3
               1 ───────▶ 176  orders 0  ◀────── 2 ↘ 1       ◀────────── slot 0

One message can be lit up: its units, its queue entries and its index entries are marked ◆ and drawn with thick lines.
Left out: units, entries and slots that belong to none of the drawn units (the newest; the table has all).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mqlab.counts import counted
from mqlab.lab.views.picture import Canvas, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.text_width import cut, printable
from mqlab.lab.views.theme import BLUE, INK, MUTED, RED, RULE, WASH, colour

MAX_UNITS_DRAWN = 24
MAX_LABEL_COLUMNS = 22
QUEUE_WIDTH, UNIT_WIDTH, ENTRY_WIDTH = 64, 250, 76
SLOT_WIDTH = 124  # "◆ slot 4999999" in bold: a real index file has five million slots
GAP = 90
BOX = 22
PITCH = 28
MARGIN = 18
LIT = "◆ "
KEYS = ((BLUE, "queue entry to unit"), (RED, "index entry to unit, and to the one before it in its slot"))


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of the log: its place and size, the queue it belongs to, and a label (a key, a tag)."""

    physical_offset: int
    size: int
    name: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One entry of the index: its number, its slot, the unit it leads to, the previous entry of the slot (0: none)."""

    number: int
    slot: int
    physical_offset: int
    previous: int


class StoreMap(Picture):
    """Units in order of the log; ``queues``: name -> (queue offset, physical offset) in order; index entries in order.

    ``lit``: the physical offsets of the units of one message.

    >>> print(StoreMap([Unit(0, 90, "orders 0", "k")], {"orders 0": [(0, 0)]}, [IndexEntry(1, 3, 0, 0)], lit=[0]))
    commit log
    ◆ 0: orders 0, 90 bytes, k  ◀ orders 0 entry 0; index slot 3 ▶ entry 1
    """

    def __init__(
        self,
        units: Iterable[Unit],
        queues: Mapping[str, Iterable[tuple[int, int]]] | None = None,
        index: Iterable[IndexEntry] = (),
        *,
        lit: Iterable[int] = (),
        title: str = "",
    ) -> None:
        self.units = list(units)
        self.queues = {name: list(entries) for name, entries in (queues or {}).items()}
        self.index = list(index)
        self.lit = frozenset(lit)
        self.title = title

    @property
    def alt(self) -> str:
        entries = sum(map(len, self.queues.values()))
        lit = f"; the highlighted message has {counted(len(self.lit), 'units')}" if self.lit else ""
        words = (
            f"{counted(len(self.units), 'units')}, {counted(entries, 'queue entries')}, "
            f"{counted(len(self.index), 'index entries')}"
        )
        return f"{self.title or 'A store'}: {words}{lit}"

    def table(self) -> Table:
        """One row per unit: physical_offset, size, name, label, queue entries, index entries with their slots, lit."""
        rows = [
            {
                "physical_offset": unit.physical_offset,
                "size": unit.size,
                "unit": unit.name,
                "label": unit.label,
                "queue_entries": [f"{name} {offset}" for name, offset in self._queue_entries(unit)],
                "index_entries": [f"{entry.number} (slot {entry.slot})" for entry in self._index_entries(unit)],
                "lit": unit.physical_offset in self.lit,
            }
            for unit in self.units
        ]
        columns = ["physical_offset", "size", "unit", "label", "queue_entries", "index_entries", "lit"]
        return Table(rows, columns=columns, title=self.title, empty="an empty log")

    def _queue_entries(self, unit: Unit) -> list[tuple[str, int]]:
        return [
            (name, offset)
            for name, entries in self.queues.items()
            for offset, physical_offset in entries
            if physical_offset == unit.physical_offset
        ]

    def _index_entries(self, unit: Unit) -> list[IndexEntry]:
        return [entry for entry in self.index if entry.physical_offset == unit.physical_offset]

    @property
    def _drawn(self) -> list[Unit]:
        return self.units[-MAX_UNITS_DRAWN:]

    def _rest(self) -> str:
        more = len(self.units) - len(self._drawn)
        return f"… {counted(more, 'earlier units')}; .table() has all {len(self.units):,}" if more else ""

    def text(self) -> str:
        lines = [self.title] if self.title else []
        lines += ["commit log" if self.units else "an empty log", *([self._rest()] if self._rest() else [])]
        for unit in self._drawn:
            mark = LIT if unit.physical_offset in self.lit else "  " if self.lit else ""
            words = [f"{unit.physical_offset}: {unit.name}", f"{unit.size} bytes", printable(unit.label)]
            pointers = [f"{name} entry {offset}" for name, offset in self._queue_entries(unit)]
            for entry in self._index_entries(unit):
                chain = f" ▶ entry {entry.previous}" if entry.previous else ""
                head = f"index slot {entry.slot} ▶ " if self._is_newest(entry) else "index "
                pointers.append(f"{head}entry {entry.number}{chain}")
            lines.append(f"{mark}{', '.join(filter(None, words))}  ◀ {'; '.join(pointers) or 'nothing points here'}")
        return "\n".join(lines)

    def _is_newest(self, entry: IndexEntry) -> bool:
        return entry.number == max(other.number for other in self.index if other.slot == entry.slot)

    def svg(self) -> str:
        # 1. What is drawn: what leads to a drawn unit, in the order of the files.
        units = self._drawn
        places = {unit.physical_offset for unit in units}
        entries = [
            (name, offset, physical_offset)
            for name, every in self.queues.items()
            for offset, physical_offset in every
            if physical_offset in places
        ]
        index = [entry for entry in self.index if entry.physical_offset in places]
        slots = sorted({entry.slot for entry in index})
        rows = max(len(units), len(entries) + len({name for name, _, _ in entries}), len(index), len(slots), 1)
        spots = Spots.measured([name for name, _, _ in entries], has_index=bool(index), head=bool(self.title))
        canvas = Canvas(spots.width, spots.top + PITCH * rows + 50)
        # 2. Heads of the columns.
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        heads = [(spots.queues, "consume queues"), (spots.log, "commit log")]
        heads += [(spots.index, "index entries"), (spots.slots, "slots")] if index else []
        for x, words in heads:
            canvas.text(x, spots.top - 12, words, MUTED)
        # 3. The boxes; then the lines between them, those of the lit message last, so that they lie on top.
        units_at = self._draw_units(canvas, spots, units)
        links = self._draw_queues(canvas, spots, entries, units_at)
        links += self._draw_index(canvas, spots, index, slots, units_at)
        for link in sorted(links, key=lambda link: link.is_lit):
            link.draw(canvas)
        if not self.units:
            canvas.text(spots.log, spots.top + 16, "an empty log", MUTED)
        self._draw_foot(canvas, bool(index))
        return canvas.svg()

    def _draw_units(self, canvas: Canvas, spots: Spots, units: Sequence[Unit]) -> dict[int, int]:
        """The units from top to bottom; the middle of each by physical offset."""
        middles = {}
        for row, unit in enumerate(units):
            y = spots.top + PITCH * row
            lit = unit.physical_offset in self.lit
            words = f"{unit.physical_offset}  {unit.name}  {printable(unit.label)}".rstrip()
            self._box(canvas, spots.log, y, UNIT_WIDTH, cut(words, 33), lit, f"{words}, {unit.size} bytes")
            middles[unit.physical_offset] = y + BOX // 2
        return middles

    def _draw_queues(
        self, canvas: Canvas, spots: Spots, entries: Sequence[tuple[str, int, int]], units_at: Mapping[int, int]
    ) -> list[Arrow]:
        links, y, before = [], spots.top, ""
        for name, offset, physical_offset in entries:
            if name != before:
                canvas.text(spots.queues, y + 16, cut(printable(name), MAX_LABEL_COLUMNS), INK, bold=True)
                y += PITCH
                before = name
            lit = physical_offset in self.lit
            x = spots.log - GAP - QUEUE_WIDTH
            self._box(
                canvas, x, y, QUEUE_WIDTH, str(offset), lit, f"entry {offset} of {name}: unit at {physical_offset}"
            )
            links.append(Arrow(x + QUEUE_WIDTH, y + BOX // 2, spots.log - 2, units_at[physical_offset], BLUE, lit))
            y += PITCH
        return links

    def _draw_index(
        self,
        canvas: Canvas,
        spots: Spots,
        index: Sequence[IndexEntry],
        slots: Sequence[int],
        units_at: Mapping[int, int],
    ) -> list[Arrow]:
        links: list[Arrow] = []
        middles = {entry.number: spots.top + PITCH * row + BOX // 2 for row, entry in enumerate(index)}
        for entry in index:
            lit = entry.physical_offset in self.lit
            y = middles[entry.number]
            title = f"entry {entry.number} in slot {entry.slot}: unit at {entry.physical_offset}"
            title += f", the one before it is {entry.previous}" if entry.previous else ", the oldest of its slot"
            self._box(canvas, spots.index, y - BOX // 2, ENTRY_WIDTH, f"{entry.number}", lit, title)
            links.append(Arrow(spots.index, y, spots.log + UNIT_WIDTH + 2, units_at[entry.physical_offset], RED, lit))
            # The chain: from an entry to the older one of the same slot, at the right of the boxes.
            if entry.previous in middles:
                right = spots.index + ENTRY_WIDTH
                links.append(Arrow(right, y + 4, right, middles[entry.previous] - 4, RED, lit, is_bow=True))
            elif entry.previous:
                canvas.text(spots.index + ENTRY_WIDTH + 8, y + 4, f"to entry {entry.previous}", MUTED, size=11)
        for row, slot in enumerate(slots):
            newest = max((entry for entry in index if entry.slot == slot), key=lambda entry: entry.number)
            y = spots.top + PITCH * row
            lit = any(entry.physical_offset in self.lit for entry in index if entry.slot == slot)
            self._box(canvas, spots.slots, y, SLOT_WIDTH, f"slot {slot}", lit, f"slot {slot}: entry {newest.number}")
            right = spots.index + ENTRY_WIDTH + 2
            links.append(Arrow(spots.slots, y + BOX // 2, right, middles[newest.number], MUTED, lit))
        return links

    @staticmethod
    def _box(canvas: Canvas, x: int, y: int, width: int, words: str, lit: bool, title: str) -> None:
        canvas.box(
            x,
            y,
            width,
            BOX,
            colour("pale-blue") if lit else WASH,
            border=INK if lit else RULE,
            round_by=3,
            title=title,
            thick=lit,
        )
        canvas.text(x + 8, y + 15, (LIT if lit else "") + words, INK, bold=lit, halo=False)

    def _draw_foot(self, canvas: Canvas, has_index: bool) -> None:
        x, y = MARGIN, canvas.height - 12
        for tint, words in KEYS if has_index else KEYS[:1]:
            canvas.arrow(x, x + 20, y - 4, tint)
            canvas.text(x + 26, y, words, MUTED, size=11)
            x += 50 + 6 * len(words)
        if self.lit:
            canvas.text(x, y, f"{LIT}the highlighted message", INK, size=11)
        if self._rest():
            canvas.text(MARGIN, canvas.height - 30, self._rest(), MUTED)

    def __repr__(self) -> str:
        return f"<StoreMap {self.alt}>"


@dataclass(frozen=True, slots=True)
class Spots:
    """Where the columns begin, and where their rows begin."""

    queues: int
    log: int
    index: int
    slots: int
    width: int
    top: int

    @classmethod
    def measured(cls, queues: Iterable[str], *, has_index: bool, head: bool) -> Spots:
        """Room for the names of the queues at the left; index and slots only where there are any."""
        names = max((text_pixels(cut(printable(name), MAX_LABEL_COLUMNS)) for name in queues), default=0)
        log = MARGIN + max(names, QUEUE_WIDTH, 110) + GAP
        index = log + UNIT_WIDTH + GAP
        slots = index + ENTRY_WIDTH + GAP
        width = (slots + SLOT_WIDTH if has_index else log + UNIT_WIDTH) + MARGIN
        return cls(MARGIN, log, index, slots, max(width, 520), MARGIN + (24 if head else 0) + 24)


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow between two boxes; a bow for a link within a column."""

    x1: int
    y1: int
    x2: int
    y2: int
    colour: str
    is_lit: bool
    is_bow: bool = False

    def draw(self, canvas: Canvas) -> None:
        """Draw it, thick when lit."""
        if self.is_bow:
            out = min(20 + abs(self.y2 - self.y1) // 6, GAP - 10)
            canvas.bow(self.x1, self.y1, self.y2, out, self.colour, thick=self.is_lit)
        else:
            canvas.arrow(self.x1, self.x2, self.y1, self.colour, to_y=self.y2, thick=self.is_lit)
