"""What a get answers: a status, the messages, and where to read next.

Mirrors: org.apache.rocketmq.store.GetMessageResult and GetMessageStatus. Lab 01 reads before a queue's first offset.

    FOUND                   at least one message                next: after the last unit looked at
    NO_MATCHED_MESSAGE      looked, all filtered out            next: after the last unit looked at
    MESSAGE_WAS_REMOVING    looked, the log no longer has them  next: after the last unit looked at
    OFFSET_FOUND_NULL       a hole in the queue's files         next: the next file's first
    OFFSET_OVERFLOW_ONE     asked at the end: wait              next: the same
    OFFSET_OVERFLOW_BADLY   asked after the end                 next: the end
    OFFSET_TOO_SMALL        asked before the beginning          next: the beginning
    NO_MESSAGE_IN_QUEUE     the queue never had any             next: 0
    NO_MATCHED_LOGIC_QUEUE  there is no such queue              next: 0
    OFFSET_RESET            set by the broker on a reset        next: the reset offset

Left out: cold-data counters, batch queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.counts import counted
from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire.record import Record, decode

if TYPE_CHECKING:
    from mqlab.rocketmq.wire.message import MessageExt

FOUND = "FOUND"
NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
OFFSET_RESET = "OFFSET_RESET"


class GetResult:
    """Stored units as bytes, with their queue offsets, and the queue's bounds at that moment.

    ``buffer_total_size`` counts bytes; ``filter_message_count`` the messages that were read and refused by a filter on
    properties. Mirrors GetMessageResult.
    """

    __slots__ = (
        "buffer_total_size",
        "filter_message_count",
        "max_offset",
        "min_offset",
        "next_begin_offset",
        "queue_offsets",
        "status",
        "suggest_pulling_from_slave",
        "units",
    )

    def __init__(self, status: str, next_begin_offset: int, min_offset: int, max_offset: int) -> None:
        self.status = status
        self.next_begin_offset = next_begin_offset
        self.min_offset = min_offset
        self.max_offset = max_offset
        self.units: list[bytes] = []
        self.queue_offsets: list[int] = []
        self.buffer_total_size = 0
        self.filter_message_count = 0
        self.suggest_pulling_from_slave = False

    def records(self) -> list[Record]:
        """The units decoded, bodies checked against their check sums; CorruptionError names the first damaged one."""
        records = []
        for queue_offset, unit in zip(self.queue_offsets, self.units, strict=True):
            try:
                records.append(decode(unit, check_crc=True))
            except CorruptionError as error:
                raise CorruptionError(
                    f"the message at queue offset {queue_offset} is damaged: {error.text}",
                    hint="the rest of the queue is readable: ask from the next queue offset on",
                ) from error
        return records

    def messages(self, broker_name: str = "") -> list[MessageExt]:
        """The units as messages, bodies decompressed. Raises as ``records`` does."""
        from mqlab.rocketmq.wire.message import MessageExt

        return [MessageExt.from_record(record, broker_name) for record in self.records()]

    def __len__(self) -> int:
        return len(self.units)

    def __repr__(self) -> str:
        bounds = f"{self.next_begin_offset} of {self.min_offset}..{self.max_offset}"
        return f"<GetResult {self.status} {counted(len(self.units), 'messages')}, next {bounds}>"


class QueryResult:
    """Messages found under a key, in physical order (some may be here twice), and how far the index reaches.

    Mirrors QueryMessageResult.
    """

    __slots__ = ("index_last_update_phyoffset", "index_last_update_timestamp", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.index_last_update_timestamp = 0
        self.index_last_update_phyoffset = 0

    @property
    def physical_offsets(self) -> list[int]:
        return [record.physical_offset for record in self.records]

    def messages(self, broker_name: str = "") -> list[MessageExt]:
        """The messages, bodies decompressed."""
        from mqlab.rocketmq.wire.message import MessageExt

        return [MessageExt.from_record(record, broker_name) for record in self.records]

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        messages = counted(len(self.records), "messages")
        return f"<QueryResult {messages}, indexed up to {self.index_last_update_phyoffset}>"
