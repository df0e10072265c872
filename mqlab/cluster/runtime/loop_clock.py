"""The clock of a served node: the machine's date at the start, and from then on a clock that never goes back.

Mirrors: System.currentTimeMillis and the scheduled executors, but for what happens when the machine's date is set:
RocketMQ's time jumps with it, here it goes on evenly until the process is started again.

    now_ms = date at the start + monotonic time since then
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

NEVER_SECONDS = 1e8  # until a clock that stands still is moved
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
    """A clock that a test can put forward: what is due by then happens at once, the rest that much earlier.

    It can also stand still, and then only ``advance`` moves it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, not_before_ms: int = 0) -> None:
        super().__init__(loop, not_before_ms=not_before_ms)
        self._armed: dict[int, tuple[LoopDeadline, Callable[[], None]]] = {}
        self._number = 0
        self._stands_at_ms: int | None = None

    def now_ms(self) -> int:
        """The time in ms since the epoch. It never decreases."""
        return super().now_ms() if self._stands_at_ms is None else self._stands_at_ms

    def ahead_ms(self) -> int:
        """How far it is ahead of the machine's date; negative if it stood still for longer than it was put forward."""
        return self.now_ms() - time.time_ns() // 1_000_000

    @property
    def stands_still(self) -> bool:
        """Whether it moves with ``advance`` only."""
        return self._stands_at_ms is not None

    def call_at(self, due_ms: int, action: Callable[[], None], kind: str) -> LoopDeadline:
        """Run an action at a moment, as a step of its own."""
        self._number += 1
        number = self._number

        def happens() -> None:
            del self._armed[number]
            action()

        deadline = self._arm(due_ms, happens, kind)
        self._armed[number] = (deadline, happens)
        return deadline

    def _arm(self, due_ms: int, happens: Callable[[], None], kind: str) -> LoopDeadline:
        if self._stands_at_ms is None:
            return super().call_at(due_ms, happens, kind)
        wait_seconds = 0.0 if due_ms <= self._stands_at_ms else NEVER_SECONDS
        return LoopDeadline(due_ms, kind, self._loop.call_later(wait_seconds, happens))

    def advance(self, ms: int) -> None:
        """Put the clock forward; for a step of the loop's own thread, like all that follows."""
        if self._stands_at_ms is None:
            self._origin_ms += ms
        else:
            self._stands_at_ms += ms
        self._arm_again()

    def stop(self) -> None:
        """Stand still from now on."""
        self._stands_at_ms = self.now_ms()
        self._arm_again()

    def go_on(self) -> None:
        """Run again, from where it stands."""
        if self._stands_at_ms is not None:
            self._origin_ms = self._stands_at_ms - self._loop.time() * 1_000
            self._stands_at_ms = None
            self._arm_again()

    def _arm_again(self) -> None:
        """All waits as the clock is now; those that are due happen in the order of their times."""
        for number, (deadline, happens) in sorted(self._armed.items(), key=lambda armed: armed[1][0].due_ms):
            if deadline.is_cancelled:
                del self._armed[number]
            else:
                deadline.cancel()
                deadline.follow(self._arm(deadline.due_ms, happens, deadline.kind))
