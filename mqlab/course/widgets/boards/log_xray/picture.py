"""The files of a store as plain values: what the log X-ray draws after each action.

    picture(lab, units)   log files and their pieces, queues, index slots with chains, checkpoint, dirty pages
    units                 the bytes and fields of each unit, once for all pictures that show it

Everything is read from the files, as they are at that moment; the broker is not asked. Lab 01 uses it.
"""

from __future__ import annotations

from typing import Any

from mqlab.course.widgets.boards.log_xray.actions import BROKER, relative
from mqlab.lab.runtime.crash_files import PAGE, CrashFiles
from mqlab.lab.views.hexdump import field_value
from mqlab.lab.views.text_width import cut
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.store.reading.log_reader import UNIT, Piece
from mqlab.rocketmq.wire.record import field_map
from mqlab.rocketmq.wire.units import INDEX_ENTRY_SIZE

MAX_VALUE_COLUMNS = 80
Units = dict[str, dict[str, Any]]


def picture(lab: Lab, units: Units) -> dict[str, Any]:
    """The store now. ``units`` gets the bytes of units that are not in it yet, under "place-size-check sum"."""
    store, handle = lab.store(), lab.handles[BROKER]
    files = handle.files
    assert isinstance(files, CrashFiles)  # a simulated machine has no others
    # 1. What would not survive a power cut.
    dirty: dict[str, list[int]] = {}
    names = 0
    for part in files.unsynced():
        if part.kind == "page":
            dirty.setdefault(relative(part.path), []).append(part.page)
        else:
            names += 1
    # 2. Queues and index, before the log: a unit is marked when they have it.
    queues = [_queue(queue) for queue in store.queues()]
    index = [_index(store, name) for name in store.index.names()]
    placed = {entry[1] for queue in queues for entry in queue["entries"]}
    indexed = {entry[2] for file in index for chain in file["chains"] for entry in chain["entries"]}
    # 3. The log, piece by piece.
    log = _log(store, files, units, placed, indexed)
    running = handle.node.store if handle.is_up else None
    return {
        "broker": "running" if handle.is_up else str(handle.status),
        "now_ms": lab.now_ms - lab.began_ms,
        "flushed": running.flushed_offset if running else None,
        "log": log,
        "log_end": store.max_physical_offset,
        "queues": queues,
        "index": index,
        "checkpoint": store.checkpoint(),
        "pages": _pages(store, dirty),
        "unsynced_names": names,
        "problems": [str(problem.text) for problem in store.problems()][:6],
    }


def _log(store: Any, files: CrashFiles, units: Units, placed: set[int], indexed: set[int]) -> list[dict[str, Any]]:
    """The log's files with their pieces: [kind, place, size, unit or None, in its queue, in the index, on the disk]."""
    end = store.max_physical_offset
    blanks = dict(store.blanks())
    drawn = []
    for segment in store.log.segments():
        on_disk = files.content_of(segment.path).pages
        pieces: list[list[Any]] = []
        for piece in store.log.scan(segment.start, min(end, segment.end), [segment]):
            physical_offset, size = piece.physical_offset, piece.size
            is_synced = piece.kind == UNIT and _is_on_disk(piece, segment.start, on_disk)
            key = _unit(piece, units) if piece.kind == UNIT else None
            pieces.append(
                [
                    piece.kind,
                    physical_offset,
                    size,
                    key,
                    physical_offset in placed,
                    physical_offset in indexed,
                    is_synced,
                ]
            )
        used = pieces[-1][1] + pieces[-1][2] if pieces else segment.start
        # A blank at the very end is not part of the log yet, but it is in the file.
        if used in blanks and used < segment.end:
            pieces.append(["BLANK", used, blanks[used], None, False, False, True])
            used = segment.end
        path = relative(segment.path)
        drawn.append({"path": path, "start": segment.start, "size": segment.size, "used": used, "pieces": pieces})
    return drawn


def _is_on_disk(piece: Piece, file_start: int, on_disk: dict[int, bytes]) -> bool:
    """Whether the disk has these bytes. A dirty page may hold units that were synced before it became dirty again."""
    raw, begin = piece.raw(), piece.physical_offset - file_start
    for page, content in on_disk.items():
        first, end = max(begin, page * PAGE), min(begin + len(raw), (page + 1) * PAGE)
        if first < end and content[first - page * PAGE : end - page * PAGE] != raw[first - begin : end - begin]:
            return False
    return True


def _unit(piece: Any, units: Units) -> str:
    raw = piece.raw()
    fields = field_map(raw)
    values = {field.name: field.value for field in fields}
    key = f"{piece.physical_offset}-{piece.size}-{values['body_crc']}-{values['store_timestamp']}"
    if key not in units:
        message = piece.message()
        units[key] = {
            "topic": message.topic,
            "queue_id": message.queue_id,
            "queue_offset": message.queue_offset,
            "keys": message.keys or "",
            "tags": message.tags or "",
            "hex": raw.hex(),
            "fields": [
                [f.name, f.offset, f.size, cut(field_value(f.name, f.value), MAX_VALUE_COLUMNS), f.meaning]
                for f in fields
            ],
        }
    return key


def _queue(queue: Any) -> dict[str, Any]:
    """A queue with its entries: [queue offset, place, size, tags code, hex]."""
    entries = []
    for offset, unit in queue.units(0):
        raw = b"".join(field.raw for field in queue.hexdump(offset).fields)
        entries.append([offset, unit.physical_offset, unit.size, str(unit.tags_code), raw.hex()])
    return {"topic": queue.topic, "queue_id": queue.queue_id, "entries": entries}


def _index(store: Any, name: str) -> dict[str, Any]:
    """An index file: for each slot its chain, newest entry first: [number, hash, place, seconds, previous, hex]."""
    table = store.index.table(name)
    if table is None:
        return {"name": name, "slots": 0, "entries": 0, "chains": []}
    chains = []
    for slot in range(table.hash_slot_num):
        numbers = table.chain(slot)  # a slot's number is a hash of that slot
        entries = [[number, *table.entry(number), _entry_hex(table, number)] for number in numbers]
        chains.append({"slot": slot, "head": table.slot(slot), "entries": entries})
    return {"name": name, "slots": table.hash_slot_num, "entries": table.entries, "chains": chains}


def _entry_hex(table: Any, number: int) -> str:
    start = table.entry_position(number)
    return bytes(table.view[start : start + INDEX_ENTRY_SIZE]).hex()


def _pages(store: Any, dirty: dict[str, list[int]]) -> list[dict[str, Any]]:
    """The files of log, queues and index with their pages and which of them are dirty."""
    files = []
    for row in store.tree():
        if row.kind in ("commit log", "consume queue", "index"):
            pages = -(-row.bytes // PAGE)
            files.append({"path": row.path, "pages": pages, "dirty": dirty.get(row.path, [])})
    return files
