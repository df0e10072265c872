"""All index files of a store: entries are added to the newest, queries read all of them from the newest back.

Mirrors: org.apache.rocketmq.store.index.IndexService. Lab 01 asks it for a key.

    index/20231114221320456   full, flushed, counted in the checkpoint     index/20231114221507001   being filled
    put     unit of topic orders, UNIQ_KEY 7F00…, KEYS "k1 k2"  ->  orders#7F00…, orders#k1, orders#k2
    query   candidates, newest first: keys are not stored, so a reader compares the keys of what it finds

Names are local time and always increase here, so that two files of one millisecond do not overwrite each other.
Left out: the flush of a full file in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol

from mqlab.rocketmq.ports import Clock, Files
from mqlab.rocketmq.store.checkpoint import Checkpoint
from mqlab.rocketmq.store.index_file import IndexFile
from mqlab.rocketmq.store.reading.index_table import END_OF_TIME_MS, file_size
from mqlab.rocketmq.wire import sys_flag as flags
from mqlab.rocketmq.wire.java_hash import index_key_hash, string_hash
from mqlab.rocketmq.wire.property_names import KEY_SEPARATOR

_KEY_TAIL = 3  # characters at the end of ``topic#key`` that are hashed one by one
_KEY_STARTS_KEPT = 10_000
_NOTHING_BEGUN = (-1, 0)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class IndexConfig(Protocol):
    """The settings an IndexService reads (part of StoreConfig)."""

    @property
    def max_hash_slot_num(self) -> int: ...
    @property
    def max_index_num(self) -> int: ...
    @property
    def max_msgs_num_batch(self) -> int: ...
    @property
    def utc_offset_ms(self) -> int: ...


def file_name(created_ms: int) -> str:
    """The name of an index file made at that moment of the local clock: ``yyyyMMddHHmmssSSS``.

    >>> file_name(1700000000456)
    '20231114221320456'
    """
    moment = _EPOCH + timedelta(milliseconds=created_ms)
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


class IndexService:
    """The index files in ``directory``. Call ``load`` first; ``put`` once per dispatched unit, in physical order."""

    def __init__(
        self, files: Files, directory: str, config: IndexConfig, clock: Clock, checkpoint: Checkpoint | None = None
    ) -> None:
        self._files = files
        self.config = config
        self._clock = clock
        self._checkpoint = checkpoint
        self.directory = directory
        self.index_files: list[IndexFile] = []
        self.dirty = False
        self.last_indexed = -1  # a unit that has all its entries, while skipping_last_indexed
        self._begun = _NOTHING_BEGUN  # the unit whose entries could not all be added, and how many it has
        self._header_behind = False
        self._key_starts: dict[str, int] = {}

    def load(self, last_exit_ok: bool, index_msg_timestamp: int) -> list[str]:
        """Open the files there; after a crash delete those newer than the checkpoint. Returns the deleted names.

        A file whose name is not a number is ignored. Raises StoreError when a file does not have the size that the
        settings make; nothing is deleted then.
        """
        names = sorted(self._files.list(self.directory)) if self._files.is_dir(self.directory) else []
        paths = [f"{self.directory}/{name}" for name in names if name.isdecimal()]
        sizes = {path: self._files.size(path) for path in paths if not self._files.is_dir(path)}
        full_size = file_size(self.config.max_hash_slot_num, self.config.max_index_num)
        # if one file has the full size, a shorter one was cut; an empty one was about to be made
        opened = [self._open(path, may_be_cut=full_size in sizes.values() or size == 0) for path, size in sizes.items()]
        deleted = []
        for index_file in opened:
            if not last_exit_ok and index_file.end_timestamp > index_msg_timestamp:
                deleted.append(self._delete(index_file))
            else:
                self.index_files.append(index_file)
        return deleted

    def put(
        self,
        topic: str,
        physical_offset: int,
        store_timestamp: int,
        *,
        unique_key: str | None = None,
        keys: str | None = None,
        sys_flag: int = 0,
    ) -> int:
        """Index one dispatched unit under its unique key and each of its keys. Returns the number of entries.

        Rolled-back units and those before the end of the index are not indexed. The last indexed unit is indexed again:
        a unit that a crash recovery dispatches again is found twice, as in RocketMQ. Mirrors IndexService.buildIndex.
        """
        if sys_flag & flags.TRANSACTION_MASK == flags.TRANSACTION_ROLLBACK:
            return 0
        newest = self.index_files[-1] if self.index_files else None
        if newest is not None and physical_offset < newest.end_physical_offset:
            return 0
        # After a clean stop the last unit has all its entries.
        if physical_offset == self.last_indexed:
            return 0
        # The unique key first: equal bytes need RocketMQ's order of entries.
        names = [unique_key] if unique_key else []
        if keys:
            names += keys.split(KEY_SEPARATOR)
        has_already = self._begun[1] if self._begun[0] == physical_offset else 0
        count = 0
        for name in names:
            if not name:
                continue
            if count < has_already:
                count += 1
                continue
            key_hash = self._key_hash(topic, name)
            if newest is None or not newest.put(key_hash, physical_offset, store_timestamp):
                self._begun = physical_offset, count
                newest = self.file_with_room()
                newest.put(key_hash, physical_offset, store_timestamp)
            count += 1
        self._begun = _NOTHING_BEGUN
        if count:
            self.dirty = self._header_behind = True
        return count

    @contextmanager
    def skipping_last_indexed(self) -> Iterator[None]:
        """During recovery from a clean stop: every unit has all its entries, so the last one is not indexed again."""
        has_entries = len(self.index_files) > 1 or any(index_file.index_count > 1 for index_file in self.index_files)
        self.last_indexed = self.end_physical_offset if has_entries else -1
        try:
            yield
        finally:
            self.last_indexed = -1

    def file_with_room(self) -> IndexFile:
        """The newest file, or the next one when it is full or there is none."""
        if self.index_files and not self.index_files[-1].is_full:
            return self.index_files[-1]
        return self._roll()

    def has_grown(self) -> None:
        """Note that index_bulk added entries to the newest file."""
        self.dirty = self._header_behind = True

    def write_header(self) -> None:
        """Write the newest file's header: readers see all entries, and a killed process loses none.

        Called after each run of dispatches; full files had theirs written when they became full.
        """
        if self._header_behind and self.index_files:
            self.index_files[-1].write_header()
        self._header_behind = False

    def _key_hash(self, topic: str, key: str) -> int:
        """The hash of ``topic#key``; what keys share, all but their last characters, is hashed once.

        The last digits of a unique key are a counter, and what is before them stays for a millisecond.
        """
        text = f"{topic}#{key}"
        start, end = text[:-_KEY_TAIL], text[-_KEY_TAIL:]
        value = self._key_starts.get(start)
        if value is None:
            if not start:
                return index_key_hash(text)
            if len(self._key_starts) >= _KEY_STARTS_KEPT:
                self._key_starts.clear()
            value = self._key_starts[start] = string_hash(start)
        if not end.isascii():
            return index_key_hash(text)
        first, second, third = end.encode("ascii")
        value = 29_791 * value + 961 * first + 31 * second + third & 0xFFFFFFFF
        if value & 0x80000000:
            value = 0x100000000 - value
        return value & 0x7FFFFFFF  # Java has no absolute value for the smallest int: it counts as 0

    def query(
        self, topic: str, key: str, max_nums: int = 64, begin_ms: int = 0, end_ms: int = END_OF_TIME_MS
    ) -> list[int]:
        """Physical offsets of messages that may hold ``key``, newest file first, newest entry first, at most 64.

        Times are store times in ms, known to the second. Mirrors IndexService.queryOffset.
        """
        max_nums = min(max_nums, self.config.max_msgs_num_batch)
        key_hash = index_key_hash(f"{topic}#{key}")
        offsets: list[int] = []
        for index_file in reversed(self.index_files):
            if index_file.matches_time(begin_ms, end_ms):
                index_file.select(key_hash, offsets, max_nums, begin_ms, end_ms)
            if index_file.begin_timestamp < begin_ms or len(offsets) >= max_nums:
                break
        return offsets

    @property
    def end_physical_offset(self) -> int:
        """Where the last indexed unit starts; 0 without any. Units before it are not indexed again."""
        return self.index_files[-1].end_physical_offset if self.index_files else 0

    def flush(self) -> None:
        """Sync the newest file (the older ones were synced when they became full)."""
        if self.dirty and self.index_files:
            self._flush(self.index_files[-1])
        self.dirty = self._header_behind = False

    def close(self) -> None:
        """Write and close all files. They stay on disk."""
        self.flush()
        for index_file in self.index_files:
            index_file.close()
        self.index_files.clear()

    def destroy(self) -> None:
        """Delete all files."""
        while self.index_files:
            self._delete(self.index_files.pop())
        self.dirty = False

    def delete_before(self, min_physical_offset: int) -> list[str]:
        """Delete files, oldest first, whose messages are all deleted from the commit log; never the last file.

        Returns their names. Mirrors IndexService.deleteExpiredFile.
        """
        deleted = []
        while len(self.index_files) > 1 and self.index_files[0].end_physical_offset < min_physical_offset:
            deleted.append(self._delete(self.index_files.pop(0)))
        return deleted

    def truncate_after(self, log_end: int, store_time_at: Callable[[int], int | None]) -> int:
        """Remove entries of messages at or after the end of the commit log. Returns how many.

        RocketMQ leaves them: they name messages that do not exist, and new messages at those offsets are not indexed
        until the log has grown past them.
        """
        taken = 0
        while self.index_files and self.index_files[-1].end_physical_offset >= log_end:
            newest = self.index_files[-1]
            taken += newest.truncate_after(log_end, store_time_at)
            self.dirty = True
            if newest.index_count > 1:
                break
            self._delete(self.index_files.pop())
        return taken

    def _open(
        self, path: str, end_physical_offset: int = 0, end_timestamp: int = 0, *, may_be_cut: bool = False
    ) -> IndexFile:
        slots, entries = self.config.max_hash_slot_num, self.config.max_index_num
        return IndexFile(self._files, path, slots, entries, end_physical_offset, end_timestamp, may_be_cut=may_be_cut)

    def _roll(self) -> IndexFile:
        self._files.make_directory(self.directory)
        name = file_name(self._clock.now_ms() + self.config.utc_offset_ms)
        if not self.index_files:
            fresh = self._open(f"{self.directory}/{name}")
        else:
            full = self.index_files[-1]
            full_name = full.path.rpartition("/")[2]
            name = max(name, str(int(full_name) + 1).zfill(len(full_name)))
            self._flush(full)  # first: if that fails, no file was made that stays empty
            fresh = self._open(f"{self.directory}/{name}", full.end_physical_offset, full.end_timestamp)
        self.index_files.append(fresh)
        return fresh

    def _flush(self, index_file: IndexFile) -> None:
        index_file.flush()
        if index_file.is_full and self._checkpoint is not None:
            self._checkpoint.index_msg_timestamp = index_file.end_timestamp
            self._checkpoint.flush()

    def _delete(self, index_file: IndexFile) -> str:
        index_file.close()
        self._files.remove(index_file.path)
        return index_file.path.rpartition("/")[2]

    def __repr__(self) -> str:
        return f"<IndexService {self.directory} {len(self.index_files)} files, end {self.end_physical_offset}>"
