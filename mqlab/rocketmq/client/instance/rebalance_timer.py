"""When queues are divided again: 20 s after the last time, at once when asked, never twice within a second.

Mirrors: RebalanceService.

    last run      0 s            balanced ─▶ next at 20 s, not balanced ─▶ next at 1 s
    wake() at   0.3 s            next at 1 s (the minimum distance)
    wake() at   5.0 s            now
    wake() in a run              once more, a second after that run

The first second counts from when the client instance was made.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.errors import MqlabError
from mqlab.rocketmq.ports import Clock, Deadline
from mqlab.rocketmq.promises import Promise

WAIT_INTERVAL_MS = 20_000
MIN_INTERVAL_MS = 1_000


class RebalanceTimer:
    """Arms the next run of ``rebalance``, which returns a Promise of "balanced"."""

    def __init__(self, clock: Clock, rebalance: Callable[[], Promise[bool]]) -> None:
        self._clock = clock
        self._rebalance = rebalance
        self._last_ms = clock.now_ms()
        self._deadline: Deadline | None = None
        self._running = False
        self._woken = False
        self._stopped = True

    def start(self) -> None:
        """Begin to count; the first run comes after 20 s unless woken."""
        if self._stopped:
            self._stopped = False
            self._arm(WAIT_INTERVAL_MS, "rebalance.timer")

    def stop(self) -> None:
        """No further run."""
        self._stopped = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def wake(self) -> None:
        """Run now, or as soon as the minimum distance allows (rebalanceImmediately)."""
        if self._stopped:
            return
        self._woken = True
        if not self._running:
            self._arm(max(self._last_ms + MIN_INTERVAL_MS - self._clock.now_ms(), 0), "rebalance.wake")

    def wake_later(self, delay_ms: int) -> None:
        """Wake after a delay (rebalanceLater)."""
        self._clock.call_later(delay_ms, self.wake, "rebalance.later")

    def _arm(self, delay_ms: int, kind: str) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._clock.call_later(delay_ms, self._run, kind)

    def _run(self) -> None:
        self._deadline = None
        self._running, self._woken = True, False
        self._rebalance().then(self._done, self._failed)

    def _done(self, balanced: bool) -> None:
        # Counted from the end of a run: a run takes as long as the brokers' answers.
        self._running = False
        self._last_ms = self._clock.now_ms()
        if self._stopped:
            return
        if self._woken:
            self._arm(MIN_INTERVAL_MS, "rebalance.wake")
        elif balanced:
            self._arm(WAIT_INTERVAL_MS, "rebalance.timer")
        else:
            self._arm(MIN_INTERVAL_MS, "rebalance.timer")

    def _failed(self, error: BaseException) -> None:
        self._done(False)
        if not isinstance(error, MqlabError):
            raise error

    def __repr__(self) -> str:
        return f"<RebalanceTimer {'stopped' if self._stopped else 'running' if self._running else self._deadline!r}>"
