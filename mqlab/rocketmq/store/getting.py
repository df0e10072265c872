"""The get path: from a queue offset to a batch of stored messages.

Mirrors: DefaultMessageStore.getMessage, isTheBatchFull and estimateInMemByCommitOffset. Lab 01.

    offset ──▶ consume queue unit ─(filter by tags code)─▶ commit log unit ─(filter by properties)─▶ taken
    stops at: max_nums, bytes, 800 units looked at, the end of the queue's file, 32 messages or 256 KiB from memory,
              8 messages or 64 KiB from disk. The first message is taken whatever its size.

Left out: cold-data checks, several queue files in one get (travel_cq_file_num is 1).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Protocol

from mqlab.errors import CorruptionError
from mqlab.rocketmq.filter import tags
from mqlab.rocketmq.store.consumequeue import ConsumeQueue
from mqlab.rocketmq.store.get_result import (
    FOUND,
    MESSAGE_WAS_REMOVING,
    NO_MATCHED_MESSAGE,
    NO_MESSAGE_IN_QUEUE,
    OFFSET_FOUND_NULL,
    OFFSET_OVERFLOW_BADLY,
    OFFSET_OVERFLOW_ONE,
    OFFSET_TOO_SMALL,
    GetResult,
)
from mqlab.rocketmq.store.mapped_file import MappedFile
from mqlab.rocketmq.store.state import StoreState
from mqlab.rocketmq.wire.record import decode
from mqlab.rocketmq.wire.record_layout import MAGIC_V1, MAGIC_V2
from mqlab.rocketmq.wire.units import CQ_UNIT_SIZE

MAX_PULL_BYTES = 128 * 1024 * 1024
DEFAULT_PHYSICAL_MEMORY = 24 << 30  # what RocketMQ assumes where it cannot ask the machine
_HEAD = struct.Struct(">ii")


class MessageFilter(Protocol):
    """Decides whether a consumer gets a message: by the tags code first, then by the stored properties."""

    @property
    def needs_properties(self) -> bool: ...

    def matches_code(self, tags_code: int) -> bool: ...

    def matches_properties(self, properties: Mapping[str, str]) -> bool: ...


class TagCodes:
    """A subscription's tags as a MessageFilter: hashes are compared, so messages of colliding tags pass."""

    needs_properties = False

    def __init__(self, sub_expression: str) -> None:
        self._tags = tags.parse(sub_expression)

    def matches_code(self, tags_code: int) -> bool:
        return self._tags.matches_code(tags_code)

    def matches_properties(self, properties: Mapping[str, str]) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<TagCodes {self._tags.sub_string}>"


