"""What a store without a broker uses of this machine: the wall clock, its time zone, the size of its memory.

Mirrors: System.currentTimeMillis and StoreUtil.

    PolledClock    call_at ──▶ a heap of deadlines ◀── run_due(now_ms) runs those that are due, in order

There is no thread: between two calls of run_due nothing happens.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from heapq import heappop, heappush


class DueCall:
    """A deadline of a PolledClock."""

    __slots__ = ("action", "due_ms", "kind")

    def __init__(self, due_ms: int, action: Callable[[], None] | None, kind: str) -> None:
        self.due_ms = due_ms
        self.action = action
        self.kind = kind

    def cancel(self) -> None:
        self.action = None

    def __repr__(self) -> str:
        return f"<DueCall {self.kind} at {self.due_ms}{'' if self.action else ' cancelled'}>"


class PolledClock:
    """The wall clock; deadlines run when ``run_due`` is called and not by themselves."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, DueCall]] = []
        self._armed = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def call_at(self, due_ms: int, action: Callable[[], None], kind: str) -> DueCall:
        call = DueCall(due_ms, action, kind)
        self._armed += 1
        heappush(self._heap, (due_ms, self._armed, call))
        return call

    def call_later(self, delay_ms: int, action: Callable[[], None], kind: str) -> DueCall:
        return self.call_at(self.now_ms() + delay_ms, action, kind)

    def run_due(self, now_ms: int) -> None:
        """Run every deadline that is due by now, in order."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            action = heappop(heap)[2].action
            if action is not None:
                action()

    def __repr__(self) -> str:
        return f"<PolledClock {len(self._heap)} deadlines>"


def physical_memory() -> int:
    """Bytes of RAM of this machine. Mirrors StoreUtil.TOTAL_PHYSICAL_MEMORY_SIZE."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def utc_offset_ms() -> int:
    """How far this machine's local time is ahead of UTC."""
    return time.localtime().tm_gmtoff * 1000
