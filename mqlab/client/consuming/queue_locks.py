"""The client's side of the broker's queue locks: only their holder consumes a queue in order.

Mirrors: RebalanceImpl.lock, lockAll, unlock, unlockAll. Lab 05.

    lock(queue)        41 with one queue, to the master, 1 s     granted: locked, last_lock_timestamp = now
    lock_all()         41 per broker with all owned queues       not granted any more: locked = False
    unlock(queue)      42, one-way when a queue moves away, answered at shutdown

Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.consuming.process_queue import ProcessQueue
from mqlab.errors import MqlabError
from mqlab.promises import Flow, flow
from mqlab.wire.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.client.instance.mq_client import MQClient


class QueueLocks:
    """Locks of one group's queues, as this client asks for them."""

    def __init__(self, client: MQClient, group: str, process_queues: dict[MessageQueue, ProcessQueue]) -> None:
        self._client = client
        self._group = group
        self._process_queues = process_queues

    @flow
    def lock(self, queue: MessageQueue) -> Flow[bool]:
        """Ask for one queue; False when it is refused or the master cannot be asked."""
        address = self._client.routes.master_address(queue.broker_name)
        if address is None:
            return False
        granted: list[MessageQueue] | None = yield self._ask(address, [queue])
        if not granted:
            return False
        self._mark(granted)
        return queue in granted

    @flow
    def lock_all(self) -> Flow[None]:
        """Renew every owned queue; one not granted is locked no more."""
        for broker_name, queues in self._by_broker().items():
            address = self._client.routes.master_address(broker_name)
            if address is None:
                continue
            granted = yield self._ask(address, queues)
            if granted is None:
                continue  # could not ask: the locks run out by themselves
            self._mark(granted)
            for queue in queues:
                process_queue = self._process_queues.get(queue)
                if queue not in granted and process_queue is not None:
                    process_queue.locked = False
                    self._client.ports.note("queue.lock_lost", group=self._group, queue=queue, reason="not granted")

    def unlock(self, queue: MessageQueue) -> None:
        """Give one queue back, one way."""
        address = self._client.routes.master_address(queue.broker_name)
        if address is not None:
            self._client.calls.unlock_oneway(address, self._group, self._client.client_id, [queue])

    @flow
    def unlock_all(self) -> Flow[None]:
        """Give every owned queue back and wait for the answers (at shutdown)."""
        for broker_name, queues in self._by_broker().items():
            address = self._client.routes.master_address(broker_name)
            if address is None:
                continue
            try:
                yield self._client.calls.unlock(address, self._group, self._client.client_id, queues)
            except MqlabError as error:  # they run out after a minute
                self._client.ports.note("queue.unlock_failed", group=self._group, error=error.text)
            for queue in queues:
                if queue in self._process_queues:
                    self._process_queues[queue].locked = False

    @flow
    def _ask(self, address: str, queues: list[MessageQueue]) -> Flow[list[MessageQueue] | None]:
        try:
            granted: list[MessageQueue] = yield self._client.calls.lock(
                address, self._group, self._client.client_id, queues
            )
        except MqlabError as error:
            self._client.ports.note("queue.lock_failed", group=self._group, address=address, error=error.text)
            return None
        return granted

    def _mark(self, granted: list[MessageQueue]) -> None:
        now_ms = self._client.ports.clock.now_ms()
        for queue in granted:
            process_queue = self._process_queues.get(queue)
            if process_queue is not None:
                if not process_queue.locked:
                    self._client.ports.note("queue.lock_granted", group=self._group, queue=queue)
                process_queue.locked = True
                process_queue.last_lock_timestamp = now_ms

    def _by_broker(self) -> dict[str, list[MessageQueue]]:
        brokers: dict[str, list[MessageQueue]] = {}
        for queue in sorted(self._process_queues):
            if not self._process_queues[queue].dropped:  # one on its way out is let go
                brokers.setdefault(queue.broker_name, []).append(queue)
        return brokers
