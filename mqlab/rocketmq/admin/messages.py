"""Finding messages: by offset id, by unique key, by a business key, by time; sending one.

Mirrors: mqadmin queryMsgById, queryMsgByUniqueKey, queryMsgByKey, printMsg, queryMsgByOffset; requests 33, 12, 29, 11.

    offset id    one broker's log, one place
    unique key   the index, every broker; the copies of a retry have the same one
    key          the index, 64 entries per request, newest first, until all are read
    time         every queue, from the first message of that time

There is no limit: a range with a million messages returns a million.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqlab.errors import BrokerError, CorruptionError, UsageError
from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.admin.topics import examine_topic_route_info, readable_queues
from mqlab.rocketmq.answers import Rows
from mqlab.rocketmq.client import statuses
from mqlab.rocketmq.client.instance.broker_calls import PullAnswer, PullCall, pull_answer_of, send_result_of
from mqlab.rocketmq.client.sending.compression import compress
from mqlab.rocketmq.wire import ids, names, property_names, record, sys_flag
from mqlab.rocketmq.wire import properties as encoded_properties
from mqlab.rocketmq.wire.bodies import PERM_WRITE
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.host import address_text
from mqlab.rocketmq.wire.ids import UniqueIdMaker
from mqlab.rocketmq.wire.message import Message, MessageExt, MessageQueue, SendResult, decode_messages
from mqlab.rocketmq.wire.record import Record

END_OF_TIME_MS = (1 << 63) - 1
PAGE = 64  # the largest answer of an index (maxMsgsNumBatch)
PULL_NUMS = 32
SECOND_MS = 1_000
COMPRESS_LEVEL = 5  # of a producer, unless it is set


def view_message(admin: AdminNode, offset_msg_id: str) -> MessageExt:
    """The message with an offset id; BrokerError with code 1 when no message is there, UsageError for another id.

    Messages of a copied store have the address of the original broker; they are found, too.
    """
    (host, port), physical_offset = _place_of_id(offset_msg_id)
    there = admin.brokers()
    # 1. The broker whose address is in the id.
    for broker, address in there:
        if address == address_text(host, port):
            return _message_at(admin, broker, address, physical_offset)
    # 2. A copied store has another address now: any broker with a message of exactly this id at this offset.
    for broker, address in there:
        try:
            message = _message_at(admin, broker, address, physical_offset)
        except BrokerError:  # no message begins there
            continue
        if message.offset_msg_id == offset_msg_id.upper():
            return message
    raise UsageError(
        f"the id names a broker at {address_text(host, port)}, which does not exist, and no broker has a message with "
        "this id",
        hint=f"brokers: {', '.join(f'{broker} {address}' for broker, address in there)}",
    )


def _message_at(admin: AdminNode, broker: str, address: str, physical_offset: int) -> MessageExt:
    return MessageExt.from_record(stored_unit(admin, address, physical_offset), broker)


def query_message_by_unique_key(admin: AdminNode, topic: str, msg_id: str) -> Rows[MessageExt]:
    """The messages of a topic with this unique id, in the order they were stored; more than one after a resend.

    BrokerError with code 17 when the name server has no route of the topic.
    """
    admin.route(topic)
    messages = [
        message for message in indexed_messages(admin, topic, msg_id, 0, END_OF_TIME_MS) if message.msg_id == msg_id
    ]
    return Rows(messages, f"{msg_id} in {topic}")


def query_message(
    admin: AdminNode, topic: str, key: str, *, begin_ms: int = 0, end_ms: int = END_OF_TIME_MS
) -> Rows[MessageExt]:
    """All messages of a topic with a key (or unique id), stored between two times, in order of storing."""
    admin.route(topic)
    messages = [
        message for message in indexed_messages(admin, topic, key, begin_ms, end_ms) if _has_key(message, topic, key)
    ]
    return Rows(messages, f"key {key} in {topic}")


def query_message_by_time(
    admin: AdminNode, topic: str, begin_ms: int = 0, end_ms: int = END_OF_TIME_MS
) -> Rows[MessageExt]:
    """All messages of a topic stored between two times (both included), in the order they were stored."""
    admin.route(topic)
    messages = [
        message
        for queue, address in readable_queues(admin, topic)
        for message in _of_queue(admin, queue, address, begin_ms, end_ms)
    ]
    return Rows(sorted(messages, key=_place), f"messages of {topic}")


def query_message_by_offset(admin: AdminNode, topic: str, broker: str, queue_id: int, queue_offset: int) -> MessageExt:
    """The message at a queue offset; UsageError with the queue's range when there is none."""
    _, address = admin.brokers(broker)[0]
    answer = pull_messages(admin, MessageQueue(topic, broker, queue_id), address, queue_offset, 1)
    messages = decode_messages(answer.body, broker)
    if not messages or messages[0].queue_offset != queue_offset:
        queue_range = f"{answer.min_offset} to {answer.max_offset - 1}"
        raise UsageError(f"no message at {topic} {broker} {queue_id} {queue_offset}", hint=f"it has {queue_range}")
    return messages[0]


