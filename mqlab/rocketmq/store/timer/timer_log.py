"""The timer log: a unit of 52 bytes per entry of the wheel; the units of one slot are a linked list.

Mirrors: org.apache.rocketmq.store.timer.TimerLog; files ``timerlog/00000000000000000000`` …

    position   0         52        104       156
               ├─ unit ──┼─ unit ──┼─ unit ──┤          slot: first 52, last 156
                  -1        ◀── 52 ── ◀─ 104             previous, in each unit
"""

from __future__ import annotations

from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.mapped_file_queue import MappedFileQueue
from mqlab.rocketmq.store.reading.file_sizes import segment_size
from mqlab.rocketmq.wire.timer_units import (
    TIMER_BLANK_SIZE,
    TIMER_UNIT,
    TIMER_UNIT_SIZE,
    TimerUnit,
    decode_timer_unit,
    timer_blank,
)


class TimerLog:
    """The units of one store, addressed by their position in the whole log."""

    def __init__(self, files: Files, directory: str, file_size: int) -> None:
        self.queue = MappedFileQueue(files, directory, file_size)

    def load(self) -> None:
        """Find the files; their size wins over the setting. StoreError for a file that does not belong there."""
        queue = self.queue
        size = segment_size(queue.files, [queue.directory])
        if size is not None:
            queue.file_size = size
        queue.load()

    def append(self, unit: TimerUnit) -> int:
        """Write a unit at the end; returns its position. Raises OSError when no file can be made."""
        mapped = self.queue.file_to_write()
        left = mapped.size - mapped.wrote_position
        if left < TIMER_UNIT_SIZE + TIMER_BLANK_SIZE:
            mapped.append(timer_blank(left))
            mapped.wrote_position = mapped.size
            mapped = self.queue.file_to_write()
        position = mapped.start_offset + mapped.wrote_position
        mapped.append(TIMER_UNIT.pack(*unit))
        return position

    def unit_at(self, position: int) -> TimerUnit | None:
        """The unit at a position; None when nothing is written there."""
        mapped = self.queue.find(position)
        data = mapped.read(position - mapped.start_offset, TIMER_UNIT_SIZE) if mapped is not None else None
        return decode_timer_unit(data) if data is not None else None

    def last_unit(self) -> TimerUnit | None:
        """The newest unit of the log; None without one in the last file, as RocketMQ looks for it."""
        return self.unit_at(self.queue.max_offset - TIMER_UNIT_SIZE)

    def clean_expired(self, min_physical_offset: int) -> int:
        """Delete the oldest files whose messages are gone from the commit log, never the last. Returns how many."""
        deleted = 0
        while len(self.queue.mapped_files) > 1:
            first = self.queue.mapped_files[0]
            units = (first.size - TIMER_BLANK_SIZE) // TIMER_UNIT_SIZE
            last = self.unit_at(first.start_offset + (units - 1) * TIMER_UNIT_SIZE)
            if last is None or last.physical_offset >= min_physical_offset:
                break
            self.queue.delete_first()
            deleted += 1
        return deleted

    def __repr__(self) -> str:
        return f"<TimerLog {self.queue!r}>"
