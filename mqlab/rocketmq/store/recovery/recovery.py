"""Recovery: which part of a store directory is intact, where the log ends, and which queue entries are missing.

Mirrors: DefaultMessageStore.recover, CommitLog.recoverNormally and recoverAbnormally. Lab 01 crashes stores for it.

    1  queues      each up to its last plausible unit
    2  start       newest log file that is old enough: its first message is dispatched (clean stop), or its store time
                   is 3 s older than what the checkpoint records as flushed (crash: the ``abort`` file is there)
    3  scan        unit by unit, lengths and body CRC; the log ends before the first that is damaged
                   crash: every unit is dispatched again (what a queue has already stays as it is)
    4  cut         log, queues and index end there; numbers and beginnings of queues are set

The same scan with numpy is in fast_scan. Left out: other store types.
"""

from __future__ import annotations

import struct
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mqlab.errors import CorruptionError
from mqlab.rocketmq.store.consumequeue import RECOVERED_FILES, ConsumeQueue, Unit
from mqlab.rocketmq.store.dispatch import Dispatcher, UndecodableUnit
from mqlab.rocketmq.store.mapped_file import MappedFile
from mqlab.rocketmq.store.reading.torn_units import is_torn
from mqlab.rocketmq.store.recovery.misfits import MOST_PROBLEMS, Misfits, QueueGap
from mqlab.rocketmq.store.recovery.queue_scan import numpy_is_installed
from mqlab.rocketmq.store.state import StoreState
from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.record_layout import MAGIC_V1, MAGIC_V2
from mqlab.rocketmq.wire.units import PREBLANK_SIZE

if TYPE_CHECKING:
    from mqlab.rocketmq.store.recovery.fast_scan import FastScan

LOOK_AGAIN_AFTER = 1 << 20  # bytes the plain scan does before numpy is tried again
_HEAD = struct.Struct(">ii")


@dataclass(slots=True)
class RecoveryReport:
    """What ``load`` found and did. Offsets are physical."""

    clean_exit: bool = True
    start_offset: int = -1
    end_offset: int = 0
    last_unit_offset: int = 0
    units_scanned: int = 0
    units_dispatched: int = 0
    stop_reason: str = ""
    cut_files: list[str] = field(default_factory=list)
    cut_bytes: int = 0
    index_files_deleted: list[str] = field(default_factory=list)
    index_entries_cut: int = 0
    problems: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        how = "clean" if self.clean_exit else "after a crash"
        return f"<RecoveryReport {how}: {self.units_scanned} units from {self.start_offset}, end {self.end_offset}>"


