"""The slots of a timer wheel and their lists in the timer log.

Mirrors: TimerWheel and TimerLog, put together by hand. Lab 08 draws it.

    slot 9   00:00:09   ■ 0                                  ◀── last 0
    slot 10  00:00:10         ■ 52 ◀── ■ 104 ◀──── ■ 208     ◀── last 208
    slot 20  00:00:20                        ■ 156           ◀── last 156

A column is a position in the log, an arrow is a unit's ``previous``. Left out: slots whose units are gone from the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from mqlab.counts import counted
from mqlab.lab.views.picture import Canvas, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.theme import AMBER, BLUE, MUTED, RED, RULE

MARGIN, ROW, STEP, BOX = 18, 26, 44, 16
WAITS, ROLLS, RECALLS, DONE = "waits", "is stored again on its way", "recalls another message", "was delivered"
COLOURS = {WAITS: BLUE, ROLLS: AMBER, RECALLS: RED, DONE: RULE}


@dataclass(frozen=True, slots=True)
class SlotUnit:
    """One unit of the timer log: its position, the name of its message, and what becomes of it."""

    position: int
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class SlotRow:
    """One slot: its number, the moment that it stands for, ``num`` as stored, and its units, oldest first."""

    number: int
    moment_ms: int
    num: int
    units: tuple[SlotUnit, ...]


class WheelSlots(Picture):
    """Slots with their lists, in the order of their moments.

    >>> print(WheelSlots([SlotRow(10, 10_000, 1, (SlotUnit(52, "order-1", WAITS),))]))
    slot 10  00:00:10  num 1  52 order-1 (waits)
    """

    def __init__(self, slots: Iterable[SlotRow], *, title: str = "") -> None:
        self.slots = sorted(slots, key=lambda slot: slot.moment_ms)
        self.title = title

    @property
    def alt(self) -> str:
        units = sum(len(slot.units) for slot in self.slots)
        return (
            f"{self.title or 'Timer wheel'}: "
            f"{counted(len(self.slots), 'slots')} with {counted(units, 'units')} of the timer log"
        )

    def table(self) -> Table:
        """One row per unit: slot, moment, position in the log, message, and what becomes of it."""
        rows = [
            {
                "slot": slot.number,
                "moment": clock_text(slot.moment_ms),
                "position": unit.position,
                "message": unit.name,
                "kind": unit.kind,
            }
            for slot in self.slots
            for unit in slot.units
        ]
        columns = ["slot", "moment", "position", "message", "kind"]
        return Table(rows, columns=columns, title=self.title, empty="the wheel was never used")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        for slot in self.slots:
            units = ", ".join(f"{unit.position} {unit.name} ({unit.kind})" for unit in slot.units)
            lines.append(f"slot {slot.number}  {clock_text(slot.moment_ms)}  num {slot.num}  {units}")
        return "\n".join(lines) or "the wheel was never used"

    def svg(self) -> str:
        names = [f"slot {slot.number}  {clock_text(slot.moment_ms)}" for slot in self.slots]
        positions = sorted(unit.position for slot in self.slots for unit in slot.units)
        columns = {position: number for number, position in enumerate(positions)}
        left = MARGIN + max(map(text_pixels, names), default=0) + 20
        right = left + STEP * max(len(columns), 1)
        top = MARGIN + (24 if self.title else 0) + 16
        bottom = top + ROW * max(len(names), 1)
        canvas = Canvas(max(right + 90, 620), bottom + 46)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        # 1. The timer log: a column per unit.
        for position, column in columns.items():
            canvas.text(left + STEP * column + BOX // 2, top - 4, str(position), MUTED, anchor="middle", size=11)
        # 2. Each slot, and its list from the newest unit to the oldest.
        for number, (slot, name) in enumerate(zip(self.slots, names, strict=True)):
            y = top + ROW * number + ROW // 2
            canvas.text(MARGIN, y + 4, name)
            places = [left + STEP * columns[unit.position] for unit in slot.units]
            for x, unit in zip(places, slot.units, strict=True):
                canvas.box(x, y - BOX // 2, BOX, BOX, COLOURS[unit.kind], title=f"{unit.name}: {unit.kind}")
            for older, newer in pairwise(places):
                canvas.arrow(newer, older + BOX + 1, y)
            if places:
                canvas.arrow(right, places[-1] + BOX + 1, y, BLUE)
                canvas.text(right + 6, y + 4, f"last {slot.units[-1].position}", MUTED, size=11)
        # 3. What is what.
        x = MARGIN
        for kind, colour in COLOURS.items():
            canvas.box(x, bottom + 18, 12, 12, colour)
            canvas.text(x + 18, bottom + 28, kind, MUTED)
            x += text_pixels(kind) + 40
        return canvas.svg()


def clock_text(moment_ms: int) -> str:
    """The time of day of a moment, with its milliseconds where it has some.

    >>> clock_text(10_000), clock_text(10_250)
    ('00:00:10', '00:00:10.250')
    """
    time = datetime.fromtimestamp(moment_ms // 1000, UTC).strftime("%H:%M:%S")
    return f"{time}.{moment_ms % 1000:03}" if moment_ms % 1000 else time


def show_wheel(lab: Any, broker: str = "broker-a", *, title: str = "") -> WheelSlots:
    """The wheel of a Lab's broker, from its files. A running broker writes the wheel's file once a second."""
    store = lab.store(broker)
    units = dict(store.timer_units())
    keys = {message.physical_offset: message.keys or message.tags for message in store.messages()}
    checkpoint = store.timer_checkpoint()
    read_ms = checkpoint["read_ms"] if checkpoint is not None else 0
    rows = []
    for number, slot in store.timer_slots().items():
        positions = store.timer.units_of(slot, units)[::-1]
        if positions:
            moment_ms = units[positions[-1]].slot_ms
            shown = tuple(
                SlotUnit(
                    position,
                    str(keys.get(units[position].physical_offset, "")),
                    unit_kind(units[position], is_over=moment_ms < read_ms),
                )
                for position in positions
            )
            rows.append(SlotRow(number, moment_ms, slot.num, shown))
    return WheelSlots(rows, title=title)


def unit_kind(unit: Any, *, is_over: bool) -> str:
    """What becomes of a unit of the timer log; ``is_over``: its slot was read."""
    if unit.deletes:
        return RECALLS
    if unit.rolls:
        return ROLLS
    return DONE if is_over else WAITS
