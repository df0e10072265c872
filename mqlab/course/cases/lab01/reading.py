"""lab01.unit, lab01.tags, lab01.lookup: read what a broker has written, byte by byte.

    unit     bytes of the log               ─▶ the fields of a unit
    tags     a text                         ─▶ the tag code of an entry
    lookup   a group's offset, two folders  ─▶ the message it reads next, and the offset after that

The bytes are made in files.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab01 import files as made
from mqlab.course.kit import Fields, Pure, Slip, slips, tuple_of
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Call
from mqlab.durations import calendar
from mqlab.rocketmq.wire import properties, record, sys_flag
from mqlab.rocketmq.wire.java_hash import utf16_units


def unit_calls(units: Sequence[bytes]) -> Iterator[Call]:
    """Each unit is read out of one buffer that holds them all. What is right is the encoder's own map of the unit."""
    log, start = b"".join(units), 0
    for unit in units:
        fields = {field.name: field for field in record.field_map(unit)}
        right = {name: fields[name].value for name in ("queue_offset", "physical_offset", "store_timestamp", "topic")}
        right |= {
            "size": len(unit),
            "body": fields["body"].raw,
            "properties": properties.decode(fields["properties"].raw),
        }
        yield Call(log=log, start=start, right=right, about=f"the unit at byte {start}", given=fields)
        start += len(unit)


def _field_place(call: Call, seen: Difference | None) -> str:
    """Where the wrong field stands, and the bytes that are there."""
    if seen is None:
        return call.about
    field = call.given["total_size" if seen.path[0] == "size" else seen.path[0]]
    return f"{call.about}: {seen.place}, from byte {call['start'] + field.offset}: {field.raw[:12].hex(' ')}"


def _with_its_date(part: str, value: Any) -> object:
    is_time = part == "store_timestamp" and isinstance(value, int) and 10**12 <= value < 10**13
    return f"{value} ({calendar(value)})" if is_time else value


def _changed(name: str, value: Callable[[Mapping[str, Any]], Any]) -> Callable[[Call], object]:
    """The right record, but for one field, made from the encoder's own map of the unit."""
    return lambda call: call.right | {name: value(call.given)}


def _without_compression(fields: Mapping[str, Any]) -> bytes:
    """The body as its sender wrote it."""
    raw: bytes = fields["body"].raw
    return zlib.decompress(raw) if fields["sys_flag"].value & sys_flag.COMPRESSED else raw


