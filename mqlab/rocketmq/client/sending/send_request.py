"""From a message to the request that carries it, with everything that must be right before it leaves.

Mirrors: Validators, DefaultMQProducerImpl.sendKernelImpl, SendMessageRequestHeaderV2, MessageClientIDSetter.

    check      topic legal and not the system's, properties that can be sent, body 1 byte .. 4 MiB
    UNIQ_KEY   set once: a second attempt, and a second send of the same object, keep it
    body       compressed if it is long
    hooks      may change the message until the request is built
    310        a group  b topic  c TBW102  d queues  e queue  f sysFlag  g born  h flag  i properties  j..n
    320        the same with m=true; the body holds the messages of a batch

Left out: request-reply (324, 325), namespaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mqlab.errors import ClientError
from mqlab.rocketmq.client.sending.compression import compressed_if_long
from mqlab.rocketmq.client.settings import ProducerConfig
from mqlab.rocketmq.wire import batch, command, names, property_names, sys_flag
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.ids import UniqueIdMaker
from mqlab.rocketmq.wire.java_hash import hash_map_order
from mqlab.rocketmq.wire.java_numbers import parse_int
from mqlab.rocketmq.wire.message import Message, MessageQueue
from mqlab.rocketmq.wire.properties import check_sendable


@dataclass(slots=True)
class Outgoing:
    """A checked message (or batch) ready to be sent, perhaps several times. ``msg_id``: what SendResult shows."""

    message: Message
    msg_id: str
    is_batch: bool = False
    is_retry_topic: bool = False


def check_message(message: Message, config: ProducerConfig) -> None:
    """ClientError when a broker would have to refuse the message (Validators.checkMessage).

    UsageError for properties that would not arrive as they are.
    """
    check_topic(message.topic)
    if message.topic in names.NOT_FOR_SENDING:
        raise ClientError(
            f"Sending message to topic [{message.topic}] is forbidden.", hint="it is a topic of the system"
        )
    check_sendable(message.properties)
    size = len(message.body) if message.body is not None else -1
    if size < 0:
        raise ClientError("the message body is null")
    if size == 0:
        raise ClientError("the message body length is zero", hint="a message needs at least one byte")
    if size > config.max_message_size:
        raise ClientError(
            f"the message body size over max value, MAX: {config.max_message_size}, found {size}",
            hint="raise max_message_size here and at the broker, or send a reference to the data",
        )


def check_topic(topic: str) -> None:
    """ClientError for a name that no topic may have."""
    problem = names.topic_problem(topic) if isinstance(topic, str) else f"a topic is a string, not {topic!r}"
    if problem is not None:
        raise ClientError(problem)


def check_group(group: str, reserved: str) -> None:
    """ClientError for a name that no group may have; ``reserved`` is RocketMQ's own default group."""
    problem = names.group_problem(group) if isinstance(group, str) else f"a group is a string, not {group!r}"
    if problem is not None:
        raise ClientError(problem)
    if group == reserved:
        raise ClientError(f"group can not equal {reserved}, please specify another one.")


def single(message: Message, config: ProducerConfig, ids: UniqueIdMaker, now_ms: int) -> Outgoing:
    """One message, checked and with its unique key."""
    check_message(message, config)
    return Outgoing(
        message, give_unique_key(message, ids, now_ms), is_retry_topic=message.topic.startswith(names.RETRY_PREFIX)
    )


