"""The layout of an index file: a hash table on disk from ``topic#key`` to the places of messages in the commit log.

Mirrors: the reading half of org.apache.rocketmq.store.index.IndexFile and IndexHeader. Lab 01 follows a chain by hand.

    byte 0        header   begin and end store time, begin and end physical offset, slots in use, next entry number
         40       slots    S numbers of 4 bytes: the newest entry of that slot, 0 = empty;  slot = key hash % S
         40 + 4S  entries  N of 20 bytes: key hash, physical offset, seconds since begin, the slot's previous entry
                           entry 0 is never used; a chain runs from the newest to the oldest and ends with 0

         slot 4 ─▶ entry 4 ─▶ entry 3 ─▶ entry 1 ─▶ 0

Left out: writing, which is in mqlab.rocketmq.store.index_file.
"""

from __future__ import annotations

from mqlab.rocketmq.wire.units import (
    INDEX_ENTRY,
    INDEX_ENTRY_SIZE,
    INDEX_HEADER,
    INDEX_HEADER_SIZE,
    INDEX_SLOT,
    INDEX_SLOT_SIZE,
)

END_OF_TIME_MS = 2**63 - 1


def file_size(hash_slot_num: int, index_num: int) -> int:
    """Bytes of a file with so many slots and entries.

    >>> file_size(5_000_000, 20_000_000)
    420000040
    """
    return INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * hash_slot_num + INDEX_ENTRY_SIZE * index_num


class IndexTable:
    """The reading half: an index file's bytes, with the sizes they were made for. Damaged bytes never make it raise.

    ``hash_slot_num`` is S, ``index_num`` N, ``entries_at`` the byte 40 + 4S. ``index_count`` is the number of the next
    entry: there are 1 to count-1.
    """

    __slots__ = (
        "begin_physical_offset",
        "begin_timestamp",
        "end_physical_offset",
        "end_timestamp",
        "entries_at",
        "hash_slot_count",
        "hash_slot_num",
        "index_count",
        "index_num",
        "view",
    )

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
        self.entries_at = INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * hash_slot_num
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
        """How many entries there are to read: the number in the header, at most what the file has room for."""
        return min(self.index_count, self.index_num) - 1

    @property
    def is_full(self) -> bool:
        return self.index_count >= self.index_num

    def slot(self, number: int) -> int:
        """The newest entry of a slot, as the file has it."""
        value: int = INDEX_SLOT.unpack_from(self.view, self.slot_position(number))[0]
        return value

    def entry(self, number: int) -> tuple[int, int, int, int]:
        """(key hash, physical offset, seconds since begin, previous entry of the slot) of entry ``number``."""
        return INDEX_ENTRY.unpack_from(self.view, self.entry_position(number))

    def slot_position(self, number: int) -> int:
        """The position of slot ``number`` in the file; the first slot is 0."""
        return INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * number

    def entry_position(self, number: int) -> int:
        """The position of entry ``number`` in the file; the first one in use is 1."""
        return self.entries_at + INDEX_ENTRY_SIZE * number

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

    def select(self, key_hash: int, offsets: list[int], max_nums: int, begin_ms: int, end_ms: int) -> None:
        """Append the physical offsets under ``key_hash``, newest first, until ``offsets`` has ``max_nums``.

        The key itself is not in the file: equal hashes come out too. An entry's time is known to the second only, so
        one stored in the last second before ``begin_ms`` rounds down and out. Mirrors IndexFile.selectPhyOffset.
        """
        last_entry = self.entries
        number = self.slot(key_hash % self.hash_slot_num)
        # Zero is an empty slot; a larger number is damage.
        if not 0 < number <= last_entry:
            return
        while len(offsets) < max_nums:
            entry_hash, physical_offset, seconds, previous = self.entry(number)
            if seconds < 0:
                return
            time_ms = self.begin_timestamp + seconds * 1000
            if entry_hash == key_hash and begin_ms <= time_ms <= end_ms:
                offsets.append(physical_offset)
            if not 0 < previous < number or time_ms < begin_ms:  # a chain only ever leads to older entries
                return
            number = previous
