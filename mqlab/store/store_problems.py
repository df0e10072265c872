"""What is wrong with a store, said without changing it: damage, files that do not belong, parts that disagree.

Mirrors: the checks of MappedFileQueue.load and CommitLog's recovery, and comparisons no RocketMQ tool makes. Lab 03.

    quick   names and lengths of files, the last unit of each queue, headers of the index, configuration files
    deep    every unit of the log: layout, check sum, place; its queue unit; every index entry

Left out: repair. ``mqlab recover`` does what a broker does at its start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from mqlab.errors import CorruptionError
from mqlab.store import checkpoint as checkpoint_file
from mqlab.store import store_tree
from mqlab.store.file_sizes import offset_names, queue_folders, segment_size
from mqlab.store.log_reader import GAP, UNIT, Piece, Segment
from mqlab.wire.java_hash import crc32, tags_code
from mqlab.wire.names import SCHEDULE_TOPIC
from mqlab.wire.property_names import TAGS
from mqlab.wire.record import Record
from mqlab.wire.sys_flag import TRANSACTION_PREPARED, TRANSACTION_ROLLBACK, transaction_type
from mqlab.wire.units import CQ_UNIT_SIZE

if TYPE_CHECKING:
    from mqlab.store.inspector import StoreInspector

_NOT_IN_QUEUES = (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: a stable ``kind``, the file below the store's root, the physical offset if any."""

    kind: str
    file: str
    physical_offset: int | None
    text: str

    def __str__(self) -> str:
        place = "" if self.physical_offset is None else f" at {self.physical_offset}"
        return f"{self.file}{place}: {self.text}"


def find_problems(store: StoreInspector, *, deep: bool) -> list[Problem]:
    """All problems of a store, in the order log, queues, index, the rest; see the module for ``deep``."""
    return [*_find(store, deep)]


def _find(store: StoreInspector, deep: bool) -> Iterator[Problem]:
    segments, end = store.log.segments(), store.max_physical_offset
    yield from _file_problems(store)
    yield from _missing_segments(segments)
    if deep:
        yield from _DeepCheck(store, segments, end).problems()
    else:
        yield from _last_units(store, end)
    yield from _index_problems(store, end, deep)
    yield from _small_files(store)


def _file_problems(store: StoreInspector) -> Iterator[Problem]:
    """Names and lengths that make RocketMQ refuse to start."""
    root, files = store.directory, store.files
    queues = list(queue_folders(files, f"{root}/consumequeue"))
    for folders, multiple in (([f"{root}/commitlog"], 1), (queues, CQ_UNIT_SIZE)):
        usual = segment_size(files, folders, multiple)
        for folder in folders:
            known = offset_names(files, folder)
            for name in files.list(folder) if files.is_dir(folder) else []:
                path = f"{folder}/{name}"
                below = path[len(root) + 1 :]
                if files.is_dir(path):
                    continue
                if name not in known:
                    yield Problem(
                        "foreign file", below, None, "does not belong here; RocketMQ refuses to load the store"
                    )
                elif files.size(path) != usual and not (name == known[-1] and files.size(path) == 0):
                    yield Problem(
                        "file size",
                        below,
                        None,
                        f"expected {usual} bytes like its neighbours, found {files.size(path)}",
                    )


def _missing_segments(segments: list[Segment]) -> Iterator[Problem]:
    for before, after in pairwise(segments):
        if before.end < after.start:
            name = f"commitlog/{before.end:020d}"
            yield Problem(
                "missing file", name, before.end, f"{after.start - before.end} bytes of the log are not there"
            )


def _last_units(store: StoreInspector, end: int) -> Iterator[Problem]:
    """Queues whose last unit leads nowhere."""
    start = store.min_physical_offset
    for queue in store.queues():
        unit = queue.unit(queue.max_offset - 1)
        if unit is None or unit.physical_offset < start:
            continue
        piece = store.log.unit_at(unit.physical_offset)
        if piece is None or piece.size != unit.size:
            found = (
                "beyond the end of the log" if unit.physical_offset >= end else "not the start of a unit of that size"
            )
            yield Problem(
                "queue unit", f"consumequeue/{queue.topic}/{queue.queue_id}", unit.physical_offset,
                f"unit {queue.max_offset - 1} names offset {unit.physical_offset}, size {unit.size}: {found}",
            )  # fmt: skip


