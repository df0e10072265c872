"""What POP writes into headers and messages: names of retry topics, handles, check points and acknowledgements.

Mirrors: KeyBuilder, ExtraInfoUtil, PopCheckPoint, AckMsg, BatchAckMsg, BatchAckMessageRequestBody. Lab 15.

    retry topic    %RETRY%billing_orders (v1), %RETRY%billing+orders (v2)
    handle         "12 1700000000123 60000 3 0 broker-a 2 15"       the extra info that an ack gives back
                   start offset, pop time, invisible time, revive queue, kind of topic, broker, queue, offset
    answer         startOffsetInfo "0 2 12;0 0 7"      msgOffsetInfo "0 2 12,13,15;0 0 7"
                   kind of topic, queue, offset(s): 0 normal, 1 retry v1, 2 retry v2

    check point    one pop of one queue, a message with tag ck in rmq_sys_REVIVE_LOG_<cluster>
    ack            a message with tag ack there, or bAck for several offsets

All times are ms, all offsets queue offsets.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.java_numbers import int_or, long_or, parse_int, parse_long
from mqlab.rocketmq.wire.names import RETRY_PREFIX

ORDERLY_REVIVE_QUEUE = 999  # of an orderly pop, which has no check point
CK_TAG, ACK_TAG, BATCH_ACK_TAG = "ck", "ack", "bAck"
REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
NORMAL, RETRY_V1, RETRY_V2 = "0", "1", "2"
UNKNOWN_OFFSET = -1  # ackOffset of an ack that names several


def pop_retry_topic(topic: str, group: str, *, v2: bool = False) -> str:
    """The topic to which revived messages of a group go. A retry topic is its own.

    >>> pop_retry_topic("orders", "billing"), pop_retry_topic("orders", "billing", v2=True)
    ('%RETRY%billing_orders', '%RETRY%billing+orders')
    """
    return f"{RETRY_PREFIX}{group}{'+' if v2 else '_'}{topic}"


def kind_of_topic(topic: str) -> str:
    """How a handle names the kind of a topic. Mirrors getRetry."""
    if not topic.startswith(RETRY_PREFIX):
        return NORMAL
    return RETRY_V2 if "+" in topic else RETRY_V1


def normal_topic(topic: str, group: str | None = None) -> str:
    """The topic that a retry topic belongs to; without the group, only v2 can be told. Mirrors parseNormalTopic.

    Whether the topic is one of this group is not looked at.

    >>> normal_topic("%RETRY%g+orders"), normal_topic("%RETRY%g_orders"), normal_topic("%RETRY%g_orders", "g")
    ('orders', '%RETRY%g_orders', 'orders')
    """
    if not topic.startswith(RETRY_PREFIX):
        return topic
    if group is not None:
        return topic[len(RETRY_PREFIX) + len(group) + 1 :]
    parts = topic.rstrip("+").split("+")
    return parts[1] if len(parts) == 2 else topic


def real_topic(topic: str, group: str, kind: str) -> str:
    """The topic that a handle's kind means. ValueError for another kind. Mirrors getRealTopic."""
    if kind == NORMAL:
        return topic
    if kind not in (RETRY_V1, RETRY_V2):
        raise ValueError("getRetry fail, format is wrong")
    return pop_retry_topic(topic, group, v2=kind == RETRY_V2)


def offsets_of(info: str) -> dict[tuple[str, int], list[int]]:
    """The offsets in a startOffsetInfo or msgOffsetInfo, by kind of topic and queue, in their order.

    >>> offsets_of("0 2 12,13;1 0 7")
    {('0', 2): [12, 13], ('1', 0): [7]}
    """
    by_queue: dict[tuple[str, int], list[int]] = {}
    for part in filter(None, info.split(";")):
        kind, queue_id, offsets = part.split(" ")
        by_queue[kind, parse_int(queue_id)] = [parse_long(offset) for offset in offsets.split(",")]
    return by_queue


