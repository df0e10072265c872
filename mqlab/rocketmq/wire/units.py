"""The small units of a store: 20 bytes in a consume queue, and the header, slots and entries of an index file.

Mirrors: ConsumeQueue.CQ_STORE_UNIT_SIZE, IndexHeader and IndexFile. Lab 01 prints these tables.

    consume queue   physical offset i64 | size i32 | tags code i64                              20 bytes
    index header    begin time, end time, begin offset, end offset (i64) | slots used, next entry (i32)   40 bytes
    index slot      number of the newest entry i32                                              4 bytes
    index entry     key hash i32 | physical offset i64 | seconds i32 | previous entry i32       20 bytes

Left out: units of batch queues (46 bytes) and of the queue extension.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire.layout import Buffer, Field, FieldSpec, number_fields, number_struct

CQ_LAYOUT = (
    FieldSpec("physical_offset", "i64", "where the message's unit begins in the commit log"),
    FieldSpec("size", "i32", "total size of that unit"),
    FieldSpec("tags_code", "i64", "Java hash of the TAGS property, 0 without; deliver time (ms) in the schedule topic"),
)
INDEX_HEADER_LAYOUT = (
    FieldSpec("begin_timestamp", "i64", "store time of the first entry, ms"),
    FieldSpec("end_timestamp", "i64", "store time of the last entry, ms"),
    FieldSpec("begin_physical_offset", "i64", "where the first entry's message stands"),
    FieldSpec("end_physical_offset", "i64", "where the last entry's message stands"),
    FieldSpec("hash_slot_count", "i32", "slots that are not empty"),
    FieldSpec("index_count", "i32", "number of the next entry; the first is 1"),
)
INDEX_SLOT_LAYOUT = (FieldSpec("entry", "i32", "number of the slot's newest entry, 0 for none"),)
INDEX_ENTRY_LAYOUT = (
    FieldSpec("key_hash", "i32", "hash of topic#key"),
    FieldSpec("physical_offset", "i64", "where the message stands"),
    FieldSpec("seconds", "i32", "store time, whole seconds since the file's begin_timestamp"),
    FieldSpec("previous", "i32", "number of the older entry of the same slot, 0 for none"),
)

CQ_UNIT = number_struct(CQ_LAYOUT)
INDEX_HEADER = number_struct(INDEX_HEADER_LAYOUT)
INDEX_SLOT = number_struct(INDEX_SLOT_LAYOUT)
INDEX_ENTRY = number_struct(INDEX_ENTRY_LAYOUT)
CQ_UNIT_SIZE = CQ_UNIT.size
INDEX_HEADER_SIZE = INDEX_HEADER.size
INDEX_SLOT_SIZE = INDEX_SLOT.size
INDEX_ENTRY_SIZE = INDEX_ENTRY.size

PREBLANK_SIZE = 0x7FFFFFFF  # the size in a unit that replaces a message deleted before its queue was built
PREBLANK = CQ_UNIT.pack(0, PREBLANK_SIZE, 0)


class CqUnit(NamedTuple):
    """Where one message of a queue is in the log."""

    physical_offset: int
    size: int
    tags_code: int


def encode_cq(physical_offset: int, size: int, tags_code: int) -> bytes:
    """The 20 bytes of a consume queue unit.

    >>> encode_cq(1048576, 177, 2598919).hex(" ", 4)
    '00000000 00100000 000000b1 00000000 0027a807'
    """
    return CQ_UNIT.pack(physical_offset, size, tags_code)


def decode_cq(buffer: Buffer, offset: int = 0) -> CqUnit:
    """The unit at a position. Raises CorruptionError when the buffer does not reach that far.

    >>> decode_cq(PREBLANK)
    CqUnit(physical_offset=0, size=2147483647, tags_code=0)
    """
    try:
        return CqUnit(*CQ_UNIT.unpack_from(buffer, offset))
    except struct.error as error:
        raise CorruptionError(
            "a consume queue unit is cut off",
            offset=offset,
            expected=f"{CQ_UNIT_SIZE} bytes",
            found=max(0, len(buffer) - offset),
        ) from error


def cq_field_map(buffer: Buffer, offset: int = 0) -> list[Field]:
    """The fields of a consume queue unit."""
    return number_fields(CQ_LAYOUT, buffer, offset)


def index_header_field_map(buffer: Buffer, offset: int = 0) -> list[Field]:
    """The fields of an index file's header."""
    return number_fields(INDEX_HEADER_LAYOUT, buffer, offset)


def index_slot_field_map(buffer: Buffer, offset: int = 0) -> list[Field]:
    """The field of a slot."""
    return number_fields(INDEX_SLOT_LAYOUT, buffer, offset)


def index_entry_field_map(buffer: Buffer, offset: int = 0) -> list[Field]:
    """The fields of an index entry."""
    return number_fields(INDEX_ENTRY_LAYOUT, buffer, offset)