class _DeepCheck:
    """Reads the log once and holds every unit against its queue."""

    def __init__(self, store: StoreInspector, segments: list[Segment], end: int) -> None:
        self._store = store
        self._segments = segments
        self._end = end
        self._queues = {(queue.topic, queue.queue_id): queue for queue in store.queues()}
        self._ends = {key: (queue.min_offset, queue.max_offset) for key, queue in self._queues.items()}
        self._agreeing = dict.fromkeys(self._queues, 0)
        self._dispatched = store.dispatched_physical_offset

    def problems(self) -> Iterator[Problem]:
        start = self._store.min_physical_offset
        for piece in self._store.log.scan(start, self._end, self._segments):
            file = f"commitlog/{self._file_of(piece)}"
            if piece.kind == GAP:
                yield Problem("damage", file, piece.physical_offset, f"{piece.size} bytes are no unit: {piece.text}")
            elif piece.kind == UNIT:
                for kind, text in self._unit_problems(piece, piece.record()):
                    yield Problem(kind, file, piece.physical_offset, text)
        yield from self._units_without_message()

    def _unit_problems(self, piece: Piece, record: Record) -> Iterator[tuple[str, str]]:
        if record.body and crc32(record.body) != record.body_crc:
            yield "check sum", f"the body's CRC-32 is {crc32(record.body):08x}, the unit says {record.body_crc:08x}"
        if record.physical_offset != piece.physical_offset:
            yield "place", f"the unit says it stands at {record.physical_offset}"
        if transaction_type(record.sys_flag) in _NOT_IN_QUEUES:
            return
        key = (record.topic, record.queue_id)
        queue = self._queues.get(key)
        first, after_last = self._ends.get(key, (0, 0))
        unit = queue.unit(record.queue_offset) if queue and first <= record.queue_offset < after_last else None
        if unit is None:
            if piece.physical_offset < self._dispatched:
                yield "not in its queue", f"no unit {record.queue_offset} in queue {record.topic} {record.queue_id}"
            return
        expected = (piece.physical_offset, piece.size)
        found = (unit.physical_offset, unit.size)
        if expected != found:
            yield "queue unit", f"its queue unit names offset and size {found}, the message has {expected}"
            return
        self._agreeing[key] += 1
        tags = tags_code(record.property_map.get(TAGS))
        if record.topic != SCHEDULE_TOPIC and unit.tags_code != tags:
            yield "queue unit", f"its queue unit has the tags code {unit.tags_code}, its tags make {tags}"

    def _units_without_message(self) -> Iterator[Problem]:
        for key, queue in self._queues.items():
            first, after_last = self._ends[key]
            missing = after_last - first - self._agreeing[key]
            if missing > 0:
                text = f"{missing} of the units {first}..{after_last} name no message of this queue"
                yield Problem("queue unit", f"consumequeue/{queue.topic}/{queue.queue_id}", None, text)

    def _file_of(self, piece: Piece) -> str:
        for segment in self._segments:
            if segment.start <= piece.physical_offset < segment.end:
                return segment.path.rpartition("/")[2]
        return f"{piece.physical_offset:020d}"


def _index_problems(store: StoreInspector, end: int, deep: bool) -> Iterator[Problem]:
    for summary in store.index_files():
        file = f"index/{summary.name}"
        table = store.index.table(summary.name)
        if table is None:
            if summary.entries:
                yield Problem("index sizes", file, None, "cannot tell its number of slots: give max_hash_slot_num")
            continue
        if summary.entries and summary.end_physical_offset >= end:
            yield Problem(
                "index beyond the log", file, summary.end_physical_offset,
                f"knows a message at {summary.end_physical_offset}, the log ends at {end}; "
                "until the log has grown past that, RocketMQ indexes nothing",
            )  # fmt: skip
        if not deep:
            continue
        broken = []
        for number in range(1, table.entries + 1):
            key_hash, physical_offset, seconds, previous = table.entry(number)
            if key_hash < 0 or physical_offset < 0 or seconds < 0 or not 0 <= previous < number:
                broken.append(number)
        if broken:
            yield Problem("index entry", file, None, f"{len(broken)} entries make no sense, the first is {broken[0]}")


def _small_files(store: StoreInspector) -> Iterator[Problem]:
    files, root = store.files, store.directory
    checkpoint = f"{root}/checkpoint"
    if files.exists(checkpoint) and files.size(checkpoint) != checkpoint_file.SIZE:
        text = f"expected {checkpoint_file.SIZE} bytes, found {files.size(checkpoint)}"
        yield Problem("file size", "checkpoint", None, text)
    folder = f"{root}/config"
    for name in sorted(files.list(folder)) if files.is_dir(folder) else []:
        if not name.endswith(".json"):
            continue
        try:
            store_tree.read_config(files, f"{folder}/{name}")
        except CorruptionError as error:
            yield Problem("configuration", f"config/{name}", None, error.text)
