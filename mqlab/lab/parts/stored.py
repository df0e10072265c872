"""What a learner's store was given to keep: the judge of every answer that it gives, in this life and the next ones.

put ─▶ number and place ─▶ kept          dispatch ─▶ those that may be read
get, max_offset, offset_at, unit_at ─▶ compared with what is kept: the rule that is broken, or nothing
a new life ─▶ what the disk had to survive is there, and nothing that was never put
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from mqlab.lab.parts.broken import broken
from mqlab.lab.parts.units import PLACE_AT, placed, stored_ms

NUMBER_RULE = "The first message of a queue has number 0 and each further one the next number; put returns it first"
PLACE_RULE = "put returns where the unit begins in the log, and no two units begin at the same place"
OFFERED_RULE = "Every stored message is offered: get returns what dispatch has put into the queue, from any offset"
ORDER_RULE = "get returns the messages of a queue in the order of their numbers, at most as many as asked for"
SAME_RULE = "A unit comes out as it went in, with its queue_offset and its physical_offset written into it"
END_RULE = "max_offset is one past the last message that dispatch has put into the queue, 0 for a queue without any"
DISPATCH_RULE = "dispatch returns every message that was put since the last dispatch, once, in the order of the log"
TIME_RULE = "offset_at is the first message stored at that time or later; the queue's end if there is none"
UNIT_AT_RULE = "unit_at returns the unit that begins at that place of the log"
CRASH_RULE = "A crash loses nothing acknowledged: what was written is offered in the next life"
POWER_RULE = "After flush, every message that was put survives a power cut"
GHOST_RULE = "Recovery ends the log at its first unit that is not whole, and offers nothing that was never put"

Key = tuple[str, int]


@dataclass(slots=True)
class StoredUnits:
    """The units of each queue in order, how many of them may be read, and how many would survive a power cut."""

    units: dict[Key, list[bytes]] = field(default_factory=dict)
    readable: dict[Key, int] = field(default_factory=dict)
    flushed: dict[Key, int] = field(default_factory=dict)
    by_place: dict[int, bytes] = field(default_factory=dict)
    waiting: list[tuple[str, int, int]] = field(default_factory=list)

    def put(self, topic: str, queue_id: int, unit: bytes, answer: tuple[int, int]) -> bytes:
        """Note a put; the unit as it must come out. BrokenPart for a wrong number or place."""
        queue_offset, physical_offset = answer
        units = self.units.setdefault((topic, queue_id), [])
        asked = (topic, queue_id, unit)
        if queue_offset != len(units):
            raise broken("MyStore.put", NUMBER_RULE, asked, len(units), queue_offset)
        if physical_offset < 0 or physical_offset in self.by_place:
            raise broken("MyStore.put", PLACE_RULE, asked, "a place of its own", physical_offset)
        whole = self.by_place[physical_offset] = placed(unit, *answer)
        units.append(whole)
        self.waiting.append((topic, queue_id, queue_offset))
        return whole

    def dispatched(self, answer: list[tuple[str, int, int]]) -> None:
        """Judge what dispatch returned."""
        if [tuple(triple) for triple in answer] != self.waiting:
            raise broken("MyStore.dispatch", DISPATCH_RULE, (), self.waiting, answer)
        for topic, queue_id, queue_offset in self.waiting:
            self.readable[topic, queue_id] = queue_offset + 1
        self.waiting.clear()

    def got(self, topic: str, queue_id: int, queue_offset: int, most: int, answer: list[bytes]) -> None:
        """Judge what get returned."""
        asked, end = (topic, queue_id, queue_offset, most), self.end((topic, queue_id))
        right = self.units.get((topic, queue_id), [])[queue_offset : min(end, queue_offset + most)]
        if right and not answer:
            raise broken("MyStore.get", OFFERED_RULE, asked, f"message {queue_offset}", "no message")
        if len(answer) > len(right):
            raise broken("MyStore.get", ORDER_RULE, asked, f"{len(right)} messages", f"{len(answer)} messages")
        for number, (unit, wanted) in enumerate(zip(answer, right, strict=False), queue_offset):
            if bytes(unit) != wanted:
                rule = ORDER_RULE if bytes(unit) in right else SAME_RULE
                raise broken("MyStore.get", rule, asked, f"message {number}", _which(unit, self.by_place))

    def ended(self, topic: str, queue_id: int, answer: int) -> None:
        """Judge what max_offset returned."""
        end = self.end((topic, queue_id))
        if answer != end:
            raise broken("MyStore.max_offset", END_RULE, (topic, queue_id), end, answer)

    def timed(self, topic: str, queue_id: int, ms: int, answer: int) -> None:
        """Judge what offset_at returned."""
        end = self.end((topic, queue_id))
        units = self.units.get((topic, queue_id), [])[:end]
        right = next((number for number, unit in enumerate(units) if stored_ms(unit) >= ms), end)
        if answer != right:
            raise broken("MyStore.offset_at", TIME_RULE, (topic, queue_id, ms), right, answer)

    def placed_at(self, physical_offset: int, answer: bytes) -> None:
        """Judge what unit_at returned."""
        if bytes(answer) != self.by_place[physical_offset]:
            raise broken(
                "MyStore.unit_at", UNIT_AT_RULE, (physical_offset,), "that unit", _which(answer, self.by_place)
            )

    def flush(self) -> None:
        """All that was put is on the disk."""
        self.flushed = {key: len(units) for key, units in self.units.items()}

    def end(self, key: Key) -> int:
        """One past the last message of a queue that may be read."""
        return self.readable.get(key, 0)

    def lived_again(self, key: Key, end: int, units: list[bytes], *, power_cut: bool) -> None:
        """Judge what a new life has of a queue, and go on from there. ``units``: what get returned up to ``end``."""
        topic, queue_id = key
        kept = self.units[key]
        survives = self.flushed.get(key, 0) if power_cut else len(kept)
        if end < survives:
            rule = POWER_RULE if power_cut else CRASH_RULE
            raise broken("MyStore.max_offset", rule, (topic, queue_id), f"{survives} after the crash", end)
        if end > len(kept) or len(units) != end:
            raise broken("MyStore.get", GHOST_RULE, (topic, queue_id, 0, end), f"{len(kept)} messages", end)
        for number, (unit, wanted) in enumerate(zip(units, kept, strict=False)):
            if bytes(unit) != wanted:
                rule, answer = ORDER_RULE if bytes(unit) in kept else GHOST_RULE, _which(unit, self.by_place)
                raise broken("MyStore.get", rule, (topic, queue_id, 0, end), f"message {number}", answer)
        del kept[end:]
        self.readable[key] = end

    def begin_again(self) -> None:
        """After every queue was looked at: what the crash took away is forgotten."""
        self.by_place = {
            int(struct.unpack_from(">q", unit, PLACE_AT + 8)[0]): unit
            for units in self.units.values()
            for unit in units
        }
        self.waiting.clear()


def _which(unit: bytes, known: Mapping[int, bytes]) -> str:
    """A wrong unit in words."""
    if not isinstance(unit, bytes) or len(unit) < PLACE_AT + 16:
        return repr(unit)[:60]
    queue_offset, physical_offset = struct.unpack_from(">qq", unit, PLACE_AT)
    kind = "the unit" if unit in known.values() else "bytes"
    return f"{kind} of message {queue_offset}, place {physical_offset}, {len(unit)} bytes"