class Reader:
    """Answers gets on one store. ``memory_bytes``: how much of the log's end counts as in memory."""

    def __init__(self, state: StoreState, memory_bytes: int | None) -> None:
        self._state = state
        self._log = state.commit_log
        self._queues = state.queues
        self.memory_bytes = memory_bytes

    @property
    def memory_bound(self) -> int:
        """How many bytes before the log's end count as in memory: ``memory_bytes``, else a part of the machine's."""
        if self.memory_bytes is not None:
            return self.memory_bytes
        return int(DEFAULT_PHYSICAL_MEMORY * (self._state.config.access_message_in_memory_max_ratio / 100.0))

    def get(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_nums: int,
        message_filter: MessageFilter | None,
        max_bytes: int,
    ) -> GetResult:
        """Scan a queue from an offset on; the status says how it ended. Mirrors DefaultMessageStore.getMessage."""
        queue = self._queues.find(topic, queue_id)
        if queue is None:  # RocketMQ makes the queue on demand and finds it empty
            return self._outside(NO_MESSAGE_IN_QUEUE, queue_offset, 0, 0, 0)
        low, end = queue.min_queue_offset, queue.max_queue_offset
        # 1. Offsets outside of the queue have a status of their own, with the offset to go on at.
        if end == 0:
            return self._outside(NO_MESSAGE_IN_QUEUE, queue_offset, 0, low, end)
        if queue_offset < low:
            return self._outside(OFFSET_TOO_SMALL, queue_offset, low, low, end)
        if queue_offset == end:
            return self._outside(OFFSET_OVERFLOW_ONE, queue_offset, queue_offset, low, end)
        if queue_offset > end:
            return self._outside(OFFSET_OVERFLOW_BADLY, queue_offset, end, low, end)
        # 2. Inside: read on from there.
        result = GetResult(NO_MATCHED_MESSAGE, queue_offset, low, end)
        in_memory_from = self._log.queue.max_offset - self.memory_bound
        last_seen = self._scan(result, queue, queue_offset, max_nums, message_filter, max_bytes, in_memory_from)
        result.suggest_pulling_from_slave = last_seen < in_memory_from
        return result

    def _outside(self, status: str, asked: int, corrected: int, low: int, end: int) -> GetResult:
        """An answer without messages. A slave answers the offset it was asked for: its log may not be complete yet."""
        if self._state.config.broker_role == "SLAVE" and not self._state.config.offset_check_in_slave:
            corrected = asked
        return GetResult(status, corrected, low, end)

    def _scan(
        self,
        result: GetResult,
        queue: ConsumeQueue,
        queue_offset: int,
        max_nums: int,
        message_filter: MessageFilter | None,
        max_bytes: int,
        in_memory_from: int,
    ) -> int:
        """Take messages into ``result``; the physical offset of the last unit looked at."""
        in_memory, on_disk = self._most(max_nums, max_bytes)
        max_units = -(-max(self._state.config.max_filter_message_size, max_nums * CQ_UNIT_SIZE) // CQ_UNIT_SIZE)
        units = queue.units(queue_offset, max_units)
        if units is None:
            result.status = OFFSET_FOUND_NULL
            result.next_begin_offset = queue.next_file_start(queue_offset)
            return 0
        status, skip_until, last_seen, taken = "", -1, 0, result.units
        mapped: MappedFile | None = None
        for unit_offset, (physical_offset, size, tags_code) in enumerate(units, queue_offset):
            # 1. Whether there is room for one more. The first message is taken whatever its size.
            most_units, most_bytes = in_memory if physical_offset >= in_memory_from else on_disk
            if taken and (len(taken) >= most_units or result.buffer_total_size + size > most_bytes):
                break
            last_seen = physical_offset
            result.next_begin_offset = unit_offset + 1
            if physical_offset < skip_until:
                continue

            # 2. The tags code is in the queue: most messages of other tags are never read from the log.
            if message_filter is not None and not message_filter.matches_code(tags_code):
                status = status or NO_MATCHED_MESSAGE
                continue

            # 3. The unit itself. When its file is gone, so are all other units of that file.
            if mapped is None or not 0 <= physical_offset - mapped.start_offset < mapped.size:
                mapped = self._log.queue.find(physical_offset)
            unit = mapped.read(physical_offset - mapped.start_offset, size) if mapped is not None else None
            if unit is None:
                status = status or MESSAGE_WAS_REMOVING
                skip_until = self._log.next_file_start(physical_offset)
                continue
            if size < _HEAD.size or _HEAD.unpack_from(unit) not in ((size, MAGIC_V1), (size, MAGIC_V2)):
                self._no_message_there(queue, unit_offset, physical_offset)
                status = status or MESSAGE_WAS_REMOVING
                continue

            # 4. Equal hashes are not equal tags, and SQL reads the properties.
            if message_filter is not None and not _properties_match(message_filter, unit):
                status = status or NO_MATCHED_MESSAGE
                result.filter_message_count += 1
                continue
            taken.append(unit)
            result.queue_offsets.append(unit_offset)
            result.buffer_total_size += size
            status = FOUND
            skip_until = -1
        result.status = status or NO_MATCHED_MESSAGE
        return last_seen

    def _no_message_there(self, queue: ConsumeQueue, queue_offset: int, physical_offset: int) -> None:
        offsets = {"queue_offset": queue_offset, "physical_offset": physical_offset}
        text = "no message of that size there"
        self._state.problem("get", text, topic=queue.topic, queue_id=queue.queue_id, **offsets)

    def _most(self, max_nums: int, max_bytes: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """How many messages and bytes a get takes in memory, and how many on the disk. Mirrors isTheBatchFull."""
        config = self._state.config
        in_memory = config.max_transfer_count_on_message_in_memory, config.max_transfer_bytes_on_message_in_memory
        on_disk = config.max_transfer_count_on_message_in_disk, config.max_transfer_bytes_on_message_in_disk
        return (
            (min(max_nums, in_memory[0]), min(max_bytes, in_memory[1])),
            (min(max_nums, on_disk[0]), min(max_bytes, on_disk[1])),
        )


def _properties_match(message_filter: MessageFilter, unit: bytes) -> bool:
    if not message_filter.needs_properties:
        return True
    try:
        return message_filter.matches_properties(decode(unit).property_map)
    except CorruptionError:
        return False
