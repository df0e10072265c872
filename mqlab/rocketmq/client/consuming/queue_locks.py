"""The client's side of the broker's queue locks: only their holder consumes a queue in order.

Mirrors: RebalanceImpl.lock, lockAll, unlock, unlockAll.

    lock(queue)        41 with one queue, to the master, 1 s     granted: locked, last_lock_timestamp = now
    lock_all()         41 per broker with all owned queues       not granted any more: locked = False
    unlock(queue)      42, one-way when a queue moves away, answered at shutdown
"""

from __future__ import annotations

from mqlab.errors import MqlabError
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue, move
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire.message import MessageQueue


class HeldQueueLocks:
    """Locks of one group's queues, as this client asks for them."""

    def __init__(self, cluster: ClusterAccess, group: str, process_queues: dict[MessageQueue, ProcessQueue]) -> None:
        self._cluster = cluster
        self._group = group
        self._process_queues = process_queues

    @flow
    def lock(self, queue: MessageQueue) -> Flow[bool]:
        """Ask for one queue; False when it is refused or the master cannot be asked."""
        address = self._cluster.routes.master_address(queue.broker_name)
        if address is None:
            return False
        granted: list[MessageQueue] | None = yield self._ask(address, [queue])
        if not granted:
            return False
        self._mark(granted)
        return queue in granted

    @flow
    def lock_all(self) -> Flow[None]:
        """Renew the lock of every owned queue; one that is not granted again is unlocked."""
        for broker_name, queues in self._by_broker().items():
            address = self._cluster.routes.master_address(broker_name)
            if address is None:
                continue
            granted = yield self._ask(address, queues)
            if granted is None:
                continue  # the broker could not be asked: its locks run out by themselves
            self._mark(granted)
            for queue in queues:
                process_queue = self._process_queues.get(queue)
                if queue not in granted and process_queue is not None:
                    move(process_queue, "unlock")
                    self._cluster.ports.note("queue.lock_lost", group=self._group, queue=queue, reason="not granted")

    def unlock(self, queue: MessageQueue) -> None:
        """Give one queue back, one way."""
        address = self._cluster.routes.master_address(queue.broker_name)
        if address is not None:
            self._cluster.calls.unlock_oneway(address, self._group, self._cluster.client_id, [queue])

    @flow
    def unlock_all(self) -> Flow[None]:
        """Give every owned queue back and wait for the answers (at shutdown)."""
        for broker_name, queues in self._by_broker().items():
            address = self._cluster.routes.master_address(broker_name)
            if address is None:
                continue
            try:
                yield self._cluster.calls.unlock(address, self._group, self._cluster.client_id, queues)
            except MqlabError as error:  # they run out after a minute
                self._cluster.ports.note("queue.unlock_failed", group=self._group, error=error.text)
            for queue in queues:
                if queue in self._process_queues:
                    move(self._process_queues[queue], "unlock")

    @flow
    def _ask(self, address: str, queues: list[MessageQueue]) -> Flow[list[MessageQueue] | None]:
        try:
            granted: list[MessageQueue] = yield self._cluster.calls.lock(
                address, self._group, self._cluster.client_id, queues
            )
        except MqlabError as error:
            self._cluster.ports.note("queue.lock_failed", group=self._group, address=address, error=error.text)
            return None
        return granted

    def _mark(self, granted: list[MessageQueue]) -> None:
        now_ms = self._cluster.ports.clock.now_ms()
        for queue in granted:
            process_queue = self._process_queues.get(queue)
            if process_queue is not None:
                if not process_queue.locked:
                    self._cluster.ports.note("queue.lock_granted", group=self._group, queue=queue)
                move(process_queue, "lock")
                process_queue.last_lock_timestamp = now_ms

    def _by_broker(self) -> dict[str, list[MessageQueue]]:
        brokers: dict[str, list[MessageQueue]] = {}
        for queue in sorted(self._process_queues):
            if not self._process_queues[queue].dropped:  # one on its way out is let go
                brokers.setdefault(queue.broker_name, []).append(queue)
        return brokers