def send_message(admin: AdminNode, message: Message, *, queue: MessageQueue | None = None) -> SendResult:
    """Send one message as an operator does, to a queue or to the first writable one of its topic.

    A message that was read from a store is sent as it is stored: compressed as it was, with its flags and born time.
    """
    route = examine_topic_route_info(admin, message.topic)
    address = dict(admin.brokers_of(message.topic))
    writable = [data for data in route.queue_datas if data.perm & PERM_WRITE and data.write_queue_nums]
    if queue is None:
        if not writable:
            raise UsageError(f"no broker accepts messages of {message.topic}", hint="its perm needs 2 (write)")
        queue = MessageQueue(message.topic, writable[0].broker_name, 0)
    if queue.broker_name not in address:
        hint = f"brokers with the topic: {list(address)}"
        raise UsageError(f"no master of {queue.broker_name} has {message.topic}", hint=hint)
    to = address[queue.broker_name]
    if not isinstance(message, MessageExt):
        return put_message(admin, to, queue, message.body, message.properties, flag=message.flag)
    body, flags = message.body, message.sys_flag
    if flags & sys_flag.COMPRESSED:
        body = compress(body, sys_flag.compression_name(flags), COMPRESS_LEVEL)
    return put_message(
        admin,
        to,
        queue,
        body,
        message.properties,
        flag=message.flag,
        system_flag=flags,
        born_timestamp=message.born_timestamp,
    )


def stored_unit(admin: AdminNode, address: str, physical_offset: int) -> Record:
    """The unit at a physical offset of a broker's log: its fields as stored, the body still compressed."""
    answer = admin.ask(address, RequestCode.VIEW_MESSAGE_BY_ID, offset=physical_offset)
    return record.decode(answer.body or b"")


def put_message(
    admin: AdminNode,
    address: str,
    queue: MessageQueue,
    body: bytes,
    properties: Mapping[str, str],
    *,
    flag: int = 0,
    system_flag: int = 0,
    born_timestamp: int | None = None,
) -> SendResult:
    """Store a message in a queue of a broker; it gets a unique id unless its properties have one.

    ``body`` is as ``system_flag`` says, compressed or not; it was born now unless ``born_timestamp`` (ms) is given. The
    born host is the operator's in any case: brokers take it from the connection. Raises UsageError for properties that
    would arrive changed.
    """
    encoded_properties.check_sendable(properties)
    now_ms = admin.ports.clock.now_ms()
    # A unique id from the properties is kept, so that a resent message can be followed.
    kept = dict(properties)
    if property_names.UNIQ_KEY not in kept:
        maker = UniqueIdMaker(admin.ports.ip, admin.ports.rng.randrange(1 << 16), admin.ports.rng.randrange(1 << 31))
        kept[property_names.UNIQ_KEY] = maker.next(now_ms)
    answer = admin.ask(
        address,
        RequestCode.SEND_MESSAGE,
        body,
        producerGroup=names.TOOLS_GROUP,
        topic=queue.topic,
        defaultTopic=names.AUTO_CREATE_TOPIC,
        defaultTopicQueueNums=4,
        queueId=queue.queue_id,
        sysFlag=system_flag & ~sys_flag.HOST_BITS,
        bornTimestamp=now_ms if born_timestamp is None else born_timestamp,
        flag=flag,
        properties=encoded_properties.to_text(kept),
        reconsumeTimes=0,
        unitMode=False,
        batch=False,
    )
    return send_result_of(answer, queue, queue.topic, kept[property_names.UNIQ_KEY], address)


def indexed_messages(admin: AdminNode, topic: str, key: str, begin_ms: int, end_ms: int) -> list[MessageExt]:
    """The messages under a key in the indexes of all brokers, hash collisions included."""
    messages: dict[tuple[str, int], MessageExt] = {}
    for broker, address in admin.brokers():
        for message in _indexed_at(admin, broker, address, topic, key, begin_ms, end_ms):
            messages[broker, message.physical_offset] = message
    return sorted(messages.values(), key=_place)


