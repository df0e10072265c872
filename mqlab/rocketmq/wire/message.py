"""Messages and queues as a program holds them.

Mirrors: Message, MessageExt, MessageQueue, SendResult (org.apache.rocketmq.common.message, client.producer). All labs.

    Message      topic body flag properties           tags, keys, delay level … are read from the properties
    MessageExt   the same, as a store has it: queue, offsets, times, hosts, reconsume_times
    MessageQueue topic, broker, number                ordered as RocketMQ orders them

Left out: sub-classes for request-reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mqlab.durations import milliseconds
from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.command import java_text
from mqlab.rocketmq.wire.compression import decompressed_body
from mqlab.rocketmq.wire.host import Host
from mqlab.rocketmq.wire.ids import offset_msg_id
from mqlab.rocketmq.wire.java_hash import utf16_key
from mqlab.rocketmq.wire.java_numbers import long_or, parse_int
from mqlab.rocketmq.wire.layout import Buffer
from mqlab.rocketmq.wire.properties import check_sendable
from mqlab.rocketmq.wire.record import Record, decode_all

_OWN_ARGUMENT = {
    p.TAGS: "tags= sets it",
    p.KEYS: "keys= sets it",
    p.DELAY: "delay_time_level= sets it",
    p.WAIT: "wait_store_msg_ok= sets it",
}


@dataclass(frozen=True, slots=True)
class MessageQueue:
    """One queue of a topic on a broker; sorts by topic, broker (Java's text order) and number. Mirrors MessageQueue.

    >>> sorted([MessageQueue("t", "b-2", 0), MessageQueue("t", "b-10", 10), MessageQueue("t", "b-10", 2)])
    [t b-10 2, t b-10 10, t b-2 0]
    >>> str(MessageQueue("TopicTest", "broker-a", 3))
    'MessageQueue [topic=TopicTest, brokerName=broker-a, queueId=3]'
    """

    topic: str
    broker_name: str
    queue_id: int

    def _order(self) -> tuple[bytes, bytes, int]:
        return utf16_key(self.topic), utf16_key(self.broker_name), self.queue_id

    def __lt__(self, other: MessageQueue) -> bool:
        return self._order() < other._order()

    def __str__(self) -> str:
        return f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, queueId={self.queue_id}]"

    def __repr__(self) -> str:
        return f"{self.topic} {self.broker_name} {self.queue_id}"


class Message:
    """What a producer sends. Raises UsageError for a body that is not bytes and for properties that cannot be sent.

    ``properties`` cannot have the system's names, such as "TRACE_ON"; ``message.properties`` holds all of them.
    Numbers and Booleans in ``properties`` become strings. ``deliver_at`` (ms since the epoch) and ``delay`` ("90s")
    make it a timed message; they set ``deliver_time_ms`` and ``delay_time_ms``. Mirrors Message.

    >>> m = Message("orders", "заказ".encode(), tags="paid", keys=["order-1", "ev-2"], delay_time_level=3)
    >>> m.tags, m.keys, m.delay_time_level, m.properties
    ('paid', 'order-1 ev-2', 3, {'TAGS': 'paid', 'KEYS': 'order-1 ev-2', 'DELAY': '3', 'WAIT': 'true'})
    """

    __slots__ = ("body", "flag", "properties", "topic")

    def __init__(
        self,
        topic: str,
        body: bytes,
        tags: str | None = None,
        keys: str | Iterable[str] | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        delay_time_level: int = 0,
        deliver_at: int | None = None,
        delay: str | int | float | None = None,
        flag: int = 0,
        wait_store_msg_ok: bool = True,
    ) -> None:
        if not isinstance(body, bytes | bytearray | memoryview):
            raise UsageError(f"a body is bytes, not {type(body).__name__}", hint='"text".encode() makes bytes of it')
        self.topic = topic
        self.body = bytes(body)
        self.flag = flag
        self.properties: dict[str, str] = _of_the_user(properties) if properties else {}
        # The setters write into the properties, which must exist before them.
        if tags:
            self.tags = tags
        if keys:
            self.keys = _joined(keys)
        if delay_time_level:
            self.delay_time_level = delay_time_level
        if deliver_at is not None and delay is not None:
            raise UsageError(
                "a message has deliver_at or delay, not both", hint='delay="90s", or deliver_at=now_ms + 90_000'
            )
        if deliver_at is not None:
            self.deliver_time_ms = deliver_at
        if delay is not None:
            self.delay_time_ms = milliseconds(delay)
        self.wait_store_msg_ok = wait_store_msg_ok

    @property
    def tags(self) -> str | None:
        """The one tag, or None."""
        return self.properties.get(p.TAGS)

    @tags.setter
    def tags(self, tags: str) -> None:
        if not isinstance(tags, str):
            raise UsageError(f"tags is a text, not {tags!r}", hint="a message has one tag")
        check_sendable({p.TAGS: tags})
        self.properties[p.TAGS] = tags

    @property
    def keys(self) -> str | None:
        """The keys, separated by blanks, or None."""
        return self.properties.get(p.KEYS)

    @keys.setter
    def keys(self, keys: str | None) -> None:
        if keys is None:  # RocketMQ leaves out a property without a value when it sends
            self.properties.pop(p.KEYS, None)
            return
        check_sendable({p.KEYS: keys})
        self.properties[p.KEYS] = keys

    @property
    def delay_time_level(self) -> int:
        """1 to 18 by default; 0: not delayed. Raises UsageError if the property DELAY is not an Integer."""
        try:
            return parse_int(self.properties.get(p.DELAY, "0"))
        except ValueError as error:
            raise UsageError(f"the property {p.DELAY} is not a delay level: {error}") from error

    @delay_time_level.setter
    def delay_time_level(self, level: int) -> None:
        if not isinstance(level, int):
            raise UsageError(
                f"a delay level is a whole number, not {level!r}", hint="1 is the first of message_delay_level"
            )
        self.properties[p.DELAY] = str(level)

    @property
    def deliver_time_ms(self) -> int:
        """When it is to be delivered, ms since the epoch; 0: at once. Mirrors setDeliverTimeMs."""
        return self._timer(p.TIMER_DELIVER_MS)

    @deliver_time_ms.setter
    def deliver_time_ms(self, moment_ms: int) -> None:
        self.properties[p.TIMER_DELIVER_MS] = _whole(moment_ms, "a delivery time is ms since the epoch")

    @property
    def delay_time_ms(self) -> int:
        """How long after its arrival it is to be delivered, ms. Mirrors setDelayTimeMs."""
        return self._timer(p.TIMER_DELAY_MS)

    @delay_time_ms.setter
    def delay_time_ms(self, delay_ms: int) -> None:
        self.properties[p.TIMER_DELAY_MS] = _whole(delay_ms, "a delay is a whole number of ms")

    @property
    def delay_time_sec(self) -> int:
        """The same in seconds; the broker takes it before the other two. Mirrors setDelayTimeSec."""
        return self._timer(p.TIMER_DELAY_SEC)

    @delay_time_sec.setter
    def delay_time_sec(self, delay_s: int) -> None:
        self.properties[p.TIMER_DELAY_SEC] = _whole(delay_s, "a delay is a whole number of seconds")

    def _timer(self, name: str) -> int:
        return long_or(self.properties.get(name), 0)

    @property
    def wait_store_msg_ok(self) -> bool:
        """Whether the broker answers after flush and replication only; true unless the property says otherwise."""
        return self.properties.get(p.WAIT, "true") == "true"

    @wait_store_msg_ok.setter
    def wait_store_msg_ok(self, wait: bool) -> None:
        self.properties[p.WAIT] = "true" if wait else "false"

    @property
    def transaction_id(self) -> str | None:
        """The id of the transaction in which it is sent: its unique key."""
        return self.properties.get(p.UNIQ_KEY)

    def __repr__(self) -> str:
        tags = f" tags={self.tags!r}" if self.tags else ""
        keys = f" keys={self.keys!r}" if self.keys else ""
        return f"<{type(self).__name__} {self.topic}{tags}{keys} body={len(self.body)} B>"


def _whole(value: int, rule: str) -> str:
    """A whole number as a property. Raises UsageError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{rule}, not {value!r}", hint='Message("orders", b"...", delay="90s") reads durations')
    return str(value)


def _of_the_user(properties: Mapping[str, object]) -> dict[str, str]:
    """The caller's properties as strings. Mirrors putUserProperty, which refuses blanks and the system's names."""
    texts = {}
    for name, value in properties.items():
        if name in p.SYSTEM_NAMES:
            raise UsageError(
                f"The Property<{name}> is used by system, input another please",
                hint=_OWN_ARGUMENT.get(name, "if a program must set it, write message.properties[…] = …"),
            )
        text = java_text(value) if isinstance(value, bool | int | float) else value
        if not (isinstance(name, str) and name.strip() and isinstance(text, str) and text.strip()):
            raise UsageError(
                f"property {name!r}: {value!r} cannot be sent",
                hint="give a name and a value that are not null or blank",
            )
        texts[name] = text
    check_sendable(texts)
    return texts


def _joined(keys: str | Iterable[str]) -> str:
    if isinstance(keys, str):
        return keys
    listed = list(keys) if isinstance(keys, Iterable) else [keys]
    if not all(isinstance(key, str) for key in listed):
        raise UsageError(f"keys are a text or several, not {keys!r}", hint='keys="order-1 ev-2", keys=["order-1"]')
    return p.KEY_SEPARATOR.join(listed)


class MessageExt(Message):
    """A message as a consumer or an administrator sees it; the body is decompressed. Mirrors MessageExt.

    ``physical_offset`` is Java's commitLogOffset; times are ms; ``store_size`` is the stored unit's length.
    """

    __slots__ = (
        "body_crc",
        "born_host",
        "born_timestamp",
        "broker_name",
        "physical_offset",
        "prepared_transaction_offset",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "store_host",
        "store_size",
        "store_timestamp",
        "sys_flag",
    )

    body_crc: int
    born_host: Host
    born_timestamp: int
    broker_name: str
    physical_offset: int
    prepared_transaction_offset: int
    queue_id: int
    queue_offset: int
    reconsume_times: int
    store_host: Host
    store_size: int
    store_timestamp: int
    sys_flag: int

    @classmethod
    def from_record(cls, record: Record, broker_name: str = "") -> MessageExt:
        """The message in a stored unit. Raises CorruptionError when a compressed body does not decompress."""
        # The constructor would check and join what the store has already; every pulled message passes here.
        message = cls.__new__(cls)
        message.topic = record.topic
        message.body = decompressed_body(record.body, record.sys_flag) if record.sys_flag & 1 else bytes(record.body)
        message.flag = record.flag
        message.properties = dict(record.property_map)
        message.queue_id = record.queue_id
        message.queue_offset = record.queue_offset
        message.physical_offset = record.physical_offset
        message.sys_flag = record.sys_flag
        message.born_timestamp = record.born_timestamp
        message.born_host = record.born_host
        message.store_timestamp = record.store_timestamp
        message.store_host = record.store_host
        message.reconsume_times = record.reconsume_times
        message.prepared_transaction_offset = record.prepared_transaction_offset
        message.body_crc = record.body_crc or 0
        message.store_size = record.total_size
        message.broker_name = broker_name
        return message

    @property
    def msg_id(self) -> str:
        """The client's unique id, the same for all retries; without one the offset id."""
        return self.properties.get(p.UNIQ_KEY) or self.offset_msg_id

    @property
    def offset_msg_id(self) -> str:
        """Store host and physical offset: different for every stored copy."""
        return offset_msg_id(self.store_host, self.physical_offset)

    @property
    def message_queue(self) -> MessageQueue:
        """The queue it was read from."""
        return MessageQueue(self.topic, self.broker_name, self.queue_id)


def decode_messages(data: Buffer, broker_name: str = "") -> list[MessageExt]:
    """The messages of a pull answer. The first that cannot be decoded or decompressed silently ends the list.

    Mirrors MessageDecoder.decodes: a consumer goes on after the whole answer, so the rest is lost for its group.
    """
    messages: list[MessageExt] = []
    for record in decode_all(data):
        try:
            messages.append(MessageExt.from_record(record, broker_name))
        except CorruptionError:
            break
    return messages


@dataclass(frozen=True, slots=True)
class SendResult:
    """What a producer gets back. Mirrors SendResult.

    ``send_status`` SEND_OK, or stored with a warning: FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT, SLAVE_NOT_AVAILABLE.
    ``recall_handle``: of a timed message, for ``producer.recall``.
    ``trace_on``: False if the broker's setting traceOn is off; the send then leaves no entry in the message trace.
    """

    send_status: str
    msg_id: str
    offset_msg_id: str
    message_queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None
    region_id: str = "DefaultRegion"
    trace_on: bool = True
    recall_handle: str | None = None
