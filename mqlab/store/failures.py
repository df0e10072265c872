"""Which parts of a node have failed: each is reported, stops new messages, and is tried again until it works.

Mirrors: RunningFlags (WRITE_LOGICS_QUEUE_ERROR_BIT, WRITE_INDEX_FILE_ERROR_BIT) for every part that runs by itself.

    works ──(a timer's action raises, a flush or a save is refused)──▶ failed ──(tried again every 1 s)──▶ works
                                                                        │
                           part.failed in the journal, failedParts in brokerStatus, puts answer SERVICE_NOT_AVAILABLE

A part is named by its kind of step (``store.dispatch``), by what is written (``commitlog.flush``) or by its file.
An answer never depends on such a part, so without this table nobody would learn that it has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from mqlab.errors import MqlabError, StoreError
from mqlab.ports import Clock, Deadline, Note

TRY_AGAIN_MS = 1_000
OF_THE_MACHINE = (OSError, MemoryError, MqlabError)
"""Errors whose cause may go away: no descriptors, no memory, a disk that fails. Others are defects and are raised."""


class Failures:
    """The failed parts of one node, by name, and their reasons. ``on_change`` is called when one fails or recovers."""

    def __init__(self, clock: Clock, note: Note | None) -> None:
        self._clock = clock
        self._note = note
        self._reasons: dict[str, str] = {}
        self._again: dict[str, Callable[[], object]] = {}
        self._deadline: Deadline | None = None
        self._is_closed = False
        self.on_change: Callable[[], None] = lambda: None
        self.clock: Clock = GuardedClock(clock, self)

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def __len__(self) -> int:
        return len(self._reasons)

    def __contains__(self, part: str) -> bool:
        return part in self._reasons

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Each failed part with its reason, in the order in which they failed."""
        return iter(self._reasons.items())

    def attempt(self, part: str, action: Callable[[], object]) -> bool:
        """Run what a part does; False if it failed. The action is run again until it succeeds.

        Raises what is no error of the machine, after the failure was noted.
        """
        try:
            action()
        except Exception as error:
            self.failed(part, error, partial(self.attempt, part, action))
            if not isinstance(error, OF_THE_MACHINE):
                raise
            return False
        if self._reasons:
            self.works(part)
        return True

    def failed(self, part: str, error: BaseException | str, again: Callable[[], object]) -> None:
        """A part has failed. ``again`` is called every second until the part is reported to work."""
        reason = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        is_known = self._reasons.get(part) == reason
        self._reasons[part], self._again[part] = reason, again
        self._arm()
        if not is_known:
            if self._note is not None:
                self._note("part.failed", part=part, reason=reason)
            self.on_change()

    def works(self, part: str) -> None:
        """A part works; nothing happens unless it had failed."""
        if self._reasons.pop(part, None) is None:
            return
        del self._again[part]
        if self._note is not None:
            self._note("part.recovered", part=part)
        self.on_change()

    def must_work(self, part: str) -> None:
        """Raise StoreError while a part has failed: what it would have to keep is refused."""
        if part in self._reasons:
            raise StoreError(f"{part} cannot be written: {self._reasons[part]}", hint="it is tried again every second")

    def close(self) -> None:
        """Try nothing again: the node stops."""
        self._is_closed = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _arm(self) -> None:
        if self._deadline is None and not self._is_closed:
            self._deadline = self._clock.call_later(TRY_AGAIN_MS, self._try_again, "part.try_again")

    def _try_again(self) -> None:
        self._deadline = None
        try:
            for part, again in list(self._again.items()):
                if part in self._reasons:
                    again()
        finally:
            if self._reasons:
                self._arm()

    def __str__(self) -> str:
        return "; ".join(f"{part} failed: {reason}" for part, reason in self)

    def __repr__(self) -> str:
        return f"<Failures {self or 'none'}>"


class GuardedClock:
    """A node's clock whose actions are attempts: one that raises is a failed part, and is run again."""

    __slots__ = ("_clock", "_failures", "now_ms")

    def __init__(self, clock: Clock, failures: Failures) -> None:
        self._clock = clock
        self._failures = failures
        self.now_ms = clock.now_ms

    def call_at(self, due_ms: int, action: Callable[[], None], kind: str) -> Deadline:
        """Run an action at a moment; see Failures.attempt."""
        return self._clock.call_at(due_ms, partial(self._failures.attempt, kind, action), kind)

    def call_later(self, delay_ms: int, action: Callable[[], None], kind: str) -> Deadline:
        """Run an action after a delay; see Failures.attempt."""
        return self._clock.call_later(delay_ms, partial(self._failures.attempt, kind, action), kind)
