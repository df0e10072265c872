"""Lab 01's replies to an answer: the rule that it breaks, and the first byte, entry or unit that shows it.

    answer ─▶ judge ─┬─ None
                     └─ Finding   rule (the layout or the promise)   first wrong (place and bytes)   expected   found

The files themselves are made in files.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from mqlab.teach.cases.lab01 import files as made
from mqlab.teach.exercises import Answers, Finding
from mqlab.wire import properties, record
from mqlab.wire.java_hash import utf16_units

# lab01.unit ------------------------------------------------------------------------------------------------------

UNIT_RULES = {
    "size": "The first four bytes are the length of the whole unit, themselves included",
    "queue_offset": "The queue offset, 8 bytes at byte 20, is the message's number in its queue, not a place in a file",
    "physical_offset": "The physical offset, 8 bytes at byte 28, is the place of the unit in the log",
    "store_timestamp": "The store time follows the born host, which takes 8 bytes (a port has four of them), or "
    "20 if bit 0x10 of sys_flag is set",
    "body": "The body follows its 4-byte length; before that are two hosts, and bits 0x10 and 0x20 of sys_flag "
    "say which of them take 20 bytes instead of 8",
    "topic": "The topic follows its length, which takes one byte in a V1 unit and two in a V2 unit",
    "properties": "Each property is name 0x01 value 0x02, one after another; only the first 0x01 of each ends the name",
}

BIG_ENDIAN_RULE = 'Numbers in the files are big-endian, the most significant byte comes first: ">" in struct'


def _turned(number: object, size: int) -> object:
    """The value of a number of ``size`` bytes when its bytes are read in the opposite order."""
    try:
        return int.from_bytes(int(number).to_bytes(size, "little", signed=True), "big", signed=True)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None


def judge_units(answers: Answers, units: list[bytes]) -> Finding | None:
    """Each unit is read out of one buffer that holds them all."""
    log, start = b"".join(units), 0
    for unit in units:
        # What is right comes from the encoder's own map of the unit.
        fields = {field.name: field for field in record.field_map(unit)}
        right = {name: fields[name].value for name in ("queue_offset", "physical_offset", "store_timestamp")}
        right |= {"size": len(unit), "body": fields["body"].raw, "topic": fields["topic"].value}
        right["properties"] = properties.decode(fields["properties"].raw)
        found = answers["read_unit"](log, start)
        if not isinstance(found, dict):
            return Finding("read_unit returns a dictionary", f"the unit at byte {start}", right, found)
        for name, rule in UNIT_RULES.items():
            if name not in found:
                rule = "read_unit returns a dictionary with seven keys: " + ", ".join(UNIT_RULES)
                return Finding(rule, f"the unit at byte {start}: {name}", right[name], "no such key")
            if found[name] != right[name]:
                field = fields["total_size" if name == "size" else name]
                shown = field.raw[:12].hex(" ")
                where = f"the unit at byte {start}: {name}, from byte {start + field.offset}: {shown}"
                # The right bytes read from the wrong end deserve a message of their own.
                if isinstance(right[name], int) and _turned(found[name], len(field.raw)) == right[name]:
                    rule = BIG_ENDIAN_RULE
                return Finding(rule, where, right[name], found[name])
        start += len(unit)
    return None


# lab01.lookup ----------------------------------------------------------------------------------------------------

ENTRY_RULE = "Entry n of a queue begins at byte 20 * n of the queue; a file's name is the number of its first byte"
LOG_RULE = "A physical offset counts from the first byte the log ever had; a file's name is its first byte's offset"
NEXT_RULE = "The committed offset is the next message to read: nothing is added before, one is added after"
END_RULE = "Where no entry is written yet, there is nothing to read, and the offset stays the same"


def judge_lookup(answers: Answers, disk: made.QueueOnDisk) -> Finding | None:
    """One reading after the other."""
    entries = {int(name) // 20: data for name, data in disk.queue_files.items()}
    units = {reading.committed: reading.unit for reading in disk.readings}
    for reading in disk.readings:
        found = answers["read_next"](reading.committed, disk.queue_files, disk.log_files)
        right = (reading.unit, reading.next_offset)
        if found == right:
            continue
        first = max(number for number in entries if number <= reading.committed or number == min(entries))
        at = 20 * (reading.committed - first)
        raw = entries[first][at : at + 20].hex(" ", 4)
        where = f"committed {reading.committed}: its entry is at byte {at} of file {20 * first:020d}: {raw}"
        if not isinstance(found, tuple) or len(found) != 2:
            return Finding("read_next returns a tuple (unit, next offset)", where, _said(right), found)
        if reading.unit is None:
            return Finding(END_RULE, where, _said(right), _said(found))
        # The next unit, or the right unit with a wrong offset, means a wrong idea of "committed".
        if found[0] == units.get(reading.committed + 1) or found[0] == reading.unit or found[0] is None:
            rule = NEXT_RULE if found[0] is not None else ENTRY_RULE
            return Finding(rule, where, _said(right), _said(found))
        return Finding(_wrong_file(reading, found[0]), where, _said(right), _said(found))
    return None


def _said(answer: tuple[object, object]) -> tuple[object, object]:
    """An answer whose unit is described by its topic, number and size: the first bytes of two units look alike."""
    unit, next_offset = answer
    if isinstance(unit, bytes) and record.check(unit).kind == record.UNIT:
        one = record.decode(unit)
        return f"the unit of {one.topic} {one.queue_offset}, {len(unit)} bytes", next_offset
    return (f"{len(unit)} bytes: {unit[:12].hex(' ', 4)}" if isinstance(unit, bytes) else unit), next_offset


def _wrong_file(reading: made.Reading, unit: object) -> str:
    """A whole unit of this queue means that the answer read the wrong entry; anything else, the wrong place."""
    if isinstance(unit, bytes) and record.check(unit).kind == record.UNIT:
        found = record.decode(unit)
        if found.topic == "orders" and found.queue_offset != reading.committed:
            return ENTRY_RULE
    return LOG_RULE


# lab01.tags ------------------------------------------------------------------------------------------------------


def judge_tags(answers: Answers, codes: list[tuple[str | None, bytes]]) -> Finding | None:
    """The eight bytes for each text; a finding names the first wrong byte."""
    for tags, right in codes:
        found = answers["tag_bytes"](tags)
        if found == right:
            continue
        where = f"tags {tags!r}"
        if not isinstance(found, bytes) or len(found) != 8:
            return Finding("tag_bytes returns the 8 bytes of the entry", where, right, found)
        at = next(at for at in range(8) if found[at] != right[at])
        rule = _tag_rule(tags, found, right)
        if rule == UNITS_RULE and tags is not None:
            where += f" ({len(tags)} characters, {len(tags.encode())} bytes in UTF-8, {len(utf16_units(tags))} units)"
        return Finding(rule, f"{where}: byte {at} of 8", right.hex(" "), found.hex(" "))
    return None


UNITS_RULE = "Java hashes the 16-bit units of UTF-16: not bytes, and an emoji is two of them"


def _tag_rule(tags: str | None, found: bytes, right: bytes) -> str:
    if not tags:
        return "Without tags the code is 0"
    if found == right[::-1]:
        return BIG_ENDIAN_RULE
    if found[4:] == right[4:]:
        return (
            "The hash is a signed 32-bit number, and the entry keeps its sign: ff ff ff ff in front of a negative one"
        )
    if not tags.isascii():
        return UNITS_RULE
    return "hash = 31 * hash + unit over the whole text, as it is, cut to 32 bits"


# lab01.torn ------------------------------------------------------------------------------------------------------

TORN_RULE = "The log ends at its first unit that is not whole, whatever comes after it"
END_BLANK_RULE = "In the last file, the log ends where the BLANK begins"


def judge_torn(answers: Answers, files: made.Files) -> Finding | None:
    """Where the log ends, and the bytes that are there."""
    right, reason = made.end_of(files)
    found = answers["valid_end"](files)
    if found == right:
        return None
    if isinstance(found, bool) or not isinstance(found, int):
        return Finding("valid_end returns a physical offset", "the result", right, found)
    # The bytes at the right place show why the log ends there.
    where = f"byte {right}: {_bytes_at(files, right)} ({reason or 'a BLANK'})"
    if not reason and found != right and found >= int(max(files)):
        return Finding(END_BLANK_RULE, where, right, found)
    if found > right:
        return Finding(TORN_RULE, where, right, found)
    return Finding(_too_early(files, found), f"byte {found}: {_bytes_at(files, found)}", right, found)


def _too_early(files: made.Files, found: int) -> str:
    inside = [(name, found - int(name)) for name, data in files.items() if 0 <= found - int(name) < len(data)]
    if inside:
        name, at = inside[0]
        kind = record.check(files[name], at).kind
        if kind == record.BLANK:
            return "A BLANK ends its file, not the log: go on with the next file"
        if kind == record.UNIT:
            return "A unit is whole here: its lengths add up, and body_crc is crc32(body) & 0x7FFFFFFF (0 for no body)"
    return "The log ends after its last whole unit"


def _bytes_at(files: made.Files, place: int) -> str:
    pieces = [data[place - int(name) :][:12] for name, data in files.items() if 0 <= place - int(name) < len(data)]
    return pieces[0].hex(" ", 4) if pieces else "no file"


# lab01.rebuild ---------------------------------------------------------------------------------------------------

FIRST_RULE = "A unit carries its own queue offset: the first entry has that of the queue's first unit still in the log"
COUNT_RULE = "A queue has one entry for each unit of its topic and queue id, and no other entries"
ENTRY_PARTS: tuple[tuple[str, slice, Callable[[bytes], object]], ...] = (
    ("An entry's first 8 bytes are the unit's physical offset", slice(0, 8), lambda raw: struct.unpack(">q", raw)[0]),
    ("Bytes 8 to 11 are the size of the whole unit", slice(8, 12), lambda raw: struct.unpack(">i", raw)[0]),
    ("Bytes 12 to 19 are the tag code with its sign; 0 without tags", slice(12, 20), lambda raw: raw.hex(" ")),
)


def judge_rebuild(answers: Answers, lost: made.LostQueues) -> Finding | None:
    """Each queue: where it begins, how many entries, then entry by entry."""
    for (topic, queue_id), (first, entries) in lost.queues.items():
        found = answers["rebuild"](lost.units, topic, queue_id)
        if found == (first, entries):
            continue
        where = f"{topic}, queue {queue_id}"
        if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[1], bytes):
            return Finding("rebuild returns a tuple (first queue offset, bytes)", where, (first, entries), found)
        # First the number of entries, then each entry's three parts, last the number of the first entry.
        if len(found[1]) != len(entries):
            return Finding(COUNT_RULE, f"{where}: bytes of all entries", len(entries), len(found[1]))
        for at in range(0, len(entries), 20):
            for rule, part, read in ENTRY_PARTS:
                right, got = entries[at : at + 20][part], found[1][at : at + 20][part]
                if right != got:
                    return Finding(rule, f"{where}: entry {first + at // 20}", read(right), read(got))
        return Finding(FIRST_RULE, f"{where}: its first queue offset", first, found[0])
    return None