UNIT = Fields(
    "lab01.unit",
    "read_unit(log, start)",
    points=4,
    about="seven units",
    seeds=(1, 2, 3),
    calls=lambda seed: unit_calls(made.units(seed)),
    fields={
        "size": (int, "The first four bytes are the length of the whole unit, themselves included"),
        "queue_offset": (
            int,
            "The queue offset, 8 bytes at byte 20, is the message's number in its queue, not a place in a file",
        ),
        "physical_offset": (int, "The physical offset, 8 bytes at byte 28, is the place of the unit in the log"),
        "store_timestamp": (
            int,
            "The store time follows the born host, which takes 8 bytes (a port has four of them), "
            "or 20 if bit 0x10 of sys_flag is set",
        ),
        "body": (
            bytes,
            "The body follows its 4-byte length; before that are two hosts, and bits 0x10 and 0x20 of "
            "sys_flag say which of them take 20 bytes instead of 8",
        ),
        "topic": (str, "The topic follows its length, which takes one byte in a V1 unit and two in a V2 unit"),
        "properties": (
            {str: str},
            "The properties follow their 2-byte length and are UTF-8. Each is name 0x01 value "
            "0x02; only the first 0x01 of each ends the name",
        ),
    },
    slips=[
        Slip(
            "one time",
            _changed("store_timestamp", lambda fields: fields["born_timestamp"].value),
            belief="lab01.one_time",
        ),
        Slip(
            "without itself",
            _changed("size", lambda fields: fields["total_size"].value - 4),
            belief="lab01.length_of_the_rest",
        ),
        Slip(
            "bytes of the queue",
            _changed("queue_offset", lambda fields: fields["queue_offset"].value // 20),
            belief="lab01.queue_offset_is_bytes",
        ),
        Slip(
            "decompressed",
            _changed("body", _without_compression),
            belief="lab01.body_as_sent",
        ),
        slips.little_endian,
    ],
    place_of=_field_place,
    shows=_with_its_date,
    forbids=FORBIDS["lab01.unit"],
    weights={"": 1, "short addresses, short topics": 2, "a unit with nothing in it": 1},
)

UNITS_RULE = "Java hashes the 16-bit units of UTF-16, not bytes; an emoji is two units"
AS_IT_IS_RULE = "The hash is that of the text as it is: a letter and its accent may be two units, and stay two"
SIGN_RULE = "The hash is a signed 32-bit number, and the entry keeps its sign: ff ff ff ff in front of a negative one"


def _tag_rule(call: Call, answer: bytes, seen: Difference) -> str:
    tags, right = call["tags"], call.right
    if len(answer) != 8:
        return "tag_bytes returns the 8 bytes of the entry"
    if not tags:
        return "Without tags the code is 0"
    if answer[4:] == right[4:]:
        return SIGN_RULE
    return "hash = 31 * hash + unit over the whole text, as it is, cut to 32 bits" if tags.isascii() else UNITS_RULE


def _tag_place(call: Call, seen: Difference | None) -> str:
    """The text; how long it is in characters, bytes and units; the first byte that differs."""
    tags, where = call["tags"], f"tags {call['tags']!r}"
    if tags is not None and not tags.isascii():
        where += f" ({len(tags)} characters, {len(tags.encode())} bytes in UTF-8, {len(utf16_units(tags))} units)"
    if seen is None or not isinstance(seen.found, bytes) or len(seen.found) != 8 or not isinstance(seen.right, bytes):
        return where
    index = next(index for index in range(8) if seen.found[index] != seen.right[index])
    return f"{where}: byte {index} of 8"


def _coded(units: Callable[[str], Iterable[int]], bits: int = 32, signed: bool = True) -> Callable[[Call], object]:
    """The eight bytes of a hash over other units, of another size, or without its sign."""

    def coded(call: Call) -> bytes:
        value = 0
        for unit in units(call["tags"] or ""):
            value = (31 * value + unit) % (1 << bits)
        return (value - (1 << bits) if signed and value >> (bits - 1) else value).to_bytes(8, "big", signed=signed)

    return coded


TAGS = Pure(
    "lab01.tags",
    "tag_bytes(tags)",
    points=2,
    about="tags of all kinds",
    returns=bytes,
    calls=lambda seed: [Call(tags=tags, right=right) for tags, right in made.tag_codes(seed)],
    explain=_tag_rule,
    place_of=_tag_place,
    shows=lambda part, value: value.hex(" "),
    slips=[
        Slip("bytes", _coded(lambda text: text.encode()), belief="lab01.text_is_utf8"),
        Slip("characters", _coded(lambda text: map(ord, text)), belief="lab01.emoji_is_one"),
        Slip("composed", _coded(lambda text: utf16_units(unicodedata.normalize("NFC", text))), AS_IT_IS_RULE),
        Slip("the first", _coded(lambda text: utf16_units(text.split("||")[0].strip())), belief="lab01.several_tags"),
        Slip("64 bits", _coded(utf16_units, bits=64, signed=False), belief="lab01.hash_of_64_bits"),
        Slip("unsigned", _coded(utf16_units, signed=False), belief="lab01.hash_is_positive"),
        slips.little_endian,
    ],
    forbids=FORBIDS["lab01.tags"],
)

ENTRY_RULE = "Entry n of a queue begins at byte 20 * n of the queue; a file's name is the number of its first byte"
LOG_RULE = "A physical offset counts from the first byte the log ever had; a file's name is its first byte's offset"
NEXT_RULE = "The committed offset is the next message to read: nothing is added before, one is added after"
WHOLE_RULE = "The unit is all of its bytes: from its first one, as many as the entry's size says"
ZERO_RULE = (
    "A position of 0 is the log's first byte, and a code of 0 means no tags: only an entry of size 0 is not written"
)
END_RULE = "Where no entry is written yet, there is nothing to read, and the offset stays the same"


def reading_calls(disk: made.QueueOnDisk) -> Iterator[Call]:
    """One reading after the other of a queue."""
    entries = {int(name) // 20: data for name, data in disk.queue_files.items()}
    units = {reading.committed: reading.unit for reading in disk.readings}
    for reading in disk.readings:
        first = max(number for number in entries if number <= reading.committed or number == min(entries))
        position = 20 * (reading.committed - first)
        raw = entries[first][position : position + 20].hex(" ", 4) or "no such file yet"
        yield Call(
            committed=reading.committed,
            queue_files=disk.queue_files,
            log_files=disk.log_files,
            right=(reading.unit, reading.next_offset),
            given=units.get(reading.committed + 1),
            about=f"committed {reading.committed}: its entry is at byte {position} of file {20 * first:020d}: {raw}",
        )


def _reading_rule(call: Call, answer: Any, seen: Difference) -> str:
    unit, right = answer[0], call.right[0]
    if right is None:
        return END_RULE
    # The next unit, or the right unit with a wrong offset, means a wrong idea of "committed".
    if unit is not None and unit in (call.given, right):
        return NEXT_RULE
    if unit is None:
        return ENTRY_RULE if record.decode(right).physical_offset else ZERO_RULE
    if unit and (unit in right or right in unit):
        return WHOLE_RULE
    # A whole unit of this queue means that the wrong entry was read; anything else, the wrong place.
    decoded = record.decode(unit) if record.check(unit).kind == record.UNIT else None
    return (
        ENTRY_RULE
        if decoded is not None and decoded.topic == "orders" and decoded.queue_offset != call["committed"]
        else LOG_RULE
    )


def _as_unit(part: str, value: Any) -> object:
    """A unit by its topic, number and size: the first bytes of two units look alike."""
    if not isinstance(value, bytes) or record.check(value).kind != record.UNIT:
        return value
    decoded = record.decode(value)
    return f"the unit of {decoded.topic} {decoded.queue_offset}, {len(value)} bytes"


def _nowhere(call: Call) -> object:
    """What comes of an entry's numbers read from the wrong end: a place that no file has."""
    return call.right if call.right[0] is None else (b"", call.right[1])


LOOKUP = Pure(
    "lab01.lookup",
    "read_next(committed, queue_files, log_files)",
    points=3,
    about="a queue without its beginning",
    calls=lambda seed: [
        *reading_calls(made.queue_on_disk(seed)),
        *reading_calls(made.new_queue(seed)),
    ],
    returns=tuple_of(unit=bytes | None, next_offset=int),
    explain=_reading_rule,
    shows=_as_unit,
    slips=[Slip("no place in the log", _nowhere, f"No entry led to a unit. {slips.little_endian.says}. {LOG_RULE}")],
    forbids=FORBIDS["lab01.lookup"],
)
