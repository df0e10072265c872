"""What is wrong with the files of the timer wheel: lists that lead nowhere, and waiting messages that are gone.

Mirrors: the checks of TimerMessageStore.load, and comparisons of its files that RocketMQ does not make.

    quick    the lengths of wheel and check file; a timer log or a check file that is gone while the other one is there
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
    healed = what_a_start_heals(
        (reader.checkpoint() or {"log_flushed": 0})["log_flushed"],
        has_units=next(reader.units(), None) is not None,
        has_check_file=store.files.exists(reader.check_path),
    )
    if healed is not None:
        yield Problem("timer state", healed[0], None, healed[1])
    if deep:
        units = dict(reader.units())
        yield from _list_problems(reader, units)
        yield from _message_problems(store, reader, units)


def what_a_start_heals(log_flushed: int, *, has_units: bool, has_check_file: bool) -> tuple[str, str] | None:
    """(file, what its damage costs) where the next start goes on without what a file of the timer held; else None.

    A check file that is missing is none of them: the first comes a second after the first timed message.

    >>> what_a_start_heals(104, has_units=False, has_check_file=True)[0]
    'timerlog'
    """
    if log_flushed and not has_units:
        return "timerlog", f"it has no unit, and had {log_flushed} bytes: timed messages that waited there are lost"
    if has_units and has_check_file and not log_flushed:
        return "config/timercheck", "it holds no number: timed messages that were delivered may be delivered again"
    return None


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
