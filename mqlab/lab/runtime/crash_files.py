"""Files with a power switch: a real directory with a record of what would survive a power cut now.

It takes the place of a machine's page cache and disk.

    the directory      what is written: every reader sees it, kill -9 does not change it
    remembered         for each page (4 KiB) written since its last sync: what the disk has there
                       for each directory: names created, renamed or removed since it was last synced

    power_cut(keep)    each unsynced page is kept or lost as ``keep`` says; of a directory's unsynced names a first part
                       is kept and the rest undone (a journal loses its end, not its middle)

Left out: torn pages. A content written by ``write`` is kept or lost as a whole; if lost, the file is empty.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass

from mqlab.errors import StoreError
from mqlab.rocketmq.machine.files import LAB_DISK_USED, RealFiles, RealMapping, WrittenThrough

PAGE = 4096


@dataclass(frozen=True, slots=True)
class Unsynced:
    """Something that a power cut may undo: the write of a page or of a whole content, or a change of a name.

    ``kind``: page, content, create, rename, remove. ``page`` counts from 0 and is -1 for the other kinds.
    """

    kind: str
    path: str
    page: int = -1


Keep = Callable[[Unsynced], bool]


class _Content:
    """The unsynced pages of a file, with the bytes that the disk has in their place."""

    __slots__ = ("pages", "path", "whole")

    def __init__(self, path: str) -> None:
        self.path = path
        self.pages: dict[int, bytes] = {}
        self.whole = False  # written with ``write`` and not synced


@dataclass(slots=True)
class _NameChange:
    kind: str
    path: str
    other: str = ""  # rename: the source
    saved: str = ""  # where a removed or replaced file or tree is kept until the directory is synced


class CrashMapping(RealMapping):
    """A mapped file whose unsynced pages are known."""

    __slots__ = ("_content", "_files", "_life")

    def __init__(self, path: str, size: int, mapped: mmap.mmap | WrittenThrough, files: CrashFiles) -> None:
        super().__init__(path, size, mapped)
        self._files = files
        self._life = files.life
        self._content = files.content_of(path)

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        if self._life != self._files.life:
            raise StoreError(f"{self.path}: the process that mapped this file has ended", hint="open the store again")
        pages, end, first = self._content.pages, position + len(data), position // PAGE
        if first not in pages or end > (first + 1) * PAGE:  # most writes are within a page that was written before
            for page in range(first, (end - 1) // PAGE + 1):
                if page not in pages:
                    pages[page] = bytes(self.view[page * PAGE : (page + 1) * PAGE])
        self._map[position:end] = data

    def flush(self, start: int = 0, end: int | None = None) -> None:
        """Sync the pages of a range. The real disk is not synced, because power cuts are simulated."""
        if self._files.refuse_sync is not None:
            raise self._files.refuse_sync
        pages = self._content.pages
        first, last = start // PAGE, ((self.size if end is None else end) - 1) // PAGE
        if len(pages) < last - first:
            for page in [page for page in pages if first <= page <= last]:
                del pages[page]
        else:
            for page in range(first, last + 1):
                pages.pop(page, None)


class CrashFiles(RealFiles):
    """The Files port with ``power_cut``. One object per machine: kill and start of its node keep it.

    ``disk_used``: set it (0..1) to fill the simulated disk.
    ``refuse_sync``: an OSError that every sync raises. ``refuse_open``: one that is raised where a file is opened.
    """

    def __init__(self) -> None:
        super().__init__(disk_used=LAB_DISK_USED)
        self.life = 0
        self.power_cuts = 0
        self.refuse_sync: OSError | None = None
        self.refuse_open: OSError | None = None
        self._contents: dict[str, _Content] = {}
        self._names: dict[str, list[_NameChange]] = {}
        self._saved: str | None = None
        self._saved_count = 0

    def map(self, path: str, size: int, *, create: bool = True) -> RealMapping:
        if self.refuse_open is not None:
            raise self.refuse_open
        if create and not os.path.exists(path):
            self._changed("create", path)
        return super().map(path, size, create=create)

    def _mapping(self, path: str, size: int, mapped: mmap.mmap | WrittenThrough) -> RealMapping:
        return CrashMapping(path, size, mapped, self)

    def write(self, path: str, data: bytes, *, sync: bool = False) -> None:
        if self.refuse_open is not None:
            raise self.refuse_open
        if not os.path.exists(path):
            self._changed("create", path)
        if sync and self.refuse_sync is not None:
            raise self.refuse_sync
        content = self.content_of(path)
        content.pages.clear()
        content.whole = not sync
        super().write(path, data)

    def rename(self, source: str, target: str) -> None:
        saved = self._save(target) if os.path.exists(target) else ""
        super().rename(source, target)
        self._moved(source, target)
        self._changed("rename", target, source, saved)

    def remove(self, path: str) -> None:
        if not os.path.exists(path):
            raise FileNotFoundError(path)
        self._changed("remove", path, saved=self._save(path))

    def remove_tree(self, path: str) -> None:
        if not os.path.isdir(path):
            raise FileNotFoundError(path)
        self._changed("remove", path, saved=self._save(path))

    def make_directory(self, path: str) -> None:
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path) or "."
        for directory in reversed(missing):
            self._changed("create", directory)
            super().make_directory(directory)

    def sync_directory(self, path: str) -> None:
        refused = self.refuse_open or self.refuse_sync
        if refused is not None:
            raise refused
        for change in self._names.pop(_key(path), []):
            if change.saved:
                self._forget(change.saved)

    def process_ended(self) -> None:
        """The process ended: its writes stay, its locks are released, and its mappings accept no more writes."""
        super().process_ended()
        self.life += 1

    def unsynced(self) -> list[Unsynced]:
        """Everything that is written and not synced: changes of names in their order, then pages by path."""
        changes = [Unsynced(c.kind, c.path) for directory in sorted(self._names) for c in self._names[directory]]
        for path in sorted(self._contents):
            content = self._contents[path]
            if content.whole:
                changes.append(Unsynced("content", path))
            changes.extend(Unsynced("page", path, page) for page in sorted(content.pages))
        return changes

    def power_cut(self, keep: Keep | None = None) -> list[Unsynced]:
        """Undo everything that is not synced, except where ``keep`` returns True; return what was lost.

        Without ``keep`` all of it is lost. The process that used these files counts as ended.
        """
        self.process_ended()
        self.power_cuts += 1
        lost: list[Unsynced] = []
        for path in sorted(self._contents):
            lost.extend(self._cut_content(self._contents[path], path, keep))
        for directory in sorted(self._names):
            lost.extend(self._cut_names(self._names[directory], keep))
        self._contents.clear()
        self._names.clear()
        self._drop_saved()
        return lost

    def _cut_content(self, content: _Content, path: str, keep: Keep | None) -> list[Unsynced]:
        lost = []
        if content.whole and not (keep is not None and keep(Unsynced("content", path))):
            lost.append(Unsynced("content", path))
            if os.path.exists(content.path):
                os.truncate(content.path, 0)
        gone = [page for page in sorted(content.pages) if keep is None or not keep(Unsynced("page", path, page))]
        if gone and os.path.exists(content.path):
            descriptor = os.open(content.path, os.O_WRONLY)
            try:
                for page in gone:
                    os.pwrite(descriptor, content.pages[page], page * PAGE)
            finally:
                os.close(descriptor)
        return lost + [Unsynced("page", path, page) for page in gone]

    def _cut_names(self, changes: list[_NameChange], keep: Keep | None) -> list[Unsynced]:
        kept = 0
        while kept < len(changes) and keep is not None and keep(Unsynced(changes[kept].kind, changes[kept].path)):
            kept += 1
        for change in reversed(changes[kept:]):
            self._undo(change)
        return [Unsynced(change.kind, change.path) for change in changes[kept:]]

    def _undo(self, change: _NameChange) -> None:
        if not os.path.isdir(os.path.dirname(change.path) or "."):
            return  # the creation of its directory was undone before
        if change.kind == "rename" and os.path.exists(change.path):
            os.replace(change.path, change.other)
        elif change.kind == "create" and os.path.isdir(change.path):
            shutil.rmtree(change.path)
        elif change.kind == "create" and os.path.exists(change.path):
            os.remove(change.path)
        if change.saved:
            shutil.move(change.saved, change.path)

    def content_of(self, path: str) -> _Content:
        """The record of a file's unsynced pages."""
        key = _key(path)
        content = self._contents.get(key)
        if content is None:
            content = self._contents[key] = _Content(key)
        return content

    def _changed(self, kind: str, path: str, other: str = "", saved: str = "") -> None:
        key = _key(path)
        change = _NameChange(kind, key, _key(other) if other else "", saved)
        self._names.setdefault(os.path.dirname(key), []).append(change)

    def _save(self, path: str) -> str:
        """Move a file or a tree away, to bring it back if a power cut undoes its removal."""
        if self._saved is None:
            self._saved = tempfile.mkdtemp(prefix="mqlab-unsynced-")
            weakref.finalize(self, shutil.rmtree, self._saved, ignore_errors=True)
        self._saved_count += 1
        saved = f"{self._saved}/{self._saved_count}"
        shutil.move(path, saved)
        self._moved(path, saved)
        return saved

    def _moved(self, source: str, target: str) -> None:
        """Move the records of a file, or of the files below a directory, to the new path."""
        source, target = _key(source), _key(target)
        for path in [path for path in self._contents if path == source or path.startswith(source + "/")]:
            content = self._contents.pop(path)
            content.path = target + path[len(source) :]
            self._contents[content.path] = content
        for directory in [name for name in self._names if name == source or name.startswith(source + "/")]:
            del self._names[directory]

    def _forget(self, saved: str) -> None:
        for path in [path for path in self._contents if path == saved or path.startswith(saved + "/")]:
            del self._contents[path]
        if os.path.isdir(saved):
            shutil.rmtree(saved)
        elif os.path.exists(saved):
            os.remove(saved)

    def _drop_saved(self) -> None:
        if self._saved is not None:
            shutil.rmtree(self._saved, ignore_errors=True)
            os.makedirs(self._saved, exist_ok=True)

    def __repr__(self) -> str:
        return f"<CrashFiles {len(self.unsynced())} things unsynced, life {self.life}>"


def _key(path: str) -> str:
    return os.path.abspath(path)
