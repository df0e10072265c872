"""What is in the files and tables of a Lab at one moment, as small rows: queues, offsets and the bytes of units.

    log       broker, running?, first byte, next byte of its commit log, units stored and not dispatched yet
    queue     broker, topic, queue, first shown entry, unit numbers of the entries, next queue offset
    group     group, broker, topic, queue, committed at the broker, in its file, next in each consumer's memory
    units     broker, physical offset, size, label, bytes (hexadecimal), fields (name, offset, size, value, meaning)

Rows repeat from stop to stop, so each stop holds the numbers of its rows in one list of all rows.
Left out: the bytes of more than MOST_UNITS units, and entries before the newest MOST_ENTRIES of a queue.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mqlab.course.widgets.frame.packing import TextPool
from mqlab.lab.views.hexdump import field_value
from mqlab.lab.views.text_width import cut
from mqlab.lab.world.handles import BROKERS
from mqlab.rocketmq.wire.record import field_map

if TYPE_CHECKING:
    from mqlab.lab.inspector import StoreInspector
    from mqlab.lab.world.handles import NodeHandle
    from mqlab.lab.world.lab import Lab
    from mqlab.rocketmq.store.reading.queue_reader import QueueReader

MOST_UNITS = 500
MOST_ENTRIES = 40
UNIT_BYTES = 512  # of a longer unit the first bytes are shown
VALUE_COLUMNS = 60
OFFSETS_FILE = "consumerOffset.json"
NO_UNIT = -1


class FactBook:
    """Collects the facts of many moments of one story; equal rows and equal units are kept once."""

    def __init__(self) -> None:
        self._rows = TextPool()
        self._units = TextPool()
        self._known: dict[tuple[str, int, int], int] = {}  # (broker, its life, physical offset) -> unit number
        self._stored: dict[str, list[int]] = {}  # broker -> physical offsets that are not dispatched yet
        self._same: dict[tuple[Any, ...], list[Any]] = {}  # rows that do not change while these values are the same

    @property
    def rows(self) -> list[Any]:
        """All rows, by number."""
        return [json.loads(text) for text in self._rows.texts]

    @property
    def units(self) -> list[Any]:
        """All units, by number."""
        return [json.loads(text) for text in self._units.texts]

    def stored(self, broker: str, physical_offset: int) -> None:
        """Note that a unit was appended to a broker's log."""
        self._stored.setdefault(broker, []).append(physical_offset)

    def take(self, lab: Lab) -> list[int]:
        """The facts of this moment: the numbers of their rows."""
        rows: list[Any] = []
        for handle in [handle for handle in lab.handles.values() if handle.role in BROKERS]:
            store = lab.store(handle.name)
            life = lab.world.nodes[handle.name].incarnation
            try:
                rows.append(self._log(store, handle, life))
                rows.extend(self._queue(queue, store, handle, life) for queue in store.queues())
                rows.extend(_groups(lab, store, handle))
            finally:
                store.close()
        return [self._rows.add(json.dumps(row)) for row in rows]

    def _log(self, store: StoreInspector, handle: NodeHandle, life: int) -> list[Any]:
        key = (handle.name, life, handle.is_up)
        waiting = self._stored.get(handle.name)
        # Reading the ends of a store takes milliseconds: without a new unit they are where they were.
        if waiting or key not in self._same:
            end, dispatched = store.max_physical_offset, store.dispatched_physical_offset
            waiting = [offset for offset in waiting or () if dispatched <= offset < end]
            self._stored[handle.name] = waiting
            units = [self._unit(store, handle.name, life, offset) for offset in waiting[-MOST_ENTRIES:]]
            self._same[key] = ["log", handle.name, handle.is_up, store.min_physical_offset, end, units]
        return self._same[key]

    def _queue(self, queue: QueueReader, store: StoreInspector, handle: NodeHandle, life: int) -> list[Any]:
        running = handle.node.store if handle.is_up else None
        ends = (running.min_offset, running.max_offset) if running is not None else ()
        key = (handle.name, life, handle.is_up, queue.topic, queue.queue_id)
        key += tuple(end(queue.topic, queue.queue_id) for end in ends)
        if key not in self._same:
            next_offset = queue.max_offset
            first = max(queue.min_offset, next_offset - MOST_ENTRIES)
            units = [self._unit(store, handle.name, life, unit.physical_offset) for _, unit in queue.units(first)]
            self._same[key] = ["queue", handle.name, queue.topic, queue.queue_id, first, units, next_offset]
        return self._same[key]

    def _unit(self, store: StoreInspector, broker: str, life: int, physical_offset: int) -> int:
        """The number of a unit; its bytes are read once in each life of its broker."""
        key = (broker, life, physical_offset)
        if key not in self._known:
            if len(self._units.texts) >= MOST_UNITS:
                return NO_UNIT
            piece = store.log.piece_at(physical_offset)
            raw = b"" if piece is None else bytes(piece.raw())
            self._known[key] = self._units.add(json.dumps([broker, physical_offset, *_unit_row(raw)]))
        return self._known[key]


def _unit_row(raw: bytes) -> list[Any]:
    """Size, label, hexadecimal bytes and fields of one unit."""
    fields = field_map(raw)
    shown = [
        [field.name, field.offset, field.size, cut(field_value(field.name, field.value), VALUE_COLUMNS), field.meaning]
        for field in fields
    ]
    properties = next((field.value for field in fields if field.name == "properties"), b"")
    return [len(raw), _label(bytes(properties)), raw[:UNIT_BYTES].hex(), shown]


def _label(properties: bytes) -> str:
    from mqlab.rocketmq.wire.properties import decode

    texts = decode(properties)
    return str(texts.get("KEYS") or texts.get("TAGS") or "")


def _groups(lab: Lab, store: StoreInspector, handle: NodeHandle) -> Iterable[list[Any]]:
    """Offsets of all groups on one broker: at the broker, in its file, in the memory of the consumers."""
    saved = (store.config(OFFSETS_FILE) or {}).get("offsetTable") or {}
    held = handle.node.offset_table.offset_table if handle.is_up else {}
    memory = _memory(lab, handle.name)
    places = {(key, queue_id) for key, queues in held.items() for queue_id in queues}
    places |= {(key, int(queue_id)) for key, queues in saved.items() for queue_id in queues}
    for key, queue_id in sorted(places | memory.keys()):
        topic, _, group = key.partition("@")
        in_file = {int(queue): offset for queue, offset in saved.get(key, {}).items()}.get(queue_id)
        at_broker = held.get(key, {}).get(queue_id)
        yield ["group", group, handle.name, topic, queue_id, at_broker, in_file, memory.get((key, queue_id), [])]


def _memory(lab: Lab, broker: str) -> dict[tuple[str, int], list[list[Any]]]:
    """(topic@group, queue id) -> the running consumers that remember a next offset, and that offset."""
    by_key: dict[tuple[str, int], list[list[Any]]] = {}
    for handle in lab.handles.values():
        offsets = getattr(handle.node, "offset_store", None)
        if handle.role != "consumer" or not handle.is_up or offsets is None:
            continue
        for queue, offset in offsets.clone_offset_table().items():
            if queue.broker_name == broker:
                key = (f"{queue.topic}@{handle.node.group}", queue.queue_id)
                by_key.setdefault(key, []).append([handle.name, offset])
    return by_key
