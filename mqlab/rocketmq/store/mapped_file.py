"""One file of fixed size that is written from front to back and read anywhere.

Mirrors: org.apache.rocketmq.store.logfile.DefaultMappedFile. Lab 01 watches the two positions move apart.

    0            flushed_position      wrote_position                 size
    ├── on the disk ───┼── in the page cache ───┼── zeros (a hole in the file) ──┤

    The name is the offset of byte 0 in the whole log, 20 digits. The length does not show how much was written.

Left out: reference counting (Python frees a mapping with its last reader), warm-up, transient store pool, swap.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.rocketmq.ports import OS_PAGE_SIZE, Files, Mapping


def file_name(start_offset: int) -> str:
    """The name of the file that begins at an offset. Mirrors UtilAll.offset2FileName.

    >>> file_name(1073741824)
    '00000000001073741824'
    """
    return f"{start_offset:020d}"


class MappedFile:
    """A segment; mapped into memory when first touched. Positions are bytes from its own start."""

    __slots__ = (
        "_files",
        "_mapping",
        "_view",
        "flushed_position",
        "flushed_timestamp",
        "is_flush_lost",
        "path",
        "size",
        "start_offset",
        "store_timestamp",
        "write_at",
        "wrote_position",
    )

    def __init__(self, files: Files, directory: str, start_offset: int, size: int) -> None:
        self._files = files
        self._mapping: Mapping | None = None
        self._view: memoryview | None = None
        self.path = f"{directory}/{file_name(start_offset)}"
        self.start_offset = start_offset
        self.size = size
        self.wrote_position = 0
        self.flushed_position = 0
        self.store_timestamp = 0  # of the last message appended by this process
        self.flushed_timestamp = 0  # of the last message known to be on the disk
        self.is_flush_lost = False
        self.write_at: Callable[[int, bytes | bytearray], None] = self._map_and_write  # moves no position

    @property
    def view(self) -> memoryview:
        """All bytes, read-only."""
        view = self._view
        return view if view is not None else self._map().view

    @property
    def end_offset(self) -> int:
        return self.start_offset + self.size

    @property
    def is_full(self) -> bool:
        return self.wrote_position == self.size

    def _map(self) -> Mapping:
        if self._mapping is None:
            self._mapping = self._files.map(self.path, self.size)
            self._view = self._mapping.view
            self.write_at = self._mapping.write
        return self._mapping

    def _map_and_write(self, position: int, data: bytes | bytearray) -> None:
        self._map().write(position, data)

    def create(self) -> None:
        """Make the file, full size and all zero, if it is not there."""
        self._map()

    def append(self, data: bytes | bytearray) -> None:
        """Write after what is written; the caller has checked that it fits."""
        position = self.wrote_position
        self.write_at(position, data)
        self.wrote_position = position + len(data)

    def read(self, position: int, size: int) -> bytes | None:
        """Written bytes; None when not all of them are written."""
        end = position + size
        if position < 0 or size < 0 or end > self.wrote_position:
            return None
        view = self._view if self._view is not None else self._map().view
        return bytes(view[position:end])

    def is_able_to_flush(self, least_pages: int) -> bool:
        """Whether this many pages are written and not flushed, or the file is full. Mirrors isAbleToFlush."""
        if self.is_full:
            return self.flushed_position < self.size
        if least_pages > 0:
            return self.wrote_position // OS_PAGE_SIZE - self.flushed_position // OS_PAGE_SIZE >= least_pages
        return self.wrote_position > self.flushed_position

    def flush(self, least_pages: int = 0) -> bool:
        """Sync what is written if at least so many pages are dirty (or the file is full); True when it synced."""
        if not self.is_able_to_flush(least_pages):
            return False
        written, timestamp = self.wrote_position, self.store_timestamp
        mapping, start = self._map(), self.flushed_position
        if self.is_flush_lost:  # a system may take pages that it failed to write for clean: they are written once more
            mapping.write(start, bytes(mapping.view[start:written]))
        self.is_flush_lost = True
        mapping.flush(start, written)
        self.is_flush_lost = False
        self.flushed_position = written
        self.flushed_timestamp = timestamp
        return True

    def sync_again(self) -> None:
        """Sync all that is written, whether it was synced before or not (a dead process may have left it unsynced)."""
        self._map().flush(0, self.wrote_position)
        self.flushed_position = self.wrote_position

    def set_positions(self, position: int) -> None:
        """Set both positions: recovery found that everything before ``position`` is written and synced."""
        self.wrote_position = self.flushed_position = position

    def zero_after(self, position: int) -> None:
        """Zero everything after a position."""
        mapping = self._map()
        mapping.zero(position)
        mapping.flush(position)

    def close(self) -> None:
        if self._mapping is not None:
            self._mapping.close()
            self._mapping = self._view = None
            self.write_at = self._map_and_write

    def remove(self) -> None:
        """Close and delete the file; its bytes stay as long as a reader holds a view."""
        self.close()
        if self._files.exists(self.path):
            self._files.remove(self.path)

    def __repr__(self) -> str:
        positions = f"written {self.wrote_position} flushed {self.flushed_position} of {self.size}"
        return f"<MappedFile {file_name(self.start_offset)} {positions}>"
