"""When written bytes are synced: group commit, timed flushes, and the checkpoint, from which recovery learns about it.

Mirrors: CommitLog.GroupCommitService, FlushRealTimeService and DefaultMessageStore.FlushConsumeQueueService. Lab 01.

    SYNC_FLUSH    put ─┬─ put ─┬─ put ─┐ one flush for all puts that wait; a put is answered when it is on the disk
                       └───────┴───────┴─▶ store.group_commit
    ASYNC_FLUSH   every 500 ms if 4 pages of 4 KiB are dirty, every 10 s if anything is dirty     store.flush
    queues        every 1 s those with 2 dirty pages, every 60 s all, then the checkpoint      store.flush_consume_queue
    checkpoint    within 1 s after a flush                                                    store.checkpoint

A timer is armed only while something is dirty. Its time is one at which RocketMQ's thread would look.
Left out: threads, retries of a flush that did not reach far enough, the transient store pool.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.store.dispatch import Dispatcher
from mqlab.rocketmq.store.put_result import FLUSH_DISK_TIMEOUT, PUT_OK, PutResult
from mqlab.rocketmq.store.state import StoreState

CHECKPOINT_INTERVAL_MS = 1_000
_STORED = Promise.of(PUT_OK)  # what most puts wait for
UNITS_PER_CHECK = 100  # dirty pages of queues are counted once per so many units (a page holds 204)


class Flusher:
    """Syncs one store's files. A lab may set ``stalled``: nothing is synced then, until ``resume`` is called."""

    def __init__(self, state: StoreState, dispatcher: Dispatcher) -> None:
        self._state = state
        self._clock = state.clock
        self._log = state.commit_log
        self._queues = state.queues
        self._index = state.index
        self._checkpoint = state.checkpoint
        self._dispatcher = dispatcher
        self._note = state.note
        self._failures = state.failures
        self.config = config = state.config
        self._is_slave = config.is_slave
        self._is_sync_flush = config.is_sync_flush
        self._waiting: list[tuple[int, int, Promise[str]]] = []  # end offset, put at, answer
        self._commit: Deadline | None = None
        self._timeout: Deadline | None = None
        self._flush: Deadline | None = None
        self._queue_flush: Deadline | None = None
        self._queue_flush_is_soon = False
        self._unchecked_units = 0
        self.is_armed = False  # a timer that will sync everything put so far is armed
        self._checkpoint_flush: Deadline | None = None
        self.on_flushed: list[Callable[[], None]] = []  # called when more of the log is on the disk
        self.stalled = False

    def after_put(self) -> None:
        """Something was appended: arm the timer that will sync it."""
        if not self._is_sync_flush:
            self._arm_flush()
        elif self._commit is None and self._timeout is None:
            self._commit = self._clock.call_later(0, self._group_commit, "store.group_commit")
            self.is_armed = True

    def wait(self, result: PutResult) -> Promise[str]:
        """PUT_OK once the message is as durable as the policy promises; FLUSH_DISK_TIMEOUT if that takes too long."""
        if not self._is_sync_flush or not result.wait_store_msg_ok or self._log.flushed_where >= result.end_offset:
            return _STORED
        answer: Promise[str] = Promise()
        self._waiting.append((result.end_offset, self._clock.now_ms(), answer))
        if self._commit is None and self._timeout is None:
            self._commit = self._clock.call_later(0, self._group_commit, "store.group_commit")
        return answer

    def _group_commit(self) -> None:
        self._commit = None
        self.is_armed = False
        self.sync_log()
        # While the disk hangs or fails, no put can be answered: all wait until their time is over.
        flushed = self._log.flushed_where
        served = [waiting for waiting in self._waiting if waiting[0] <= flushed]
        self._waiting = [waiting for waiting in self._waiting if waiting[0] > flushed]
        for _, _, answer in served:
            answer.resolve(PUT_OK)
        if not self._waiting and self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None
        if self._waiting and self._timeout is None:
            due_ms = self._waiting[0][1] + self.config.sync_flush_timeout
            self._timeout = self._clock.call_at(due_ms, self._give_up, "store.flush_timeout")

    def _give_up(self) -> None:
        self._timeout = None
        now_ms = self._clock.now_ms()
        late = [w for w in self._waiting if w[1] + self.config.sync_flush_timeout <= now_ms]
        self._waiting = [w for w in self._waiting if w[1] + self.config.sync_flush_timeout > now_ms]
        for _, _, answer in late:
            answer.resolve(FLUSH_DISK_TIMEOUT)
        if self._waiting:
            self._group_commit()

    def resume(self) -> None:
        """The disk works again: sync everything, also what no put waits for any more."""
        self.stalled = False
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None
        is_dirty = self._log.flushed_where < self._log.max_offset
        if is_dirty and self._commit is None and self._is_sync_flush:
            self._commit = self._clock.call_later(0, self._group_commit, "store.group_commit")

    def sync_log(self, least_pages: int = 0) -> bool:
        """Flush the commit log now; False when the disk refused or hangs."""
        if self.stalled:
            return False
        before = self._log.flushed_where
        try:
            self._log.queue.flush(least_pages, sync_names=self._sync_names)
        except OSError as error:
            self._failed("commitlog.flush", error, self._group_commit if self._is_sync_flush else self.sync_log)
            if not self._state.keeps("flush_error_ignored"):
                return False
            # RocketMQ ignores the error, so that waiting puts are answered as if they were safe.
            self._log.queue.flushed_where = self._log.max_offset
        if self._failures.reasons:
            self._failures.works("commitlog.flush")
        self._remember_flushed_time()
        if self._log.flushed_where != before:
            if self._note is not None:
                self._note("store.flushed", flushed_where=self._log.flushed_where)
            # Under SYNC_FLUSH these messages may be dispatched now.
            for action in self.on_flushed:
                action()
        return True

    def _remember_flushed_time(self) -> None:
        """Set the checkpoint's time of the log: of the last flushed message; on a slave, of the last dispatched one."""
        timestamp = self._log.queue.flushed_timestamp
        if self._is_slave and self._log.flushed_where >= self._dispatcher.reput_from:
            timestamp = self._dispatcher.logics_msg_timestamp  # blocks have no store time
        if timestamp and timestamp != self._checkpoint.physic_msg_timestamp:
            self._checkpoint.physic_msg_timestamp = timestamp
            self._arm_checkpoint()

    @property
    def _sync_names(self) -> bool:
        return "names_not_synced" not in self.config.sharp_edges

    def _arm_flush(self) -> None:
        """Flush at the next multiple of 500 ms if there are enough dirty pages, else at the next multiple of 10 s."""
        enough = self._log.queue.is_able_to_flush(self.config.flush_commit_log_least_pages)
        if self._flush is not None:
            if not enough:
                return
            self._flush.cancel()
        period = self.config.flush_interval_commit_log if enough else self.config.flush_commit_log_thorough_interval
        self.is_armed = enough
        due_ms = next_on_grid(self._clock.now_ms() + 1, period, self._state.origin_ms)
        self._flush = self._clock.call_at(due_ms, self._timed_flush, "store.flush")

    def _timed_flush(self) -> None:
        self._flush = None
        self.is_armed = False
        config = self.config
        thorough = self._crossed(config.flush_interval_commit_log, config.flush_commit_log_thorough_interval)
        self.sync_log(0 if thorough else config.flush_commit_log_least_pages)
        if self._log.flushed_where < self._log.max_offset:
            self._arm_flush()

    def _crossed(self, interval_ms: int, thorough_ms: int) -> bool:
        """Whether a thorough flush is due in the interval that ends now: one every ``thorough_ms`` since the start."""
        since_ms = self._clock.now_ms() - self._state.origin_ms
        return since_ms // thorough_ms != (since_ms - interval_ms) // thorough_ms

    def after_dispatch(self, units: int) -> None:
        """Units were added to queues: arm the timer that will sync them."""
        # RocketMQ sets the time of the queues before they are flushed; mqlab only if that fault is kept.
        if "checkpoint_ahead_of_queues" in self.config.sharp_edges:
            self._checkpoint.logics_msg_timestamp = self._dispatcher.logics_msg_timestamp
            self._arm_checkpoint()
        if self._is_slave:
            self._remember_flushed_time()
        self._unchecked_units += units
        if not self._queue_flush_is_soon and (self._queue_flush is None or self._unchecked_units >= UNITS_PER_CHECK):
            self._arm_queue_flush()

    def _arm_queue_flush(self) -> None:
        self._unchecked_units = 0
        least = self.config.flush_consume_queue_least_pages
        enough = any(queue.files.is_able_to_flush(least) for queue in self._dispatcher.touched)
        if self._queue_flush is not None:
            if not enough:
                return
            self._queue_flush.cancel()
        config = self.config
        period = config.flush_interval_consume_queue if enough else config.flush_consume_queue_thorough_interval
        self._queue_flush_is_soon = enough
        due_ms = next_on_grid(self._clock.now_ms() + 1, period, self._state.origin_ms)
        self._queue_flush = self._clock.call_at(due_ms, self._timed_queue_flush, "store.flush_consume_queue")

    def _timed_queue_flush(self) -> None:
        self._queue_flush = None
        self._queue_flush_is_soon = False
        config = self.config
        if self._crossed(config.flush_interval_consume_queue, config.flush_consume_queue_thorough_interval):
            self.sync_queues()
            self._flush_checkpoint()
        elif not self.stalled:
            self._flush_full_queues()
        if self._dispatcher.touched:
            self._arm_queue_flush()

    def _flush_full_queues(self) -> None:
        """Flush the queues that have enough dirty pages; what fails stays dirty."""
        try:
            for queue in self._dispatcher.touched:
                queue.flush(self.config.flush_consume_queue_least_pages)
        except OSError as error:
            self._failed("consumequeue.flush", error, self.sync_queues)

    def sync_queues(self) -> bool:
        """Flush queues and index now, set the checkpoint's time of the queues; False when the disk refused or hangs."""
        if self.stalled:
            return False
        try:
            for queue in self._dispatcher.touched:
                queue.flush()
            if self._index is not None and self._index.dirty:
                self._index.flush()
                for directory in (self._index.directory.rpartition("/")[0], self._index.directory):
                    self._log.queue.files.sync_directory(directory)
        except OSError as error:
            self._failed("consumequeue.flush", error, self.sync_queues)
            return False
        if self._failures.reasons:
            self._failures.works("consumequeue.flush")
        # Only when all are synced: the checkpoint must not claim entries that a power cut would take away.
        self._dispatcher.touched.clear()
        self._checkpoint.logics_msg_timestamp = self._dispatcher.logics_msg_timestamp
        return True

    def _arm_checkpoint(self) -> None:
        if self._checkpoint_flush is None:
            due_ms = next_on_grid(self._clock.now_ms() + 1, CHECKPOINT_INTERVAL_MS, self._state.origin_ms)
            self._checkpoint_flush = self._clock.call_at(due_ms, self._flush_checkpoint, "store.checkpoint")

    def _flush_checkpoint(self) -> None:
        if self._checkpoint_flush is not None:
            self._checkpoint_flush.cancel()
            self._checkpoint_flush = None
        if self.stalled:
            return
        try:
            self._checkpoint.flush()
        except OSError as error:
            self._failed("checkpoint.flush", error, self._flush_checkpoint)
        else:
            if self._failures.reasons:
                self._failures.works("checkpoint.flush")

    def _failed(self, part: str, error: OSError, again: Callable[[], object]) -> None:
        """Nothing that was written since the last flush is safe: the store takes no more until one succeeds."""
        if self._state.keeps("flush_error_ignored"):
            self._state.problem("flush", str(error))
        else:
            self._failures.failed(part, error, again)

    def sync_all(self) -> bool:
        """Flush log, queues, index and checkpoint; True when everything written is on the disk."""
        done = self.sync_log() and self.sync_queues()
        if done:
            self._flush_checkpoint()
        return done

    def close(self) -> None:
        """Disarm every timer."""
        for deadline in (self._commit, self._timeout, self._flush, self._queue_flush, self._checkpoint_flush):
            if deadline is not None:
                deadline.cancel()

    def __repr__(self) -> str:
        kind, flushed = self.config.flush_disk_type, self._log.flushed_where
        return f"<Flusher {kind} flushed {flushed}, {len(self._waiting)} puts wait>"
