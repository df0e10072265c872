"""A deadline that comes again: the client's fixed-rate timers.

Mirrors: the ScheduledExecutorService of MQClientInstance (scheduleAtFixedRate).

    Periodic(clock, "client.heartbeat", 30_000, action).start(first_ms=1_000)      at +1 s, +31 s, +61 s …

Left out: fixed delay (RocketMQ's rebalance service counts from the end of a run and has its own deadline).
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.rocketmq.ports import Clock, Deadline


class Periodic:
    """Runs ``action`` first after ``first_ms`` and then every ``period_ms``, until stopped. Times in ms."""

    def __init__(self, clock: Clock, kind: str, period_ms: int, action: Callable[[], object]) -> None:
        self._clock = clock
        self._kind = kind
        self._period_ms = period_ms
        self._action = action
        self._deadline: Deadline | None = None

    def start(self, first_ms: int) -> None:
        """Arm the first run; starting again does nothing while it runs."""
        if self._deadline is None:
            self._arm(first_ms)

    def stop(self) -> None:
        """No further run."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _arm(self, delay_ms: int) -> None:  # relative, so that a clock set forward or back does not shift it
        self._deadline = self._clock.call_later(delay_ms, self._run, self._kind)

    def _run(self) -> None:
        self._arm(self._period_ms)
        self._action()

    def __repr__(self) -> str:
        state = "stopped" if self._deadline is None else f"next at {self._deadline.due_ms}"
        return f"<Periodic {self._kind} every {self._period_ms} ms, {state}>"
