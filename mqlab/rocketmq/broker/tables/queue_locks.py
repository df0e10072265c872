"""Which member of a group may consume which queue in order.

Mirrors: RebalanceLockManager.

    group       queue                client            last renewed     expires
    billing     orders/broker-a/0    10.0.0.5@one      12:00:20.000     60 s later
    billing     orders/broker-a/1    10.0.0.6@two      12:00:19.100

    try_lock by                nobody holds it   the holder    another, live   another, expired
    answer                     granted           renewed       refused         taken over

The table is in memory only: a broker that restarts knows no locks.
Left out: lockInStrictMode (a quorum of replicas).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mqlab.rocketmq.broker.tables.table import BrokerTable
from mqlab.rocketmq.wire.message import MessageQueue

MAX_LIVE_MS = 60_000  # rocketmq.broker.rebalance.lockMaxLiveTime


@dataclass(slots=True)
class QueueLock:
    """One lock: who holds it, and when it was last renewed (ms since the epoch)."""

    client_id: str
    last_update_ms: int


class QueueLocks(BrokerTable[str, Mapping[MessageQueue, QueueLock]]):
    """group -> queue -> lock. Mirrors RebalanceLockManager.

    >>> now = [0]
    >>> locks = QueueLocks(lambda: now[0])
    >>> queue = MessageQueue("orders", "broker-a", 0)
    >>> locks.try_lock("billing", [queue], "one"), locks.try_lock("billing", [queue], "two")
    ([orders broker-a 0], [])
    >>> now[0] = 60_001
    >>> len(locks.try_lock("billing", [queue], "two"))
    1
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        max_live_ms: int = MAX_LIVE_MS,
        note: Callable[..., None] = lambda *_, **__: None,
    ) -> None:
        self._now_ms = now_ms
        self._max_live_ms = max_live_ms
        self._note = note
        self._entries: dict[str, dict[MessageQueue, QueueLock]] = {}

    def try_lock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> list[MessageQueue]:
        """Lock or renew as many as possible; returns those that ``client_id`` holds now, in the order of ``queues``."""
        now_ms = self._now_ms()
        locks = self._entries.setdefault(group, {})
        granted = []
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id != client_id and not self._expired(lock, now_ms):
                continue  # another client holds it, and renewed it in time
            if lock is None or lock.client_id != client_id:
                self._note("queue.locked", group=group, queue=queue, client=client_id, before=lock and lock.client_id)
                locks[queue] = QueueLock(client_id, now_ms)
            else:
                lock.last_update_ms = now_ms
            granted.append(queue)
        return granted

    def unlock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Release the queues that ``client_id`` holds; the locks of others stay."""
        locks = self._entries.get(group, {})
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                del locks[queue]
                self._note("queue.unlocked", group=group, queue=queue, client=client_id)

    def holder(self, group: str, queue: MessageQueue) -> str | None:
        """The client that holds the queue now, None if there is no lock or it has expired."""
        lock = self._entries.get(group, {}).get(queue)
        return None if lock is None or self._expired(lock, self._now_ms()) else lock.client_id

    def all_expired(self, group: str) -> bool:
        """True if no lock of the group is alive: its messages are not consumed in order."""
        now_ms = self._now_ms()
        return all(self._expired(lock, now_ms) for lock in self._entries.get(group, {}).values())

    def _expired(self, lock: QueueLock, now_ms: int) -> bool:
        return now_ms - lock.last_update_ms > self._max_live_ms

    def __repr__(self) -> str:
        return f"<QueueLocks: {sum(map(len, self._entries.values()))} queues of {len(self._entries)} groups>"
