"""A store's files read for a picture: units of the log, entries of the queues, entries of the newest index file.

Lab 01 draws it before and after each step.

    map_of(reader, key="…")      a mqlab.lab.views.store_map.StoreMap with the units of one message lit up

Left out: older index files, and all but the newest units of a long log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.rocketmq.store.reading.index_reader import IndexReader
from mqlab.rocketmq.store.reading.log_reader import UNIT, Piece
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.wire import properties, property_names

if TYPE_CHECKING:
    from mqlab.lab.views.store_map import IndexEntry, StoreMap, Unit

MAX_UNITS = 200  # newest units that are read


def map_of(reader: StoreReader, key: str | None, topic: str | None, title: str) -> StoreMap:
    """The map of a store. ``key``: a unique id or a key of the message to light up; ``topic``: only its units."""
    from mqlab.lab.views.store_map import StoreMap

    pieces = _newest_units(reader, topic)
    units = [_unit(piece) for piece in pieces]
    places = {unit.physical_offset for unit in units}
    queues = {}
    for queue in reader.queues(topic):
        pointers = [
            (offset, entry.physical_offset) for offset, entry in queue.units() if entry.physical_offset in places
        ]
        if pointers:
            queues[f"{queue.topic} {queue.queue_id}"] = pointers
    lit = [piece.physical_offset for piece in pieces if key is not None and key in _keys(piece)]
    return StoreMap(units, queues, _index_entries(reader.index, places), lit=lit, title=title)


def _newest_units(reader: StoreReader, topic: str | None) -> list[Piece]:
    """The newest units of a log, in its order, found through the queues' ends so that a long log is not read whole."""
    end = reader.max_physical_offset
    places = sorted(
        entry.physical_offset
        for queue in reader.queues(topic)
        for _, entry in queue.units(max(queue.min_offset, queue.max_offset - MAX_UNITS))
    )[-MAX_UNITS:]
    if not places:
        start = reader.min_physical_offset
    else:
        start = places[0]
    wanted = None if topic is None else topic.encode()
    pieces = [piece for piece in reader.log.scan(start, end) if piece.kind == UNIT]
    return [piece for piece in pieces if wanted in (None, piece.topic)][-MAX_UNITS:]


def _unit(piece: Piece) -> Unit:
    from mqlab.lab.views.store_map import Unit

    record = piece.record()
    stored = properties.decode(piece.properties)
    label = stored.get(property_names.KEYS) or stored.get(property_names.TAGS) or ""
    return Unit(piece.physical_offset, piece.size, f"{record.topic} {record.queue_id}", label)


def _keys(piece: Piece) -> list[str]:
    stored = properties.decode(piece.properties)
    return [stored.get(property_names.UNIQ_KEY, ""), *stored.get(property_names.KEYS, "").split()]


def _index_entries(index: IndexReader, places: set[int]) -> list[IndexEntry]:
    """The entries of the newest file that lead to one of the places, oldest first."""
    from mqlab.lab.views.store_map import IndexEntry

    names = index.names()
    table = index.table(names[-1]) if names else None
    if table is None:
        return []
    entries = []
    for number in range(table.entries, 0, -1):
        key_hash, physical_offset, _, previous = table.entry(number)
        if physical_offset in places:
            entries.append(IndexEntry(number, key_hash % table.hash_slot_num, physical_offset, previous))
        elif physical_offset < min(places, default=0):
            break  # entries are in the order of the log
    return entries[::-1]
