"""Why a message may not be stored.

Mirrors: HookUtils.checkBeforePutMessage and checkInnerBatch, the limits of MessageExtEncoder.

    topic        1 to 127 bytes, retry topics up to 255                    MESSAGE_ILLEGAL
    body         up to max_message_size                                    MESSAGE_ILLEGAL
    properties   up to 32,767 bytes                                        PROPERTIES_SIZE_EXCEEDED
    inner batch  needs a batch consume queue, which mqlab does not build   MESSAGE_ILLEGAL
    batch        no transaction, no delay level                            MESSAGE_ILLEGAL

Left out: the state of the store itself; see admission.
"""

from __future__ import annotations

from mqlab.errors import UsageError
from mqlab.rocketmq.ports import Clock
from mqlab.rocketmq.store.put_result import MESSAGE_ILLEGAL, PROPERTIES_SIZE_EXCEEDED, PutResult
from mqlab.rocketmq.wire import properties
from mqlab.rocketmq.wire.host import Host
from mqlab.rocketmq.wire.message import Message
from mqlab.rocketmq.wire.names import RETRY_PREFIX
from mqlab.rocketmq.wire.record import Record
from mqlab.rocketmq.wire.record_layout import MAX_PROPERTIES
from mqlab.rocketmq.wire.sys_flag import INNER_BATCH, TRANSACTION_MASK

MAX_TOPIC_BYTES = 127
MAX_RETRY_TOPIC_BYTES = 255
INNER_NUM = b"INNER_NUM\x01"
WAIT_FALSE = b"WAIT\x01false"
DELAY = b"DELAY\x01"


def refusal_of(record: Record, max_message_size: int) -> PutResult | None:
    """A PutResult with the reason why this message may not be stored, None when it may."""
    # 1. The topic.
    topic_bytes = len(record.topic.encode("utf-8", "replace"))
    limit = MAX_RETRY_TOPIC_BYTES if record.topic.startswith(RETRY_PREFIX) else MAX_TOPIC_BYTES
    if not topic_bytes:
        return PutResult.refused(MESSAGE_ILLEGAL, "the topic is empty")
    if topic_bytes > limit:
        return PutResult.refused(MESSAGE_ILLEGAL, f"topic of {topic_bytes} bytes, at most {limit} are allowed")
    if not is_directory_name(record.topic):
        return PutResult.refused(MESSAGE_ILLEGAL, f"topic {record.topic!r} cannot be the name of a directory")
    # 2. The sizes.
    if len(record.body) > max_message_size:
        reason = f"body of {len(record.body)} bytes, at most {max_message_size} are allowed"
        return PutResult.refused(MESSAGE_ILLEGAL, reason)
    if len(record.properties) > MAX_PROPERTIES:
        return PutResult.refused(
            PROPERTIES_SIZE_EXCEEDED,
            f"properties of {len(record.properties)} bytes, at most {MAX_PROPERTIES} are allowed",
        )
    # 3. What mqlab has no queue for.
    if record.sys_flag & INNER_BATCH:
        return PutResult.refused(MESSAGE_ILLEGAL, "an inner batch needs a topic with a batch consume queue")
    if b"INNER_NUM" in record.properties and "INNER_NUM" in record.property_map:
        return PutResult.refused(MESSAGE_ILLEGAL, "the property INNER_NUM belongs to inner batches only")
    return None


def is_directory_name(topic: str) -> bool:
    """Whether a topic can be the name of its queues' directory, and of that one only.

    >>> [is_directory_name(topic) for topic in ("%RETRY%g", "订单", "a/b", "..", "")]
    [True, True, False, False, False]
    """
    is_name = topic not in ("", ".", "..") and "/" not in topic and "\0" not in topic
    return is_name and len(topic.encode("utf-8", "replace")) <= MAX_RETRY_TOPIC_BYTES


def batch_refusal_of(records: list[Record], max_message_size: int) -> PutResult | None:
    """The same for messages of one batch: they share topic and queue, and none is delayed or transactional."""
    if not records:
        return PutResult.refused(MESSAGE_ILLEGAL, "the batch is empty")
    # 1. The first message decides topic and queue of all, and is checked in full.
    first = records[0]
    topic, queue_id = first.topic, first.queue_id
    refusal = refusal_of(first, max_message_size)
    if refusal is not None:
        return refusal
    for record in records:
        if (
            record.topic == topic
            and record.queue_id == queue_id
            and not record.sys_flag & (TRANSACTION_MASK | INNER_BATCH)
            and len(record.body) <= max_message_size
            and len(record.properties) <= MAX_PROPERTIES
            and DELAY not in record.properties
            and INNER_NUM not in record.properties
        ):
            continue  # none of the checks below can fail
        # 2. The reason, for one that did not pass the quick test above.
        if record.topic != first.topic or record.queue_id != first.queue_id:
            return PutResult.refused(MESSAGE_ILLEGAL, "a batch goes to one queue of one topic")
        if record.sys_flag & TRANSACTION_MASK:
            return PutResult.refused(MESSAGE_ILLEGAL, "a batch cannot be part of a transaction")
        if DELAY in record.properties and record.property_map.get("DELAY", "0") != "0":
            return PutResult.refused(MESSAGE_ILLEGAL, "a batch cannot be delayed")
        refusal = refusal_of(record, max_message_size)
        if refusal is not None:
            return refusal
    return None


def record_of(message: Message, queue_id: int | None, store_host: Host, clock: Clock) -> Record:
    """The record of a message that no producer has sent.

    UsageError for anything but a message that can be sent, and a queue id.
    """
    if not isinstance(message, Message):
        raise UsageError(f"{message!r} is not a message", hint='store.put(Message("orders", b"...", tags="paid"))')
    if queue_id is not None and (not isinstance(queue_id, int) or queue_id < 0):
        raise UsageError(f"queue_id={queue_id!r} is not a queue", hint="queues are numbered from 0")
    properties.check_sendable(message.properties)
    return Record(
        message.topic,
        message.body,
        queue_id or 0,
        message.flag,
        properties=properties.encode(message.properties),
        born_timestamp=clock.now_ms(),
        born_host=(store_host[0], 0),
        store_host=store_host,
    )