@dataclass(frozen=True, slots=True)
class Handle:
    """What a client gives back for one message of a pop. Mirrors the fields of ExtraInfoUtil.

    >>> Handle(12, 1700000000123, 60000, 3, "0", "broker-a", 2, 15).text
    '12 1700000000123 60000 3 0 broker-a 2 15'
    """

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_queue: int
    kind: str
    broker_name: str
    queue_id: int
    queue_offset: int

    @property
    def text(self) -> str:
        """The eight fields as a header and the property POP_CK have them."""
        return (
            f"{self.start_offset} {self.pop_time} {self.invisible_time} {self.revive_queue} {self.kind} "
            f"{self.broker_name} {self.queue_id} {self.queue_offset}"
        )

    @property
    def visible_ms(self) -> int:
        """When the lease ends."""
        return self.pop_time + self.invisible_time

    @classmethod
    def parse(cls, text: str) -> Handle:
        """Read one of a client. Raises ValueError where a field is missing or not a number; the last two may be."""
        parts = text.split(" ")
        if len(parts) < 6:
            raise ValueError(f"getBrokerName fail, extraInfoStrs length {len(parts)}")
        revive_queue = parse_int(parts[3])  # RocketMQ reads it first
        numbers = [parse_long(part) for part in parts[:3]]
        queue_id = int_or(parts[6], 0) if len(parts) > 6 else 0
        queue_offset = long_or(parts[7], numbers[0]) if len(parts) > 7 else numbers[0]
        return cls(numbers[0], numbers[1], numbers[2], revive_queue, parts[4], parts[5], queue_id, queue_offset)


@dataclass(frozen=True, slots=True)
class CheckPoint:
    """One pop of one queue: which messages were given out, and until when. Mirrors PopCheckPoint.

    ``distances`` are those of each message from ``start_offset``; ``revive_offset`` is its own place in the revive
    queue, filled when it is read.
    """

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time: int
    invisible_time: int
    count: int
    distances: tuple[int, ...] | None = None
    broker_name: str | None = None
    revive_offset: int = 0
    put_again: str | None = None

    @property
    def revive_time(self) -> int:
        """When the messages that are not acknowledged come back."""
        return self.pop_time + self.invisible_time

    @property
    def merge_key(self) -> str:
        """What a check point and its acks have in common."""
        return merge_key(self.topic, self.group, self.queue_id, self.start_offset, self.pop_time, self.broker_name)

    @property
    def unique_key(self) -> str:
        """UNIQ_KEY of its message. Mirrors genCkUniqueId."""
        return (
            f"{self.topic}@{self.queue_id}@{self.start_offset}@{self.group}@{self.pop_time}@{self.broker_name}@{CK_TAG}"
        )

    def index_of(self, queue_offset: int) -> int:
        """Which of its messages has an offset; -1 for none. Mirrors indexOfAck."""
        distance = queue_offset - self.start_offset
        if self.distances is None:
            return distance if 0 <= distance < self.count else -1
        return self.distances.index(distance) if distance in self.distances else -1

    def offset_of(self, index: int) -> int:
        """The queue offset of one of its messages. Mirrors ackOffsetByIndex."""
        return self.start_offset + (index if self.distances is None else self.distances[index])

    def encode(self) -> bytes:
        """The body of its message."""
        value: dict[str, Any] = {
            "bm": 0,
            "bn": self.broker_name,
            "c": self.group,
            "d": None if self.distances is None else list(self.distances),
            "it": self.invisible_time,
            "n": self.count,
            "pt": self.pop_time,
            "q": self.queue_id,
            "reviveTime": self.revive_time,
            "ro": self.revive_offset,
            "rp": self.put_again,
            "so": self.start_offset,
            "t": self.topic,
        }
        return _written(value)

    @classmethod
    def decode(cls, body: bytes) -> CheckPoint:
        """Read the body of its message. Raises CorruptionError."""
        value = _object(body, "a check point")
        return cls(
            str(_field(value, "t", "topic") or ""),
            str(_field(value, "c", "cid") or ""),
            _number(value, "q", "queueId"),
            _number(value, "so", "startOffset"),
            _number(value, "pt", "popTime"),
            _number(value, "it", "invisibleTime"),
            _number(value, "n", "num"),
            _numbers(value, "d", "queueOffsetDiff"),
            _field(value, "bn", "brokerName"),
            _number(value, "ro", "reviveOffset"),
            _field(value, "rp", "rePutTimes"),
        )

    def at(self, revive_offset: int) -> CheckPoint:
        """The same, read at a place of the revive queue."""
        return replace(self, revive_offset=revive_offset)


