"""The small units of the timer wheel: the slots of the wheel, the units of the timer log, the timer's check file.

Mirrors: org.apache.rocketmq.store.timer.Slot, TimerLog and TimerCheckpoint.

    slot          time i64 | first i64 | last i64 | num i32 | magic i32                           32 bytes
    timer unit    size i32 | previous i64 | magic i32 | write time i64 | delay i32 |
                  physical offset i64 | unit size i32 | topic hash i32 | 0 i64                      52 bytes
    blank         remaining i32 | 0 i64 | CBD43194                                                  16 bytes
    check file    read time, log flushed, queue offset, master's queue offset, state version,
                  timestamp, counter (i64 each)                                                     56 of 4096 bytes

A slot is the head of a list in the timer log: ``last`` is its newest unit, ``previous`` leads to the older ones.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from mqlab.rocketmq.wire.layout import Buffer, FieldSpec, number_struct
from mqlab.rocketmq.wire.record_layout import MAGIC_BLANK

SLOT_LAYOUT = (
    FieldSpec("time", "i64", "the moment of the slot in steps of the precision (seconds at 1000 ms), 0: never used"),
    FieldSpec("first", "i64", "timer log position of the slot's oldest unit"),
    FieldSpec("last", "i64", "timer log position of the slot's newest unit"),
    FieldSpec("num", "i32", "messages minus recall markers"),
    FieldSpec("magic", "i32", "0"),
)
TIMER_UNIT_LAYOUT = (
    FieldSpec("size", "i32", "52"),
    FieldSpec("previous", "i64", "timer log position of the slot's unit before this one, -1 for none"),
    FieldSpec("magic", "i32", "1, + 2: the message rolls, + 4: a recall marker"),
    FieldSpec("write_ms", "i64", "the write clock when the unit was appended, ms"),
    FieldSpec("delay_ms", "i32", "from the write clock to the moment of the slot, ms"),
    FieldSpec("physical_offset", "i64", "where the message waits in the commit log"),
    FieldSpec("unit_size", "i32", "total size of that unit"),
    FieldSpec("topic_hash", "i32", "Java hash of the real topic"),
    FieldSpec("reserved", "i64", "0"),
)
CHECK_LAYOUT = (
    FieldSpec("read_ms", "i64", "the next moment to deliver, ms"),
    FieldSpec("log_flushed", "i64", "up to where the timer log is on the disk"),
    FieldSpec("queue_offset", "i64", "the next message of the timer topic to put into the wheel"),
    FieldSpec("master_queue_offset", "i64", "the same number of the master"),
    FieldSpec("state_version", "i64", "state version of the data version"),
    FieldSpec("timestamp", "i64", "when the data version last changed, ms"),
    FieldSpec("counter", "i64", "how often the data version changed"),
)
SLOT, TIMER_UNIT, CHECK = number_struct(SLOT_LAYOUT), number_struct(TIMER_UNIT_LAYOUT), number_struct(CHECK_LAYOUT)
SLOT_SIZE, TIMER_UNIT_SIZE, CHECK_SIZE = SLOT.size, TIMER_UNIT.size, CHECK.size
CHECK_FILE_SIZE = 4096

WHEEL_SLOTS = 1_209_600  # 14 days of seconds, whatever the precision
WHEEL_FILE_SIZE = WHEEL_SLOTS * SLOT_SIZE
USABLE_SLOTS = WHEEL_SLOTS // 2  # the read clock may be this far behind
TIMER_BLANK_SIZE = 16
NO_POSITION = -1
MAGIC_DEFAULT, MAGIC_ROLL, MAGIC_DELETE = 1, 2, 4
MAGIC_MOST = 15  # a unit whose magic is not within 0 .. 15 ends the timer log
_BLANK = struct.Struct(">iqi")
_CHUNK = 1 << 12
_EMPTY_CHUNK = bytes(_CHUNK)


class Slot(NamedTuple):
    """One moment of the wheel; ``time`` counts steps of the precision. Mirrors Slot."""

    time: int
    first: int
    last: int
    num: int = 0
    magic: int = 0


class TimerUnit(NamedTuple):
    """One unit of the timer log: where a message waits, and for which slot."""

    size: int
    previous: int
    magic: int
    write_ms: int
    delay_ms: int
    physical_offset: int
    unit_size: int
    topic_hash: int
    reserved: int = 0

    @property
    def slot_ms(self) -> int:
        """The moment of the slot that the unit is in."""
        return self.write_ms + self.delay_ms

    @property
    def rolls(self) -> bool:
        """Whether the message is put into the timer topic again when its slot is read. Mirrors needRoll."""
        return bool(self.magic & MAGIC_ROLL)

    @property
    def deletes(self) -> bool:
        """Whether it is a marker that recalls another message. Mirrors needDelete."""
        return bool(self.magic & MAGIC_DELETE)

    @property
    def is_whole(self) -> bool:
        """Whether recovery accepts it. Mirrors isMagicOK and the size that it expects."""
        return self.size == TIMER_UNIT_SIZE and 0 <= self.magic <= MAGIC_MOST


def decode_timer_unit(buffer: Buffer, offset: int = 0) -> TimerUnit:
    """The timer log's unit at a position; 52 bytes must be there."""
    return TimerUnit(*TIMER_UNIT.unpack_from(buffer, offset))


def timer_blank(remaining: int) -> bytes:
    """What ends a file of the timer log. ``remaining`` counts these 16 bytes too.

    >>> timer_blank(20).hex(" ", 4)
    '00000014 00000000 00000000 cbd43194'
    """
    return _BLANK.pack(remaining, 0, MAGIC_BLANK)


def slots_in(view: Buffer) -> dict[int, Slot]:
    """The slots of a wheel's bytes that were ever used, by their number."""
    slots = {}
    for start in range(0, len(view), _CHUNK):
        chunk = view[start : start + _CHUNK]
        if chunk == _EMPTY_CHUNK:
            continue
        for position in range(0, len(chunk) - SLOT_SIZE + 1, SLOT_SIZE):
            slot = Slot(*SLOT.unpack_from(chunk, position))
            if slot.time:
                slots[(start + position) // SLOT_SIZE] = slot
    return slots
