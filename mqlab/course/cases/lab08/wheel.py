"""lab08.due_at and lab08.rebuild: a slot of the timer wheel, and a wheel that is lost.

    due_at    a second, wheel and log read piece by piece   ─▶ where its messages wait in the commit log, oldest first
    rebuild   the bytes of a timer log                      ─▶ slot number -> (second, first, last)

The bytes are those that RocketMQ writes (timerwheel, timerlog). The wheel has turned once in every case: some slots
hold a second of fourteen days ago.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqlab.counts import counted
from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import OneOf, Pure, Slip, slips
from mqlab.course.kit.shapes import Difference, tuple_of
from mqlab.course.teach.exercises import Call, Finding
from mqlab.errors import UsageError
from mqlab.rocketmq.wire.timer_units import (
    MAGIC_DEFAULT,
    MAGIC_DELETE,
    MAGIC_MOST,
    MAGIC_ROLL,
    NO_POSITION,
    SLOT,
    SLOT_SIZE,
    TIMER_UNIT,
    TIMER_UNIT_SIZE,
    WHEEL_FILE_SIZE,
    WHEEL_SLOTS,
    Slot,
    TimerUnit,
)

BEGIN_S = 1_767_225_600 + 43  # not a multiple of the wheel's slots: a slot's number is not its second
MOST_READS = 200
WAITING = tuple_of("waiting message", place=int, size=int)
SLOT_ROW = tuple_of("slot", second=int, first=int, last=int)

LIST_RULE = (
    "A slot's last names its newest unit, and each unit's previous the one before it, until previous is -1: the whole "
    "list is due"
)
ORDER_RULE = "The list leads from the newest unit to the oldest; the oldest comes first in the answer"
PLACE_RULE = "A row is (place, size): the unit's sixth and seventh number, the message's place in the commit log"
MANY_READS_RULE = "One read finds the slot and one read each unit of its list: nothing else needs to be read"
PIECE_RULE = (
    f"The wheel has {WHEEL_FILE_SIZE:,} bytes: read one slot of {SLOT_SIZE} bytes, and units of {TIMER_UNIT_SIZE} bytes"
)
SLOT_RULE = "A slot's number is its second modulo 1,209,600, and its second is (write_ms + delay_ms) // 1000"
ENDS_RULE = "first is the position of the oldest unit of the second, last that of the newest"
LAST_RULE = "A log of n * 52 bytes has n units: the last one is whole if its 52 bytes end with the log"
WHOLE_RULE = "The log ends at the first unit whose size is not 52 or whose magic is not between 0 and 15"


@dataclass(slots=True)
class WheelFiles:
    """A timer log and its wheel while they are made, and how often an answer has read them."""

    slots: dict[int, Slot] = field(default_factory=dict)
    log: bytearray = field(default_factory=bytearray)
    units: list[TimerUnit] = field(default_factory=list)
    reads: int = 0
    largest: int = 0

    def append(self, write_s: int, second: int, magic: int, physical_offset: int, size: int) -> None:
        """What a broker does with a timed message: a unit in the log, and its slot names it."""
        slot = self.slots.get(second % WHEEL_SLOTS)
        if slot is None or slot.time != second:
            slot = Slot(second, NO_POSITION, NO_POSITION)
        position = len(self.log)
        delay_ms = (second - write_s) * 1000
        unit = TimerUnit(
            TIMER_UNIT_SIZE, slot.last, magic, write_s * 1000, delay_ms, physical_offset, size, 1_008_770_331
        )
        self.units.append(unit)
        self.log += TIMER_UNIT.pack(*unit)
        first = position if slot.first == NO_POSITION else slot.first
        change = -1 if magic & MAGIC_DELETE else 1
        self.slots[second % WHEEL_SLOTS] = Slot(second, first, position, slot.num + change)

    def list_of(self, second: int) -> list[TimerUnit]:
        """The units of a second, newest first, whatever the slot says of its own second."""
        slot = self.slots.get(second % WHEEL_SLOTS)
        units, position = [], slot.last if slot is not None else NO_POSITION
        while position != NO_POSITION:
            units.append(self.units[position // TIMER_UNIT_SIZE])
            position = units[-1].previous
        return units

    def read_wheel(self, position: int, size: int) -> bytes:
        """Bytes of the wheel's file; a slot that was never used is zeros."""
        self._counted(position, size, WHEEL_FILE_SIZE, "the wheel")
        first, end = position // SLOT_SIZE, -(-(position + size) // SLOT_SIZE)
        if end - first > MOST_READS:
            raise UsageError(f"read_wheel({position}, {size}): that is much more than a slot", hint=PIECE_RULE)
        data = b"".join(SLOT.pack(*self.slots.get(number, Slot(0, 0, 0))) for number in range(first, end))
        return data[position - first * SLOT_SIZE :][:size]

    def read_log(self, position: int, size: int) -> bytes:
        """Bytes of the timer log."""
        self._counted(position, size, len(self.log), "the timer log")
        return bytes(self.log[position : position + size])

    def _counted(self, position: int, size: int, length: int, what: str) -> None:
        self.reads, self.largest = self.reads + 1, max(self.largest, size)
        if position < 0 or size < 0 or position > length:
            raise UsageError(f"{what} has no byte {position}: it has {length:,} bytes", hint=LIST_RULE)
        if self.reads > MOST_READS:
            raise UsageError(f"{what} was read {MOST_READS} times", hint="a list ends where previous is -1")


