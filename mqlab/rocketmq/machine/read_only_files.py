"""A directory tree that can be read and not changed: the Files port of the inspector.

It also reads the store of a running broker. RocketMQ's own tools open a store the way a broker does.

    map       the whole file as it is now, opened for reading only (never longer, never created)
    read, list, size, exists, is_dir, modified_ms     as usual
    all methods that write, create, rename, remove or lock     raise StoreError

There is no lock, because reading does not disturb a writer.
"""

from __future__ import annotations

import mmap
import os
import shutil
from typing import NoReturn

from mqlab.errors import StoreError
from mqlab.rocketmq.ports import FileLock


class ReadOnlyMapping:
    """One file in memory, for reading. An empty file has an empty view."""

    __slots__ = ("_map", "path", "size", "view")

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb") as file:
            self.size = os.fstat(file.fileno()).st_size
            self._map = mmap.mmap(file.fileno(), self.size, access=mmap.ACCESS_READ) if self.size else None
        self.view = memoryview(self._map) if self._map is not None else memoryview(b"")

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        _refuse(self.path)

    def zero(self, start: int, end: int | None = None) -> None:
        _refuse(self.path)

    def flush(self, start: int = 0, end: int | None = None) -> None:
        """Nothing was written, so nothing is left to sync."""

    def find(self, pattern: bytes, start: int, end: int) -> int:
        """The first position of ``pattern`` in ``start..end``, -1 when it is not there."""
        return self._map.find(pattern, start, end) if self._map is not None else -1

    def close(self) -> None:
        """Release the file; views that were handed out keep it in memory until they are released."""
        self.view = memoryview(b"")
        self._map = None

    def __repr__(self) -> str:
        return f"<ReadOnlyMapping {self.path} {self.size} bytes>"


class ReadOnlyFiles:
    """Files for readers. Paths are text joined with "/"; missing files raise FileNotFoundError."""

    def map(self, path: str, size: int = 0, *, create: bool = False) -> ReadOnlyMapping:
        """Map the file with its present size; ``size`` and ``create`` are ignored."""
        return ReadOnlyMapping(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, directory: str) -> list[str]:
        return sorted(os.listdir(directory))

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def used_ratio(self, path: str) -> float:
        usage = shutil.disk_usage(path)
        return usage.used / usage.total

    def disk_space(self, path: str) -> tuple[int, int]:
        usage = shutil.disk_usage(path)
        return usage.total, usage.free

    def write(self, path: str, data: bytes, *, sync: bool = False) -> None:
        _refuse(path)

    def rename(self, source: str, target: str) -> None:
        _refuse(source)

    def remove(self, path: str) -> None:
        _refuse(path)

    def remove_tree(self, path: str) -> None:
        _refuse(path)

    def make_directory(self, path: str) -> None:
        _refuse(path)

    def sync_directory(self, path: str) -> None:
        _refuse(path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        _refuse(path)

    def lock(self, path: str) -> FileLock:
        _refuse(path)


def _refuse(path: str) -> NoReturn:
    raise StoreError(f"{path} was opened for reading only", hint="open the store with MessageStore.open to change it")
