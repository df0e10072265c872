"""Everything that can be read from a store: by queue offset, by physical offset, by time, by key.

Mirrors: the reading half of org.apache.rocketmq.store.DefaultMessageStore. Lab 01.

    get(topic, queue, offset)             a batch of messages, as a consumer's pull gets it
    message_at(physical_offset)           one message, as an offset id names it
    search_offset(topic, queue, time)     where in a queue a moment lies
    query(topic, key)                     messages under a key or unique key

Left out: reads of batch queues and of the timer wheel.
"""

from __future__ import annotations

from mqlab.errors import CorruptionError, UsageError
from mqlab.store.get_result import GetResult, QueryResult
from mqlab.store.getting import MAX_PULL_BYTES, MessageFilter, TagCodes
from mqlab.store.opened_store import OpenedStore
from mqlab.wire.record import Record, decode
from mqlab.wire.units import CqUnit

END_OF_TIME_MS = (1 << 63) - 1
QUERY_ROUNDS = 3


class StoreLookups(OpenedStore):
    """An opened store that can be read."""

    def get(
        self, topic: str, queue_id: int, queue_offset: int, max_nums: int = 32, *, sub_expression: str = "*",
        message_filter: MessageFilter | None = None, max_bytes: int = MAX_PULL_BYTES,
    ) -> GetResult:  # fmt: skip
        """Messages of a queue from an offset on. ``sub_expression``: tags as in a subscription, matched by hash only.

        Raises StoreError when the store is closed. Mirrors getMessage.
        """
        self._check_open()
        if message_filter is None and sub_expression != "*":
            message_filter = TagCodes(sub_expression)
        return self.reader.get(topic, queue_id, queue_offset, max_nums, message_filter, max_bytes)

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The first queue offset that can be read."""
        queue = self.queues.find(topic, queue_id)
        return queue.min_queue_offset if queue is not None else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        """The queue offset behind the last dispatched message."""
        queue = self.queues.find(topic, queue_id)
        return queue.max_queue_offset if queue is not None else 0

    def consume_queue_unit(self, topic: str, queue_id: int, queue_offset: int) -> CqUnit | None:
        """Where a queue's message stands in the log, None when the queue has none there."""
        queue = self.queues.find(topic, queue_id)
        unit = queue.unit(queue_offset) if queue is not None and queue_offset >= queue.min_queue_offset else None
        return CqUnit(*unit) if unit is not None else None

    def message_at(self, physical_offset: int) -> Record | None:
        """The message whose unit begins there; None when none does, or when its body does not match its check sum."""
        unit = self.commit_log.unit_at(physical_offset)
        if unit is None:
            return None
        try:
            record = decode(unit, check_crc=True)
        except CorruptionError as error:
            if self._note is not None:
                self._note("store.problem", where="lookup", physical_offset=physical_offset, reason=error.text)
            return None
        return record if record.physical_offset == physical_offset else None

    def store_time_at(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """When a queue's message was stored, ms; None when it is not there."""
        unit = self.consume_queue_unit(topic, queue_id, queue_offset)
        timestamp = self.commit_log.store_timestamp_at(unit.physical_offset) if unit is not None else -1
        return timestamp if timestamp >= 0 else None

    def search_offset(self, topic: str, queue_id: int, timestamp_ms: int, boundary: str = "lower") -> int:
        """Lower: the first queue offset stored at that time or later; upper: the last not later. 0 without a queue."""
        if boundary not in ("lower", "upper"):
            raise UsageError(f"boundary {boundary!r} is not known", hint='"lower" or "upper"')
        queue = self.queues.find(topic, queue_id)
        if queue is None:
            return 0
        return queue.search_time(timestamp_ms, boundary, self.commit_log.store_timestamp_at)

    def query(
        self, topic: str, key: str, max_nums: int = 64, begin_ms: int = 0, end_ms: int = END_OF_TIME_MS
    ) -> QueryResult:
        """Messages that were indexed under a key (or unique key) of a topic; hash collisions are among them.

        Mirrors queryMessage.
        """
        self._check_open()
        result = QueryResult()
        if self.index is None:
            return result
        end = end_ms
        for _ in range(QUERY_ROUNDS):
            offsets = sorted(self.index.query(topic, key, max_nums, begin_ms, end))
            for number, physical_offset in enumerate(offsets):
                record = self.message_at(physical_offset)
                if number == 0 and record is not None:
                    end = record.store_timestamp
                if record is not None:
                    result.records.append(record)
            if result.records or end < begin_ms or not offsets:
                break
        if self.index.index_files:
            newest = self.index.index_files[-1]
            result.index_last_update_timestamp = newest.end_timestamp
            result.index_last_update_phyoffset = newest.end_physical_offset
        return result

    def topics(self) -> dict[str, list[int]]:
        """Every topic that has queues here, with their ids."""
        return self.queues.topics()