@dataclass(frozen=True, slots=True)
class Ack:
    """Acknowledged messages of one check point. Mirrors AckMsg and, with several offsets, BatchAckMsg."""

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time: int
    broker_name: str | None
    offset: int
    offsets: tuple[int, ...] | None = None

    @property
    def merge_key(self) -> str:
        """What it has in common with its check point."""
        return merge_key(self.topic, self.group, self.queue_id, self.start_offset, self.pop_time, self.broker_name)

    @property
    def acknowledged(self) -> tuple[int, ...]:
        """The offsets, whichever form it has."""
        return (self.offset,) if self.offsets is None else self.offsets

    @property
    def unique_key(self) -> str:
        """UNIQ_KEY of its message. Mirrors genAckUniqueId."""
        return f"{self.topic}@{self.queue_id}@{self.offset}@{self.group}@{self.pop_time}@{self.broker_name}@{ACK_TAG}"

    @property
    def batch_unique_key(self) -> str:
        """UNIQ_KEY of a batch that the merge buffer writes. Mirrors genBatchAckUniqueId."""
        offsets = ", ".join(map(str, self.acknowledged))
        return f"{self.topic}@{self.queue_id}@[{offsets}]@{self.group}@{self.pop_time}@{BATCH_ACK_TAG}"

    def encode(self) -> bytes:
        """The body of its message."""
        value: dict[str, Any] = {
            "ao": self.offset,
            "aol": None if self.offsets is None else list(self.offsets),
            "bn": self.broker_name,
            "c": self.group,
            "pt": self.pop_time,
            "q": self.queue_id,
            "so": self.start_offset,
            "t": self.topic,
        }
        return _written(value)

    @classmethod
    def decode(cls, body: bytes) -> Ack:
        """Read the body of its message. Raises CorruptionError."""
        value = _object(body, "an ack")
        return cls(
            str(_field(value, "t", "topic") or ""),
            str(_field(value, "c", "consumerGroup") or ""),
            _number(value, "q", "queueId"),
            _number(value, "so", "startOffset"),
            _number(value, "pt", "popTime"),
            _field(value, "bn", "brokerName"),
            _number(value, "ao", "ackOffset"),
            _numbers(value, "aol", "ackOffsetList"),
        )


@dataclass(frozen=True, slots=True)
class BatchAck:
    """One entry of a BATCH_ACK_MESSAGE request: bits count from ``start_offset``. Mirrors BatchAck."""

    group: str
    topic: str
    kind: str
    start_offset: int
    queue_id: int
    revive_queue: int
    pop_time: int
    invisible_time: int
    bits: tuple[int, ...]

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> BatchAck:
        """Read an entry of a request. Raises CorruptionError."""
        return cls(
            str(_field(value, "c", "consumerGroup") or ""),
            str(_field(value, "t", "topic") or ""),
            str(_field(value, "r", "retry") or ""),
            _number(value, "so", "startOffset"),
            _number(value, "q", "queueId"),
            _number(value, "rq", "reviveQueueId"),
            _number(value, "pt", "popTime"),
            _number(value, "it", "invisibleTime"),
            bits_in(str(_field(value, "b", "bitSet") or "")),
        )


def bits_in(text: str) -> tuple[int, ...]:
    """The set bits of java.util.BitSet.toByteArray in base64, ascending. Raises CorruptionError for other texts.

    >>> bits_in("BQI=")
    (0, 2, 9)
    """
    try:
        number = int.from_bytes(base64.b64decode(text, validate=True), "little")
    except (binascii.Error, ValueError) as error:
        raise CorruptionError("the bit set of a batch ack is not base64", found=text) from error
    return tuple(bit for bit in range(number.bit_length()) if number >> bit & 1)


def merge_key(topic: str, group: str, queue_id: int, start_offset: int, pop_time: int, broker_name: str | None) -> str:
    """The key under which check points and acks find each other, without separators, as in RocketMQ."""
    return f"{topic}{group}{queue_id}{start_offset}{pop_time}{broker_name}"


def _object(body: bytes, what: str) -> dict[str, Any]:
    try:
        value = java_json.loads(body.decode("utf-8"))
    except ValueError as error:
        raise CorruptionError(f"{what} cannot be read", found=body[:80]) from error
    if not isinstance(value, dict):
        raise CorruptionError(f"{what} must be a JSON object", found=body[:80])
    return value


def _field(value: Mapping[str, Any], short: str, long: str) -> Any:
    """A field under its short or its long name; both are read."""
    return value.get(short, value.get(long))


def _number(value: Mapping[str, Any], short: str, long: str) -> int:
    field = _field(value, short, long)
    if field is None:
        return 0
    if isinstance(field, bool) or not isinstance(field, int):
        raise CorruptionError(f"{long} must be a whole number", found=field)
    return field


def _numbers(value: Mapping[str, Any], short: str, long: str) -> tuple[int, ...] | None:
    numbers = _field(value, short, long)
    return tuple(map(int, numbers)) if isinstance(numbers, list) else None


def _written(value: Mapping[str, Any]) -> bytes:
    """The body: fields that are null are left out."""
    return java_json.to_json({name: field for name, field in value.items() if field is not None})
