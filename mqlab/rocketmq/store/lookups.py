"""Look-ups in a store apart from a queue's next messages: by key, by time, by physical offset.

Mirrors: the reading half of org.apache.rocketmq.store.DefaultMessageStore. Lab 01 asks for a key.

    message_at(physical_offset)           one message, as an offset id names it
    search_offset(topic, queue, time)     the queue offset that belongs to a moment
    query(topic, key)                     messages under a key or unique key

Left out: reads of batch queues.
"""

from __future__ import annotations

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.store.get_result import QueryResult
from mqlab.rocketmq.store.state import StoreState
from mqlab.rocketmq.wire.record import Record, decode
from mqlab.rocketmq.wire.units import CqUnit

QUERY_ROUNDS = 3


class Lookups:
    """Finds messages of one store."""

    def __init__(self, state: StoreState) -> None:
        self._state = state
        self._log = state.commit_log
        self._queues = state.queues

    def consume_queue_unit(self, topic: str, queue_id: int, queue_offset: int) -> CqUnit | None:
        """Where a queue's message is in the log, None when the queue has none at that offset."""
        queue = self._queues.find(topic, queue_id)
        unit = queue.unit(queue_offset) if queue is not None and queue_offset >= queue.min_queue_offset else None
        return CqUnit(*unit) if unit is not None else None

    def message_at(self, physical_offset: int) -> Record | None:
        """The message whose unit begins there; None when none does, or when its body does not match its check sum."""
        unit = self._log.unit_at(physical_offset)
        if unit is None:
            return None
        try:
            record = decode(unit, check_crc=True)
        except CorruptionError as error:
            self._state.problem("lookup", error.text, physical_offset=physical_offset)
            return None
        return record if record.physical_offset == physical_offset else None

    def store_time_at(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """When a queue's message was stored, ms; None when it is not there."""
        unit = self.consume_queue_unit(topic, queue_id, queue_offset)
        timestamp = self._log.store_timestamp_at(unit.physical_offset) if unit is not None else -1
        return timestamp if timestamp >= 0 else None

    def search_offset(self, topic: str, queue_id: int, timestamp_ms: int, boundary: str) -> int:
        """Lower: the first queue offset stored at that time or later; upper: the last not later. 0 without a queue."""
        if boundary not in ("lower", "upper"):
            raise UsageError(f"unknown boundary {boundary!r}", hint='"lower" or "upper"')
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return 0
        return queue.search_time(timestamp_ms, boundary, self._log.store_timestamp_at)

    def query(self, topic: str, key: str, max_nums: int, begin_ms: int, end_ms: int) -> QueryResult:
        """Messages that were indexed under a key (or unique key) of a topic; hash collisions are among them.

        Mirrors queryMessage.
        """
        result = QueryResult()
        index = self._state.index
        if index is None:
            return result
        end = end_ms
        for _ in range(QUERY_ROUNDS):
            offsets = sorted(index.query(topic, key, max_nums, begin_ms, end))
            if offsets:  # an answer without messages does not say how far the index is
                newest = index.index_files[-1]
                result.index_last_update_timestamp = newest.end_timestamp
                result.index_last_update_phyoffset = newest.end_physical_offset
            for number, physical_offset in enumerate(offsets):
                record = self.message_at(physical_offset)
                if number == 0 and record is not None:
                    end = record.store_timestamp
                if record is not None:
                    result.records.append(record)
            # RocketMQ asks again for older messages when all that it found are gone from the log.
            if result.records or end < begin_ms or not offsets:
                break
        return result

    def __repr__(self) -> str:
        return f"<Lookups in {self._state.directory}>"
