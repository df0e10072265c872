"""lab01.torn, lab01.rebuild: find out what of a log is whole, and make from it what is lost.

    torn      a log after a power cut   ─▶ where it ends
    rebuild   the units of a log        ─▶ a lost consume queue

The logs are made in files.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab01 import files as made
from mqlab.course.kit import Pure, Slip, slips, tuple_of
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Call
from mqlab.rocketmq.wire import properties, record
from mqlab.rocketmq.wire.java_hash import tags_code

TORN_RULE = "The log ends at its first unit that is not whole, whatever comes after it in the order of the files' names"
END_BLANK_RULE = "In the last file, the log ends where the BLANK begins"
BLANK_RULE = "A BLANK ends its file, not the log: continue with the next file"
WHOLE_RULE = "A unit is whole here: its lengths add up, and body_crc is crc32(body) & 0x7FFFFFFF (0 for no body)"
NAME_RULE = (
    "A physical offset counts from the first byte the log ever had, and older files may be deleted: a file's name is "
    "the number of its first byte, so the end is int(name) + at"
)

NOTHING_WHOLE_RULE = f"Not one unit was found whole, not even the first. {slips.little_endian.says}. {WHOLE_RULE}"


def torn_call(files: made.Files) -> Call:
    """One log, its files in no order, and where recovery ends it."""
    files = dict(sorted(files.items(), reverse=True))
    right, reason = made.end_of(files)
    return Call(
        log_files=files,
        right=right,
        given=reason,
        about=f"byte {right}: {_bytes_at(files, right)} ({reason or 'a BLANK'})",
    )


def _torn_rule(call: Call, answer: int, seen: Difference) -> str:
    files: Any = call["log_files"]
    if not call.given and answer >= int(max(files)):
        return END_BLANK_RULE
    if answer > call.right:
        return TORN_RULE
    # Too early: what stands there says why it is not the end.
    for name, data in files.items():
        if 0 <= answer - int(name) < len(data):
            kind = record.check(data, answer - int(name)).kind
            return {record.BLANK: BLANK_RULE, record.UNIT: WHOLE_RULE}.get(kind, "")
    return ""


def _torn_place(call: Call, seen: Difference | None) -> str:
    """The bytes at the right place, or at the one that was found too early."""
    end = seen.found if seen is not None else call.right
    rule = _torn_rule(call, end, seen) if seen is not None and isinstance(end, int) else TORN_RULE
    early = rule not in (TORN_RULE, END_BLANK_RULE)
    return f"byte {end}: {_bytes_at(call['log_files'], end)}" if early and isinstance(end, int) else call.about


def _bytes_at(files: made.Files, physical_offset: int) -> str:
    pieces = [
        data[physical_offset - int(name) :][:12]
        for name, data in files.items()
        if 0 <= physical_offset - int(name) < len(data)
    ]
    return pieces[0].hex(" ", 4) if pieces else "no file"


TORN = Pure(
    "lab01.torn",
    "valid_end(log_files)",
    points=4,
    about="a log after a bad day",
    seeds=tuple(range(7, 14)),
    calls=lambda seed: [torn_call(made.torn_log(seed))],
    returns=int,
    rules="The log ends after its last whole unit",
    explain=_torn_rule,
    place_of=_torn_place,
    slips=[
        Slip("nothing is whole", lambda call: min(map(int, call["log_files"])), NOTHING_WHOLE_RULE),
        Slip("from the first file", lambda call: call.right - min(map(int, call["log_files"])), NAME_RULE),
    ],
    weights={"": 1, "an unwritten file": 1} | {f"a log: {damage}": 1 for damage in made.DAMAGES},
    forbids=FORBIDS["lab01.torn"],
)

ENTRY_BYTES = 20
CODE_RULE = "Bytes 12 to 19 are the tag code with its sign"


def queue_calls(lost: made.LostQueues) -> Iterator[Call]:
    """Each queue of a log, with the entries that the broker wrote for it."""
    for (topic, queue_id), right in lost.queues.items():
        yield Call(units=lost.units, topic=topic, queue_id=queue_id, right=right, about=f"{topic}, queue {queue_id}")


def _first_difference(call: Call, answer: Any) -> Difference | None:
    """First the number of entries, then each entry's three parts, last the number of the first entry."""
    (first, entries), (found_first, got) = call.right, answer
    if len(got) != len(entries):
        return Difference(("bytes of all entries",), "number", len(entries), len(got))
    for position in range(0, len(entries), ENTRY_BYTES):
        pair = [struct.unpack_from(">qi8s", data, position) for data in (entries, got)]
        for part, right, value in zip(("place", "size", "code"), *pair, strict=True):
            if right != value:
                return Difference((f"entry {first + position // ENTRY_BYTES}", part), part, right, value)
    return None if found_first == first else Difference(("its first queue offset",), "first", first, found_first)


def _code(unit: record.Record) -> int:
    return tags_code(properties.decode(unit.properties).get("TAGS"))


def _rebuilt(entry: Callable[[record.Record, int], tuple[int, int, int]]) -> Callable[[Call], object]:
    """The queue's entries made in another way: ``entry(unit, place of the unit among the units)``."""

    def rebuilt(call: Call) -> tuple[int, bytes]:
        entries, position = b"", 0
        for unit in map(record.decode, call["units"]):
            if (unit.topic, unit.queue_id) == (call["topic"], call["queue_id"]):
                entries += struct.pack(">qiq", *entry(unit, position))
            position += unit.total_size
        return call.right[0], entries

    return rebuilt


REBUILD = Pure(
    "lab01.rebuild",
    "rebuild(units, topic, queue_id)",
    points=3,
    about="five queues to rebuild",
    calls=lambda seed: queue_calls(made.lost_queues(seed)),
    returns=tuple_of(first=int, entries=bytes),
    compares=_first_difference,
    shows=lambda part, value: value.hex(" ") if part == "code" else value,
    rules={
        "number": "A queue has one entry for each unit of its topic and queue id, and no other entries",
        "place": "An entry's first 8 bytes are the unit's physical offset, which the unit itself has: between the "
        "files of a log are BLANKs, and between the units of a queue those of other queues",
        "size": "Bytes 8 to 11 are the size of the whole unit",
        "code": f"{CODE_RULE}; 0 without tags",
        "first": "A unit carries its own queue offset: the first entry has that of the queue's first unit still in "
        "the log",
    },
    slips=[
        Slip("from 0", lambda call: (0, call.right[1]), belief="lab01.new_file_from_0"),
        Slip(
            "bodies",
            _rebuilt(lambda unit, at: (unit.physical_offset, len(unit.body), _code(unit))),
            belief="lab01.size_of_body",
        ),
        Slip(
            "places",
            _rebuilt(lambda unit, at: (at, unit.total_size, _code(unit))),
            belief="lab01.places_from_first_unit",
        ),
        Slip(
            "unsigned",
            _rebuilt(lambda unit, at: (unit.physical_offset, unit.total_size, _code(unit) & 0xFFFFFFFF)),
            f"{CODE_RULE}: ff ff ff ff in front of a negative one",
            "lab01.hash_is_positive",
        ),
        slips.little_endian,
    ],
    forbids=FORBIDS["lab01.rebuild"],
)
