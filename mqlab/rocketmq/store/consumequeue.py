"""The consume queue: for one queue of one topic, where each of its messages is in the commit log.

Mirrors: org.apache.rocketmq.store.ConsumeQueue. Lab 01 dispatches into it, loses and rebuilds it.

    queue offset      0                 1                 2
    byte              0                 20                40
                      ├ physical offset ┼ size ┼ tagsCode ┤    20 bytes, fixed: a queue offset is a position / 20

    pre-blank units (0, 2^31-1, 0) replace messages that were deleted before this queue was built again.
    min_queue_offset is not stored: it is the first unit whose message the commit log still has.

Left out: the extension file (bitmaps, long tag codes), batch consume queues.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.mapped_file import MappedFile
from mqlab.rocketmq.store.mapped_file_queue import MappedFileQueue
from mqlab.rocketmq.store.recovery.queue_scan import plausible_units
from mqlab.rocketmq.wire.units import CQ_UNIT, CQ_UNIT_SIZE, PREBLANK, PREBLANK_SIZE

_PACK = CQ_UNIT.pack
MAX_QUEUE_OFFSET = (1 << 63) // CQ_UNIT_SIZE - 1
RECOVERED_FILES = 3  # how many of a queue's files recovery looks at, from the newest back

Unit = tuple[int, int, int]  # physical offset, size, tagsCode
Judge = Callable[["ConsumeQueue", Unit, int], bool]


class ConsumeQueue:
    """The units of one queue. Queue offsets count messages; ``max_physical_offset`` is where the last message ends.

    Mirrors ConsumeQueue.
    """

    __slots__ = ("_last", "files", "judge", "max_physical_offset", "min_queue_offset", "queue_id", "topic")

    def __init__(self, files: Files, directory: str, topic: str, queue_id: int, file_size: int) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.files = MappedFileQueue(files, f"{directory}/{topic}/{queue_id}", file_size)
        self.files.on_full = _flush_full
        self.max_physical_offset = -1
        self.min_queue_offset = 0
        self.judge: Judge | None = None  # set during recovery: decides about a unit that is not the next one
        self._last: MappedFile | None = None

    @property
    def max_queue_offset(self) -> int:
        """The queue offset the next message gets. Mirrors getMaxOffsetInQueue."""
        mapped_files = self.files.mapped_files
        if not mapped_files:
            return 0
        last = mapped_files[-1]
        return (last.start_offset + last.wrote_position) // CQ_UNIT_SIZE

    def correct_min_offset(self, min_physical_offset: int, *, pre_blank_counts: bool = False) -> None:
        """Move ``min_queue_offset`` up to the first unit whose message the commit log still has; correctMinOffset.

        When even the last message is deleted, the queue is empty and keeps its numbering: min == max.
        """
        first, end = self._first_queue_offset(), self.max_queue_offset
        if first >= end:  # no unit is left, but the numbering continues
            self.min_queue_offset = end
            return
        last = self.unit(end - 1)
        if last is not None and last[0] < min_physical_offset:
            self.min_queue_offset = end
            return

        # Physical offsets increase along a queue: the first message that is left is found by bisection.
        start = max(self.min_queue_offset, first)

        def is_there(queue_offset: int) -> bool:
            unit = self.unit(queue_offset)
            if unit is None:
                return True
            return unit[0] >= min_physical_offset and (pre_blank_counts or unit[1] != PREBLANK_SIZE)

        index = bisect_left(range(start, end), True, key=is_there)
        self.min_queue_offset = start + index

    def _first_queue_offset(self) -> int:
        return max(0, self.files.min_offset) // CQ_UNIT_SIZE

    def put(self, physical_offset: int, size: int, tags_code: int, queue_offset: int) -> bool:
        """Add the unit of a message; False when it was there already. Units come in physical order.

        Mirrors putMessagePositionInfo.
        """
        end = physical_offset + size
        if end <= self.max_physical_offset:
            return False
        last = self._last
        if last is None or last.wrote_position >= last.size:
            return self._put_slowly(physical_offset, size, tags_code, queue_offset)
        # The usual case: the unit is the next one, and the file has room. One write and no call of another file.
        position = last.wrote_position
        if last.start_offset + position != queue_offset * CQ_UNIT_SIZE:
            return self._put_slowly(physical_offset, size, tags_code, queue_offset)
        last.write_at(position, _PACK(physical_offset, size, tags_code))
        last.wrote_position = position + CQ_UNIT_SIZE
        self.max_physical_offset = end
        return True

    def _put_slowly(self, physical_offset: int, size: int, tags_code: int, queue_offset: int) -> bool:
        """Put a unit that needs a new file, or whose queue offset is not the next one."""
        next_offset = self.max_queue_offset
        if queue_offset != next_offset:
            if self.judge is not None:
                return self.judge(self, (physical_offset, size, tags_code), queue_offset)
            if 0 < queue_offset < next_offset:
                return False  # RocketMQ considers it a repetition
        self.append((physical_offset, size, tags_code), queue_offset)
        return True

    def append(self, unit: Unit, queue_offset: int) -> None:
        """Add a unit at the end; in a queue without units, at ``queue_offset``."""
        last = self._file_for(queue_offset if 0 <= queue_offset <= MAX_QUEUE_OFFSET else 0)
        last.append(_PACK(*unit))
        self.max_physical_offset = unit[0] + unit[1]

    def append_all(self, units: bytes, max_physical_offset: int) -> None:
        """Add packed units that follow the last one, over as many files as they need."""
        start = 0
        while start < len(units):
            last = self._file_for(self.max_queue_offset)
            piece = units[start : start + last.size - last.wrote_position]
            last.append(piece)
            start += len(piece)
        self.max_physical_offset = max_physical_offset

    def _file_for(self, queue_offset: int) -> MappedFile:
        files = self.files
        last = self._last = files.file_to_write(queue_offset * CQ_UNIT_SIZE)
        if queue_offset and not last.wrote_position and last is files.mapped_files[0]:
            self.min_queue_offset = queue_offset
            blanks = queue_offset - last.start_offset // CQ_UNIT_SIZE
            if 0 < blanks < files.file_size // CQ_UNIT_SIZE:
                last.append(PREBLANK * blanks)
        return last

    def flush(self, least_pages: int = 0) -> bool:
        """Sync what is written; True when all of it is."""
        return self.files.flush(least_pages)

    def unit(self, queue_offset: int) -> Unit | None:
        """(physical_offset, size, tagsCode) of one message; None when the queue has no unit there."""
        mapped = self.files.find(queue_offset * CQ_UNIT_SIZE)
        if mapped is None:
            return None
        position = queue_offset * CQ_UNIT_SIZE - mapped.start_offset
        if position + CQ_UNIT_SIZE > mapped.wrote_position:
            return None
        unit: Unit = CQ_UNIT.unpack_from(mapped.view, position)
        return unit

    def units(self, queue_offset: int, max_units: int) -> Iterator[Unit] | None:
        """Units from a queue offset to the end of its file, at most so many; None when there is none."""
        mapped = self.files.find(queue_offset * CQ_UNIT_SIZE)
        if mapped is None:
            return None
        position = queue_offset * CQ_UNIT_SIZE - mapped.start_offset
        end = min(mapped.wrote_position, position + max_units * CQ_UNIT_SIZE)
        if position >= end:
            return None
        return CQ_UNIT.iter_unpack(mapped.view[position:end])

    def next_file_start(self, queue_offset: int) -> int:
        """The first queue offset of the following file. Mirrors rollNextFile."""
        units_per_file = self.files.file_size // CQ_UNIT_SIZE
        return queue_offset + units_per_file - queue_offset % units_per_file

    def search_time(self, timestamp: int, boundary: str, store_timestamp_at: Callable[[int], int]) -> int:
        """Lower: the first message stored at ``timestamp`` (ms) or later; upper: the last one not later; in min..max.

        Store times never decrease along a queue. Deleted messages count as old. Mirrors getOffsetInQueueByTime.
        """
        low, end = self.min_queue_offset, self.max_queue_offset
        offsets = range(low, end)

        def stored(queue_offset: int) -> int:
            unit = self.unit(queue_offset)
            return store_timestamp_at(unit[0]) if unit is not None else -1

        if boundary == "lower":
            return low + bisect_left(offsets, True, key=lambda offset: stored(offset) >= timestamp)
        later = low + bisect_left(offsets, True, key=lambda offset: stored(offset) > timestamp)
        return max(low, later - 1)

    def load(self) -> None:
        self.files.load()

    def recover(self, *, pre_blank_counts: bool = False) -> None:
        """Find the end of the units, from the third-last file on: the first that is not (offset >= 0, size > 0).

        ``pre_blank_counts``: a queue of nothing but pre-blank units seems to end at 2 GiB, as in RocketMQ.
        """
        mapped_files = self.files.mapped_files
        self._last = None
        if not mapped_files:
            return
        # Older files are full and were flushed long ago, so only the newest ones are looked at.
        end = mapped_files[-RECOVERED_FILES:][0].start_offset
        for mapped in mapped_files[-RECOVERED_FILES:]:
            plausible, real = plausible_units(mapped.view)
            last = plausible if pre_blank_counts else real
            if last:
                physical_offset, size, _ = CQ_UNIT.unpack_from(mapped.view, (last - 1) * CQ_UNIT_SIZE)
                self.max_physical_offset = physical_offset + size
            # A file that is not full is the last one with units, whatever follows it.
            end = mapped.start_offset + plausible * CQ_UNIT_SIZE
            if plausible * CQ_UNIT_SIZE < mapped.size:
                break
        self._cut(end)

    def truncate(
        self, max_physical_offset: int, *, keep_first_unit: bool = False, pre_blank_counts: bool = False
    ) -> None:
        """Cut at the first unit of a message at or after the end of the commit log. Mirrors truncateDirtyLogicFiles.

        ``keep_first_unit``: the first unit of a file is taken unseen, as in RocketMQ.
        """
        self.max_physical_offset = -1
        while self.files.mapped_files:
            mapped = self.files.mapped_files[-1]
            # From the newest file back: the first one that keeps a unit has the new end.
            plausible, real = plausible_units(mapped.view, max_physical_offset)
            kept = plausible if pre_blank_counts else real
            if keep_first_unit and not plausible:
                first_offset, first_size, _ = CQ_UNIT.unpack_from(mapped.view, 0)
                if first_offset < max_physical_offset:
                    kept, self.max_physical_offset = 1, first_offset + first_size
            elif kept:
                physical_offset, size, _ = CQ_UNIT.unpack_from(mapped.view, (kept - 1) * CQ_UNIT_SIZE)
                self.max_physical_offset = physical_offset + size
            # The only file left stays even without units: its name carries the numbering.
            if kept or (mapped.start_offset and len(self.files.mapped_files) == 1):
                self._cut(mapped.start_offset + kept * CQ_UNIT_SIZE)
                return
            self.files.delete_last()
            self._last = None

    def cut_last(self, units: int) -> None:
        """Remove this many units from the end."""
        self._cut(self.files.max_offset - units * CQ_UNIT_SIZE)
        last = self.unit(self.max_queue_offset - 1)
        self.max_physical_offset = last[0] + last[1] if last is not None and last[1] != PREBLANK_SIZE else -1

    def _cut(self, end: int) -> None:
        self._last = None
        self.files.truncate(end, zero_tail=True)
        self.files.flushed_where = self.files.max_offset

    def delete_before(self, min_physical_offset: int) -> int:
        """Delete files whose last unit points before the commit log's beginning, never the last. Returns how many."""
        deleted = 0
        while len(self.files.mapped_files) > 1:
            last = CQ_UNIT.unpack_from(self.files.mapped_files[0].view, self.files.file_size - CQ_UNIT_SIZE)
            if last[0] >= min_physical_offset:
                break
            self.files.delete_first()
            deleted += 1
        return deleted

    def close(self) -> None:
        self.files.close()
        self._last = None

    def destroy(self) -> None:
        """Delete the queue's files."""
        self.files.destroy()
        self.max_physical_offset = -1
        self.min_queue_offset = 0
        self._last = None

    def __repr__(self) -> str:
        return f"<ConsumeQueue {self.topic}[{self.queue_id}] {self.min_queue_offset}..{self.max_queue_offset}>"


def _flush_full(mapped: MappedFile) -> None:
    mapped.flush()