def _indexed_at(
    admin: AdminNode, broker: str, address: str, topic: str, key: str, begin_ms: int, end_ms: int
) -> list[MessageExt]:
    """The same for one broker, page by page into the past. The index has times to the second only."""
    messages: dict[int, MessageExt] = {}
    while True:
        page = _page(admin, broker, address, topic, key, begin_ms, end_ms)
        fresh = [message for message in page if message.physical_offset not in messages]
        messages.update({message.physical_offset: message for message in fresh})
        if len(page) < PAGE:
            return list(messages.values())
        # A full page: go on with what is older than its oldest message.
        oldest_ms = min(message.store_timestamp for message in page)
        if fresh and oldest_ms < end_ms:
            end_ms = oldest_ms
            continue
        # A second with more messages than a page: the index cannot be asked for the rest, so read the queues.
        begin_of_second = oldest_ms - SECOND_MS
        for queue, where in readable_queues(admin, topic):
            if where == address:
                within = _of_queue(admin, queue, where, max(begin_of_second, begin_ms), end_ms)
                messages.update(
                    {message.physical_offset: message for message in within if _has_key(message, topic, key)}
                )
        end_ms = begin_of_second - 1
        if end_ms < begin_ms:
            return list(messages.values())


def _page(
    admin: AdminNode, broker: str, address: str, topic: str, key: str, begin_ms: int, end_ms: int
) -> list[MessageExt]:
    fields: dict[str, Any] = {
        "topic": topic,
        "key": key,
        "maxNum": PAGE,
        "beginTimestamp": begin_ms,
        "endTimestamp": end_ms,
    }
    try:
        answer = admin.ask(address, RequestCode.QUERY_MESSAGE, **fields)
    except BrokerError as error:
        # No match at this broker is an empty page, not a failure.
        if error.response_code != ResponseCode.QUERY_NOT_FOUND:
            raise
        return []
    return decode_messages(answer.body or b"", broker)


def _of_queue(admin: AdminNode, queue: MessageQueue, address: str, begin_ms: int, end_ms: int) -> list[MessageExt]:
    """A queue's messages of a time range, pulled without being a consumer."""
    queue_offset = admin.wait(lambda: admin.calls.search_offset(address, queue, begin_ms, admin.timeout_ms))
    messages: list[MessageExt] = []
    while True:
        answer = pull_messages(admin, queue, address, queue_offset, PULL_NUMS)
        for message in decode_messages(answer.body, queue.broker_name):
            if message.store_timestamp > end_ms:
                return messages
            if message.store_timestamp >= begin_ms:
                messages.append(message)
        if answer.next_begin_offset <= queue_offset or answer.pull_status == statuses.NO_NEW_MSG:
            return messages
        queue_offset = answer.next_begin_offset


def pull_messages(admin: AdminNode, queue: MessageQueue, address: str, queue_offset: int, max_nums: int) -> PullAnswer:
    """One pull from a queue at an address, without subscription, waiting or commit."""
    call = PullCall(
        group=names.TOOLS_GROUP,
        queue=queue,
        queue_offset=queue_offset,
        max_nums=max_nums,
        sys_flag=sys_flag.PULL_SUBSCRIPTION,
        commit_offset=0,
        suspend_ms=0,
        sub_version=0,
        subscription="*",
    )
    return pull_answer_of(admin.wait(lambda: admin.calls.pull(address, call, admin.timeout_ms)), address)


def _place_of_id(offset_msg_id: str) -> tuple[tuple[str, int], int]:
    """Host and physical offset of an offset id. UsageError for a unique id or any other string."""
    try:
        (host, port), physical_offset = ids.parse_offset_msg_id(offset_msg_id)
        if 0 < port < 1 << 16 and physical_offset >= 0:
            return (host, port), physical_offset
        raise CorruptionError(f"port {port}")
    except CorruptionError as error:
        raise UsageError(
            f"{offset_msg_id!r} is not an offset id",
            hint="for a unique id use query_message_by_unique_key(topic, id), or mqlab admin queryMsgByUniqueKey",
        ) from error


def _has_key(message: MessageExt, topic: str, key: str) -> bool:
    """Whether a message has the key: the index compares hashes, equal for "AaTopic#k" and "BBTopic#k"."""
    if message.topic != topic:
        return False
    return key == message.msg_id or key in (message.keys or "").split(property_names.KEY_SEPARATOR)


def _place(message: MessageExt) -> tuple[int, str, int]:
    return message.store_timestamp, message.broker_name, message.physical_offset
