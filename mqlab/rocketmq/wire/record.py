"""One message in the commit log: the unit of RocketMQ's store. ``LAYOUT`` is the only description of its layout.

Mirrors: MessageExtEncoder, MessageDecoder, CommitLog.checkMessageAndReturnSize. Lab 01.

    0 total size | 4 magic | 8 body crc | 12 queue id | 16 flag | 20 queue offset | 28 physical offset | 36 sys flag
    40 born time | 48 born host | store time | store host | reconsume times | prepared transaction offset
    body length, body | topic length, topic | properties length, properties             all big-endian, no padding

    magic  DAA320A7 V1: topic length in 1 byte    DAA320AB V2: in 2 bytes    CBD43194: nothing more in this file

Left out: units that hold a batch (INNER_BATCH). Bytes that are not UTF-8 in topic or properties read as U+FFFD.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, NamedTuple

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.wire import properties as property_text
from mqlab.rocketmq.wire import property_crc, property_names
from mqlab.rocketmq.wire import sys_flag as flags
from mqlab.rocketmq.wire.host import V4_SIZE, V6_SIZE, Host, decode_host
from mqlab.rocketmq.wire.ids import offset_msg_id
from mqlab.rocketmq.wire.layout import NUMBERS, Buffer, Field, FieldSpec
from mqlab.rocketmq.wire.record_layout import (
    BLANK_SIZE,
    FIXED_PARTS,
    LAYOUT,
    MAGIC_BLANK,
    MAGIC_NAMES,
    MAGIC_V1,
    MAGIC_V2,
    MAX_PROPERTIES,
    TOPIC_LENGTH,
    check_body,
    measure,
)
from mqlab.rocketmq.wire.record_parts import KNOWN_HOSTS, KNOWN_TOPICS, known_host, known_topic, topic_part, version_for

__all__ = [
    "BLANK",
    "BLANK_SIZE",
    "INVALID",
    "LAYOUT",
    "MAGIC_BLANK",
    "MAGIC_V1",
    "MAGIC_V2",
    "MAX_PROPERTIES",
    "UNIT",
    "Check",
    "Field",
    "Host",
    "Record",
    "blank",
    "check",
    "decode",
    "decode_all",
    "encode",
    "encode_at",
    "field_map",
]

UNIT, BLANK, INVALID = "UNIT", "BLANK", "INVALID"

_NO_HOST_BITS = ~flags.HOST_BITS
_V4_FIXED_SIZE, _V4_PACK = FIXED_PARTS[0].size, FIXED_PARTS[0].pack
_I32, _I64 = struct.Struct(">i"), struct.Struct(">q")
_PACK_I16 = struct.Struct(">h").pack
_TWO_I32 = struct.Struct(">ii")


@dataclass(slots=True)
class Record:
    """A unit's fields. ``properties`` are the encoded bytes; ``property_map`` reads them.

    ``body_crc`` None: computed; ``magic`` None: V2 for topics of more than 127 characters, else V1, as RocketMQ does.
    Set both to None when body or topic is replaced. ``total_size`` is set by decode. Hosts decide their sys_flag bits.
    """

    topic: str
    body: bytes
    queue_id: int = 0
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: Host = ("127.0.0.1", 0)
    store_timestamp: int = 0
    store_host: Host = ("127.0.0.1", 10911)
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    properties: bytes = b""
    queue_offset: int = 0
    physical_offset: int = 0
    body_crc: int | None = None
    magic: int | None = None
    total_size: int = 0
    _decoded: tuple[bytes, dict[str, str]] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def property_map(self) -> dict[str, str]:
        """The properties by name, decoded once; to change them, set ``properties``."""
        decoded = self._decoded
        if decoded is None or decoded[0] is not self.properties:
            self._decoded = decoded = (self.properties, property_text.decode(self.properties))
        return decoded[1]

    def changed(self, **fields: Any) -> Record:
        """A copy with other fields; ``dataclasses.replace``, many times faster on the path of every retry.

        >>> Record("orders", b"x", queue_id=1).changed(queue_id=3, magic=None).queue_id
        3
        """
        copy = Record(*_field_values(self))
        copy._decoded = self._decoded
        for name, value in fields.items():
            setattr(copy, name, value)
        return copy

    @property
    def offset_msg_id(self) -> str:
        return offset_msg_id(self.store_host, self.physical_offset)

    def __repr__(self) -> str:
        return (
            f"<Record {self.topic}[{self.queue_id}] queue_offset={self.queue_offset} "
            f"physical_offset={self.physical_offset} body={len(self.body)} B>"
        )


_field_values = attrgetter(*[field.name for field in fields(Record) if field.init])


def encode(record: Record) -> bytes:
    """The unit's bytes. Raises UsageError for what the layout cannot hold. Mirrors MessageExtEncoder.encode.

    >>> encode(Record("orders", b"hi")).hex()[:16]
    '00000063daa320a7'
    """
    return encode_at(
        record, record.queue_offset, record.physical_offset, record.store_timestamp, record.body_crc, record.magic
    )


def encode_at(
    record: Record,
    queue_offset: int,
    physical_offset: int,
    store_timestamp: int,
    body_crc: int | None = None,
    magic: int | None = None,
) -> bytes:
    """A unit's bytes for an append: place, time, check sum and magic are the arguments, not those of ``record``."""
    # 1. The parts of varying length. Hosts and topics repeat, so their bytes are kept.
    body, properties = record.body, record.properties
    born_host = KNOWN_HOSTS.get(record.born_host) or known_host(record.born_host)
    store_host = KNOWN_HOSTS.get(record.store_host) or known_host(record.store_host)
    body_length, properties_length = len(body), len(properties)
    try:
        usual_magic, topic = KNOWN_TOPICS.get(record.topic) or known_topic(record.topic)
        if magic is not None and magic != usual_magic:
            usual_magic, topic = magic, topic_part(record.topic, magic)
        # 2. The kinds of the hosts decide the size of the fixed part and two bits of the flag.
        host_kinds, fixed_size, pack = 0, _V4_FIXED_SIZE, _V4_PACK
        if len(born_host) != V4_SIZE or len(store_host) != V4_SIZE:
            host_kinds = (len(born_host) > V4_SIZE) << 4 | (len(store_host) > V4_SIZE) << 5
            fixed_size, pack = FIXED_PARTS[host_kinds >> 4].size, FIXED_PARTS[host_kinds >> 4].pack
        # 3. The fixed part in one call, and everything joined once: each put passes here.
        start = pack(
            fixed_size + body_length + len(topic) + 2 + properties_length,
            usual_magic,
            zlib.crc32(body) & 0x7FFFFFFF if body_crc is None else body_crc,
            record.queue_id,
            record.flag,
            queue_offset,
            physical_offset,
            record.sys_flag & _NO_HOST_BITS | host_kinds,
            record.born_timestamp,
            born_host,
            store_timestamp,
            store_host,
            record.reconsume_times,
            record.prepared_transaction_offset,
            body_length,
        )
        return b"".join((start, body, topic, _PACK_I16(properties_length), properties))
    except struct.error as error:
        # Which field did not fit is looked up only now: checks beforehand would cost every put.
        placed = replace(
            record,
            queue_offset=queue_offset,
            physical_offset=physical_offset,
            store_timestamp=store_timestamp,
            body_crc=body_crc,
            magic=magic,
        )
        raise _not_encodable(placed) from error


