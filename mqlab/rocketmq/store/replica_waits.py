"""Puts of a SYNC_MASTER that wait until enough slaves have them.

Mirrors: GroupTransferService and the second half of CommitLog.handleDiskFlushAndHA.

    in_sync_replicas 1 (default), WAIT=false, ASYNC_MASTER    no put waits; replication goes on
    in_sync_replicas 2                                        one slave must have written the message's last byte
    no slave has it slave_timeout ms after the append         FLUSH_SLAVE_TIMEOUT; the message stays stored

    waiting   ├ ..1217 ┼ ..2434 ┼ ..3651 ┤   served in order: the first holds up the others, until its time is over

"Has it" means: in the memory of the slave. When it is on the slave's disk depends on the slave's flush policy.
Left out: enableAutoInSyncReplicas and allAckInSyncStateSet (controller mode).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from mqlab.rocketmq.ports import Deadline
from mqlab.rocketmq.promises import Promise, gather
from mqlab.rocketmq.store.put_result import FLUSH_SLAVE_TIMEOUT, PUT_OK, PutResult
from mqlab.rocketmq.store.state import StoreState


class ReplicaWaits:
    """Puts that wait for copies. The sender of the copies sets ``copies_at`` and ``on_wait`` and calls ``look``."""

    def __init__(self, state: StoreState) -> None:
        self._state = state
        self._clock = state.clock
        self._waiting: deque[tuple[int, int, Promise[str]]] = deque()  # end offset, due ms, answer
        self._timeout: Deadline | None = None
        self._timeout_due_ms = 0
        self.copies_at: Callable[[int], int] = lambda end_offset: 1  # copies that reach an offset, the own included
        self.on_wait: Callable[[], None] = lambda: None

    def wait(self, result: PutResult) -> Promise[str]:
        """PUT_OK once enough copies have the message, FLUSH_SLAVE_TIMEOUT if that takes too long."""
        answer: Promise[str] = Promise()
        self._waiting.append((result.end_offset, self._clock.now_ms() + self._state.config.slave_timeout, answer))
        self.on_wait()
        self.look()
        return answer

    def look(self) -> None:
        """Answer puts from the front: those with enough copies and those whose time is over; arm the next time-out."""
        while self._waiting:
            end_offset, due_ms, answer = self._waiting[0]
            if self.copies_at(end_offset) >= self._state.config.in_sync_replicas:
                status = PUT_OK
            elif self._clock.now_ms() >= due_ms:
                status = FLUSH_SLAVE_TIMEOUT
            else:
                self._arm(due_ms)
                return
            self._waiting.popleft()
            answer.resolve(status)
        self.close()

    def _arm(self, due_ms: int) -> None:
        """Arm the time-out of the first put that waits, unless it is armed already."""
        if self._timeout is None or self._timeout_due_ms != due_ms:
            self.close()
            self._timeout_due_ms = due_ms
            self._timeout = self._clock.call_at(due_ms, self._expired, "ha.slave_timeout")

    def _expired(self) -> None:
        self._timeout = None
        self.look()

    def close(self) -> None:
        """Disarm the time-out: no put waits, or the store closes and waiting puts are never answered."""
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def __len__(self) -> int:
        return len(self._waiting)

    def __repr__(self) -> str:
        return f"<ReplicaWaits: {len(self._waiting)} puts wait for {self._state.config.in_sync_replicas} copies>"


def both_safe(flushed: Promise[str], copied: Promise[str]) -> Promise[str]:
    """One status of two: that of the slaves if it is not PUT_OK, else that of the disk."""
    status: Promise[str] = Promise()

    def settled(both: list[Promise[str]]) -> None:
        on_disk, on_slaves = (promise.value for promise in both)
        status.resolve(on_disk if on_slaves == PUT_OK else on_slaves)

    gather([flushed, copied]).then(settled)
    return status
