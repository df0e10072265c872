"""What a learner's parts see of the broker around them: its store, whichever that is, and no more.

pulls     get, max_offset                 retries     put, get, max_offset
"""

from __future__ import annotations

from mqlab.errors import UsageError
from mqlab.rocketmq.store import put_result
from mqlab.rocketmq.store.message_store import MessageStore
from mqlab.rocketmq.wire.record import decode


class StoreToRead:
    """A broker's store, to be read."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def get(self, topic: str, queue_id: int, queue_offset: int, most: int) -> list[bytes]:
        """The units of a queue from an offset on, at most so many; none past its end."""
        return [bytes(unit) for unit in self._store.get(topic, queue_id, queue_offset, most).units]

    def max_offset(self, topic: str, queue_id: int) -> int:
        """One past the last message of a queue."""
        return self._store.max_offset(topic, queue_id)


class StoreToWrite(StoreToRead):
    """A broker's store, to be read and written.

    ``puts`` are topic, queue and unit of what was put since it was last emptied; ``last`` is the number of the last of
    them in its queue, and its place in the log.
    """

    def __init__(self, store: MessageStore) -> None:
        super().__init__(store)
        self.puts: list[tuple[str, int, bytes]] = []
        self.last = -1, -1

    def put(self, topic: str, queue_id: int, unit: bytes) -> tuple[int, int]:
        """Store a unit; its number in the queue and its place in the log. UsageError if the store refuses it."""
        record = decode(unit).changed(topic=topic, queue_id=queue_id, magic=None, store_host=self._store.store_host)
        result = self._store.put(record)
        if result.status != put_result.PUT_OK:
            raise UsageError(f"the store refused the message: {result.status}", hint=result.reason)
        self._store.wait_durable(result)
        self.puts.append((topic, queue_id, bytes(unit)))
        self.last = result.queue_offset, result.physical_offset
        return self.last