def _not_encodable(record: Record) -> UsageError:
    magic = record.magic if record.magic is not None else version_for(record.topic)
    topic_length = len(record.topic.encode("utf-8", "replace"))
    lengths = {"body_length": len(record.body), "properties_length": len(record.properties), "magic": magic}
    for spec in LAYOUT:
        if spec.kind not in NUMBERS or spec.name == "total_size":
            continue
        kind = TOPIC_LENGTH[magic] if spec.name == "topic_length" and magic in TOPIC_LENGTH else spec.kind
        value: Any = topic_length if spec.name == "topic_length" else lengths.get(spec.name)
        if value is None:
            value = getattr(record, spec.name)
        try:
            struct.pack(">" + NUMBERS[kind][0], *([] if value is None else [value]))
        except struct.error:
            if value is not None:
                return UsageError(
                    f"{record!r}: {spec.name} does not fit: expected a number of kind {kind}, found {value!r}",
                    hint="a topic holds at most 127 bytes (255 as V2), properties 32,767",
                )
    return UsageError(f"{record!r}: the unit is longer than a 32-bit length can say")


def decode(buffer: Buffer, offset: int = 0, *, limit: int | None = None, check_crc: bool = False) -> Record:
    """The unit at ``offset``; nothing at or after ``limit`` is read. Raises CorruptionError, with positions in buffer.

    >>> decode(encode(Record("orders", "你好".encode(), queue_id=3))).queue_id
    3
    """
    shape = measure(buffer, offset, len(buffer) if limit is None else min(limit, len(buffer)))
    if check_crc:
        check_body(buffer, shape, offset)
    (
        total_size,
        magic,
        body_crc,
        queue_id,
        flag,
        queue_offset,
        physical_offset,
        sys_flag,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_transaction_offset,
        _,
    ) = shape.fixed
    return Record(
        str(buffer[shape.topic_at : shape.topic_end], "utf-8", "replace"),
        bytes(buffer[shape.body_at : shape.body_end]),
        queue_id,
        flag,
        sys_flag,
        born_timestamp,
        decode_host(born_host),
        store_timestamp,
        decode_host(store_host),
        reconsume_times,
        prepared_transaction_offset,
        bytes(buffer[shape.properties_at : shape.properties_end]),
        queue_offset,
        physical_offset,
        body_crc,
        magic,
        total_size,
    )


