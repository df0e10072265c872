"""Whether a store takes messages at this moment, and what it answers when it does not.

Mirrors: DefaultMessageStore.checkStoreStatus and RunningFlags. Lab 01 fills a disk and puts.

    not running                    SERVICE_NOT_AVAILABLE
    the store of a slave           SERVICE_NOT_AVAILABLE   it takes its master's log only
    disk full                      SERVICE_NOT_AVAILABLE
    a part of it has failed        SERVICE_NOT_AVAILABLE   see mqlab.rocketmq.store.failures

Left out: a busy page cache (RocketMQ measures for how long its put lock is held).
"""

from __future__ import annotations

from mqlab.rocketmq.store.put_result import SERVICE_NOT_AVAILABLE, PutResult
from mqlab.rocketmq.store.state import StoreState


class Admission:
    """``is_open`` says whether puts are accepted; it is decided again when one of its causes changes."""

    __slots__ = ("_is_disk_full", "_state", "is_open")

    def __init__(self, state: StoreState) -> None:
        self._state = state
        self._is_disk_full = False
        self.is_open = False
        state.failures.on_change = self.decide

    def decide(self) -> None:
        """Decide again; called after the store's phase changed, and when a part fails or recovers."""
        state = self._state
        self.is_open = state.phase == "running" and not state.config.is_slave and self.is_writeable

    def refusal(self) -> PutResult:
        """The answer to a put while ``is_open`` is False."""
        state = self._state
        if state.phase != "running":
            return PutResult.refused(SERVICE_NOT_AVAILABLE, f"the store is {state.phase}, not running")
        if state.config.is_slave:
            return PutResult.refused(SERVICE_NOT_AVAILABLE, "the store of a slave only takes the log of its master")
        reason = str(state.failures) or "the disk is full"
        return PutResult.refused(SERVICE_NOT_AVAILABLE, f"the store is not writeable: {reason}")

    @property
    def is_writeable(self) -> bool:
        """False when the disk is full or a part has failed. Mirrors RunningFlags.isWriteable."""
        return not self._is_disk_full and not self._state.failures.refuse_messages

    def set_disk_full(self, full: bool) -> None:
        """Retention has looked at the disk."""
        if full != self._is_disk_full:
            self._is_disk_full = full
            self.decide()

    def append_failed(self, error: Exception) -> None:
        """The log has no file for what comes next: no more is taken until one could be made."""
        if isinstance(error, (OSError, MemoryError)):
            failures, queue = self._state.failures, self._state.commit_log.queue
            failures.failed("commitlog", error, lambda: failures.attempt("commitlog", queue.prepare_next))

    def __repr__(self) -> str:
        return f"<Admission {'open' if self.is_open else self.refusal().reason}>"
