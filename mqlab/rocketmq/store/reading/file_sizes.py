"""Segment sizes found in a store's files: nothing records them, so they are derived from names, lengths and entries.

RocketMQ needs the sizes in its configuration. Lab 01 opens stores with small ones.

    commit log       names are start offsets, so two neighbours give the size; one file alone gives its length
    consume queues   the same; a multiple of 20
    index            40 + 4 S + 20 N bytes: RocketMQ's default if the length is that, else the S for which all
                     entries are in the chains of their slots

Left out: the size of the queue extension, which no part of mqlab writes.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.reading.index_table import IndexTable, file_size
from mqlab.rocketmq.wire.units import CQ_UNIT_SIZE, INDEX_ENTRY_SIZE, INDEX_HEADER_SIZE, INDEX_SLOT_SIZE

DEFAULT_HASH_SLOT_NUM = 5_000_000
DEFAULT_INDEX_NUM = 20_000_000
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundSizes:
    """Bytes of a commit-log and a consume-queue file, slots and entries of an index file; None: not known."""

    commit_log: int | None = None
    consume_queue: int | None = None
    hash_slot_num: int | None = None
    index_num: int | None = None


def found_sizes(files: Files, directory: str) -> FoundSizes:
    """The sizes that the files of a store directory were written with; reads only."""
    index = index_sizes(files, f"{directory}/index")
    return FoundSizes(
        commit_log=segment_size(files, [f"{directory}/commitlog"]),
        consume_queue=segment_size(files, queue_folders(files, f"{directory}/consumequeue"), CQ_UNIT_SIZE),
        hash_slot_num=index[0] if index else None,
        index_num=index[1] if index else None,
    )


def offset_names(files: Files, folder: str) -> list[str]:
    """The files of a folder that are named by a start offset (20 digits), in order; [] when there is no such folder."""
    if not files.is_dir(folder):
        return []
    return sorted(name for name in files.list(folder) if len(name) == 20 and name.isdecimal())


def queue_folders(files: Files, root: str) -> Iterator[str]:
    """``root/topic/queueId`` of every queue, in order; folders that are not named by a number are ignored."""
    if not files.is_dir(root):
        return
    for topic in sorted(files.list(root)):
        if not files.is_dir(f"{root}/{topic}"):
            continue
        for queue_id in sorted((q for q in files.list(f"{root}/{topic}") if q.isdecimal()), key=int):
            yield f"{root}/{topic}/{queue_id}"


def segment_size(files: Files, folders: Iterator[str] | list[str], multiple_of: int = 1) -> int | None:
    """The file size of these folders: the most frequent distance between neighbours, else the most frequent length."""
    distances: Counter[int] = Counter()
    lengths: Counter[int] = Counter()
    for folder in folders:
        names = offset_names(files, folder)
        distances.update(int(after) - int(before) for before, after in pairwise(names))
        lengths.update(size for size in (files.size(f"{folder}/{name}") for name in names) if size > 0)
    for counted in (distances, lengths):
        # a deleted file doubles one distance, so only a size that some file really has counts
        usual = [size for size, _ in counted.most_common() if size in lengths and size % multiple_of == 0]
        if usual:
            return usual[0]
    return None


def index_sizes(files: Files, folder: str) -> tuple[int, int] | None:
    """(slots, entries) of the index files in a folder, None when there are none or their entries do not show it."""
    if not files.is_dir(folder):
        return None
    for name in sorted(files.list(folder)):
        path = f"{folder}/{name}"
        if not name.isdecimal() or files.is_dir(path) or files.size(path) < INDEX_HEADER_SIZE:
            continue
        mapping = files.map(path, files.size(path), create=False)
        try:
            sizes = sizes_of_index(mapping.view)
        finally:
            mapping.close()
        if sizes:
            return sizes
    return None


def sizes_of_index(view: memoryview) -> tuple[int, int] | None:
    """(slots, entries) of one index file's bytes; None when they do not show it (no entry yet, or damaged).

    The last entry must be where the header's count puts it, hold the header's last offset, and be named by its slot.
    """
    if len(view) == file_size(DEFAULT_HASH_SLOT_NUM, DEFAULT_INDEX_NUM):
        return DEFAULT_HASH_SLOT_NUM, DEFAULT_INDEX_NUM
    # 1. Nothing can be derived from a file without entries.
    quads, rest = divmod(len(view) - INDEX_HEADER_SIZE, INDEX_SLOT_SIZE)
    if rest or len(view) < INDEX_HEADER_SIZE:
        return None
    header = IndexTable(view, 1, 1)
    if header.index_count < 2:
        return None

    # 2. Every number of slots that puts the last entry at its place; only one of them may have chains that agree.
    fitting = [
        (slots, entries)
        for slots in _possible_slots(view, header.end_physical_offset, header.index_count - 1)
        for entries, odd in [divmod(quads - slots, INDEX_ENTRY_SIZE // INDEX_SLOT_SIZE)]
        if not odd and _entries_agree(IndexTable(view, slots, entries))
    ]
    return fitting[0] if len(fitting) == 1 else None


def _possible_slots(view: memoryview, end_physical_offset: int, last_entry: int) -> Iterator[int]:
    """Numbers of slots for which some copy of the last offset is at the last entry's place."""
    pattern = struct.pack(">q", end_physical_offset)
    before = INDEX_HEADER_SIZE + INDEX_ENTRY_SIZE * last_entry + 4  # bytes in front of the offset, slots aside
    for start in range(before, len(view), _CHUNK):
        chunk = bytes(view[start : start + _CHUNK + len(pattern) - 1])
        hit = chunk.find(pattern)
        while hit >= 0:
            slots, odd = divmod(start + hit - before, INDEX_SLOT_SIZE)
            if slots > 0 and not odd:
                yield slots
            hit = chunk.find(pattern, hit + 1)


def _entries_agree(table: IndexTable) -> bool:
    last = table.index_count - 1
    if last != table.entries or table.entry(1)[1] != table.begin_physical_offset or table.entry(1)[3] != 0:
        return False
    # Entry 0 is never used.
    if any(table.view[table.entry_position(0) : table.entry_position(1)]):
        return False
    # 64 entries are enough to refute a wrong size, and a file has millions.
    for number in range(last, max(0, last - 64), -1):
        key_hash, _, seconds, previous = table.entry(number)
        if key_hash < 0 or seconds < 0 or not 0 <= previous < number:
            return False
        if previous and (table.entry(previous)[0] - key_hash) % table.hash_slot_num:  # a chain stays in its slot
            return False
        # A slot names its newest entry, so never an older one than this.
        if table.slot(key_hash % table.hash_slot_num) < number:
            return False
    return table.slot(table.entry(last)[0] % table.hash_slot_num) == last
