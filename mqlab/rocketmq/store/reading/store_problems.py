"""What is wrong with a store: damage, files that do not belong there, parts that disagree. Nothing is changed.

Mirrors: the checks of MappedFileQueue.load and CommitLog's recovery, and comparisons of parts.

    quick   names and lengths of files, the last unit of each queue, headers of the index, configuration files
    deep    every unit of the log and every index entry: see deep_check

Left out: repair. ``mqlab recover`` does what a broker does at its start.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from mqlab.durations import calendar
from mqlab.errors import CorruptionError
from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.reading import checkpoint_format
from mqlab.rocketmq.store.reading.config_backups import BACKUP, DAMAGED, read_with_backup
from mqlab.rocketmq.store.reading.deep_check import DeepCheck, Problem
from mqlab.rocketmq.store.reading.file_sizes import offset_names, queue_folders, segment_size
from mqlab.rocketmq.store.reading.log_reader import Segment
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.store.reading.timer_check import timer_problems
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.units import CQ_UNIT_SIZE


def find_problems(store: StoreReader, *, deep: bool) -> list[Problem]:
    """All problems of a store, in the order log, queues, index, the rest; see the module for ``deep``."""
    return [*_find(store, deep)]


def _find(store: StoreReader, deep: bool) -> Iterator[Problem]:
    segments, end = store.log.segments(), store.max_physical_offset
    yield from _file_problems(store)
    yield from _missing_segments(segments)
    if deep:
        yield from DeepCheck(store, segments, end).problems()
    else:
        yield from _last_units(store, end)
    yield from _index_problems(store, end)
    yield from timer_problems(store, deep=deep)
    yield from _small_files(store)


def _file_problems(store: StoreReader) -> Iterator[Problem]:
    """Names and lengths that make RocketMQ refuse to start."""
    root, files = store.directory, store.files
    queues = list(queue_folders(files, f"{root}/consumequeue"))
    for folders, multiple in (([f"{root}/commitlog"], 1), (queues, CQ_UNIT_SIZE)):
        # The size that most files have counts as the right one.
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
                # An empty last file is normal: a broker was killed while it made the file.
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


def _last_units(store: StoreReader, end: int) -> Iterator[Problem]:
    """Queues whose last unit does not point at a message."""
    start = store.min_physical_offset
    for queue in store.queues():
        unit = queue.unit(queue.max_offset - 1)
        if unit is None or unit.physical_offset < start:
            continue
        piece = store.log.unit_at(unit.physical_offset)
        if piece is None or piece.size != unit.size:
            trouble = (
                "beyond the end of the log" if unit.physical_offset >= end else "not the start of a unit of that size"
            )
            yield Problem(
                "queue unit",
                f"consumequeue/{queue.topic}/{queue.queue_id}",
                unit.physical_offset,
                f"unit {queue.max_offset - 1} names offset {unit.physical_offset}, size {unit.size}: {trouble}",
            )


def _index_problems(store: StoreReader, end: int) -> Iterator[Problem]:
    for summary in store.index.summaries():
        file = f"index/{summary.name}"
        table = store.index.table(summary.name)
        if table is None:
            if summary.entries:
                yield Problem("index sizes", file, None, "its number of slots cannot be found: give max_hash_slot_num")
            continue
        if summary.entries and summary.end_physical_offset >= end:
            yield Problem(
                "index beyond the log",
                file,
                summary.end_physical_offset,
                f"knows a message at {summary.end_physical_offset}, the log ends at {end}; "
                "until the log has grown past that, RocketMQ indexes nothing",
            )


def _small_files(store: StoreReader) -> Iterator[Problem]:
    files, root = store.files, store.directory
    checkpoint = f"{root}/checkpoint"
    if files.exists(checkpoint) and files.size(checkpoint) != checkpoint_format.SIZE:
        text = f"expected {checkpoint_format.SIZE} bytes, found {files.size(checkpoint)}"
        yield Problem("file size", "checkpoint", None, text)
    folder = f"{root}/config"
    yield from _configuration(files, folder, files.list(folder) if files.is_dir(folder) else [])


OBJECTS = (
    "topics.json",
    "subscriptionGroup.json",
    "consumerOffset.json",
    "delayOffset.json",
    "consumerFilter.json",
    "messageRequestMode.json",
    "consumerOrderInfo.json",
    "users.json",
    "deletedTopics.json",
    "transactionMetrics",
)
"""The files of a broker's tables, each of which is a JSON object."""


def _configuration(files: Files, folder: str, there: list[str]) -> Iterator[Problem]:
    """Files that a broker cannot read when it starts, and those that it could not read when it started."""
    for name in sorted({name.removesuffix(BACKUP) for name in there}):
        path = f"{folder}/{name}"
        if name.endswith(DAMAGED):
            when = calendar(files.modified_ms(path))
            text = (
                f"a broker could not read this version, saved {when}, and took the backup; remove it when it is settled"
            )
            yield Problem("configuration", f"config/{name}", None, text)
        elif name.endswith(".json") or name == "transactionMetrics":
            decode = _object if name in OBJECTS else java_json.loads  # others may keep their own files here
            try:
                reading = read_with_backup(files, path, decode)
                if reading.is_healed:
                    yield Problem("configuration", f"config/{name}", None, reading.why())
                elif reading.taken and name + BACKUP in there:
                    read_with_backup(files, path + BACKUP, decode)
            except CorruptionError as error:
                yield Problem("configuration", f"config/{name}", None, error.text)


def _object(text: str) -> dict[Any, Any]:
    value = java_json.loads(text)
    if not isinstance(value, dict):
        raise CorruptionError("not a configuration", expected="an object", found=type(value).__name__)
    return value
