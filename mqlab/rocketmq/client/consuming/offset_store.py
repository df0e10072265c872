"""How far a consumer is on each queue: in memory first, then at the broker (clustering) or in a file (broadcasting).

Mirrors: OffsetStore, RemoteBrokerOffsetStore, ControllableOffset.

    memory     mq -> commit_offset [frozen]       moved by consume results, at once
    broker     topic@group -> queue -> offset     sent every 5 s in a one-way request, with pulls, and at the end
    frozen     later updates are ignored until the entry is removed: a late result must not undo a reset

Offsets here are commit offsets: the next message to consume.

Left out: an answer to the commit (RocketMQ's push path has none either).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from mqlab.errors import BrokerError, MqlabError
from mqlab.rocketmq.client.instance.background import background
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.message import MessageQueue

NOT_FOUND = -1
READ_FAILED = -2


class OffsetStore(Protocol):
    """What both stores offer. Reads give -1 for "none" and -2 for "could not ask"."""

    def load(self) -> None: ...

    def update_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None: ...

    def update_and_freeze_offset(self, queue: MessageQueue, offset: int) -> None: ...

    def read_memory(self, queue: MessageQueue) -> int: ...

    def read_store(self, queue: MessageQueue) -> Promise[int]: ...

    def persist(self, queue: MessageQueue) -> None: ...

    def persist_all(self, queues: Collection[MessageQueue]) -> None: ...

    def remove_offset(self, queue: MessageQueue) -> None: ...

    def clone_offset_table(self, topic: str | None = None) -> dict[MessageQueue, int]: ...


class OffsetMemory:
    """The table in memory that both stores share: offsets and which of them are frozen."""

    def __init__(self, cluster: ClusterAccess, group: str) -> None:
        self._cluster = cluster
        self.group = group
        self._offsets: dict[MessageQueue, int] = {}
        self._frozen: dict[MessageQueue, bool] = {}

    def update_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """Set the offset, or only raise it. Ignored while the entry is frozen."""
        before = self._offsets.get(queue)
        if queue in self._frozen or (increase_only and before is not None and offset <= before):
            return
        if before == offset:
            return
        self._offsets[queue] = offset
        self._cluster.ports.note("offset.updated", group=self.group, queue=queue, commit_offset=offset, before=before)

    def update_and_freeze_offset(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset and ignore every later update until the entry is removed."""
        self.update_offset(queue, offset)
        if queue in self._offsets:
            self._frozen[queue] = True

    def read_memory(self, queue: MessageQueue) -> int:
        """The offset in memory, -1 when there is none."""
        return self._offsets.get(queue, NOT_FOUND)

    def remove_offset(self, queue: MessageQueue) -> None:
        """Remove the entry and unfreeze it."""
        self._offsets.pop(queue, None)
        self._frozen.pop(queue, None)

    def clone_offset_table(self, topic: str | None = None) -> dict[MessageQueue, int]:
        """A copy of the table, of one topic or of all."""
        return {queue: offset for queue, offset in self._offsets.items() if topic is None or queue.topic == topic}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.group}: {len(self._offsets)} queues, {len(self._frozen)} frozen>"


class RemoteOffsetStore(OffsetMemory):
    """Clustering: the broker keeps the group's offsets. Mirrors RemoteBrokerOffsetStore."""

    def load(self) -> None:
        """Nothing to load: each queue asks its broker when it is added."""

    @flow
    def read_store(self, queue: MessageQueue) -> Flow[int]:
        """Ask the broker; a found offset goes into memory. -1: the broker has none; -2: it could not be asked."""
        try:
            address = yield self._address(queue)
            offset: int = yield self._cluster.calls.query_consumer_offset(address, self.group, queue)
        except BrokerError as error:
            return NOT_FOUND if error.response_code == ResponseCode.QUERY_NOT_FOUND else READ_FAILED
        except MqlabError:
            return READ_FAILED
        self.update_offset(queue, offset)
        return offset

    def persist(self, queue: MessageQueue) -> None:
        """Send one queue's offset to the broker, one way."""
        offset = self._offsets.get(queue)
        if offset is not None:
            self._commit(queue, offset)

    def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """Send the offset of every owned queue to the broker; entries of other queues are removed."""
        # An offset of a queue that moved away must not be sent: its new owner is further by now.
        for queue, offset in list(self._offsets.items()):
            if queue in queues:
                self._commit(queue, offset)
            else:
                self.remove_offset(queue)

    @flow
    def commit_offset(self, queue: MessageQueue, offset: int, *, oneway: bool = True) -> Flow[None]:
        """Send an offset to the broker, whatever is in memory (updateConsumeOffsetToBroker)."""
        address = yield self._address(queue)
        if oneway:
            self._cluster.calls.update_consumer_offset_oneway(address, self.group, queue, offset)
        else:
            yield self._cluster.calls.update_consumer_offset(address, self.group, queue, offset)

    @flow
    def _address(self, queue: MessageQueue) -> Flow[str]:
        """The master's address. If no route names one, refresh the route once, then use any broker of that name."""
        if self._cluster.routes.master_address(queue.broker_name) is None:
            yield self._cluster.update_route(queue.topic)
        address: str = yield self._cluster.find_any_broker(queue)
        return address

    def _commit(self, queue: MessageQueue, offset: int) -> None:
        address = self._cluster.routes.master_address(queue.broker_name)
        if address is not None:
            self._cluster.calls.update_consumer_offset_oneway(address, self.group, queue, offset)
        else:
            background(self._cluster.ports, self.commit_offset(queue, offset), "commit")  # asks for the route first
