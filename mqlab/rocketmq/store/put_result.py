"""What a put answers: a status and where the message went.

Mirrors: org.apache.rocketmq.store.PutMessageResult, PutMessageStatus, AppendMessageResult. Lab 01 prints these.

    PUT_OK                      stored
    FLUSH_DISK_TIMEOUT          stored, but not known to be on this disk   ┐ the producer sees a send
    FLUSH_SLAVE_TIMEOUT         stored, but not known to be on the slaves  ┘ status that is not SEND_OK
    SERVICE_NOT_AVAILABLE       not stored: shut down, a slave, or the disk is full
    CREATE_MAPPED_FILE_FAILED   not stored: no new file
    MESSAGE_ILLEGAL             not stored: topic, body or unit too long
    PROPERTIES_SIZE_EXCEEDED    not stored: more than 32,767 bytes of properties
    WHEEL_TIMER_…               not stored: a timed message that is off, illegal or one too many for its moment

Left out: statuses of a busy page cache, LMQ, the escape bridge and controller mode.
"""

from __future__ import annotations

from mqlab.rocketmq.wire import ids
from mqlab.rocketmq.wire.record import Record

PUT_OK = "PUT_OK"
FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
CREATE_MAPPED_FILE_FAILED = "CREATE_MAPPED_FILE_FAILED"
MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
WHEEL_TIMER_NOT_ENABLE = "WHEEL_TIMER_NOT_ENABLE"
WHEEL_TIMER_MSG_ILLEGAL = "WHEEL_TIMER_MSG_ILLEGAL"
WHEEL_TIMER_FLOW_CONTROL = "WHEEL_TIMER_FLOW_CONTROL"


class PutResult:
    """Where a message (or a batch, from its first unit on) was stored; offsets -1 and a ``reason`` when it was not.

    ``waits_as``: the record that was stored instead, in the schedule or timer topic, when the message has to wait.
    ``size`` counts the bytes of all units, ``store_timestamp`` is in ms. Mirrors PutMessageResult.
    """

    __slots__ = (
        "message_count",
        "physical_offset",
        "queue_offset",
        "reason",
        "size",
        "status",
        "store_host",
        "store_timestamp",
        "unit_offsets",
        "wait_store_msg_ok",
        "waits_as",
    )

    def __init__(
        self,
        status: str,
        physical_offset: int,
        size: int,
        queue_offset: int,
        store_timestamp: int,
        store_host: tuple[str, int],
        wait_store_msg_ok: bool = True,
        unit_offsets: tuple[int, ...] | None = None,
        reason: str = "",
    ) -> None:
        self.status = status
        self.physical_offset = physical_offset
        self.size = size
        self.queue_offset = queue_offset
        self.store_timestamp = store_timestamp
        self.store_host = store_host
        self.wait_store_msg_ok = wait_store_msg_ok
        self.unit_offsets = unit_offsets
        self.message_count = len(unit_offsets) if unit_offsets is not None else int(physical_offset >= 0)
        self.reason = reason
        self.waits_as: Record | None = None

    @classmethod
    def refused(cls, status: str, reason: str) -> PutResult:
        """The answer for a message that was not stored."""
        return cls(status, -1, 0, -1, 0, ("", 0), reason=reason)

    @property
    def is_ok(self) -> bool:
        return self.status == PUT_OK

    @property
    def end_offset(self) -> int:
        """Where the next unit of the log begins; -1 when nothing was stored."""
        return self.physical_offset + self.size

    @property
    def offset_msg_id(self) -> str:
        """The id made of store host and physical offset; a batch has one for each message, joined by commas."""
        if self.physical_offset < 0:
            return ""
        if self.unit_offsets is None:
            return ids.offset_msg_id(self.store_host, self.physical_offset)
        return ids.offset_msg_ids(self.store_host, self.unit_offsets)

    def __repr__(self) -> str:
        if self.physical_offset < 0:
            return f"<PutResult {self.status}: {self.reason}>"
        where = f"physical {self.physical_offset} +{self.size} queue offset {self.queue_offset}"
        return f"<PutResult {self.status} {where}>"


def not_appended(error: Exception) -> PutResult:
    """The answer when the log could not take a message: no new file, or a unit that no file can hold."""
    status = CREATE_MAPPED_FILE_FAILED if isinstance(error, (OSError, MemoryError)) else MESSAGE_ILLEGAL
    return PutResult.refused(status, str(error))
