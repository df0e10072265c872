"""Retention: which of the oldest files are deleted, and when.

Mirrors: DefaultMessageStore.CleanCommitLogService, CleanConsumeQueueService. Lab 01 fills a disk and waits for 04:00.

    every 10 s, commit log      the hour is in delete_when        files older than file_reserved_time (72 h)
                                disk over 75 %                    the same
                                requested by an admin             the same, for 20 rounds
                                disk over 85 %                    the oldest, whatever their age
                                disk over 90 %                    the same, and puts answer SERVICE_NOT_AVAILABLE
    then, if the oldest log file changed: queue and index files whose messages are all deleted

At most 10 files per round, oldest first, never the last. Age: the time since a file became full, by the store's clock.
A round is armed only when it can do something.
Left out: pauses between deletions, forced unmapping of files that readers hold (the readers keep their bytes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.store.mapped_file import MappedFile
from mqlab.rocketmq.store.state import StoreState
from mqlab.rocketmq.wire.names import SCHEDULE_TOPIC

FIRST_ROUND_MS = 60_000
MANUAL_ROUNDS = 20
HOUR_MS = 3_600_000


@dataclass(slots=True)
class CleanReport:
    """What one round deleted, and for which reasons."""

    reasons: tuple[str, ...] = ()
    commit_log_files: list[str] = field(default_factory=list)
    queue_files: int = 0
    index_files: list[str] = field(default_factory=list)
    min_physical_offset: int = 0


class Retention:
    """Cleans one store. ``on_disk_full(True)`` is called when puts must stop, with False when they may go on."""

    def __init__(self, state: StoreState, *, on_disk_full: Callable[[bool], None]) -> None:
        self._state = state
        self._files = state.files
        self._clock = state.clock
        self._log = state.commit_log
        self._queues = state.queues
        self._index = state.index
        self._note = state.note
        self._on_disk_full = on_disk_full
        self.config = state.config
        self._log.queue.on_full = self._file_became_full
        self._deadline: Deadline | None = None
        self._known_min_offset = 0
        self._manual_rounds = 0
        self._disk_is_full = False

    def arm(self) -> None:
        """Arm the next round that can delete something; called when a file became full and when the disk changed."""
        due_ms = self._next_round_ms()
        if self._deadline is not None:
            if due_ms is not None and self._deadline.due_ms <= due_ms:
                return
            self._deadline.cancel()
            self._deadline = None
        if due_ms is not None:
            self._deadline = self._clock.call_at(due_ms, self._timed_round, "store.clean")

    def _next_round_ms(self) -> int | None:
        now_ms = self._clock.now_ms()
        if len(self._log.queue.mapped_files) < 2:  # nothing can be deleted, but a full disk stops puts
            full = self._disk_is_full or self._is_over(self.config.disk_space_warning_level_ratio, 35, 90)
            return self._on_grid(now_ms) if full else None
        if self._manual_rounds or self._is_over(self.config.disk_max_used_space_ratio, 10, 95):
            return self._on_grid(now_ms)
        # Otherwise age decides: the first hour of delete_when after the oldest file has expired.
        oldest = self._log.queue.mapped_files[0]
        expires_ms = self._files.modified_ms(oldest.path) + self.config.file_reserved_time * HOUR_MS
        hour_ms = self._next_delete_hour_ms(max(now_ms + 1, expires_ms))
        return self._on_grid(hour_ms) if hour_ms is not None else None

    def _on_grid(self, due_ms: int) -> int:
        earliest_ms = max(self._clock.now_ms() + 1, due_ms, self._state.origin_ms + FIRST_ROUND_MS)
        return next_on_grid(earliest_ms, self.config.clean_resource_interval, self._state.origin_ms)

    def _next_delete_hour_ms(self, from_ms: int) -> int | None:
        hours = self._delete_hours()
        for ahead in range(25):
            hour_ms = from_ms - (from_ms + self.config.utc_offset_ms) % HOUR_MS + ahead * HOUR_MS
            if self._hour_of(hour_ms) in hours:
                return max(from_ms, hour_ms)
        return None

    def _hour_of(self, time_ms: int) -> int:
        return (time_ms + self.config.utc_offset_ms) // HOUR_MS % 24

    def _delete_hours(self) -> tuple[int, ...]:
        return tuple(int(text) for text in self.config.delete_when.split(";") if text.strip().isdigit())

    def _file_became_full(self, mapped: MappedFile) -> None:
        """Its age begins now, by the store's clock: that is what decides when it may be deleted."""
        self._files.set_modified_ms(mapped.path, self._clock.now_ms())
        self.arm()

    def _timed_round(self) -> None:
        self._deadline = None
        self.clean()
        self.arm()

    def close(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def delete_manually(self) -> None:
        """An admin's command: the next 20 rounds delete what is old enough, at any hour."""
        self._manual_rounds = MANUAL_ROUNDS
        self.arm()

    def clean(self) -> CleanReport:
        """One round, now."""
        reasons, at_once = self._reasons()
        report = CleanReport(reasons)
        if reasons:
            self._manual_rounds = max(0, self._manual_rounds - 1)
            report.commit_log_files = self._delete_log_files(at_once)
        self._follow(report)
        if self._note is not None and (report.commit_log_files or report.queue_files or report.index_files):
            self._note(
                "store.cleaned",
                reasons=reasons,
                min_physical_offset=report.min_physical_offset,
                commit_log_files=len(report.commit_log_files),
                queue_files=report.queue_files,
                index_files=len(report.index_files),
            )
        return report

    def _reasons(self) -> tuple[tuple[str, ...], bool]:
        """Why files may be deleted now, and whether this holds for files of any age."""
        reasons = []
        if self._hour_of(self._clock.now_ms()) in self._delete_hours():
            reasons.append("time")
        config = self.config
        full = self._disk_is_full = self._is_over(config.disk_space_warning_level_ratio, 35, 90)
        forced = full or self._is_over(config.disk_space_clean_forcibly_ratio, 30, 85)
        self._on_disk_full(full)
        if self._is_over(config.disk_max_used_space_ratio, 10, 95):
            reasons.append("space")
        if self._manual_rounds:
            reasons.append("manual")
        return tuple(reasons), forced and config.clean_file_forcibly_enable

    def _is_over(self, percent: int, least: int, most: int) -> bool:
        """Whether the disk under the log or the queues is fuller than a ratio, which is kept within bounds."""
        bound = min(max(percent, least), most) / 100.0
        paths = (self._log.queue.directory, self._queues.directory)
        return any(self._files.used_ratio(path) > bound for path in paths if self._files.exists(path))

    def _delete_log_files(self, at_once: bool) -> list[str]:
        deleted: list[str] = []
        queue = self._log.queue
        reserved_ms = self.config.file_reserved_time * HOUR_MS
        while len(queue.mapped_files) > 1 and len(deleted) < self.config.delete_file_batch_max:
            # Files became full in their order, so the first one that is too young ends the round.
            age_ms = self._clock.now_ms() - self._files.modified_ms(queue.mapped_files[0].path)
            if not at_once and age_ms < reserved_ms:
                break
            deleted.append(queue.delete_first().path)
        if deleted:
            queue.sync_names()
        return deleted

    def _follow(self, report: CleanReport) -> None:
        """Delete queue and index files whose messages are all deleted."""
        report.min_physical_offset = min_offset = self._log.min_offset
        if min_offset <= self._known_min_offset:
            return
        # A queue's first offset depends on the log's, so both change in the same round.
        self._known_min_offset = min_offset
        for queue in self._queues:
            report.queue_files += queue.delete_before(min_offset)
            queue.correct_min_offset(min_offset)
        if self._index is not None:
            report.index_files = self._index.delete_before(min_offset)

    def clean_expired_queues(self) -> list[tuple[str, int]]:
        """An admin's command: delete queues whose last message is deleted. Mirrors cleanExpiredConsumerQueue."""
        deleted = []
        for queue in list(self._queues):
            last = queue.unit(queue.max_queue_offset - 1)
            if last is not None and last[0] < self._log.min_offset and queue.topic != SCHEDULE_TOPIC:
                deleted.append((queue.topic, queue.queue_id))
                self._queues.delete_queue(queue)
        return deleted

    def __repr__(self) -> str:
        return f"<Retention keeps {self.config.file_reserved_time} h, next round {self._deadline}>"
