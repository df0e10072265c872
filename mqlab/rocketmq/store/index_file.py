"""An index file that is written to: entries are added at its end, and removed by a recovery.

Mirrors: the writing half of org.apache.rocketmq.store.index.IndexFile. Lab 01 follows a chain by hand.

    put   entry number n is written, then the slot of its key names n; the entry keeps what the slot named before
    header   six numbers, written by ``write_header``: readers see entries from then on

The layout, and how it is read, is in mqlab.rocketmq.store.reading.index_table.
Left out: the reference counting of Java's mapped files, and its habit to grow a file to the configured size.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.errors import StoreError
from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.reading.index_table import IndexTable, file_size
from mqlab.rocketmq.wire.units import (
    INDEX_ENTRY,
    INDEX_ENTRY_SIZE,
    INDEX_HEADER,
    INDEX_HEADER_SIZE,
    INDEX_SLOT,
    INDEX_SLOT_SIZE,
)

MAX_SECONDS = 2**31 - 1
_PACK_ENTRY, _PACK_SLOT, _SLOT_AT = INDEX_ENTRY.pack, INDEX_SLOT.pack, INDEX_SLOT.unpack_from


class IndexFile(IndexTable):
    """An index file that is written to. It is created at ``path`` when missing, with the end of the file before it.

    Raises StoreError when the file has another size than S and N require, unless it is shorter and ``may_be_cut``:
    then it is filled up with zeros, as RocketMQ does with every file.
    """

    __slots__ = ("_mapping", "path")

    def __init__(
        self,
        files: Files,
        path: str,
        hash_slot_num: int,
        index_num: int,
        previous_end_physical_offset: int = 0,
        previous_end_timestamp: int = 0,
        *,
        may_be_cut: bool = False,
    ) -> None:
        size = file_size(hash_slot_num, index_num)
        # A file of another size has its entries at other places: nothing in it could be found.
        length = files.size(path) if files.exists(path) else size
        if length > size or (length < size and not may_be_cut):
            raise StoreError(
                f"the index file {path} has {length} bytes, but max_hash_slot_num={hash_slot_num} and "
                f"max_index_num={index_num} make {size}",
                hint="open the store with the max_hash_slot_num and max_index_num it was written with; if the file was "
                "cut, move it away: only look-ups by key are lost",
            )
        self.path = path
        self._mapping = files.map(path, size)
        super().__init__(self._mapping.view, hash_slot_num, index_num)
        if previous_end_physical_offset > 0:
            self.begin_physical_offset = self.end_physical_offset = previous_end_physical_offset
        if previous_end_timestamp > 0:
            self.begin_timestamp = self.end_timestamp = previous_end_timestamp

    def put(self, key_hash: int, physical_offset: int, store_timestamp: int) -> bool:
        """Add an entry; False when the file is full. ``write_header`` makes it known to readers.

        The first entry of a follow-up file counts its seconds from the end of the file before (its begin is replaced
        only afterwards), so that readers see a time that is too late. RocketMQ does the same. Mirrors IndexFile.putKey.
        """
        number = self.index_count
        if number >= self.index_num:
            return False

        # 1. The newest entry of the slot so far; a number that no entry has is damage and counts as none.
        slot_position = INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * (key_hash % self.hash_slot_num)
        (previous,) = _SLOT_AT(self.view, slot_position)
        if not 0 < previous <= number:
            previous = 0
            self.hash_slot_count += 1

        # 2. The entry first, then its slot: a reader that comes between finds the chain as it was.
        begin, write = self.begin_timestamp, self._mapping.write
        seconds = min((store_timestamp - begin) // 1000, MAX_SECONDS) if 0 < begin < store_timestamp else 0
        write(self.entries_at + INDEX_ENTRY_SIZE * number, _PACK_ENTRY(key_hash, physical_offset, seconds, previous))
        write(slot_position, _PACK_SLOT(number))

        # 3. The header in memory; write_header brings it into the file.
        if number == 1:
            self.begin_physical_offset = physical_offset
            self.begin_timestamp = store_timestamp
        self.index_count = number + 1
        self.end_physical_offset = physical_offset
        self.end_timestamp = store_timestamp
        return True

    def write(self, position: int, data: bytes) -> None:
        """Write packed entries or slots (see index_bulk)."""
        self._mapping.write(position, data)

    def appended(self, count: int, new_slots: int, first: tuple[int, int], last: tuple[int, int]) -> None:
        """Count entries that index_bulk has written; (physical offset, store time) of their first and last."""
        if self.index_count == 1:
            self.begin_physical_offset, self.begin_timestamp = first
        self.index_count += count
        self.hash_slot_count += new_slots
        self.end_physical_offset, self.end_timestamp = last

    def write_header(self) -> None:
        """Write the six numbers of the header into the file."""
        self._mapping.write(
            0,
            INDEX_HEADER.pack(
                self.begin_timestamp,
                self.end_timestamp,
                self.begin_physical_offset,
                self.end_physical_offset,
                self.hash_slot_count,
                self.index_count,
            ),
        )

    def truncate_after(self, log_end: int, store_time_at: Callable[[int], int | None]) -> int:
        """Remove the entries whose message starts at or after ``log_end``, newest first. Returns how many.

        The bytes are then as they were before those entries were put. ``store_time_at(physical_offset)`` is the store
        time of the message that is the last one now; when it is None, the second in the entry is used.
        """
        taken = 0
        while self.index_count > 1:
            number = self.index_count - 1
            key_hash, physical_offset, _, previous = self.entry(number)
            if physical_offset < log_end:
                break
            # The reverse of ``put``: the slot names the older entry again, then the bytes become zero.
            self._mapping.write(self.slot_position(key_hash % self.hash_slot_num), INDEX_SLOT.pack(previous))
            self._mapping.write(self.entry_position(number), bytes(INDEX_ENTRY_SIZE))
            self.hash_slot_count -= previous == 0
            self.index_count = number
            taken += 1
        if taken and self.index_count > 1:
            _, self.end_physical_offset, seconds, _ = self.entry(self.index_count - 1)
            # The header needs the time of the entry that is the last one now; the entry has whole seconds only.
            exact_ms = store_time_at(self.end_physical_offset)
            rounded_ms = self.begin_timestamp + (seconds * 1000 if self.index_count > 2 else 0)
            self.end_timestamp = rounded_ms if exact_ms is None else exact_ms
        if taken:
            self.write_header()
        return taken

    def flush(self) -> None:
        """Sync the whole file, header included."""
        self.write_header()
        self._mapping.flush()

    def close(self) -> None:
        """Close the file."""
        self.view = memoryview(b"")
        self._mapping.close()

    def __repr__(self) -> str:
        used = f"{self.entries} of {self.index_num - 1} entries"
        return f"<IndexFile {self.path} {used}, {self.begin_physical_offset}..{self.end_physical_offset}>"
