"""Directories and mapped files, straight on the operating system.

Mirrors: java.nio.MappedByteBuffer, FileChannel.force and FileLock as RocketMQ's DefaultMappedFile uses them.

    write()          written: in the page cache, seen by every reader, survives kill -9
    flush()          synced: survives a power cut (msync of the pages of that range)
    sync_directory() the names in a directory survive a power cut (creations, removals, renames)

The twin with a power switch is mqlab.lab.runtime.crash_files.
In a browser (mqlab.browser) a mapping is a copy in memory that writes through, and locks hold for this process alone.
Left out: Windows.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import sys
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from mqlab.browser import IN_BROWSER
from mqlab.errors import CorruptionError, StoreError

if not IN_BROWSER:
    import fcntl
    import resource

T = TypeVar("T")

KEPT_DESCRIPTORS = 32
"""A store leaves so many descriptors of its process to connections: even at the limit a broker says what is wrong."""
LAB_DISK_BYTES = 100 << 30
LAB_DISK_USED = 0.25  # of the disk of a Lab's machine: the host's disk must not change a story

_ZEROS = bytes(1 << 20)
_held_locks: dict[str, int] = {}  # real path -> file descriptor, for the whole process


class RealMapping:
    """A file mapped into memory. ``flush`` is msync: its range is on the disk when it returns.

    Closing while slices of ``view`` exist is allowed: the memory is released with the last slice.
    """

    __slots__ = ("_map", "path", "size", "view")

    def __init__(self, path: str, size: int, mapped: mmap.mmap | WrittenThrough) -> None:
        self.path = path
        self.size = size
        self._map = mapped
        self.view = memoryview(mapped).toreadonly()

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        self._map[position : position + len(data)] = data

    def zero(self, start: int, end: int | None = None) -> None:
        """Make bytes zero. Only bytes that are not zero are written, and holes of the file are not read."""
        end = self.size if end is None else end
        for data_start, data_end in _data_ranges(self.path, start, end):
            for position in range(data_start, data_end, len(_ZEROS)):
                stop = min(position + len(_ZEROS), data_end)
                if self.view[position:stop] != _ZEROS[: stop - position]:
                    self.write(position, _ZEROS[: stop - position])

    def flush(self, start: int = 0, end: int | None = None) -> None:
        start -= start % mmap.ALLOCATIONGRANULARITY
        self._map.flush(start, (self.size if end is None else end) - start)

    def close(self) -> None:
        self.view.release()
        try:
            self._map.close()
        except BufferError:  # a reader still holds a slice; the map is freed with it
            pass

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path} {self.size} bytes>"


class RealFiles:
    """The Files port on the operating system. Paths are text; a missing file raises FileNotFoundError.

    ``disk_used``: the fill level to report (0..1); None asks the file system.
    """

    def __init__(self, *, disk_used: float | None = None) -> None:
        self.disk_used = disk_used
        self._locks: list[_Lock] = []

    def map(self, path: str, size: int, *, create: bool = True) -> RealMapping:
        """Map a file. It is created, or extended with zeros, unless ``create`` is False. Its directory must exist."""
        is_new = create and not os.path.exists(path)
        flags = os.O_RDWR | (os.O_CREAT if create else 0)
        descriptor = -1
        try:
            descriptor = with_descriptors(lambda: _open_leaving_some(path, flags))
            length = os.fstat(descriptor).st_size
            if length < size:
                if not create:
                    raise CorruptionError("file is too short", where=path, expected=f"{size} bytes", found=length)
                os.ftruncate(descriptor, size)
            return self._mapping(path, size, with_descriptors(lambda: _map(descriptor, size)))
        except OSError:
            if is_new and os.path.exists(path):  # the next attempt may use another name
                os.remove(path)
            raise
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _mapping(self, path: str, size: int, mapped: mmap.mmap | WrittenThrough) -> RealMapping:
        return RealMapping(path, size, mapped)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, directory: str) -> list[str]:
        """The names in a directory, sorted."""
        return sorted(os.listdir(directory))

    def size(self, path: str) -> int:
        return os.path.getsize(path)

    def read(self, path: str) -> bytes:
        held = _held_locks.get(os.path.realpath(path))
        if held is not None:  # closing a second descriptor of a locked file would drop the POSIX lock
            return os.pread(held, os.fstat(held).st_size, 0)
        with open(path, "rb") as file:
            return file.read()

    def write(self, path: str, data: bytes, *, sync: bool = False) -> None:
        """Replace the content of a file, not atomically: a crash may leave a part. ``sync`` waits for the disk."""
        held = _held_locks.get(os.path.realpath(path))
        if held is not None:
            os.ftruncate(held, 0)
            os.pwrite(held, data, 0)
            return
        with open(path, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())

    def rename(self, source: str, target: str) -> None:
        """Rename within a file system; an existing target is replaced."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; nothing happens if it exists."""
        os.makedirs(path, exist_ok=True)

    def sync_directory(self, path: str) -> None:
        """Wait until the names in a directory are on the disk; the contents of the files are not synced."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def used_ratio(self, path: str) -> float:
        """Used part of the file system, whole percent rounded up, as a fraction (getDiskPartitionSpaceUsedPercent)."""
        if self.disk_used is not None:
            return self.disk_used
        usage = shutil.disk_usage(path)
        entire = usage.used + usage.free
        return -(-usage.used * 100 // entire) / 100 if entire else 0.0

    def disk_space(self, path: str) -> tuple[int, int]:
        """Total and free bytes of the file system; with ``disk_used`` those of a disk of 100 GiB."""
        if self.disk_used is not None:
            return LAB_DISK_BYTES, LAB_DISK_BYTES - round(LAB_DISK_BYTES * self.disk_used)
        usage = shutil.disk_usage(path)
        return usage.total, usage.free

    def lock(self, path: str) -> _Lock:
        """Lock byte 0 of a file against other processes and against this one; StoreError when it is taken."""
        real = os.path.realpath(path)
        descriptor = None if real in _held_locks else os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if descriptor is None:
                raise BlockingIOError
            if not IN_BROWSER:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except (BlockingIOError, PermissionError):
            if descriptor is not None:
                os.close(descriptor)
            raise StoreError(
                f"{path} is locked: another store has this directory open",
                hint="close it (shutdown(), or leave its with block), or read it with StoreInspector without a lock",
            ) from None
        assert descriptor is not None
        _held_locks[real] = descriptor
        lock = _Lock(self._locks, real, descriptor)
        self._locks.append(lock)
        return lock

    def process_ended(self) -> None:
        """Do what the operating system does when a process ends: release its locks; written bytes stay."""
        for lock in list(self._locks):
            lock.release()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self._locks)} locks held>"


class _Lock:
    """A held lock. It is also released with the object, so that a world that is not closed leaves no file open."""

    def __init__(self, held_by: list[_Lock], path: str, descriptor: int) -> None:
        self._held_by = held_by
        self._let_go = weakref.finalize(self, _unlock, path, descriptor)

    def release(self) -> None:
        if self in self._held_by:
            self._held_by.remove(self)
            self._let_go()


def _unlock(path: str, descriptor: int) -> None:
    del _held_locks[path]
    os.close(descriptor)


def _open_leaving_some(path: str, flags: int) -> int:
    """Open a file of a store. OSError, EMFILE, when the last descriptors of the process would be used for it."""
    descriptor = os.open(path, flags, 0o644)
    try:
        following = os.dup(descriptor)  # the lowest number that is free; a mapping takes one, too
        os.close(following)
    except OSError:
        os.close(descriptor)
        raise
    if not IN_BROWSER and following >= resource.getrlimit(resource.RLIMIT_NOFILE)[0] - KEPT_DESCRIPTORS:
        os.close(descriptor)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
    return descriptor


def with_descriptors(action: Callable[[], T]) -> T:
    """Run an action; if it runs out of file descriptors, raise the limit and try again (a store maps many files)."""
    while True:
        try:
            return action()
        except OSError as error:
            if IN_BROWSER:
                raise
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            if error.errno != errno.EMFILE or soft == hard:
                raise
            wanted = soft * 16 if hard == resource.RLIM_INFINITY else min(hard, soft * 16)
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class WrittenThrough(bytearray):
    """A mapping where the system's are private copies, as in a browser: every write also goes to the file.

    Two mappings of one file do not see each other's writes.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        super().__init__(os.pread(descriptor, size, 0))
        self._file = os.dup(descriptor)
        self._close_file = weakref.finalize(self, os.close, self._file)

    def __setitem__(self, where: Any, data: Any) -> None:
        super().__setitem__(where, data)
        os.pwrite(self._file, data, where.start)

    def flush(self, start: int = 0, length: int = 0) -> None:
        """Every write is in the file already."""

    def close(self) -> None:
        self._close_file()


