"""Every file of a store directory by name: its kind, and which parts of RocketMQ are not built here.

Mirrors: StorePathConfigHelper and the path methods of the managers. Lab 01 prints the tree of a running broker.

    commitlog/00000000000000000000          commit log        offsets 0..1073741824
    consumequeue/orders/0/000…              consume queue     queue offsets 0..300000
    index/20231114221320456                 key index
    checkpoint, abort, lock, config/*.json  as named
    timerwheel, timerlog/, config/timercheck timer wheel
    batchconsumequeue/, consumequeue_ext/, compaction/     recognised, not read

Left out: files of the controller and of RocksDB stores (they come out as "unknown").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.reading.config_backups import read_with_backup
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.units import CQ_UNIT_SIZE

BATCH_CQ_UNIT_SIZE = 46
_OFFSET = r"(?P<offset>\d{20})"
# pattern of the path below the root, kind, bytes of one unit (0: offsets count bytes), part that is not built
KINDS = (
    (rf"commitlog/{_OFFSET}", "commit log", 0, ""),
    (rf"consumequeue/[^/]+/\d+/{_OFFSET}", "consume queue", CQ_UNIT_SIZE, ""),
    (r"index/\d+", "key index", 0, ""),
    (r"checkpoint", "checkpoint", 0, ""),
    (r"abort", "running or crashed", 0, ""),
    (r"abort\.bak", "earlier abort", 0, ""),
    (r"lock", "process lock", 0, ""),
    (r"config/.+\.json", "configuration", 0, ""),
    (r"config/.+\.json\.(bak|tmp|damaged)", "configuration backup", 0, ""),
    (r"config/transactionMetrics(\.bak)?", "transaction counts", 0, ""),
    (rf"batchconsumequeue/[^/]+/\d+/{_OFFSET}", "batch consume queue", BATCH_CQ_UNIT_SIZE, "batch consume queue"),
    (rf"consumequeue_ext/[^/]+/\d+/{_OFFSET}", "queue extension", 0, "consume queue extension"),
    (r"timerwheel", "timer wheel", 0, ""),
    (rf"timerlog/{_OFFSET}", "timer log", 0, ""),
    (r"config/(timermetrics|timercheck)(\.bak)?", "timer state", 0, ""),
    (r"compaction/position-checkpoint", "compaction state", 0, ""),  # every broker writes one when it stops
    (r"compaction/.+", "compaction", 0, "compaction"),
)
_PATTERNS = [(re.compile(pattern), kind, unit, part) for pattern, kind, unit, part in KINDS]


def classify(path: str, size: int) -> tuple[str, str, str]:
    """(kind, what it holds, part that is not built) of a path below the store's root.

    >>> classify("commitlog/00000000000000001024", 1024)
    ('commit log', 'offsets 1024..2048', '')
    >>> classify("timerwheel", 38707200)
    ('timer wheel', '', '')
    """
    for pattern, kind, unit, part in _PATTERNS:
        match = pattern.fullmatch(path)
        if match is not None:
            holds = ""
            if "offset" in match.groupdict():
                start = int(match["offset"])
                step, word = (unit, "queue offsets") if unit else (1, "offsets")
                holds = f"{word} {start // step}..{(start + size) // step}"
            return kind, holds, part
    return "unknown", "", ""


def paths(files: Files, root: str, below: str = "") -> Iterator[tuple[str, int]]:
    """(path below the root, bytes) of every file, folders in order of their names."""
    folder = f"{root}/{below}" if below else root
    try:
        names = sorted(files.list(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        path = f"{below}/{name}" if below else name
        if files.is_dir(f"{root}/{path}"):
            yield from paths(files, root, path)
            continue
        try:
            # A running broker may delete the file after it was listed.
            yield path, files.size(f"{root}/{path}")
        except FileNotFoundError:
            continue


def rows(files: Files, root: str) -> list[dict[str, Any]]:
    """One row per file: path, kind, bytes, holds."""
    table = []
    for path, size in paths(files, root):
        kind, holds, _ = classify(path, size)
        table.append({"path": path, "kind": kind, "bytes": size, "holds": holds})
    return table


def other_parts(files: Files, root: str) -> list[str]:
    """The parts of RocketMQ's stores under the root that mqlab does not read, each once."""
    parts = (classify(path, size)[2] for path, size in paths(files, root))
    return list(dict.fromkeys(part for part in parts if part))


def read_config(files: Files, path: str) -> Any:
    """The values of a configuration file, or of its .bak when it is missing, empty or damaged; None without either.

    Raises CorruptionError when there is something and none of it can be read. Changes nothing, unlike ConfigFile.load.
    """
    return read_with_backup(files, path, java_json.loads).value
