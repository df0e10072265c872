"""When the timer's files are written: at most once a second, and only after a change.

Mirrors: TimerMessageStore.TimerFlushService and prepareTimerCheckPoint.

    timer log ──▶ wheel ──▶ check file ──▶ metrics         the check file must not claim what is not on the disk

RocketMQ writes every second whether or not something changed, since its read clock moves on.
"""

from __future__ import annotations

from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.store.config_files import ConfigFile
from mqlab.rocketmq.store.timer.delivering import Deliverer
from mqlab.rocketmq.store.timer.state import TimerState


class TimerFlusher:
    """Writes the files of one timer."""

    def __init__(self, state: TimerState, deliverer: Deliverer) -> None:
        self._state = state
        self._deliverer = deliverer
        self.metrics_file = ConfigFile(state.files, f"{state.store.directory}/config/timermetrics")
        self._deadline: Deadline | None = None

    def arm(self) -> None:
        """Write at the next tick."""
        state = self._state
        if self._deadline is None and state.is_running:
            period_ms = state.config.timer_flush_interval_ms
            due_ms = next_on_grid(state.clock.now_ms() + 1, period_ms, state.origin_ms)
            self._deadline = state.clock.call_at(due_ms, self._tick, "timer.flush")

    def stop(self) -> None:
        """Write for the last time."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _tick(self) -> None:
        self._deadline = None
        if not self.flush():
            self.arm()

    def flush(self) -> bool:
        """Write everything now; False when the commit log or a file could not be synced."""
        state, store = self._state, self._state.store
        # A message that was delivered is stored without a flush: its read clock may be saved only after the log.
        if store.config.is_sync_flush and not store.flusher.sync_log():
            return False
        if store.flusher.stalled:
            return False
        try:
            if state.log.clean_expired(store.min_physical_offset):
                state.log.queue.sync_names()
            state.log.queue.flush()
            self.prepare_check_point()
            state.wheel.flush()
            state.checkpoint.flush()
            self.metrics_file.save(state.metrics.encode())
        except OSError as error:
            # The tick itself tries again. Messages can be kept meanwhile: the log has them.
            store.failures.failed("timer.flush", error, lambda: None, closes=False)
            return False
        store.failures.works("timer.flush")
        return True

    def prepare_check_point(self) -> None:
        """Bring the numbers of the check file up to date. Mirrors prepareTimerCheckPoint."""
        state, check = self._state, self._state.checkpoint
        if self._deliverer.is_idle:
            state.catch_up()
        check.log_flushed = state.log.queue.flushed_where
        check.read_ms = state.read_ms
        if state.delivers:
            check.master_queue_offset = state.queue_offset
            if (state.read_ms, state.queue_offset) != state.flushed_counters:
                check.data_version = check.data_version.next(state.clock.now_ms())
                state.flushed_counters = (state.read_ms, state.queue_offset)
        check.queue_offset = min(state.queue_offset, check.master_queue_offset)
