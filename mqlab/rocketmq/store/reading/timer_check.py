"""What is wrong with the files of the timer wheel: lists that lead nowhere, and waiting messages that are gone.

Mirrors: the checks of TimerMessageStore.load, and comparisons of its files that RocketMQ does not make.

    quick    the lengths of wheel and check file
    deep     each slot's list through the log; each waiting unit's message in the commit log
"""

from __future__ import annotations

from collections.abc import Iterator

from mqlab.rocketmq.store.reading.deep_check import Problem
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.store.reading.timer_reader import TimerReader
from mqlab.rocketmq.wire.names import TIMER_TOPIC
from mqlab.rocketmq.wire.timer_units import CHECK_FILE_SIZE, NO_POSITION, WHEEL_FILE_SIZE, TimerUnit


def timer_problems(store: StoreReader, *, deep: bool) -> Iterator[Problem]:
    """All problems of the timer's files."""
    reader = TimerReader(store.files, store.directory)
    for path, size in ((reader.wheel_path, WHEEL_FILE_SIZE), (reader.check_path, CHECK_FILE_SIZE)):
        if store.files.exists(path) and store.files.size(path) != size:
            below = path[len(store.directory) + 1 :]
            yield Problem("file size", below, None, f"expected {size} bytes, found {store.files.size(path)}")
    if deep:
        units = dict(reader.units())
        yield from _list_problems(reader, units)
        yield from _message_problems(store, reader, units)


def _list_problems(reader: TimerReader, units: dict[int, TimerUnit]) -> Iterator[Problem]:
    oldest = min(units, default=0)
    for number, slot in reader.slots().items():
        if slot.last < oldest:
            continue  # its file of the timer log was deleted with its messages
        positions = reader.units_of(slot, units)
        last = units[positions[-1]] if positions else None
        if last is None or (last.previous != NO_POSITION and last.previous >= oldest):
            text = f"slot {number} of the moment {slot.time} leads to {slot.last}, where the timer log has no such unit"
            yield Problem("timer slot", "timerwheel", None, text)


def _message_problems(store: StoreReader, reader: TimerReader, units: dict[int, TimerUnit]) -> Iterator[Problem]:
    """Units that still wait and whose message is not in the commit log."""
    checkpoint = reader.checkpoint()
    read_ms = checkpoint["read_ms"] if checkpoint is not None else 0
    for position, unit in units.items():
        if unit.slot_ms < read_ms or unit.physical_offset < store.min_physical_offset:
            continue
        piece = store.log.unit_at(unit.physical_offset)
        if piece is None or piece.size != unit.unit_size or piece.topic != TIMER_TOPIC.encode():
            text = f"unit {position} waits for {unit.slot_ms}, and its message is not at {unit.physical_offset}"
            yield Problem("timer unit", "timerlog", unit.physical_offset, text)
