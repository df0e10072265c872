"""One index file: a hash table on disk from ``topic#key`` to the places of messages in the commit log.

Mirrors: org.apache.rocketmq.store.index.IndexFile and IndexHeader. Lab 01 follows a chain by hand.

    byte 0        header   begin and end store time, begin and end physical offset, slots in use, next entry number
         40       slots    S numbers of 4 bytes: the newest entry of that slot, 0 = empty;  slot = key hash % S
         40 + 4S  entries  N of 20 bytes: key hash, physical offset, seconds since begin, the slot's previous entry
                           entry 0 is never used; a chain runs from the newest to the oldest and ends with 0

         slot 4 ─▶ entry 4 ─▶ entry 3 ─▶ entry 1 ─▶ 0

Left out: the reference counting of Java's mapped files, and its habit to grow a file to the configured size.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.errors import StoreError
from mqlab.ports import Files
from mqlab.wire.units import INDEX_ENTRY, INDEX_ENTRY_SIZE, INDEX_HEADER, INDEX_HEADER_SIZE, INDEX_SLOT, INDEX_SLOT_SIZE

MAX_SECONDS = 2**31 - 1
END_OF_TIME_MS = 2**63 - 1


def file_size(hash_slot_num: int, index_num: int) -> int:
    """Bytes of a file with so many slots and entries.

    >>> file_size(5_000_000, 20_000_000)
    420000040
    """
    return INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * hash_slot_num + INDEX_ENTRY_SIZE * index_num


class IndexTable:
    """The reading half: an index file's bytes, with the sizes they were made for. Damaged bytes never make it raise.

    ``hash_slot_num`` is S, ``index_num`` N. ``index_count`` is the number of the next entry: there are 1 to count-1.
    """

    __slots__ = (
        "begin_physical_offset", "begin_timestamp", "end_physical_offset", "end_timestamp", "hash_slot_count",
        "hash_slot_num", "index_count", "index_num", "view",
    )  # fmt: skip

    begin_timestamp: int
    end_timestamp: int
    begin_physical_offset: int
    end_physical_offset: int
    hash_slot_count: int
    index_count: int

    def __init__(self, view: memoryview, hash_slot_num: int, index_num: int) -> None:
        self.view = view
        self.hash_slot_num = hash_slot_num
        self.index_num = index_num
        self.read_header()

    def read_header(self) -> None:
        """Take the six numbers of the header from the bytes again (a live file changes)."""
        (
            self.begin_timestamp,
            self.end_timestamp,
            self.begin_physical_offset,
            self.end_physical_offset,
            self.hash_slot_count,
            index_count,
        ) = INDEX_HEADER.unpack_from(self.view, 0)
        self.index_count = max(1, index_count)

    @property
    def entries(self) -> int:
        """How many entries there are to read: what the header says, as far as the file has room for them."""
        return min(self.index_count, self.index_num) - 1

    @property
    def is_full(self) -> bool:
        return self.index_count >= self.index_num

    def slot(self, number: int) -> int:
        """The newest entry of a slot as it stands in the file."""
        value: int = INDEX_SLOT.unpack_from(self.view, self.slot_position(number))[0]
        return value

    def entry(self, number: int) -> tuple[int, int, int, int]:
        """(key hash, physical offset, seconds since begin, previous entry of the slot) of entry ``number``."""
        return INDEX_ENTRY.unpack_from(self.view, self.entry_position(number))

    def slot_position(self, number: int) -> int:
        """Where in the file slot ``number`` stands, counted from 0."""
        return INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * number

    def entry_position(self, number: int) -> int:
        """Where in the file entry ``number`` stands; the first one in use is 1."""
        return INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * self.hash_slot_num + INDEX_ENTRY_SIZE * number

    def chain(self, key_hash: int) -> list[int]:
        """The entry numbers of the slot of ``key_hash``, newest first, other hashes of the slot included."""
        numbers: list[int] = []
        number = self.slot(key_hash % self.hash_slot_num)
        while 0 < number <= self.entries and (not numbers or number < numbers[-1]):
            numbers.append(number)
            number = self.entry(number)[3]
        return numbers

    def matches_time(self, begin_ms: int, end_ms: int) -> bool:
        """Whether the file's times and the asked ones overlap, by RocketMQ's rule (IndexFile.isTimeMatched)."""
        begin, end = self.begin_timestamp, self.end_timestamp
        return (begin_ms < begin and end_ms > end) or begin <= begin_ms <= end or begin <= end_ms <= end

    def select(self, key_hash: int, found: list[int], max_nums: int, begin_ms: int, end_ms: int) -> None:
        """Append the physical offsets under ``key_hash``, newest first, until ``found`` has ``max_nums``.

        The key itself is not in the file: equal hashes come out too. An entry's time is known to the second only, so
        one stored in the last second before ``begin_ms`` rounds down and out. Mirrors IndexFile.selectPhyOffset.
        """
        last_entry = self.entries
        number = self.slot(key_hash % self.hash_slot_num)
        if not 0 < number <= last_entry:
            return
        while len(found) < max_nums:
            entry_hash, physical_offset, seconds, previous = self.entry(number)
            if seconds < 0:
                return
            time_ms = self.begin_timestamp + seconds * 1000
            if entry_hash == key_hash and begin_ms <= time_ms <= end_ms:
                found.append(physical_offset)
            if not 0 < previous < number or time_ms < begin_ms:  # a chain only ever leads to older entries
                return
            number = previous


class IndexFile(IndexTable):
    """An index file that is written to. Made at ``path`` when missing, with the end of the file before it.

    Raises StoreError when the file has another size than S and N ask for, unless it is shorter and ``may_be_cut``:
    then it is filled up with zeros, as RocketMQ does with every file.
    """

    __slots__ = ("_mapping", "path")

    def __init__(
        self, files: Files, path: str, hash_slot_num: int, index_num: int,
        previous_end_physical_offset: int = 0, previous_end_timestamp: int = 0, *, may_be_cut: bool = False,
    ) -> None:  # fmt: skip
        size = file_size(hash_slot_num, index_num)
        found = files.size(path) if files.exists(path) else size
        if found > size or (found < size and not may_be_cut):
            raise StoreError(
                f"the index file {path} has {found} bytes, but max_hash_slot_num={hash_slot_num} and "
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
        only afterwards), so that readers see it too late: RocketMQ's own quirk, kept. Mirrors IndexFile.putKey.
        """
        number = self.index_count
        if number >= self.index_num:
            return False
        slots, write = self.hash_slot_num, self._mapping.write
        slot_position = INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * (key_hash % slots)
        (previous,) = INDEX_SLOT.unpack_from(self.view, slot_position)
        if not 0 < previous <= number:
            previous = 0
        begin = self.begin_timestamp
        seconds = (store_timestamp - begin) // 1000 if 0 < begin < store_timestamp else 0
        write(
            INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * slots + INDEX_ENTRY_SIZE * number,
            INDEX_ENTRY.pack(key_hash, physical_offset, seconds if seconds < MAX_SECONDS else MAX_SECONDS, previous),
        )
        write(slot_position, INDEX_SLOT.pack(number))
        if number == 1:
            self.begin_physical_offset = physical_offset
            self.begin_timestamp = store_timestamp
        if previous == 0:
            self.hash_slot_count += 1
        self.index_count = number + 1
        self.end_physical_offset = physical_offset
        self.end_timestamp = store_timestamp
        return True

    def write(self, position: int, data: bytes) -> None:
        """Write bytes that somebody else has packed (see index_bulk)."""
        self._mapping.write(position, data)

    def appended(self, count: int, new_slots: int, first: tuple[int, int], last: tuple[int, int]) -> None:
        """Take note of entries written from outside; (physical offset, store time) of their first and last."""
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
                self.begin_timestamp, self.end_timestamp, self.begin_physical_offset, self.end_physical_offset,
                self.hash_slot_count, self.index_count,
            ),
        )  # fmt: skip

    def truncate_after(self, log_end: int, store_time_at: Callable[[int], int | None]) -> int:
        """Take back the entries whose message starts at or behind ``log_end``, newest first; how many that were.

        Leaves the bytes as they were before those entries were put. ``store_time_at(physical_offset)`` tells the exact
        store time of the message that is the last one now; when it does not know, the entry's own second stands in.
        """
        taken = 0
        while self.index_count > 1:
            number = self.index_count - 1
            key_hash, physical_offset, _, previous = self.entry(number)
            if physical_offset < log_end:
                break
            self._mapping.write(self.slot_position(key_hash % self.hash_slot_num), INDEX_SLOT.pack(previous))
            self._mapping.write(self.entry_position(number), bytes(INDEX_ENTRY_SIZE))
            self.hash_slot_count -= previous == 0
            self.index_count = number
            taken += 1
        if taken and self.index_count > 1:
            _, self.end_physical_offset, seconds, _ = self.entry(self.index_count - 1)
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
        """Let go of the file."""
        self.view = memoryview(b"")
        self._mapping.close()

    def __repr__(self) -> str:
        used = f"{self.entries} of {self.index_num - 1} entries"
        return f"<IndexFile {self.path} {used}, {self.begin_physical_offset}..{self.end_physical_offset}>"
