"""The disk of a learner's broker: files of a fixed size that are mapped, and small files that are replaced as a whole.

    disk.create("commitlog/00000000000000000000", 1 << 20)     a file of zeros; its name survives a power cut
    disk.write(name, 243, unit), disk.read(name, 243, 4)       written: survives kill -9
    disk.sync(name)                                            synced: survives a power cut
    disk.replace("offsets.json", data), disk.load(…)           old or new after any crash, never half of both

Names are below the broker's store directory, so what has RocketMQ's form is read by ``mqlab inspect``. No more than
half a megabyte is read or written at once, wherever the part runs.
"""

from __future__ import annotations

from mqlab.errors import UsageError
from mqlab.rocketmq.ports import Files, Mapping

AT_ONCE = 1 << 19


class Disk:
    """What a part may do with its files. UsageError for a name or a place that is outside of them.

    ``made_bytes`` counts what was created and replaced.
    """

    def __init__(self, files: Files, directory: str) -> None:
        self.made_bytes = 0
        self._files = files
        self._directory = directory
        self._open: dict[str, Mapping] = {}
        self._make_folder(directory)

    def names(self, folder: str) -> list[str]:
        """The names of all files in a folder and in the folders in it, sorted; none if it does not exist."""
        path = self._path(folder)
        files_found: list[str] = []
        for name in self._files.list(path) if self._files.is_dir(path) else ():
            inner = f"{folder}/{name}"
            files_found += self.names(inner) if self._files.is_dir(self._path(inner)) else [inner]
        return sorted(files_found)

    def size(self, name: str) -> int:
        """The bytes of a file; 0 if it does not exist."""
        path = self._path(name)
        return self._files.size(path) if self._files.exists(path) else 0

    def create(self, name: str, size: int) -> None:
        """Make a file of zeros. UsageError if it exists."""
        path = self._path(name)
        if self._files.exists(path):
            raise UsageError(f"{name} exists", hint="disk.names(folder) says which files there are")
        if size < 1:
            raise UsageError(f"create({name!r}, {size}): a file has one byte or more")
        self.made_bytes += size
        self._make_folder(path.rpartition("/")[0])
        self._open[name] = self._files.map(path, size)
        self._files.sync_directory(path.rpartition("/")[0])

    def read(self, name: str, position: int, size: int) -> bytes:
        """Bytes of a file that was made with ``create``; fewer at its end."""
        if position < 0 or size < 0:
            raise UsageError(f"read({name!r}, {position}, {size}): a position and a size are 0 or more")
        _is_small_enough(name, size)
        return bytes(self._mapped(name).view[position : position + size])

    def write(self, name: str, position: int, data: bytes) -> None:
        """Write into a file that was made with ``create``. UsageError for bytes that do not fit into it."""
        mapped = self._mapped(name)
        _is_small_enough(name, len(data))
        if position < 0 or position + len(data) > mapped.size:
            raise UsageError(f"{len(data)} bytes at {position} do not fit into {name}, which has {mapped.size}")
        mapped.write(position, bytes(data))

    def sync(self, name: str) -> None:
        """Wait until all that was written into a file would survive a power cut."""
        self._mapped(name).flush()

    def load(self, name: str) -> bytes | None:
        """The content of a file that was written with ``replace``; None if there is none."""
        path = self._path(name)
        return self._files.read(path) if self._files.exists(path) else None

    def replace(self, name: str, data: bytes) -> None:
        """Write a whole file in place of the one of that name. After a crash it has the old or the new content."""
        path = self._path(name)
        _is_small_enough(name, len(data))
        self.made_bytes += len(data)
        self._make_folder(path.rpartition("/")[0])
        self._files.write(f"{path}.new", bytes(data), sync=True)
        self._files.rename(f"{path}.new", path)
        self._files.sync_directory(path.rpartition("/")[0])

    def _path(self, name: str) -> str:
        if not isinstance(name, str) or not name or name.startswith("/") or ".." in name.split("/"):
            raise UsageError(f"{name!r} is not the name of a file", hint='a name such as "commitlog/00000"')
        return f"{self._directory}/{name}"

    def _mapped(self, name: str) -> Mapping:
        mapped = self._open.get(name)
        if mapped is None:
            path = self._path(name)
            if not self._files.exists(path):
                raise UsageError(f"there is no file {name}", hint="disk.create makes one")
            mapped = self._open[name] = self._files.map(path, self._files.size(path), create=False)
        return mapped

    def _make_folder(self, path: str) -> None:
        if self._files.is_dir(path):
            return
        parent = path.rpartition("/")[0]
        self._make_folder(parent)
        self._files.make_directory(path)
        self._files.sync_directory(parent)

    def close(self) -> None:
        """Close every file."""
        for mapped in self._open.values():
            mapped.close()
        self._open.clear()

    def __repr__(self) -> str:
        return f"<Disk: {len(self._open)} files open>"


def _is_small_enough(name: str, size: int) -> None:
    if size > AT_ONCE:
        raise UsageError(
            f"{size:,} bytes of {name} at once", hint=f"read and write at most {AT_ONCE:,} bytes with one call"
        )
