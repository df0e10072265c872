"""Opening the timer's files: slots are taken from the timer log where the wheel is older than it.

Mirrors: TimerMessageStore.load, recover, recoverAndRevise and reviseQueueOffset.

    missing           what follows, and whether a timer.problem says so
    timerwheel        built again from the timer log                                          no
    timerlog          what waited is lost: the check file says that it was enqueued           yes
    timercheck        all of the timer topic is enqueued again, what was delivered too        yes, if it is there
"""

from __future__ import annotations

from mqlab.rocketmq.store.reading.timer_check import what_a_start_heals
from mqlab.rocketmq.store.timer.state import TIMER_QUEUE, TimerState
from mqlab.rocketmq.wire.names import TIMER_TOPIC
from mqlab.rocketmq.wire.record_layout import MAGIC_BLANK
from mqlab.rocketmq.wire.timer_units import TIMER_UNIT_SIZE, USABLE_SLOTS, decode_timer_unit

SEARCHED_ENTRIES = 20_000
SPARE_SLOTS = 60
SYNCED_FILES = 2


def recover(state: TimerState) -> None:
    """Load the files and set the clocks; the store is loaded already."""
    state.log.load()
    state.wheel.load()
    state.checkpoint.load()
    check, queue = state.checkpoint, state.log.queue

    # 1. The timer log, from the file before the one that was flushed last; what follows its last unit is cut.
    file_size = queue.file_size if queue.mapped_files else 0
    end = _revise(state, max(0, check.log_flushed - file_size), cut=True)
    if queue.mapped_files:
        queue.sync_again(SYNCED_FILES)  # a process that was killed may not have synced what it wrote, nor the names

    healed = what_a_start_heals(
        check.log_flushed,
        has_units=state.log.last_unit() is not None,
        has_check_file=state.files.exists(check.path),
    )
    if healed is not None:
        state.note("timer.problem", file=healed[0], reason=healed[1])

    # 2. How far the timer topic was enqueued: the log's last unit knows best.
    queue_offset = _queue_offset_of_last_unit(state)
    state.queue_offset = check.queue_offset if queue_offset is None else queue_offset + 1
    state.queue_offset = min(state.queue_offset, check.master_queue_offset)
    first, last = (
        state.store.min_offset(TIMER_TOPIC, TIMER_QUEUE),
        state.store.max_offset(TIMER_TOPIC, TIMER_QUEUE),
    )
    state.queue_offset = min(max(state.queue_offset, first), last)

    # 3. From which moment on slots are read. The wheel knows the last seven days.
    earliest_ms = state.write_ms() - (USABLE_SLOTS - SPARE_SLOTS) * state.precision_ms
    state.read_ms = max(check.read_ms, earliest_ms)
    beyond = state.wheel.first_beyond(state.read_ms, end)
    if beyond is not None and beyond < end:
        _revise(state, beyond, cut=False)


def _revise(state: TimerState, from_position: int, *, cut: bool) -> int:
    """Bring the slots up to date from a position's file on; returns where the log ends."""
    queue = state.log.queue
    if not queue.mapped_files:
        return 0
    files = [mapped for mapped in queue.mapped_files if mapped.end_offset > from_position] or queue.mapped_files[-1:]
    end = files[0].start_offset
    for mapped in files:
        position, limit = 0, mapped.size if cut else mapped.wrote_position
        is_cut = False
        while position + TIMER_UNIT_SIZE <= limit:
            unit = decode_timer_unit(mapped.view, position)
            if unit.magic == MAGIC_BLANK:
                position = mapped.size
                break
            if not unit.is_whole:
                is_cut = True
                break
            state.wheel.revise(unit.slot_ms, mapped.start_offset + position)
            position += TIMER_UNIT_SIZE
        end = mapped.start_offset + position
        if is_cut:
            break
    if cut:
        queue.truncate(end, zero_tail=False)
    return end


def _queue_offset_of_last_unit(state: TimerState) -> int | None:
    """The queue offset of the message that the newest unit refers to; None when it cannot be told."""
    unit = state.log.last_unit()
    record = state.store.message_at(unit.physical_offset) if unit is not None else None
    if unit is None or record is None or record.topic != TIMER_TOPIC:
        return None
    queue_offset = record.queue_offset
    for _ in range(SEARCHED_ENTRIES):
        entry = state.store.consume_queue_unit(TIMER_TOPIC, TIMER_QUEUE, queue_offset)
        if entry is not None and (entry.physical_offset, entry.size) == (unit.physical_offset, unit.unit_size):
            break
        if queue_offset <= 0:
            break
        queue_offset -= 1
    return queue_offset
