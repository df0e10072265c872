"""Defects of the store: dispatch, queues, flushing, recovery."""

from __future__ import annotations

from typing import Any

from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.store.consume_queues import ConsumeQueues
from mqlab.rocketmq.store.consumequeue import ConsumeQueue
from mqlab.rocketmq.store.dispatch import Dispatcher
from mqlab.rocketmq.store.dispatching import Dispatching
from mqlab.rocketmq.store.flush import Flusher
from mqlab.rocketmq.store.getting import Reader
from mqlab.rocketmq.store.put_result import PUT_OK
from mqlab.rocketmq.store.reading import torn_units
from mqlab.rocketmq.store.recovery import recovery
from mqlab.rocketmq.store.recovery.recovery import Recovery
from tests.lab.simulation.mutants.patching import Mutant, Patch, wrapped


def answered_before_the_disk(patch: Patch) -> None:
    patch.setattr(Flusher, "wait", lambda *_: Promise.of(PUT_OK))


def no_sync(patch: Patch) -> None:
    def sync_log(self: Any, least_pages: int = 0) -> bool:
        self._log.queue.flushed_where = self._log.max_offset
        for action in self.on_flushed:
            action()
        return True

    patch.setattr(Flusher, "sync_log", sync_log)


def readable_before_the_disk(patch: Patch) -> None:
    patch.setattr(Dispatching, "confirm_offset", property(lambda self: self._state.commit_log.max_offset))


def dispatch_leaves_the_last_unit(patch: Patch) -> None:
    def timed(self: Any) -> None:
        self.is_armed = False
        count = self._dispatcher.run(self.confirm_offset, 1)
        if count:
            self._flusher.after_dispatch(count)

    patch.setattr(Dispatching, "_timed_dispatch", timed)


def first_unit_of_a_file_is_not_dispatched(patch: Patch) -> None:
    def unit(original: Any, self: Any, view: memoryview, at: int, end: int, base: int) -> int:
        if base and not at and end - at > 4:
            return int.from_bytes(view[at : at + 4], "big")
        return int(original(self, view, at, end, base))

    wrapped(patch, Dispatcher, "dispatch_unit", unit)


def tags_are_not_in_the_queue(patch: Patch) -> None:
    def put(original: Any, self: Any, physical_offset: int, size: int, tags_code: int, queue_offset: int) -> bool:
        return bool(original(self, physical_offset, size, tags_code + (self.topic == "orders"), queue_offset))

    wrapped(patch, ConsumeQueue, "put", put)


def a_filtered_read_skips_one(patch: Patch) -> None:
    def get(original: Any, self: Any, *arguments: Any) -> Any:
        result = original(self, *arguments)
        if result.status == "NO_MATCHED_MESSAGE" and result.next_begin_offset < result.max_offset:
            result.next_begin_offset += 1
        return result

    wrapped(patch, Reader, "get", get)


def recovery_dispatches_nothing(patch: Patch) -> None:
    wrapped(patch, Recovery, "_scan_file", lambda original, self, mapped, _: original(self, mapped, 1 << 60))


def recovery_cuts_the_last_unit(patch: Patch) -> None:
    def scan(original: Any, self: Any, *arguments: Any) -> int:
        end = original(self, *arguments)
        return int(self.report.last_unit_offset) if self.report.units_scanned > 1 else int(end)

    wrapped(patch, Recovery, "_scan", scan)


def recovery_begins_at_the_newest_file(patch: Patch) -> None:
    patch.setattr(Recovery, "_start_index", lambda self, _: len(self._log.queue.mapped_files) - 1)
    wrapped(
        patch,
        Recovery,
        "_scan_files",
        lambda original, self, start, dispatched, *, notice_gaps: original(self, start, dispatched, notice_gaps=False),
    )


def recovery_keeps_torn_units(patch: Patch) -> None:
    check = recovery.record.check
    patch.setattr(recovery, "is_torn", lambda *_: False)
    patch.setattr(torn_units, "is_torn", lambda *_: False)
    patch.setattr(
        recovery.record, "check", lambda view, at, end, *, check_crc=True: check(view, at, end, check_crc=False)
    )


def recovery_does_not_number_queues(patch: Patch) -> None:
    def numbers(original: Any, self: Any, min_physical_offset: int) -> None:
        original(self, min_physical_offset)
        self.next_offsets = {}

    wrapped(patch, ConsumeQueues, "recover_next_offsets", numbers)


def recovery_numbers_queues_one_too_low(patch: Patch) -> None:
    def numbers(original: Any, self: Any, min_physical_offset: int) -> None:
        original(self, min_physical_offset)
        self.next_offsets = {place: max(0, offset - 1) for place, offset in self.next_offsets.items()}

    wrapped(patch, ConsumeQueues, "recover_next_offsets", numbers)


def queues_begin_again_after_a_start(patch: Patch) -> None:
    def recover(original: Any, self: Any, **named: Any) -> None:
        original(self, **named)
        if self.max_queue_offset:
            self.cut_last(1)
            self.max_physical_offset = 1 << 60

    wrapped(patch, ConsumeQueue, "recover", recover)


MUTANTS: tuple[Mutant, ...] = (
    answered_before_the_disk,
    no_sync,
    readable_before_the_disk,
    dispatch_leaves_the_last_unit,
    first_unit_of_a_file_is_not_dispatched,
    tags_are_not_in_the_queue,
    a_filtered_read_skips_one,
    recovery_dispatches_nothing,
    recovery_cuts_the_last_unit,
    recovery_begins_at_the_newest_file,
    recovery_keeps_torn_units,
    recovery_does_not_number_queues,
    recovery_numbers_queues_one_too_low,
    queues_begin_again_after_a_start,
)
