"""How far a consumer is on each queue: memory first, behind it the broker (clustering) or a file (broadcasting).

Mirrors: OffsetStore, RemoteBrokerOffsetStore, ControllableOffset. Lab 04 watches memory, broker and file differ.

    memory     mq -> commit_offset [frozen]       moved by consume results, at once
    broker     topic@group -> queue -> offset     told every 5 s by a one-way request, by pulls, and at the end
    frozen     later updates are ignored until the entry is forgotten: a late result must not undo a reset

Offsets here are commit offsets: the next message to consume.
Left out: an answer to the commit (RocketMQ's push path has none either).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from mqlab.client.instance.background import background
from mqlab.client.settings import BROADCASTING, ConsumerConfig
from mqlab.errors import BrokerError, MqlabError
from mqlab.promises import Flow, Promise, flow
from mqlab.wire.codes import ResponseCode
from mqlab.wire.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.client.instance.mq_client import MQClient

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

    def __init__(self, client: MQClient, group: str) -> None:
        self._client = client
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
        self._client.ports.note("offset.updated", group=self.group, queue=queue, commit_offset=offset, before=before)

    def update_and_freeze_offset(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset and ignore every later update until the entry is removed."""
        self.update_offset(queue, offset)
        if queue in self._offsets:
            self._frozen[queue] = True

    def read_memory(self, queue: MessageQueue) -> int:
        """The offset in memory, -1 when there is none."""
        return self._offsets.get(queue, NOT_FOUND)

    def remove_offset(self, queue: MessageQueue) -> None:
        """Forget the entry, its frost included."""
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
            offset: int = yield self._client.calls.query_consumer_offset(address, self.group, queue)
        except BrokerError as error:
            return NOT_FOUND if error.response_code == ResponseCode.QUERY_NOT_FOUND else READ_FAILED
        except MqlabError:
            return READ_FAILED
        self.update_offset(queue, offset)
        return offset

    def persist(self, queue: MessageQueue) -> None:
        """Tell the broker about one queue, one way."""
        offset = self._offsets.get(queue)
        if offset is not None:
            self._commit(queue, offset)

    def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """Tell the broker about every owned queue; entries of other queues are forgotten."""
        for queue, offset in list(self._offsets.items()):
            if queue in queues:
                self._commit(queue, offset)
            else:
                self.remove_offset(queue)

    @flow
    def commit_offset(self, queue: MessageQueue, offset: int, *, oneway: bool = True) -> Flow[None]:
        """Send an offset to the broker whatever memory says (updateConsumeOffsetToBroker)."""
        address = yield self._address(queue)
        if oneway:
            self._client.calls.update_consumer_offset_oneway(address, self.group, queue, offset)
        else:
            yield self._client.calls.update_consumer_offset(address, self.group, queue, offset)

    @flow
    def _address(self, queue: MessageQueue) -> Flow[str]:
        """The master; while no route names it, each time after one look for it, whoever else has that broker's name."""
        if self._client.routes.master_address(queue.broker_name) is None:
            yield self._client.update_route(queue.topic)
        address: str = yield self._client.find_any_broker(queue)
        return address

    def _commit(self, queue: MessageQueue, offset: int) -> None:
        address = self._client.routes.master_address(queue.broker_name)
        if address is not None:
            self._client.calls.update_consumer_offset_oneway(address, self.group, queue, offset)
        else:
            background(self._client.ports, self.commit_offset(queue, offset), "commit")  # asks for the route first


def offset_store_for(client: MQClient, group: str, config: ConsumerConfig) -> OffsetStore:
    """The store of a consumer: the brokers when clustering, a file when broadcasting."""
    if config.message_model == BROADCASTING:
        from mqlab.client.consuming.local_offset_store import LocalOffsetStore

        return LocalOffsetStore(client, group, config.local_offset_store_dir)
    return RemoteOffsetStore(client, group)
