"""The files of one store, each with its reader, and where log and queues begin and end.

Arrow and Spark read stores with it. Lab 01 reads them with StoreInspector, a StoreReader that can show what it reads.

    log    units of the commit log          queues()     units of the consume queues
    index  chains of the index files        checkpoint() five numbers

Every bound is read from the files when it is asked for: a store that is open elsewhere grows meanwhile.
Left out: what is asked across parts; see message_search, deep_check and store_problems.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from mqlab.errors import UsageError
from mqlab.rocketmq.machine.read_only_files import ReadOnlyFiles
from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.reading import checkpoint_format
from mqlab.rocketmq.store.reading.config_backups import BackupWarning, read_with_backup
from mqlab.rocketmq.store.reading.file_sizes import queue_folders
from mqlab.rocketmq.store.reading.index_reader import IndexReader
from mqlab.rocketmq.store.reading.log_reader import LogReader
from mqlab.rocketmq.store.reading.open_files import OpenFiles
from mqlab.rocketmq.store.reading.queue_reader import QueueReader
from mqlab.rocketmq.store.reading.timer_reader import TimerReader
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.units import CqUnit


class StoreReader:
    """The readers of the store in ``directory``. Raises UsageError when there is no such directory.

    ``files`` are those of this machine without it. ``owner`` is kept as long as the reader: a Lab that nobody keeps
    deletes its directory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     StoreReader(empty).max_physical_offset
    0
    """

    def __init__(self, directory: str | os.PathLike[str], *, files: Files | None = None, owner: object = None) -> None:
        self._owner = owner
        self.files: Files = ReadOnlyFiles() if files is None else files
        self.directory = os.fspath(directory)
        if not self.files.is_dir(self.directory):
            raise UsageError(
                f"there is no store directory {self.directory!r}",
                hint="give the directory that holds commitlog/ and consumequeue/ (storePathRootDir of a broker)",
            )
        self._open_files = OpenFiles(self.files)
        self.log = LogReader(self.files, f"{self.directory}/commitlog", self._open_files)
        self.index = self._index(f"{self.directory}/index")
        self.timer = TimerReader(self.files, self.directory)

    def _index(self, folder: str) -> IndexReader:
        return IndexReader(self.files, folder, self._open_files)

    @property
    def min_physical_offset(self) -> int:
        """Where the log begins: the start of its oldest file; 0 without files."""
        segments = self.log.segments()
        return segments[0].start if segments else 0

    @property
    def max_physical_offset(self) -> int:
        """Where the next unit will be appended: after the last unit, found without reading the log from its start."""
        return self.log.tail(self._known_units())[0]

    def last_store_timestamp(self) -> int | None:
        """When the last message was stored, ms; None for an empty log."""
        last = self.log.tail(self._known_units())[1]
        return last.store_timestamp if last else None

    @property
    def dispatched_physical_offset(self) -> int:
        """The end of the last unit that is in a consume queue; what follows is not visible to consumers yet."""
        ends = (
            unit.physical_offset + unit.size
            for unit in self._last_units()
            if self.log.unit_at(unit.physical_offset) is not None
        )
        return max(ends, default=self.min_physical_offset)

    def log_bytes(self) -> int:
        """Bytes of the log's files, empty parts included."""
        return sum(segment.size for segment in self.log.segments())

    def _last_units(self) -> Iterator[CqUnit]:
        for queue in self.queues():
            unit = queue.unit(queue.max_offset - 1)
            if unit is not None:
                yield unit

    def _known_units(self) -> list[int]:
        """Places of units near the end of the log: the search for the end begins at the last of them."""
        places = [unit.physical_offset for unit in self._last_units()]
        checkpoint = self.checkpoint()
        if checkpoint is not None:
            places.append(checkpoint["confirm_physical_offset"])  # the start of a unit, not its end
        return places

    def topics(self) -> dict[str, list[int]]:
        """The queues that have a folder: topic -> queue ids, both in order."""
        topics: dict[str, list[int]] = {}
        for folder in queue_folders(self.files, f"{self.directory}/consumequeue"):
            _, topic, queue_id = folder.rsplit("/", 2)
            topics.setdefault(topic, []).append(int(queue_id))
        return topics

    def queues(self, topic: str | None = None) -> Sequence[QueueReader]:
        """All queues, or those of one topic."""
        log_start = self.min_physical_offset
        topics = self.topics()
        if topic is not None:
            topics = {topic: topics.get(topic, [])}
        return [self._queue(name, queue_id, log_start) for name, ids in topics.items() for queue_id in ids]

    def queue(self, topic: str, queue_id: int) -> QueueReader:
        """One queue. Raises UsageError, naming the queues and topics there are, when it has no folder."""
        topics = self.topics()
        ids = topics.get(topic)
        if ids is None or queue_id not in ids:
            hint = f"queues of {topic!r}: {ids}" if ids else "topics: " + (", ".join(topics) or "none")
            raise UsageError(f"there is no consume queue {topic!r} {queue_id}", hint=hint)
        return self._queue(topic, queue_id, self.min_physical_offset)

    def _queue(self, topic: str, queue_id: int, log_start: int) -> QueueReader:
        return QueueReader(self.files, self._folder_of(topic, queue_id), self._open_files, topic, queue_id, log_start)

    def _folder_of(self, topic: str, queue_id: int) -> str:
        return f"{self.directory}/consumequeue/{topic}/{queue_id}"

    def checkpoint(self) -> dict[str, int] | None:
        """The numbers of the checkpoint file by name; None when there is none."""
        data = self.checkpoint_bytes()
        return checkpoint_format.decode(data) if data is not None else None

    def checkpoint_bytes(self) -> bytes | None:
        """The checkpoint file as it is; None when there is none."""
        path = f"{self.directory}/checkpoint"
        return self.files.read(path) if self.files.exists(path) else None

    @property
    def is_open(self) -> bool:
        """True while a store has the directory open, and after one crashed (the file ``abort`` is there)."""
        return self.files.exists(f"{self.directory}/abort")

    def config(self, name: str) -> Any:
        """A file under config/ as plain values (``config("topics.json")``), its .bak when damaged; None without.

        A BackupWarning says which backup was read, why, and how old it is.
        """
        reading = read_with_backup(self.files, f"{self.directory}/config/{name}", java_json.loads)
        if reading.is_healed:
            warnings.warn(reading.text(), BackupWarning, stacklevel=2)
        return reading.value

    def close(self) -> None:
        """Let go of the open files; the next question opens what it needs."""
        self._open_files.close()

    def __repr__(self) -> str:
        state = "open or crashed" if self.is_open else "closed"
        bounds = f"{self.min_physical_offset}..{self.max_physical_offset}"
        return f"<{type(self).__name__} {self.directory} {bounds} {state}>"