def batched(messages: Sequence[Message], config: ProducerConfig, ids: UniqueIdMaker, now_ms: int) -> Outgoing:
    """Several messages as one request: same topic, same WAIT, no delay level, no retry topic (MessageBatch)."""
    if not messages:
        raise ClientError("a batch needs at least one message")
    for message in messages:
        if not isinstance(message, Message):
            raise ClientError(f"{message!r} is not a Message", hint='Message("orders", b"...", tags="paid") makes one')
    # 1. One request has one topic and one WAIT, and its messages are stored at once: no delays, no retries.
    first = messages[0]
    wait = first.wait_store_msg_ok
    for message in messages:
        if property_names.DELAY in message.properties and message.delay_time_level > 0:
            raise ClientError("TimeDelayLevel is not supported for batching", hint="send delayed messages one by one")
        if message.topic.startswith(names.RETRY_PREFIX):
            raise ClientError("Retry Group is not supported for batching")
        if message.topic != first.topic:
            raise ClientError(
                "The topic of the messages in one batch should be the same", hint=f"{first.topic}, {message.topic}"
            )
        if message.wait_store_msg_ok != wait:
            raise ClientError("The waitStoreMsgOK of the messages in one batch should the same")
    # 2. Every message keeps a unique key of its own; the batch gets another one, for its own trace and retries.
    keys = []
    for message in messages:
        check_message(message, config)
        keys.append(give_unique_key(message, ids, now_ms))
    # 3. Their encoded forms, one after the other, are the body; it must not be too large either.
    items = [
        batch.BatchItem(message.flag, message.body, properties_text(message.properties).encode("utf-8", "replace"))
        for message in messages
    ]
    whole = Message(first.topic, batch.encode(items), wait_store_msg_ok=wait)
    check_message(whole, config)
    give_unique_key(whole, ids, now_ms)
    return Outgoing(whole, ",".join(keys), is_batch=True)


def give_unique_key(message: Message, ids: UniqueIdMaker, now_ms: int) -> str:
    """The message's unique key; made now if it has none."""
    key = message.properties.get(property_names.UNIQ_KEY)
    if key is None:
        key = message.properties[property_names.UNIQ_KEY] = ids.next(now_ms)
    return key


def properties_text(held: Mapping[str, str]) -> str:
    """The properties as text, in the order in which a Java client writes them."""
    return "".join([f"{name}\x01{held[name]}\x02" for name in hash_map_order(held)])


def body_and_flag(outgoing: Outgoing, config: ProducerConfig) -> tuple[bytes, int]:
    """The body as it is sent, and the sysFlag that goes with it; batches are never compressed."""
    body, flag = outgoing.message.body, 0
    if not outgoing.is_batch:
        body, flag = compressed_if_long(
            body, config.compress_msg_body_over_howmuch, config.compress_type, config.compress_level
        )
    if outgoing.message.properties.get(property_names.TRAN_MSG, "").lower() == "true":
        flag |= sys_flag.TRANSACTION_PREPARED
    return body, flag


def request_for(
    outgoing: Outgoing, flag: int, queue: MessageQueue, group: str, config: ProducerConfig, now_ms: int
) -> RemotingCommand:
    """The SEND_MESSAGE_V2 (or SEND_BATCH_MESSAGE) for the message as it is now; ``flag``: see ``body_and_flag``."""
    message = outgoing.message
    held = message.properties
    reconsume_times, max_reconsume_times = 0, None  # only messages that a consumer sends back have them
    if outgoing.is_retry_topic:
        reconsume_times = _number(held, property_names.RECONSUME_TIME) or 0
        max_reconsume_times = _number(held, property_names.MAX_RECONSUME_TIMES)
    return command.request(
        RequestCode.SEND_BATCH_MESSAGE if outgoing.is_batch else RequestCode.SEND_MESSAGE_V2,
        message.body,
        a=group,
        b=message.topic,
        c=config.create_topic_key,
        d=config.default_topic_queue_nums,
        e=queue.queue_id,
        f=flag,
        g=now_ms,
        h=message.flag,
        i=properties_text(held),
        j=reconsume_times,
        k="true" if config.unit_mode else "false",
        l=max_reconsume_times,
        m="true" if outgoing.is_batch else "false",
        n=queue.broker_name,
    )


def _number(held: Mapping[str, str], name: str) -> int | None:
    """The Integer in a property, None without it. ClientError for any other text."""
    try:
        return parse_int(held[name]) if name in held else None
    except ValueError as error:
        raise ClientError(f"the property {name} is not a number: {error}") from error
