"""Messages between the two protocols: system properties become RocketMQ's properties, and back.

Mirrors: SendMessageActivity.buildMessage, GrpcConverter.buildMessage.

    message_id          UNIQ_KEY           tag, keys             TAGS, KEYS (joined by spaces)
    message_group       __SHARDINGKEY      delivery_timestamp    TIMER_DELIVER_MS
    TRANSACTION         TRAN_MSG, sysFlag 4 and CHECK_IMMUNITY_TIME_IN_SECONDS
    body_encoding GZIP  sysFlag 1          delivery_attempt      RECONSUME_TIME
    born_host or peer   __BORNHOST         topic                 PGROUP
"""

from __future__ import annotations

import hashlib
from typing import Any

from mqlab.cluster.grpc.codes import GZIP, IDENTITY, MD5, MessageType
from mqlab.cluster.grpc.messages import make, milliseconds_of, moment
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire import sys_flag
from mqlab.rocketmq.wire.host import Host, address_text
from mqlab.rocketmq.wire.ids import offset_msg_id
from mqlab.rocketmq.wire.java_numbers import long_or
from mqlab.rocketmq.wire.names import DLQ_PREFIX
from mqlab.rocketmq.wire.record import Record

SECOND_MS = 1_000
TIMED = (p.DELAY, p.TIMER_DELIVER_MS, p.TIMER_DELAY_MS, p.TIMER_DELAY_SEC)


def property_map_of(message: Any, peer: str) -> dict[str, str]:
    """The properties with which a sent message is stored. Mirrors buildMessageProperty."""
    system, properties = message.system_properties, dict(message.user_properties)
    properties[p.UNIQ_KEY] = system.message_id
    properties[p.PGROUP] = message.topic.name
    if system.message_type == MessageType.TRANSACTION:
        properties[p.TRAN_MSG] = "true"
        if system.HasField("orphaned_transaction_recovery_duration"):
            recovery_ms = milliseconds_of(system.orphaned_transaction_recovery_duration)
            properties[p.CHECK_IMMUNITY_TIME_IN_SECONDS] = str(recovery_ms // SECOND_MS)
    if system.HasField("delivery_timestamp"):
        properties[p.TIMER_DELIVER_MS] = str(milliseconds_of(system.delivery_timestamp))
    if system.HasField("message_group"):
        properties[p.SHARDING_KEY] = system.message_group
    if system.HasField("tag"):
        properties[p.TAGS] = system.tag
    if system.keys:
        properties[p.KEYS] = p.KEY_SEPARATOR.join(system.keys)
    properties[p.RECONSUME_TIME] = str(system.delivery_attempt)
    if system.HasField("trace_context"):
        properties[p.TRACE_CONTEXT] = system.trace_context
    properties[p.BORN_HOST] = system.born_host or peer
    properties[p.BORN_TIMESTAMP] = str(milliseconds_of(system.born_timestamp))
    return properties


def sys_flag_of(message: Any) -> int:
    """The flags with which a sent message is stored."""
    system = message.system_properties
    flags = sys_flag.COMPRESSED if system.body_encoding == GZIP else 0
    return flags | (sys_flag.TRANSACTION_PREPARED if system.message_type == MessageType.TRANSACTION else 0)


def type_of_properties(property_map: dict[str, str]) -> MessageType:
    """Which kind of message it is, by its properties. Mirrors TopicMessageType.parseFromMessageProperty."""
    if property_map.get(p.TRAN_MSG, "").lower() == "true":
        return MessageType.TRANSACTION
    if any(name in property_map for name in TIMED):
        return MessageType.DELAY
    return MessageType.FIFO if p.SHARDING_KEY in property_map else MessageType.NORMAL


def message_of(record: Record, now_ms: int, handle: str | None = None, topic: str | None = None) -> Any:
    """A stored message as clients get it; ``topic``: the name that they know it by."""
    properties = record.property_map
    return make(
        "Message",
        topic={"name": topic or record.topic},
        user_properties={name: value for name, value in properties.items() if name not in p.SYSTEM_NAMES},
        system_properties=_system_properties(record, properties, now_ms, handle),
        body=bytes(record.body),
    )


def _system_properties(record: Record, properties: dict[str, str], now_ms: int, handle: str | None) -> Any:
    due_ms = _delivery_ms(properties, now_ms)
    is_gzip = record.sys_flag & sys_flag.COMPRESSED
    return make(
        "SystemProperties",
        tag=properties.get(p.TAGS),
        keys=[key for key in properties.get(p.KEYS, "").split(p.KEY_SEPARATOR) if key],
        message_id=properties.get(p.UNIQ_KEY) or offset_msg_id(record.store_host, record.physical_offset),
        body_digest={"type": MD5, "checksum": hashlib.md5(record.body, usedforsecurity=False).hexdigest().upper()},
        body_encoding=GZIP if is_gzip else IDENTITY,
        message_type=type_of_properties(properties),
        born_timestamp=moment(record.born_timestamp),
        born_host=properties.get(p.BORN_HOST) or _text(record.born_host),
        store_timestamp=moment(record.store_timestamp),
        store_host=_text(record.store_host),
        delivery_timestamp=None if due_ms is None else moment(due_ms),
        receipt_handle=handle,
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
        delivery_attempt=record.reconsume_times + 1,
        message_group=properties.get(p.SHARDING_KEY),
        trace_context=properties.get(p.TRACE_CONTEXT) or None,
        dead_letter_queue=_origin(record, properties),
    )


def _delivery_ms(properties: dict[str, str], now_ms: int) -> int | None:
    delay_s = long_or(properties.get(p.TIMER_DELAY_SEC), 0)
    if delay_s > 0:
        return now_ms + delay_s * SECOND_MS
    return long_or(properties.get(p.TIMER_DELIVER_MS), 0) or None


def _origin(record: Record, properties: dict[str, str]) -> dict[str, str] | None:
    """Where a dead letter was before."""
    if not record.topic.startswith(DLQ_PREFIX):
        return None
    return {
        "topic": properties.get(p.DLQ_ORIGIN_TOPIC) or properties.get(p.RETRY_TOPIC, ""),
        "message_id": properties.get(p.DLQ_ORIGIN_MESSAGE_ID) or properties.get(p.ORIGIN_MESSAGE_ID, ""),
    }


def _text(host: Host) -> str:
    return address_text(*host)
