"""When the log is dispatched: a millisecond after an append, or when the caller drives the store.

Mirrors: the thread of DefaultMessageStore.ReputMessageService, which looks every millisecond.

    under a broker   append ──▶ store.dispatch in 1 ms ──▶ again while there is more
    by itself        append ──▶ timers that are due, and dispatch, before the put returns    (drive_by)
    by the caller    append ──▶ nothing until ``dispatch`` is called                         (auto_dispatch=False)

    confirm offset   up to where messages may be dispatched: under SYNC_FLUSH what is flushed, else all

Left out: the thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mqlab.rocketmq.ports import Deadline
from mqlab.rocketmq.store.dispatch import Dispatcher
from mqlab.rocketmq.store.flush import Flusher
from mqlab.rocketmq.store.state import StoreState

DISPATCH_PERIOD_MS = 1


class Dispatching:
    """Runs the dispatcher of one store. ``runs_at_close``: what is left is dispatched when the store is closed."""

    def __init__(self, state: StoreState, dispatcher: Dispatcher, flusher: Flusher, *, auto_dispatch: bool) -> None:
        config = state.config
        self._state = state
        self._dispatcher = dispatcher
        self._flusher = flusher
        self._clock = state.failures.own_clock
        self._attempt: Any = partial(state.failures.attempt, "store.dispatch", self._timed_dispatch)
        self._deadline: Deadline | None = None
        self.driver: Callable[[int], None] | None = None
        self._waits_for_flush = config.is_sync_flush and not config.is_slave and not config.read_un_committed
        self.auto_dispatch = auto_dispatch
        self.runs_at_close = auto_dispatch
        self.is_armed = False  # what was appended so far will be dispatched soon
        if config.is_sync_flush:
            flusher.on_flushed.append(self.arm)

    @property
    def confirm_offset(self) -> int:
        """The physical offset up to which messages may be dispatched. Mirrors getConfirmOffset."""
        queue = self._state.commit_log.queue
        if self._waits_for_flush:
            return queue.flushed_where
        last = queue.mapped_files[-1] if queue.mapped_files else None  # what max_offset says, without a call
        return last.start_offset + last.wrote_position if last is not None else 0

    @property
    def bytes_behind(self) -> int:
        """How much of the log is not dispatched yet."""
        return max(0, self._state.commit_log.max_offset - self._dispatcher.reput_from)

    def dispatch(self, max_units: int | None = None) -> int:
        """Dispatch what is confirmed, at most this many units. Returns how many."""
        count = 0

        def run() -> None:
            nonlocal count
            count = self._dispatcher.run(self.confirm_offset, max_units)
            if count:
                self._flusher.after_dispatch(count)

        self._state.failures.attempt("store.dispatch", run)
        return count

    def arm(self) -> None:
        """Dispatch in a millisecond, if there is anything to dispatch."""
        if (
            self.auto_dispatch
            and not self.is_armed
            and self._state.phase == "running"
            and self._dispatcher.reput_from < self.confirm_offset
        ):
            self.is_armed = True
            self._deadline = self._clock.call_later(DISPATCH_PERIOD_MS, self._attempt, "store.dispatch")

    def _timed_dispatch(self) -> None:
        self.is_armed = False
        before, limit = self._dispatcher.reput_from, self.confirm_offset
        count = self._dispatcher.run(limit)
        if count:
            self._flusher.after_dispatch(count)
        # What was appended meanwhile has armed the timer itself. Bytes that no dispatch gets past are not tried again.
        if before != self._dispatcher.reput_from < limit:
            self.arm()

    def after_append(self, now_ms: int) -> None:
        """Something was appended and nothing is armed: dispatch soon, or at once where the store drives itself."""
        if self.driver is not None:
            self.driver(now_ms)
        else:
            self.arm()

    def drive_by(self, run_due: Callable[[int], None], *, dispatch: bool) -> None:
        """Let every put flush (SYNC_FLUSH) and dispatch before it returns; ``run_due(now_ms)`` runs due timers."""

        def run_due_and_dispatch(now_ms: int) -> None:
            run_due(now_ms)
            self.dispatch()

        self.driver = run_due_and_dispatch if dispatch else run_due
        self.runs_at_close = dispatch
        self.driver(self._state.clock.now_ms())

    def close(self) -> None:
        """Disarm the timer."""
        if self._deadline is not None:
            self._deadline.cancel()

    def __repr__(self) -> str:
        return f"<Dispatching {self.bytes_behind} bytes behind, timer {self._deadline}>"
