"""Tables that say how bytes are laid out: name, kind and meaning of each field, in order.

Mirrors: what RocketMQ spreads over the put and get calls of its encoders and decoders. Lab 01 prints these tables.

    FieldSpec("queue_id", "i32", "the queue in the topic")          one row of a table
    Field("queue_id", offset=12, size=4, raw=..., value=3, ...)     the same row, found in some bytes

    kind   i8 i16 i32 i64     big-endian, signed
           host               8 bytes, or 20 if ``v6_bit`` is set in the unit's sys_flag
           body text pairs    as many bytes as the field before it says

Left out: which values a field may have; the module of each format decides that.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Buffer = bytes | bytearray | memoryview

NUMBERS = {"i8": ("b", 1), "i16": ("h", 2), "i32": ("i", 4), "i64": ("q", 8)}


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One row of a layout: its kind (see the module's table) and what it means."""

    name: str
    kind: str
    meaning: str
    v6_bit: int = 0

    @property
    def size(self) -> int | None:
        """Bytes of a number; None for fields of varying length."""
        return NUMBERS[self.kind][1] if self.kind in NUMBERS else None


@dataclass(frozen=True, slots=True)
class Field:
    """One field found in some bytes. ``offset`` counts from the start of the unit; ``note`` reads the value."""

    name: str
    offset: int
    size: int
    raw: bytes
    value: Any
    meaning: str
    note: str = ""


def number_struct(layout: Sequence[FieldSpec]) -> struct.Struct:
    """The struct of a layout that has numbers only."""
    return struct.Struct(">" + "".join(NUMBERS[spec.kind][0] for spec in layout))


def number_fields(layout: Sequence[FieldSpec], buffer: Buffer, offset: int = 0) -> list[Field]:
    """The fields of a layout that has numbers only, as far as the buffer reaches."""
    fields: list[Field] = []
    position = 0
    for spec in layout:
        code, size = NUMBERS[spec.kind]
        raw = bytes(buffer[offset + position : offset + position + size])
        if len(raw) < size:
            break
        fields.append(Field(spec.name, position, size, raw, struct.unpack(">" + code, raw)[0], spec.meaning))
        position += size
    return fields