def decode_all(data: Buffer) -> list[Record]:
    """The units of a pull answer, one after the other. What cannot be decoded silently ends the list.

    So does RocketMQ's MessageDecoder.decodes: the rest of such an answer is lost for the consumer group.

    >>> [record.topic for record in decode_all(encode(Record("a", b"1")) + encode(Record("b", b"2")) + b"rest")]
    ['a', 'b']
    """
    records: list[Record] = []
    offset, end = 0, len(data)
    while offset < end:
        try:
            record = decode(data, offset)
        except CorruptionError:
            break
        records.append(record)
        offset += record.total_size
    return records


class Check(NamedTuple):
    """What is at a place of the log: ``kind`` UNIT (of ``size`` bytes), BLANK or INVALID (with a ``reason``)."""

    kind: str
    size: int = 0
    reason: str = ""


def check(buffer: Buffer, offset: int = 0, limit: int | None = None, *, check_crc: bool = True) -> Check:
    """Whether a unit begins at ``offset``, as recovery asks; never raises. ``limit`` is the end of the file's bytes.

    Mirrors CommitLog.checkMessageAndReturnSize: lengths must add up and, on demand, the body must match its check sum.
    Nothing else is checked. The size of a BLANK is the stored one; readers go on at the next file in any case.

    >>> check(encode(Record("a", b"1"))).kind, check(blank(129) + bytes(121)), check(bytes(100)).kind
    ('UNIT', Check(kind='BLANK', size=129, reason=''), 'INVALID')
    """
    end = len(buffer) if limit is None else min(limit, len(buffer))
    try:
        shape = measure(buffer, offset, end)
        if check_crc:
            check_body(buffer, shape, offset)
        return Check(UNIT, shape.total_size)
    except CorruptionError as error:  # a BLANK is also reported this way
        if error.found == MAGIC_NAMES[MAGIC_BLANK]:
            return Check(BLANK, _I32.unpack_from(buffer, offset)[0])
        return Check(INVALID, 0, error.text)


def blank(remaining: int) -> bytes:
    """The 8 bytes that say: nothing more in this file. ``remaining`` counts them too.

    >>> blank(129).hex()
    '00000081cbd43194'
    """
    return _TWO_I32.pack(remaining, MAGIC_BLANK)


def field_map(buffer: Buffer, offset: int = 0, *, limit: int | None = None) -> list[Field]:
    """Every field of the unit at ``offset`` in the order of the table; of a damaged unit as many as can be read.

    Hosts are (address, port), the topic is text, body and properties are bytes; a BLANK has two fields.

    >>> [(f.name, f.offset, f.value) for f in field_map(encode(Record("orders", b"hi")))][14:18]
    [('body_length', 84, 2), ('body', 88, b'hi'), ('topic_length', 90, 6), ('topic', 91, 'orders')]
    """
    end = len(buffer) if limit is None else min(limit, len(buffer))
    fields: list[Field] = []
    values: dict[str, Any] = {}
    position = offset
    for spec in LAYOUT:
        kind = TOPIC_LENGTH.get(values["magic"], spec.kind) if spec.name == "topic_length" else spec.kind
        size = _size_of(spec, kind, values)
        raw = bytes(buffer[position : min(position + size, end)])
        if len(raw) < size:
            break
        value = _value_of(kind, raw)
        values[spec.name] = value
        unit = buffer[offset : position + size] if spec.name == "properties" else b""
        note = _note_of(spec.name, value, unit)
        fields.append(Field(spec.name, position - offset, size, raw, value, spec.meaning, note))
        position += size
        if spec.name == "magic" and value not in TOPIC_LENGTH:
            break
    return fields


def _size_of(spec: FieldSpec, kind: str, values: dict[str, Any]) -> int:
    if kind in NUMBERS:
        return NUMBERS[kind][1]
    if kind == "host":
        return V6_SIZE if values["sys_flag"] & spec.v6_bit else V4_SIZE
    return max(0, int(values[f"{spec.name}_length"]))


def _value_of(kind: str, raw: bytes) -> Any:
    if kind in NUMBERS:
        return int.from_bytes(raw, "big", signed=True)
    if kind == "host":
        return decode_host(raw)
    return str(raw, "utf-8", "replace") if kind == "text" else raw


def _note_of(name: str, value: Any, unit: Buffer) -> str:
    if name == "magic":
        return MAGIC_NAMES.get(value, "unknown")
    if name == "properties" and (right := property_crc.is_right(unit)) is not None:
        return f"{property_names.CRC32} is {'right' if right else 'wrong'}"
    return flags.describe(value) if name == "sys_flag" else ""
