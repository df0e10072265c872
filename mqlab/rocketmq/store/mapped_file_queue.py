"""A log cut into files of one size: the commit log, and each consume queue.

Mirrors: org.apache.rocketmq.store.MappedFileQueue and AllocateMappedFileService. Lab 01.

    00000000000000000000   00000000000000065536   00000000000000131072   00000000000000196608
    ├──── full ───────────┼──── full ───────────┼── written │ zeros ───┤ (made ahead, not in the log yet)
    min_offset                                              max_offset

Left out: creating files on a thread of its own (here the next file is made with the one before it).
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.errors import StoreError
from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.mapped_file import MappedFile


class MappedFileQueue:
    """The files of one directory in order. Offsets are bytes from the beginning of the log that the files are cut from.

    ``make_ahead``: keep one file more than needed ready, as the commit log does. Mirrors MappedFileQueue.
    """

    def __init__(self, files: Files, directory: str, file_size: int, *, make_ahead: bool = False) -> None:
        self.files = files
        self.directory = directory
        self.file_size = file_size
        self.mapped_files: list[MappedFile] = []
        self.flushed_where = 0
        self.flushed_timestamp = 0
        self.names_dirty = False
        self._make_ahead = make_ahead
        self._ahead: MappedFile | None = None
        self._unsynced_parents: list[str] = []
        self.on_full: Callable[[MappedFile], None] = lambda mapped: None

    def load(self) -> None:
        """Find the files; their positions count as full until recovery sets them. Mirrors MappedFileQueue.load.

        An empty last file is deleted. A file of another length, or whose name is not an offset, raises StoreError.
        """
        if not self.files.exists(self.directory):
            return
        names = [name for name in self.files.list(self.directory) if not self.files.is_dir(f"{self.directory}/{name}")]
        for name in names:
            path = f"{self.directory}/{name}"
            size = self.files.size(path)
            if size == 0 and name == names[-1]:
                self.files.remove(path)
                self.names_dirty = True
                continue
            self._check(name, path, size)
            mapped = MappedFile(self.files, self.directory, int(name), self.file_size)
            mapped.set_positions(self.file_size)
            self.mapped_files.append(mapped)

    def _check(self, name: str, path: str, size: int) -> None:
        if not (name.isascii() and name.isdigit()):
            raise StoreError(
                f"{path} does not belong here: a file of this directory is named by its offset, 20 digits",
                hint="move it away; RocketMQ refuses to start for such a file too",
            )
        if size != self.file_size:
            raise StoreError(
                f"{path} has {size} bytes, but files of this directory have {self.file_size}",
                hint="open the store with the size its files were made with, or take the incomplete file away",
            )

    def close(self) -> None:
        """Close all files; a file that was made ahead and not used is deleted, as RocketMQ does on a clean shutdown."""
        if self._ahead is not None:
            self._ahead.remove()
            self._ahead = None
            self.sync_names()
        for mapped in self.mapped_files:
            mapped.close()

    @property
    def min_offset(self) -> int:
        """Where the first file begins; -1 without files."""
        return self.mapped_files[0].start_offset if self.mapped_files else -1

    @property
    def max_offset(self) -> int:
        """The write position; 0 without files."""
        if not self.mapped_files:
            return 0
        last = self.mapped_files[-1]
        return last.start_offset + last.wrote_position

    def find(self, offset: int) -> MappedFile | None:
        """The file that an offset lies in."""
        mapped_files = self.mapped_files
        if not mapped_files:
            return None
        index = offset // self.file_size - mapped_files[0].start_offset // self.file_size
        if 0 <= index < len(mapped_files):
            mapped = mapped_files[index]
            if mapped.start_offset <= offset < mapped.start_offset + self.file_size:
                return mapped
        return next((m for m in mapped_files if m.start_offset <= offset < m.start_offset + self.file_size), None)

    def find_late(self, offset: int) -> MappedFile | None:
        """The same as ``find``, faster for an offset in the last file."""
        last = self.mapped_files[-1] if self.mapped_files else None
        if last is not None and 0 <= offset - last.start_offset < self.file_size:
            return last
        return self.find(offset)

    def index_of(self, mapped: MappedFile) -> int:
        return self.mapped_files.index(mapped)

    def file_to_write(self, start_offset: int = 0) -> MappedFile:
        """The last file, or a new one when it is full or there is none: then the file that ``start_offset`` lies in."""
        if not self.mapped_files:
            return self._create(start_offset - start_offset % self.file_size)
        last = self.mapped_files[-1]
        if not last.is_full:
            return last
        following = self.next_file(last)
        self.on_full(last)
        return following

    def next_file(self, last: MappedFile) -> MappedFile:
        """Make the file after the last one."""
        return self._create(last.end_offset)

    def _create(self, start_offset: int) -> MappedFile:
        if not self.mapped_files:
            self._make_directory()
        mapped, self._ahead = self._ahead, None
        if mapped is None or mapped.start_offset != start_offset:
            mapped = MappedFile(self.files, self.directory, start_offset, self.file_size)
            mapped.create()
        self.names_dirty = True
        self.mapped_files.append(mapped)
        if self._make_ahead:
            self._ahead = self._try_to_make(start_offset + self.file_size)
        return mapped

    def prepare_next(self) -> None:
        """Make the file that a failed append needed, ahead of the next append. Raises OSError when it still fails."""
        last = self.mapped_files[-1] if self.mapped_files else None
        if last is not None and self._make_ahead and self._ahead is None:
            ahead = MappedFile(self.files, self.directory, last.end_offset, self.file_size)
            ahead.create()
            self._ahead = ahead

    def _try_to_make(self, start_offset: int) -> MappedFile | None:
        ahead = MappedFile(self.files, self.directory, start_offset, self.file_size)
        try:
            ahead.create()
        except OSError:  # it is not needed yet: the append that needs it tries again and gets the error
            return None
        return ahead

    def _make_directory(self) -> None:
        missing = self.directory
        while not self.files.exists(missing):
            missing = missing.rpartition("/")[0] or "."
            self._unsynced_parents.append(missing)
        self.files.make_directory(self.directory)

    def flush(self, least_pages: int = 0, *, sync_names: bool = True) -> bool:
        """Sync every written byte after ``flushed_where``, file by file; True when all that is written is synced.

        A file with fewer dirty pages than ``least_pages`` is left for later, unless it is full.
        """
        if self.names_dirty and sync_names:
            self.sync_names()
        index = self._index_at(self.flushed_where)
        while index < len(self.mapped_files):
            mapped = self.mapped_files[index]
            if mapped.flush(least_pages) and least_pages == 0:
                self.flushed_timestamp = mapped.flushed_timestamp
            self.flushed_where = mapped.start_offset + mapped.flushed_position
            if not mapped.is_full:
                break
            index += 1
        return self.flushed_where >= self.max_offset

    def sync_again(self, last_files: int) -> None:
        """Sync the last files and the names of all, whatever was synced before."""
        for mapped in self.mapped_files[-last_files:]:
            mapped.sync_again()
        self.sync_names()
        self.flushed_where = self.max_offset

    def is_able_to_flush(self, least_pages: int) -> bool:
        """Whether ``flush`` with this many pages would sync anything."""
        mapped = self.find(self.flushed_where)
        if mapped is None:
            return self.flushed_where < self.max_offset
        return mapped.is_able_to_flush(least_pages)

    def sync_names(self) -> None:
        """Make the names of new and deleted files survive a power cut, those of their directories included."""
        for directory in (*reversed(self._unsynced_parents), self.directory):
            if self.files.exists(directory):
                self.files.sync_directory(directory)
        self._unsynced_parents.clear()
        self.names_dirty = False

    def _index_at(self, offset: int) -> int:
        if self.mapped_files and offset < self.mapped_files[0].start_offset:
            return 0
        mapped = self.find(offset)
        return self.index_of(mapped) if mapped is not None else len(self.mapped_files)

    def truncate(self, offset: int, *, zero_tail: bool) -> list[str]:
        """Cut everything from an offset on: later files are deleted, the rest of its file is zeroed if asked.

        Returns the names of deleted files. Mirrors truncateDirtyFiles.
        """
        deleted = []
        for mapped in self.mapped_files[:]:
            if mapped.end_offset <= offset:
                continue
            if mapped.start_offset <= offset:
                # The offset is inside this file or at its start: the file stays, empty if need be.
                mapped.set_positions(offset - mapped.start_offset)
                if zero_tail:
                    mapped.zero_after(mapped.wrote_position)
            else:
                mapped.remove()
                self.mapped_files.remove(mapped)
                self.names_dirty = True
                deleted.append(mapped.path)
        self.flushed_where = min(self.flushed_where, offset)
        return deleted

    def delete_last(self) -> None:
        """Delete the newest file; those before it stay as they are."""
        mapped = self.mapped_files[-1]
        mapped.remove()
        self.mapped_files.pop()
        self.names_dirty = True
        self.flushed_where = min(self.flushed_where, mapped.start_offset)

    def delete_first(self) -> MappedFile:
        """Delete the oldest file."""
        mapped = self.mapped_files[0]
        mapped.remove()
        self.mapped_files.pop(0)
        self.names_dirty = True
        return mapped

    def destroy(self) -> None:
        """Delete all files and the directory."""
        for mapped in self.mapped_files:
            mapped.close()
        self.mapped_files.clear()
        self._ahead = None
        self.flushed_where = 0
        if self.files.exists(self.directory):
            self.files.remove_tree(self.directory)

    def __repr__(self) -> str:
        bounds = f"{self.min_offset}..{self.max_offset}, flushed {self.flushed_where}"
        return f"<MappedFileQueue {self.directory} {len(self.mapped_files)} files {bounds}>"