def _map(descriptor: int, size: int) -> mmap.mmap | WrittenThrough:
    if IN_BROWSER:
        return WrittenThrough(descriptor, size)
    if sys.version_info >= (3, 13):
        return mmap.mmap(descriptor, size, trackfd=False)
    return mmap.mmap(descriptor, size)


def copy_without_holes(source: str, target: str) -> None:
    """Copy a file. Its holes stay holes: of a log that is a gigabyte on paper, only what was written is copied."""
    size = os.path.getsize(source)
    with open(source, "rb") as original, open(target, "wb") as copy:
        copy.truncate(size)
        for start, end in _data_ranges(source, 0, size):
            original.seek(start)
            copy.seek(start)
            for position in range(start, end, len(_ZEROS)):
                copy.write(original.read(min(len(_ZEROS), end - position)))


def _data_ranges(path: str, start: int, end: int) -> list[tuple[int, int]]:
    """The parts of a sparse file between two positions that are not holes."""
    if not hasattr(os, "SEEK_DATA"):
        return [(start, min(end, os.path.getsize(path)))]
    ranges: list[tuple[int, int]] = []
    descriptor = os.open(path, os.O_RDONLY)
    try:
        position = start
        while position < end:
            try:
                position = os.lseek(descriptor, position, os.SEEK_DATA)
            except OSError:  # ENXIO: only a hole is left
                break
            hole = min(end, os.lseek(descriptor, position, os.SEEK_HOLE))
            if position < hole:
                ranges.append((position, hole))
            position = max(hole, position + 1)
    finally:
        os.close(descriptor)
    return ranges
