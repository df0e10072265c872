"""Reads the key index: the headers of its files, and candidates for a key.

Mirrors: the reading half of org.apache.rocketmq.store.index.IndexService. Lab 01 looks up a key with it.

    index/20231114221320456   S=200 N=400   399 entries   offsets 0..65_102    times 1700000000456..1700000004122

Left out: the broker's limit of 64 answers per query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mqlab.errors import UsageError
from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.reading.file_sizes import index_sizes, sizes_of_index
from mqlab.rocketmq.store.reading.index_table import END_OF_TIME_MS, IndexTable, file_size
from mqlab.rocketmq.store.reading.open_files import OpenFiles
from mqlab.rocketmq.wire.java_hash import index_key_hash
from mqlab.rocketmq.wire.units import (
    INDEX_HEADER_SIZE,
)


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """The header of an index file. Times are ms, offsets physical; ``hash_slot_num`` None: it could not be found."""

    name: str
    size: int
    begin_timestamp: int
    end_timestamp: int
    begin_physical_offset: int
    end_physical_offset: int
    hash_slot_count: int
    index_count: int
    entries: int
    hash_slot_num: int | None
    index_num: int | None


class IndexReader:
    """The index files in ``folder``, oldest first. The list of files is read again each time."""

    def __init__(self, files: Files, folder: str, open_files: OpenFiles) -> None:
        self._files = files
        self._open_files = open_files
        self._sizes: dict[int, tuple[int, int] | None] = {}
        self.folder = folder

    def names(self) -> list[str]:
        """The files, in RocketMQ's order: names are creation times."""
        if not self._files.is_dir(self.folder):
            return []
        return [
            name
            for name in sorted(self._files.list(self.folder))
            if name.isdecimal() and not self._files.is_dir(f"{self.folder}/{name}")
        ]

    def table(self, name: str) -> IndexTable | None:
        """A file as a table; None while it is too short for its header or its sizes cannot be found out."""
        view = self._open_files.view(f"{self.folder}/{name}")
        sizes = self.sizes(view)
        return IndexTable(view, *sizes) if sizes else None

    def sizes(self, view: memoryview) -> tuple[int, int] | None:
        """(slots, entries) for which a file was made; files of one length were made for the same."""
        if len(view) < INDEX_HEADER_SIZE:
            return None
        if self._sizes.get(len(view)) is None:
            sizes = sizes_of_index(view) or index_sizes(self._files, self.folder)
            self._sizes[len(view)] = sizes if sizes and file_size(*sizes) == len(view) else None
        return self._sizes[len(view)]

    def summaries(self) -> list[IndexSummary]:
        """The header of each file; a file that is too short for one counts as all zeros."""
        summaries = []
        for name in self.names():
            view = self._open_files.view(f"{self.folder}/{name}")
            sizes = self.sizes(view)
            # The header does not depend on the sizes, so any sizes do for reading it.
            header = IndexTable(view if len(view) >= INDEX_HEADER_SIZE else memoryview(bytes(INDEX_HEADER_SIZE)), 1, 1)
            summaries.append(
                IndexSummary(
                    name,
                    len(view),
                    header.begin_timestamp,
                    header.end_timestamp,
                    header.begin_physical_offset,
                    header.end_physical_offset,
                    header.hash_slot_count,
                    header.index_count,
                    IndexTable(view, *sizes).entries if sizes else max(0, header.index_count - 1),
                    sizes[0] if sizes else None,
                    sizes[1] if sizes else None,
                )
            )
        return summaries

    def candidates(
        self, topic: str, key: str, begin_ms: int = 0, end_ms: int = END_OF_TIME_MS, max_nums: int = 1 << 62
    ) -> Iterator[int]:
        """Physical offsets of units that may hold ``key``, newest first; another key of the same hash comes out too."""
        key_hash = index_key_hash(f"{topic}#{key}")
        for name in reversed(self.names()):
            table = self.table(name)
            if table is not None and table.matches_time(begin_ms, end_ms):
                offsets: list[int] = []
                table.select(key_hash, offsets, max_nums, begin_ms, end_ms)
                yield from offsets

    def named(self, name: str | None = None) -> tuple[str, IndexTable]:
        """A file by its name, or the newest. UsageError when there is none, or it cannot be read."""
        names = self.names()
        chosen = names[-1] if name is None and names else name or ""
        table = self.table(chosen) if chosen in names else None
        if table is None:
            raise UsageError(
                f"there is no index file {chosen!r}" if chosen else "there is no index file yet",
                hint=f"there are: {', '.join(names) or 'none'}",
            )
        return chosen, table

    def __repr__(self) -> str:
        return f"<IndexReader {self.folder} {len(self.names())} files>"
