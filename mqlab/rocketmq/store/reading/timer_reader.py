"""The files of the timer wheel, read and never changed.

    timerlog/000…        units of 52 bytes, addressed by their position      units(), unit_at(position)
    timerwheel           1,209,600 slots, nearly all of them never used      slots()
    config/timercheck    seven numbers                                       checkpoint()

A running broker writes wheel and check file once a second, the log at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.reading.file_sizes import offset_names
from mqlab.rocketmq.wire.record_layout import MAGIC_BLANK
from mqlab.rocketmq.wire.timer_units import (
    CHECK,
    CHECK_LAYOUT,
    CHECK_SIZE,
    NO_POSITION,
    TIMER_UNIT_SIZE,
    WHEEL_FILE_SIZE,
    Slot,
    TimerUnit,
    decode_timer_unit,
    slots_in,
)


class TimerReader:
    """The timer's files of one store directory; all of them may be missing."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.log_folder = f"{directory}/timerlog"
        self.wheel_path = f"{directory}/timerwheel"
        self.check_path = f"{directory}/config/timercheck"

    def units(self) -> Iterator[tuple[int, TimerUnit]]:
        """(position, unit) of every unit, oldest first, up to the first that is not whole."""
        for name in offset_names(self._files, self.log_folder):
            path = f"{self.log_folder}/{name}"
            size = self._files.size(path)
            if size < TIMER_UNIT_SIZE:
                return
            mapping = self._files.map(path, size, create=False)
            try:
                for position in range(0, size - TIMER_UNIT_SIZE + 1, TIMER_UNIT_SIZE):
                    unit = decode_timer_unit(mapping.view, position)
                    if unit.magic == MAGIC_BLANK:
                        break
                    if not unit.is_whole:
                        return
                    yield int(name) + position, unit
            finally:
                mapping.close()

    def slots(self) -> dict[int, Slot]:
        """The slots that were ever used, by their number; {} for a file of another length."""
        if not self._files.exists(self.wheel_path) or self._files.size(self.wheel_path) != WHEEL_FILE_SIZE:
            return {}
        mapping = self._files.map(self.wheel_path, WHEEL_FILE_SIZE, create=False)
        try:
            return slots_in(mapping.view)
        finally:
            mapping.close()

    def checkpoint(self) -> dict[str, int] | None:
        """The numbers of the check file by name; None without one, or when it is cut off."""
        data = self._files.read(self.check_path) if self._files.exists(self.check_path) else b""
        if len(data) < CHECK_SIZE:
            return None
        return {spec.name: number for spec, number in zip(CHECK_LAYOUT, CHECK.unpack_from(data), strict=True)}

    def units_of(self, slot: Slot, units: dict[int, TimerUnit]) -> list[int]:
        """The positions of a slot's units, newest first, as far as the list leads through ``units``."""
        positions = []
        position = slot.last
        while position != NO_POSITION and position in units:
            positions.append(position)
            before = units[position].previous
            if before >= position:
                break
            position = before
        return positions