class Recovery:
    """Recovers one loaded store; ``run`` returns the report."""

    def __init__(self, state: StoreState, dispatcher: Dispatcher, report: RecoveryReport) -> None:
        self._state = state
        self._config = state.config
        self._log = state.commit_log
        self._queues = state.queues
        self._index = state.index
        self._checkpoint = state.checkpoint
        self._deleted_topics = state.deleted_topics
        self._dispatcher = dispatcher
        self.report = report
        self._fast: FastScan | None = None

    def run(self) -> RecoveryReport:
        """Recover; the store can be started then."""
        on_problem, self._dispatcher.on_problem = self._dispatcher.on_problem, self._problem
        try:
            with self._dispatcher.silent(), self._index_repeats():
                return self._run()
        finally:
            self._dispatcher.on_problem = on_problem

    def _index_repeats(self) -> AbstractContextManager[None]:
        """After a crash the last unit of the index may lack keys: it is indexed again, as in RocketMQ."""
        if self._index is None or not self.report.clean_exit:
            return nullcontext()
        return self._index.skipping_last_indexed()

    def _run(self) -> RecoveryReport:
        report = self.report

        # 1. The queues, each up to its last plausible unit. Without a log there is nothing that they could point at.
        for queue in self._queues:
            queue.recover(pre_blank_counts=self._state.keeps("pre_blank_counts"))
        if not self._log.queue.mapped_files:
            self._queues.destroy()
            self._deleted_topics.log_recovered(0, 0)
            return report

        # 2. The log: find where to start, and scan to the first damaged unit.
        dispatched = self._queues.max_physical_offset
        start = self._start_index(dispatched)
        end = self._scan(start, dispatched)
        self._queues.take_floor_away()
        report.end_offset = end
        self._checkpoint.confirm_physical_offset = report.last_unit_offset

        # 3. Cut log, queues and index there. What pointed beyond the end would later point at other messages.
        self._cut_log(end)
        if dispatched >= end:
            keep_first = self._state.keeps("queue_cut_keeps_first_unit")
            for queue in self._queues:
                queue.truncate(end, keep_first_unit=keep_first, pre_blank_counts=self._state.keeps("pre_blank_counts"))
        if not self._state.keeps("stale_queue_units_counted"):
            for queue in self._queues:
                self._cut_stale_units(queue)
        if self._index is not None and not self._state.keeps("index_beyond_end_kept"):
            report.index_entries_cut = self._index.truncate_after(end, self._time_or_none)

        # 4. Set the numbers that follow from it.
        self._queues.recover_next_offsets(self._log.min_offset)
        self._deleted_topics.log_recovered(self._log.min_offset, end)
        self._dispatcher.reput_from = end
        if not report.clean_exit:
            self._sync_recovered()
        return report

    def _sync_recovered(self) -> None:
        """Sync what the dead process wrote last: from here on it counts as synced."""
        files = len(self._log.queue.mapped_files)
        scanned = sum(mapped.end_offset > self.report.start_offset for mapped in self._log.queue.mapped_files)
        self._log.queue.sync_again(min(files, scanned + 1))
        for queue in self._queues:
            queue.files.sync_again(RECOVERED_FILES)
        self._dispatcher.touched.clear()
        self._checkpoint.logics_msg_timestamp = self._dispatcher.logics_msg_timestamp

    def _time_or_none(self, physical_offset: int) -> int | None:
        timestamp = self._log.store_timestamp_at(physical_offset)
        return timestamp if timestamp >= 0 else None

    def _start_index(self, dispatched: int) -> int:
        """The newest file whose first unit needs no recovery, else the oldest. Mirrors isMappedFileMatchedRecover."""
        mapped_files = self._log.queue.mapped_files
        if self._config.message_index_safe and self._index is not None:
            crash_limit = self._checkpoint.min_timestamp_index()
        else:
            crash_limit = self._checkpoint.min_timestamp()
        for index in range(len(mapped_files) - 1, -1, -1):
            mapped = mapped_files[index]
            magic = _HEAD.unpack_from(mapped.view, 0)[1] if mapped.size >= _HEAD.size else 0
            timestamp = self._log.store_timestamp_at(mapped.start_offset)
            if magic not in (MAGIC_V1, MAGIC_V2) or timestamp <= 0:
                continue
            if mapped.start_offset <= dispatched if self.report.clean_exit else timestamp <= crash_limit:
                return index
        return 0

    def _scan(self, start: int, dispatched: int) -> int:
        """Scan units from a file on, or from one file earlier when a queue misses entries. Returns the log's end.

        Units of deleted topics in that earlier file are not put, so that starting earlier brings back none of them.
        """
        first_start = self._log.queue.mapped_files[start].start_offset
        while True:
            try:
                return self._scan_files(start, dispatched, notice_gaps=start > 0)
            except QueueGap as gap:
                self._queues.set_floor(lambda topic: min(self._deleted_topics.end_of(topic), first_start))
                start -= 1
                self.report.problems.append(f"{gap}: recovery starts one file earlier")
                if self._index is not None:  # the index takes no unit that is before its last one
                    self._index.truncate_after(self.report.start_offset, self._time_or_none)
                self.report.units_scanned = self.report.units_dispatched = 0
            finally:
                self._queues.set_judge(None)

    def _scan_files(self, start: int, dispatched: int, *, notice_gaps: bool) -> int:
        report = self.report
        mapped_files = self._log.queue.mapped_files
        # 1. Where the scan begins, and who decides about units with an unexpected queue offset.
        report.start_offset = mapped_files[start].start_offset
        report.last_unit_offset = report.start_offset
        notice_gaps = notice_gaps and not report.clean_exit and not self._state.keeps("queue_gap_not_noticed")
        misfits = Misfits(
            report.problems, self._deleted_topics, scan_start=report.start_offset, notice_gaps=notice_gaps
        )
        if not self._state.keeps("misfits_by_own_evidence"):
            self._queues.set_judge(misfits.judge)
        # 2. From where units are dispatched: after a clean stop only what is missing, after a crash everything.
        first_new = dispatched + 1 if self._state.keeps("normal_recovery_off_by_one") else dispatched
        if not report.clean_exit:
            first_new = -1
        # 3. File by file. The log ends in the first file that does not end with a BLANK.
        end = report.start_offset
        for number, mapped in enumerate(mapped_files[start:], start + 1):
            before = mapped_files[number - 2] if number > start + 1 else mapped
            if mapped.start_offset > before.end_offset:
                report.problems.append(f"no file for offsets {before.end_offset} to {mapped.start_offset}")
            end, blank = self._scan_file(mapped, first_new)
            if not blank:
                break
            if number < len(mapped_files):
                end = mapped_files[number].start_offset
        misfits.finish()
        if self._index is not None:
            self._index.write_header()
        return end

    def _scan_file(self, mapped: MappedFile, first_new: int) -> tuple[int, bool]:
        """Where the intact units of one file end, and whether a BLANK begins there."""
        report, view, base = self.report, mapped.view, mapped.start_offset
        check_crc, accepts_torn = self._config.check_crc_on_recover, self._state.keeps("torn_properties_accepted")
        position, look_again_at = 0, 0
        while True:
            # numpy first. It stops at the first unit in doubt, which the plain check below judges.
            if self._config.recover_with_numpy and position >= look_again_at:
                position = self._scan_fast(mapped, position, first_new)
                look_again_at = position + LOOK_AGAIN_AFTER
            unit = record.check(view, position, mapped.size, check_crc=check_crc)
            if unit.kind != record.UNIT:
                report.stop_reason = unit.reason or "the log ends with a filler"
                return base + position, unit.kind == record.BLANK
            if not accepts_torn and is_torn(view, position, unit.size):
                report.stop_reason = "topic or properties were not written completely"
                return base + position, False
            report.units_scanned += 1
            report.last_unit_offset = base + position
            if base + position >= first_new:
                self._dispatch(view, position, mapped.size, base)
            position += unit.size

    def _scan_fast(self, mapped: MappedFile, at: int, first_new: int) -> int:
        """Scan as many units as possible with numpy. Returns where the plain scan continues."""
        from mqlab.rocketmq.store.recovery.fast_scan import (  # here: a new store has nothing to scan
            WORTH_IT,
            FastScan,
            walk,
        )

        positions = walk(mapped.view, at, mapped.size)
        if len(positions) < WORTH_IT or not numpy_is_installed():
            return at
        if self._fast is None:
            self._fast = FastScan(
                self._queues,
                self._index,
                self._dispatcher,
                check_crc=self._config.check_crc_on_recover,
                accepts_torn=self._state.keeps("torn_properties_accepted"),
            )
        scanned = self._fast.run(mapped.view, positions, mapped.size, mapped.start_offset, first_new)
        self.report.units_scanned += scanned.units
        self.report.units_dispatched += scanned.dispatched
        if scanned.units:
            self.report.last_unit_offset = mapped.start_offset + scanned.last_unit_at
        return scanned.at

    def _dispatch(self, view: memoryview, at: int, end: int, base: int) -> None:
        try:
            self._dispatcher.dispatch_unit(view, at, end, base)
            self.report.units_dispatched += 1
        except UndecodableUnit as problem:
            self._problem(base + at, f"it is in no queue: {problem}")

    def _problem(self, physical_offset: int, reason: str) -> None:
        if len(self.report.problems) < MOST_PROBLEMS:
            self.report.problems.append(f"the unit at {physical_offset}: {reason}")

    def _cut_stale_units(self, queue: ConsumeQueue) -> None:
        """Remove units at a queue's end that do not point at a message of it: an earlier cut may have left them."""
        stale = 0
        while queue.max_queue_offset - stale > queue.min_queue_offset:
            queue_offset = queue.max_queue_offset - stale - 1
            unit = queue.unit(queue_offset)
            if unit is None or unit[0] < self._log.min_offset or unit[1] == PREBLANK_SIZE:
                break
            if self._belongs(queue, queue_offset, unit):
                break
            stale += 1
        if stale:
            queue.cut_last(stale)
            self.report.problems.append(f"{queue.topic}[{queue.queue_id}]: {stale} units at its end pointed nowhere")

    def _belongs(self, queue: ConsumeQueue, queue_offset: int, unit: Unit) -> bool:
        data = self._log.read(unit[0], unit[1])
        try:
            message = record.decode(data) if data is not None else None
        except CorruptionError:
            return False
        if message is None or message.total_size != unit[1]:
            return False
        is_of_queue = (message.topic, message.queue_id) == (queue.topic, queue.queue_id)
        return is_of_queue or message.queue_offset == queue_offset

    def _cut_log(self, end: int) -> None:
        queue = self._log.queue
        files_before = len(queue.mapped_files)
        self.report.cut_files = queue.truncate(end, zero_tail=not self._state.keeps("stale_tail_kept"))
        if files_before == len(self.report.cut_files):
            return
        queue.flushed_where = end
        if queue.mapped_files:
            self.report.cut_bytes = queue.mapped_files[-1].end_offset - end