def _filled(rng: random.Random) -> tuple[WheelFiles, list[int]]:
    """Files with lists of several seconds, woven together; the seconds that were used last."""
    files = WheelFiles()
    # 1. Fourteen days ago: slots that are still there, under the numbers of today's seconds.
    now_s = BEGIN_S + rng.randrange(1, 900)
    old = rng.sample(range(now_s + 5, now_s + 60), 6)
    physical_offset = 0
    for second in (*old, *old[:3]):
        physical_offset = _one(files, rng, now_s - WHEEL_SLOTS, second - WHEEL_SLOTS, MAGIC_DEFAULT, physical_offset)
    # 2. Today: three of the old slots are used again, with others between them.
    seconds = [*old[:3], *rng.sample(range(now_s + 61, now_s + 120), 2)]
    woven = [second for second in seconds for _ in range(rng.randint(3, 5))]
    rng.shuffle(woven)
    for number, second in enumerate(woven):
        magic = MAGIC_DEFAULT | (MAGIC_ROLL if rng.random() < 0.1 else 0)
        physical_offset = _one(files, rng, now_s + number // 6, second, magic, physical_offset)
    physical_offset = _one(files, rng, now_s + 4, seconds[0], MAGIC_DEFAULT | MAGIC_DELETE, physical_offset)
    _one(files, rng, now_s + 4, now_s + 130, MAGIC_DEFAULT, physical_offset)
    return files, [*seconds, now_s + 130, old[3], now_s + 200]


def _young(rng: random.Random) -> tuple[WheelFiles, list[int]]:
    """A log that begins with the list of one second: its oldest unit is at position 0."""
    files, now_s, physical_offset = WheelFiles(), BEGIN_S + rng.randrange(1, 900), 0
    for second in (now_s + 9, now_s + 9, now_s + 4):
        physical_offset = _one(files, rng, now_s, second, MAGIC_DEFAULT, physical_offset)
    return files, [now_s + 9]


def _one(files: WheelFiles, rng: random.Random, write_s: int, second: int, magic: int, physical_offset: int) -> int:
    size = rng.randint(290, 340)
    files.append(write_s, second, magic, physical_offset, size)
    return physical_offset + size + rng.randint(0, 3) * 180


def seconds_of_a_wheel(seed: int) -> Iterator[Call]:
    """A call per second: with lists, with one message, with a slot of fourteen days ago, with none; of a young log."""
    filled, young = _filled(random.Random(f"lab08.due_at {seed}")), _young(random.Random(f"lab08.due_at young {seed}"))
    for files, second in ((files, second) for files, seconds in (filled, young) for second in seconds):
        slot = files.slots.get(second % WHEEL_SLOTS)
        asked = WheelFiles(files.slots, files.log, files.units)
        is_own = slot is not None and slot.time == second
        yield Call(
            read_wheel=asked.read_wheel,
            read_log=asked.read_log,
            second=second,
            right=_rows(files.list_of(second)[::-1]) if is_own else [],
            about=f"second {second}, slot {second % WHEEL_SLOTS}: {tuple(slot) if slot else 'never used'}",
            given=asked,
        )


def _rows(units: Sequence[TimerUnit]) -> list[tuple[int, int]]:
    return [(unit.physical_offset, unit.unit_size) for unit in units]


def _own(call: Call) -> Slot | None:
    slot = call.given.slots.get(call["second"] % WHEEL_SLOTS)
    return slot if slot is not None and slot.time == call["second"] else None


def _as_counted(call: Call) -> list[tuple[int, int]]:
    slot = _own(call)
    return _rows(call.given.list_of(call["second"])[: max(slot.num, 0)][::-1]) if slot is not None else []


def _first_to_last(call: Call) -> list[tuple[int, int]]:
    slot = _own(call)
    if slot is None:
        return []
    return _rows(call.given.units[slot.first // TIMER_UNIT_SIZE : slot.last // TIMER_UNIT_SIZE + 1])


def _both_ends(call: Call) -> OneOf:
    right = call.right
    return OneOf([right[-1:], right[:1], [*right[:1], *right[1:][-1:]]])


def _list_rule(call: Call, answer: Any, seen: Difference) -> str:
    if sorted(answer) == sorted(call.right):
        return ORDER_RULE
    known = _rows(call.given.units)
    return LIST_RULE if all(row in known for row in answer) else PLACE_RULE


def _reads(call: Call) -> Finding | None:
    files = call.given
    where = f"second {call['second']}, whose list has {counted(len(call.right), 'units')}"
    if files.largest > TIMER_UNIT_SIZE:
        return Finding(PIECE_RULE, where, f"at most {TIMER_UNIT_SIZE} bytes in one read", files.largest, call=call)
    if files.reads > 2 * len(call.right) + 2:  # each may be looked at twice
        return Finding(MANY_READS_RULE, where, f"about {len(call.right) + 1} reads", files.reads, call=call)
    return None


DUE_AT = Pure(
    "lab08.due_at",
    "due_at(read_wheel, read_log, second)",
    points=3,
    about="a wheel that has turned once",
    calls=seconds_of_a_wheel,
    returns=[WAITING],
    rules={"": LIST_RULE, "number": LIST_RULE, "place": PLACE_RULE, "size": PLACE_RULE},
    explain=_list_rule,
    also=_reads,
    slips=[
        Slip(
            "no look at its time",
            lambda call: _rows(call.given.list_of(call["second"])[::-1]),
            belief="lab08.slot_is_its_second",
        ),
        Slip("num of them", _as_counted, belief="lab08.num_counts"),
        Slip("from first to last", _first_to_last, belief="lab08.list_is_a_run"),
        Slip("its ends", _both_ends, belief="lab08.ends_are_all"),
        Slip("newest first", lambda call: call.right[::-1], belief="lab08.newest_first"),
        slips.little_endian,
    ],
    forbids=FORBIDS["lab08.due_at"],
)


# A wheel that is lost.

Rows = dict[int, tuple[int, int, int]]


def rebuilt(
    log: bytes,
    start: int,
    *,
    second_of: Callable[[TimerUnit], int] = lambda unit: unit.slot_ms // 1000,
    is_whole: Callable[[TimerUnit], bool] = lambda unit: unit.is_whole,
    stops: bool = True,
    turns: str = "newest",
    from_start: bool = True,
) -> Rows:
    """The wheel that belongs to a log. The keywords are what a misunderstanding would do instead."""
    rows: Rows = {}
    for offset in range(0, len(log) - TIMER_UNIT_SIZE + 1, TIMER_UNIT_SIZE):
        unit = TimerUnit(*TIMER_UNIT.unpack_from(log, offset))
        if not is_whole(unit):
            if stops:
                break
            continue
        second, position = second_of(unit), offset + (start if from_start else 0)
        number = second % WHEEL_SLOTS
        before = rows.get(number)
        if before is None or (before[0] != second and turns == "newest"):
            rows[number] = (second, position, position)
        elif before[0] == second or turns == "first stays":
            rows[number] = (second, before[1], position)
    return rows


def lost_wheels(seed: int) -> Iterator[Call]:
    """A log with an end, one whose older files were deleted, one with a unit that a power cut tore; times between two
    seconds, and a log without zeros behind it; one with a unit of another size.
    """
    rng = random.Random(f"lab08.rebuild {seed}")
    empty = bytes(TIMER_UNIT_SIZE * 3 + 17)
    files, _ = _filled(rng)
    yield _log_call(bytes(files.log) + empty, 0, "a log that ends with zeros")
    files, _ = _filled(rng)
    cut = TIMER_UNIT_SIZE * rng.randint(4, 7)
    yield _log_call(bytes(files.log[cut:]) + empty, cut, "a log whose older files were deleted")
    files, _ = _filled(rng)
    torn = TIMER_UNIT_SIZE * (len(files.units) - rng.randint(4, 6))
    broken = bytearray(files.log)
    broken[torn + 12 : torn + 16] = rng.choice((b"\x00\x00\x00\x63", b"\xff\xff\xff\xff"))  # the magic
    yield _log_call(bytes(broken) + empty, 0, f"a log with a torn unit at {torn}")
    odd = _between_seconds(rng)
    yield _log_call(odd, 0, "times between two seconds, all kinds of magic, and a last unit that ends with the log")
    size = rng.choice((40, 53)).to_bytes(4, "big")
    cut_off = odd[: 3 * TIMER_UNIT_SIZE] + size + odd[3 * TIMER_UNIT_SIZE + 4 :]
    yield _log_call(cut_off, 0, f"a log with a unit of another size at {3 * TIMER_UNIT_SIZE}")
    yield _log_call(odd[:-9], 0, "a log that ends in the middle of a unit")


def _between_seconds(rng: random.Random) -> bytes:
    """Six units: write_ms and delay_ms have parts of a second that make one together; one was late already."""
    begin_ms, log, newest = (BEGIN_S + rng.randrange(1, 900)) * 1_000, b"", dict[int, int]()
    whole_s = rng.randint(5, 9)
    parts = ((700, 600, 0), (600, 800, 15), (300, -900, 1), (900, 99, 3), (0, 0, 1), (400, 600, 5))
    for number, (part_ms, more_ms, magic) in enumerate(parts):
        delay_ms = more_ms if more_ms < 0 else whole_s * 1_000 + more_ms
        second = (begin_ms + part_ms + delay_ms) // 1_000
        ends = TIMER_UNIT_SIZE, newest.get(second, NO_POSITION), magic
        newest[second] = len(log)
        log += TIMER_UNIT.pack(*ends, begin_ms + part_ms, delay_ms, number * 400, 300, 1_008_770_331, 0)
    return log


def _log_call(log: bytes, start: int, about: str) -> Call:
    return Call(log=log, start=start, right=rebuilt(log, start), about=about)


def _wrongly(**other: Any) -> Callable[[Call], Rows]:
    return lambda call: rebuilt(call["log"], call["start"], **other)


def _seconds_of_parts(call: Call) -> OneOf:
    """Each part rounded down on its own, and the sum rounded to the nearest second."""
    ways: tuple[Callable[[TimerUnit], int], ...] = (
        lambda unit: unit.write_ms // 1_000 + unit.delay_ms // 1_000,
        lambda unit: round(unit.slot_ms / 1_000),
    )
    return OneOf([rebuilt(call["log"], call["start"], second_of=second_of) for second_of in ways])


def _zeros_at_the_end(call: Call) -> Rows:
    """A last unit that ends with the log is left out."""
    log = call["log"]
    return rebuilt(log[: len(log) - (TIMER_UNIT_SIZE if len(log) % TIMER_UNIT_SIZE == 0 else 0)], call["start"])


def _other_ends(call: Call) -> OneOf:
    """A magic of 0, of 15, or either ends the log; or no size does."""
    ways: tuple[Callable[[TimerUnit], bool], ...] = (
        lambda unit: unit.is_whole and unit.magic > 0,
        lambda unit: unit.is_whole and unit.magic < MAGIC_MOST,
        lambda unit: unit.is_whole and 0 < unit.magic < MAGIC_MOST,
        lambda unit: unit.size > 0 and 0 <= unit.magic <= MAGIC_MOST,
    )
    return OneOf([rebuilt(call["log"], call["start"], is_whole=is_whole) for is_whole in ways])


def _slot_rule(call: Call, answer: Any, seen: Difference) -> str:
    if not isinstance(answer, dict) or not set(answer) <= set(call.right):
        return WHOLE_RULE if isinstance(answer, dict) and set(call.right) < set(answer) else SLOT_RULE
    return ENDS_RULE


REBUILD_WHEEL = Pure(
    "lab08.rebuild",
    "rebuild(log, start)",
    points=4,
    about="timer logs whose wheel is lost",
    calls=lost_wheels,
    returns={int: SLOT_ROW},
    rules={"": SLOT_RULE, "number": SLOT_RULE, "second": SLOT_RULE, "first": ENDS_RULE, "last": ENDS_RULE},
    explain=_slot_rule,
    slips=[
        Slip(
            "the write time", _wrongly(second_of=lambda unit: unit.write_ms // 1000), belief="lab08.slot_of_the_write"
        ),
        Slip("in ms", _wrongly(second_of=lambda unit: unit.slot_ms), belief="lab08.slots_of_ms"),
        Slip("parts of a second", _seconds_of_parts, SLOT_RULE),
        Slip("the ends of the magic", _other_ends, WHOLE_RULE),
        Slip("without its last unit", _zeros_at_the_end, LAST_RULE),
        Slip("goes on", _wrongly(stops=False), belief="lab08.torn_unit_is_skipped"),
        Slip("the first stays", _wrongly(turns="first stays"), belief="lab08.slot_keeps_its_first"),
        Slip("the oldest stays", _wrongly(turns="oldest"), belief="lab08.oldest_slot_stays"),
        Slip("from the file's begin", _wrongly(from_start=False), belief="lab08.place_in_the_file"),
        slips.little_endian,
    ],
    forbids=FORBIDS["lab08.rebuild"],
)
