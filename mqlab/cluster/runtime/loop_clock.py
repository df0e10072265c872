"""The clock of a served node: the machine's date at the start, and from then on a clock that never goes back.

Mirrors: System.currentTimeMillis and the scheduled executors, but for what happens when the machine's date is set:
RocketMQ's time jumps with it, here it goes on evenly until the process is started again.

    now_ms = date at the start + monotonic time since then
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

EARLY_SECONDS = 0.000_1  # asyncio may wake a timer a little before its time; a node must not see a due time as future


class LoopDeadline:
    """An armed wait on the event loop; see mqlab.rocketmq.ports.Deadline."""

    __slots__ = ("_handle", "due_ms", "kind")

    def __init__(self, due_ms: int, kind: str, handle: asyncio.TimerHandle) -> None:
        self.due_ms = due_ms
        self.kind = kind
        self._handle = handle

    def cancel(self) -> None:
        """Prevent it; harmless when it has already happened."""
        self._handle.cancel()

    @property
    def is_cancelled(self) -> bool:
        """Whether it was prevented."""
        return self._handle.cancelled()

    def follow(self, moved: LoopDeadline) -> None:
        """Be the deadline that was armed in its place."""
        self._handle = moved._handle

    def __repr__(self) -> str:
        return f"<{self.kind} at {self.due_ms}>"


class LoopClock:
    """The Clock port of all nodes on one loop. ``not_before_ms``: the earliest time it may show, for a store whose
    last message is later than the machine's date.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, not_before_ms: int = 0) -> None:
        self._loop = loop
        started_ms = max(time.time_ns() // 1_000_000, not_before_ms)
        self._origin_ms = started_ms - loop.time() * 1_000

    def now_ms(self) -> int:
        """The time in ms since the epoch. It never decreases."""
        # What loop.time() returns, without its call: a message asks six times.
        return int(self._origin_ms + time.monotonic() * 1_000)

    def call_at(self, due_ms: int, action: Callable[[], None], kind: str) -> LoopDeadline:
        """Run an action at a moment, as a step of its own."""
        when = (due_ms - self._origin_ms) / 1_000 + EARLY_SECONDS
        return LoopDeadline(due_ms, kind, self._loop.call_at(when, action))

    def call_later(self, delay_ms: int, action: Callable[[], None], kind: str) -> LoopDeadline:
        """Run an action after a delay, as a step of its own."""
        return self.call_at(self.now_ms() + delay_ms, action, kind)


class AdvancingClock(LoopClock):
    """A clock that a test can put forward: what is due by then happens at once, the rest that much earlier."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, not_before_ms: int = 0) -> None:
        super().__init__(loop, not_before_ms=not_before_ms)
        self._armed: dict[int, tuple[LoopDeadline, Callable[[], None]]] = {}
        self._number = 0

    def call_at(self, due_ms: int, action: Callable[[], None], kind: str) -> LoopDeadline:
        """Run an action at a moment, as a step of its own."""
        self._number += 1
        number = self._number

        def happens() -> None:
            del self._armed[number]
            action()

        deadline = super().call_at(due_ms, happens, kind)
        self._armed[number] = (deadline, happens)
        return deadline

    def advance(self, ms: int) -> None:
        """Put the clock forward; for a step of the loop's own thread."""
        self._origin_ms += ms
        for number, (deadline, happens) in list(self._armed.items()):
            if deadline.is_cancelled:
                del self._armed[number]
            else:
                deadline.cancel()
                moved = super().call_at(deadline.due_ms, happens, deadline.kind)
                deadline.follow(moved)
