"""Which parts of a broker have failed: each is reported, and tried again until it works; the store's stop new messages.

Mirrors: RunningFlags (WRITE_LOGICS_QUEUE_ERROR_BIT, WRITE_INDEX_FILE_ERROR_BIT) for every part that runs by itself.

    works ──(a timer's action raises, a flush or a save is refused)──▶ failed ──(tried again every 1 s)──▶ works
                                                                        │
                           part.failed in the journal, failedParts in brokerStatus
                           the store or a file of a table: puts answer SERVICE_NOT_AVAILABLE
                           another timer of the broker (schedule, registration …): messages can be kept, and are taken

A part is named by its kind of step (``store.dispatch``), by what is written (``commitlog.flush``) or by its file.
An answer never depends on such a part, so only this table shows that it has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from mqlab.errors import MqlabError, PartFailed
from mqlab.rocketmq.ports import Clock, Deadline, Note

TRY_AGAIN_MS = 1_000
OF_THE_MACHINE = (OSError, MemoryError, MqlabError)
"""Errors whose cause may go away: no descriptors, no memory, a disk that fails. Others are defects and are raised."""


class Failures:
    """``reasons``: the failed parts of one node, by name. ``on_change`` is called when one fails or recovers."""

    def __init__(self, clock: Clock, note: Note | None) -> None:
        self.own_clock = clock
        self._note = note
        self.reasons: dict[str, str] = {}
        self._again: dict[str, Callable[[], object]] = {}
        self._closing: dict[str, None] = {}  # those without which no message can be kept
        self._deadline: Deadline | None = None
        self._is_closed = False
        self.on_change: Callable[[], None] = lambda: None
        self.clock: Clock = GuardedClock(clock, self, closes=True)
        self.clock_of_broker: Clock = GuardedClock(clock, self, closes=False)

    def __bool__(self) -> bool:
        return bool(self.reasons)

    def __len__(self) -> int:
        return len(self.reasons)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Each failed part with its reason, in the order in which they failed."""
        return iter(self.reasons.items())

    @property
    def refuse_messages(self) -> bool:
        """Whether a part has failed without which no message can be kept."""
        return bool(self._closing)

    def attempt(self, part: str, action: Callable[[], object], closes: bool = True) -> bool:
        """Run what a part does; False if it failed. The action is run again until it succeeds.

        Raises any error that the machine did not cause, after the failure was noted.
        """
        try:
            action()
        except Exception as error:
            self.failed(part, error, partial(self.attempt, part, action, closes), closes=closes)
            if not isinstance(error, OF_THE_MACHINE):
                raise
            return False
        if self.reasons:
            self.works(part)
        return True

    def failed(self, part: str, error: BaseException, again: Callable[[], object], *, closes: bool = True) -> None:
        """A part has failed. ``again`` is called every second until the part is reported to work.

        ``closes``: no message can be kept without this part.
        """
        reason = f"{type(error).__name__}: {error}"
        is_known = self.reasons.get(part) == reason
        if closes:
            self._closing[part] = None
        self.reasons[part], self._again[part] = reason, again
        self._arm()
        if not is_known:
            if self._note is not None:
                self._note("part.failed", part=part, reason=reason)
            self.on_change()

    def works(self, part: str) -> None:
        """A part works; nothing happens unless it had failed."""
        if self.reasons.pop(part, None) is None:
            return
        del self._again[part]
        self._closing.pop(part, None)
        if self._note is not None:
            self._note("part.recovered", part=part)
        self.on_change()

    def must_work(self, part: str) -> None:
        """Raise PartFailed while a part has failed: what it would have to keep is refused."""
        if part in self.reasons:
            raise PartFailed(f"{part} cannot be written: {self.reasons[part]}", hint="it is tried again every second")

    def close(self) -> None:
        """Try nothing again: the node stops."""
        self._is_closed = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _arm(self) -> None:
        if self._deadline is None and not self._is_closed:
            self._deadline = self.own_clock.call_later(TRY_AGAIN_MS, self._try_again, "part.try_again")

    def _try_again(self) -> None:
        self._deadline = None
        try:
            for part, again in list(self._again.items()):
                if part in self.reasons:
                    again()
        finally:
            if self.reasons:
                self._arm()

    def __str__(self) -> str:
        return "; ".join(f"{part} failed: {reason}" for part, reason in self)

    def __repr__(self) -> str:
        return f"<Failures {self or 'none'}>"


class GuardedClock:
    """A node's clock whose actions are attempts: one that raises is a failed part, and is run again."""

    __slots__ = ("_attempt", "_clock", "_closes", "now_ms")

    def __init__(self, clock: Clock, failures: Failures, *, closes: bool) -> None:
        self._clock = clock
        self._attempt = failures.attempt
        self._closes = closes
        self.now_ms = clock.now_ms

    def call_at(self, due_ms: int, action: Callable[[], None], kind: str) -> Deadline:
        """Run an action at a moment; see Failures.attempt."""
        attempt: Any = partial(self._attempt, kind, action, self._closes)
        return self._clock.call_at(due_ms, attempt, kind)

    def call_later(self, delay_ms: int, action: Callable[[], None], kind: str) -> Deadline:
        """Run an action after a delay; see Failures.attempt."""
        attempt: Any = partial(self._attempt, kind, action, self._closes)
        return self._clock.call_later(delay_ms, attempt, kind)
