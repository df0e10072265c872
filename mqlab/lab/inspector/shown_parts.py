"""Readers of a queue and of the index that show what they read: tables, and bytes with the names of their fields.

Lab 01 looks at both with them; StoreInspector hands them out.

    store.queue("orders", 0).hexdump(3)      store.index.chain("orders", "order-1")      store.index.hexdump(slot=7)
"""

from __future__ import annotations

from typing import Any

from mqlab.errors import UsageError
from mqlab.lab.views.hexdump import Hexdump
from mqlab.lab.views.table import Table
from mqlab.rocketmq.store.reading.index_reader import IndexReader
from mqlab.rocketmq.store.reading.index_table import IndexTable
from mqlab.rocketmq.store.reading.queue_reader import QueueReader
from mqlab.rocketmq.wire.java_hash import index_key_hash
from mqlab.rocketmq.wire.units import index_entry_field_map, index_header_field_map, index_slot_field_map


class ShownQueue(QueueReader):
    """A queue of ``StoreInspector.queue``: a QueueReader whose units can be shown."""

    def table(self, start: int | None = None, stop: int | None = None) -> Table:
        """The units from ``start`` up to ``stop`` as a table: queue offset, physical offset, size, tags code."""
        rows = [{"queue_offset": queue_offset, **unit._asdict()} for queue_offset, unit in self.units(start, stop)]
        return Table(rows, title=f"{self.topic} {self.queue_id}", empty="no units")

    def hexdump(self, queue_offset: int) -> Hexdump:
        """One unit as bytes with the names of its fields, at its place in its file. UsageError where there is none."""
        fields, position, file = self.bytes_of_unit(queue_offset)
        title = f"entry {queue_offset} of {self.topic} {self.queue_id}, in file {file}"
        return Hexdump(fields, base=position, title=title)


class ShownIndex(IndexReader):
    """``StoreInspector.index``: an IndexReader whose headers, slots and entries can be shown."""

    def hexdump(self, name: str | None = None, entry: int | None = None, *, slot: int | None = None) -> Hexdump:
        """The header of an index file, one of its entries or one of its slots, as bytes at their place in the file.

        ``name``: the newest file without it. Raises UsageError when there is no such file, entry or slot.
        """
        name, table = self.named(name)
        if slot is not None:
            if not 0 <= slot < table.hash_slot_num:
                raise UsageError(f"there is no slot {slot}", hint=f"slots 0 to {table.hash_slot_num - 1}")
            position = table.slot_position(slot)
            return Hexdump(index_slot_field_map(table.view, position), base=position, title=f"slot {slot} of {name}")
        if entry is None:
            return Hexdump(index_header_field_map(table.view), title=f"header of {name}")
        if not 0 < entry <= table.entries:
            raise UsageError(f"there is no entry {entry}", hint=f"entries 1 to {table.entries}")
        position = table.entry_position(entry)
        return Hexdump(index_entry_field_map(table.view, position), base=position, title=f"entry {entry} of {name}")

    def chain(self, topic: str, key: str, name: str | None = None) -> Table:
        """The entries in the slot of a key, newest first: what a query reads, other keys of the slot among them.

        Rows of entry, byte (its place in the file), key_hash, is_hash (whether it is that of the key),
        physical_offset, seconds, previous. ``name``: the newest file without it.
        """
        name, table = self.named(name)
        key_hash = index_key_hash(f"{topic}#{key}")
        slot = key_hash % table.hash_slot_num
        rows = [_row(table, number) for number in table.chain(key_hash)]
        for row in rows:
            row["is_hash"] = row["key_hash"] == key_hash
        columns = ["entry", "byte", "key_hash", "is_hash", "physical_offset", "seconds", "previous"]
        title = f"{topic}#{key}: hash {key_hash} % {table.hash_slot_num} = slot {slot} of {name}"
        return Table(rows, columns=columns, title=title, empty="an empty slot")

    def entries(self, name: str | None = None) -> Table:
        """All entries of an index file, oldest first, with their byte, slot and what they hold."""
        name, table = self.named(name)
        rows = [_row(table, number) for number in range(1, table.entries + 1)]
        columns = ["entry", "byte", "slot", "key_hash", "physical_offset", "seconds", "previous"]
        return Table(rows, columns=columns, title=f"entries of {name}", empty="no entries")


def _row(table: IndexTable, number: int) -> dict[str, Any]:
    key_hash, physical_offset, seconds, previous = table.entry(number)
    return {
        "entry": number,
        "byte": table.entry_position(number),
        "slot": key_hash % table.hash_slot_num,
        "key_hash": key_hash,
        "physical_offset": physical_offset,
        "seconds": seconds,
        "previous": previous,
    }
