"""Receipt handles: the fields of a pop's extra info, and where in the log the message is.

Mirrors: org.apache.rocketmq.common.consumer.ReceiptHandle.

    3 1795739646813 10000 7 0 broker-a 0 6 33723
    start offset, pop time, invisible time, revive queue, kind of topic, broker, queue, offset, log offset

A lease that was changed belongs to the one message, so its start offset is the message's own. RocketMQ 5.3.3 keeps the
old one, and puts a 0 before the log offset: "3 1795739646831 14000 7 0 broker-a 0 6 0 33723". An ack with it is
answered OK and has no effect, unless the message was the first of its pop, and a forward takes what is at 0 in the log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mqlab.cluster.grpc.codes import Code, ProxyRefusal, StatusError
from mqlab.rocketmq.wire.java_numbers import parse_long
from mqlab.rocketmq.wire.pop import ORDERLY_REVIVE_QUEUE, Handle, real_topic

FEWEST_FIELDS = 8
DECODE = "org.apache.rocketmq.common.consumer.ReceiptHandle.decode(ReceiptHandle.java:56)"


@dataclass(frozen=True, slots=True)
class ReceiptHandle:
    """A message on lease. ``physical_offset``: in the log; -1 when the client's handle does not have it."""

    pop: Handle
    physical_offset: int = -1

    @property
    def text(self) -> str:
        """What clients get."""
        return f"{self.pop.text} {self.physical_offset}"

    @property
    def is_orderly(self) -> bool:
        """Whether the lease blocks its queue."""
        return self.pop.revive_queue == ORDERLY_REVIVE_QUEUE

    @property
    def lease(self) -> tuple[str, int, int, str]:
        """What stays the same when the lease is changed. Mirrors HandleKey."""
        return self.pop.broker_name, self.pop.queue_id, self.pop.queue_offset, self.pop.kind

    def topic_of(self, topic: str, group: str) -> str:
        """The topic in which the message is: the group's retry topic for one that was delivered before."""
        return real_topic(topic, group, self.pop.kind)

    def changed(self, pop_time: int, invisible_time: int, revive_queue: int) -> ReceiptHandle:
        """The handle of the same message after its lease was changed. Times are ms."""
        changed = replace(
            self.pop,
            start_offset=self.pop.queue_offset,
            pop_time=pop_time,
            invisible_time=invisible_time,
            revive_queue=revive_queue,
        )
        return ReceiptHandle(changed, self.physical_offset)

    def as_in_5_3_3(self, old: ReceiptHandle) -> str:
        """The text that RocketMQ 5.3.3 answers after a change of ``old``."""
        return f"{replace(self.pop, start_offset=old.pop.start_offset).text} 0 {self.physical_offset}"


def receipt_handle_of(text: str) -> ReceiptHandle:
    """The handle in a client's text. StatusError for one that cannot be read. Mirrors ReceiptHandle.decode."""
    parts = text.split(" ")
    if len(parts) < FEWEST_FIELDS:
        problem = f"Parse failed, dataList size {len(parts)}. IllegalArgumentException. {DECODE}"
        raise StatusError(Code.INTERNAL_SERVER_ERROR, problem)
    try:
        pop = Handle.parse(text)
        # What is beyond the eighth field may be missing; RocketMQ reads the ninth alone.
        return ReceiptHandle(pop, parse_long(parts[FEWEST_FIELDS]) if len(parts) > FEWEST_FIELDS else -1)
    except ValueError as error:
        problem = f"{error}. NumberFormatException. {DECODE}"
        raise StatusError(Code.INTERNAL_SERVER_ERROR, problem) from error


def valid_handle_of(text: str, now_ms: int) -> ReceiptHandle:
    """The same, and its lease must not be over. StatusError."""
    handle = receipt_handle_of(text)
    if handle.pop.visible_ms <= now_ms:
        raise ProxyRefusal("receipt handle is expired", Code.INVALID_RECEIPT_HANDLE)
    return handle
