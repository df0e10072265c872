"""A clock for testing plain parts of the broker: deadlines in a heap, advanced by hand."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush


class FakeDeadline:
    def __init__(self, due_ms: int, action: Callable[[], None], kind: str) -> None:
        self.due_ms = due_ms
        self.action = action
        self.kind = kind
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeClock:
    def __init__(self, now_ms: int = 1_000_000) -> None:
        self._now_ms = now_ms
        self._heap: list[tuple[int, int, FakeDeadline]] = []
        self._order = 0

    def now_ms(self) -> int:
        return self._now_ms

    def call_at(self, due_ms: int, action: Callable[[], None], kind: str) -> FakeDeadline:
        deadline = FakeDeadline(due_ms, action, kind)
        self._order += 1
        heappush(self._heap, (max(due_ms, self._now_ms), self._order, deadline))
        return deadline

    def call_later(self, delay_ms: int, action: Callable[[], None], kind: str) -> FakeDeadline:
        return self.call_at(self._now_ms + delay_ms, action, kind)

    def run_for(self, ms: int) -> None:
        """Let everything happen that is due within ``ms``, then stand there."""
        end_ms = self._now_ms + ms
        while self._heap and self._heap[0][0] <= end_ms:
            due_ms, _, deadline = heappop(self._heap)
            if not deadline.cancelled:
                self._now_ms = due_ms
                deadline.action()
        self._now_ms = end_ms

    def armed(self) -> list[tuple[str, int]]:
        """(kind, due in ms from now) of what is armed, soonest first."""
        return [(d.kind, due - self._now_ms) for due, _, d in sorted(self._heap) if not d.cancelled]
