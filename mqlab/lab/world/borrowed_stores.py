"""Stores that a Lab uses in place, without a copy and without changing them: writes stay in this process.

`mqlab admin` and the console open a real broker's store in this way. A snapshot of a file system would do the same.

    <directory>/broker-a/commitlog/00000000000000000000 ─▶ a symbolic link to the store's own file
    mapped      privately: a page that is written becomes a copy of this process (copy on write)
    replaced, removed, renamed     happens to the link

Left out: power cuts. Other readers of the files (lab.store) see the store without the writes.
"""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from mqlab.errors import UsageError
from mqlab.lab.runtime.crash_files import CrashFiles, CrashMapping, Keep, Unsynced
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.machine.files import RealMapping, with_descriptors
from mqlab.rocketmq.wire import names

_BLOCK = 1 << 20
LOG = "commitlog"


class BorrowedMapping(CrashMapping):
    """A file mapped privately. It knows the range that was written, since the holes of the file do not show writes."""

    __slots__ = ("_written_from", "_written_to")

    def __init__(self, path: str, size: int, mapped: mmap.mmap, files: CrashFiles) -> None:
        super().__init__(path, size, mapped, files)
        self._written_from, self._written_to = size, 0

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        super().write(position, data)
        self._written_from = min(self._written_from, position)
        self._written_to = max(self._written_to, position + len(data))

    def zero(self, start: int, end: int | None = None) -> None:
        end = self.size if end is None else end
        first, last = max(start, self._written_from), min(end, self._written_to)
        super().zero(start, end)
        for position in range(first, last, _BLOCK):
            stop = min(position + _BLOCK, last)
            if any(self.view[position:stop]):
                self.write(position, bytes(stop - position))


class BorrowedFiles(CrashFiles):
    """The Files port in which a symbolic link is a borrowed file: it is read, and never written."""

    def __init__(self) -> None:
        super().__init__()
        self._modified_ms: dict[str, int] = {}

    def map(self, path: str, size: int, *, create: bool = True) -> RealMapping:
        if not os.path.islink(path):
            return super().map(path, size, create=create)
        if os.path.getsize(path) < size and create:  # a file that grows must be copied
            source = os.path.realpath(path)
            os.unlink(path)
            shutil.copyfile(source, path)
            return super().map(path, size, create=create)
        descriptor = with_descriptors(lambda: os.open(path, os.O_RDONLY))
        try:
            mapped = with_descriptors(lambda: mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY))
        finally:
            os.close(descriptor)
        return BorrowedMapping(path, size, mapped, self)

    def write(self, path: str, data: bytes, *, sync: bool = False) -> None:
        if os.path.islink(path):
            os.unlink(path)
        super().write(path, data, sync=sync)

    def modified_ms(self, path: str) -> int:
        return self._modified_ms.get(path) or super().modified_ms(path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._modified_ms[path] = modified_ms

    def power_cut(self, keep: Keep | None = None) -> list[Unsynced]:
        raise UsageError("borrowed stores cannot lose power", hint="Lab(stores=...) works on a copy")


def link(source: str, target: str) -> None:
    """Make ``target`` a symbolic link to the file itself."""
    os.symlink(os.path.realpath(source), target)


class BorrowingLab(Lab):
    """A Lab over stores that are not copied, for a look at what brokers would answer. Only the simulated driver."""

    bring_file = staticmethod(link)

    def machine_files(self) -> CrashFiles:
        return BorrowedFiles()


def stores_of(directory: Path) -> dict[str, Path]:
    """Broker name -> store directory. A Lab's directory has one per broker; a single store belongs to broker-a.

    UsageError for a directory that is neither.
    """
    if (directory / LOG).is_dir():
        return {"broker-a": directory}
    within = sorted(directory.iterdir()) if directory.is_dir() else []
    stores = {path.name: path for path in within if (path / LOG).is_dir()}
    if not stores:
        raise UsageError(
            f"{directory} is neither a store nor a Lab's directory: neither it nor a folder in it has a {LOG}",
            hint="give the storePathRootDir of a broker, or the directory of Lab(directory=...)",
        )
    return stores


def open_stores(directory: Path, scratch: str | None, say: Callable[[str], None]) -> BorrowingLab:
    """A Lab on the stores, unchanged; queues of a store that was written without a broker get a topic.

    ``scratch`` is its own directory (None: a temporary one); ``say`` is told which topics are left out, and why, and
    which configuration files could not be read, and what counts instead.
    """
    lab = BorrowingLab(stores=stores_of(directory), directory=scratch)
    for text in damage_of(lab):
        say(text)
    for handle in [handle for handle in lab.handles.values() if handle.role == "broker"]:
        # A broker serves only topics that it has a configuration of, so add those that only the store knows.
        for topic, queue_ids in sorted(handle.node.store.topics().items()):
            if topic not in handle.node.topics and not names.is_system_topic(topic):
                count = max(queue_ids) + 1
                try:
                    lab.create_topic(topic, read_queue_nums=count, write_queue_nums=count, brokers=[handle.name])
                except UsageError as error:  # a name that only a store takes
                    say(f"topic {topic!r} of {handle.name} is left out: {error.text}")
    return lab


def damage_of(lab: Lab) -> list[str]:
    """The configuration files that brokers could not read: file, reason, and the age of what they took instead."""
    changes = ((record.node, change.values) for record in lab.journal for change in record.of("config.damaged"))
    return [f"{node}: {values['text']}" for node, values in changes]
