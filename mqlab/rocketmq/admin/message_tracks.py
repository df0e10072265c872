"""The state of one message in each group that subscribes to it.

Mirrors: mqadmin queryMsgById's message track (MessageTrack, TrackType), with more states.

    CONSUMED                its queue is confirmed past it, and so is every retry of it
    CONSUMED_BUT_FILTERED   confirmed past it, but the subscription excludes it
    NOT_CONSUME_YET         not confirmed past it
    RETRIED                 failed at least once, and its newest copy is not confirmed
    DEAD                    in the group's dead letter queue
    CONSUME_BROADCASTING    every member has offsets of its own; brokers have none

RocketMQ answers NOT_ONLINE for groups without members; here that is a column of its own, since offsets are known.
Left out: what a consumer did with a message (see its trace).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mqlab.errors import BrokerError, FilterError
from mqlab.rocketmq.admin.connections import ConsumerConnection, examine_consumer_connection_info
from mqlab.rocketmq.admin.groups import stats_of_group
from mqlab.rocketmq.admin.messages import END_OF_TIME_MS, indexed_messages
from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.admin.topics import query_topic_consume_by_who
from mqlab.rocketmq.answers import Rows
from mqlab.rocketmq.filter import compile_sql, tags
from mqlab.rocketmq.wire import names, property_names
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

CONSUMED = "CONSUMED"
CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
NOT_CONSUME_YET = "NOT_CONSUME_YET"
RETRIED = "RETRIED"
DEAD = "DEAD"
CONSUME_BROADCASTING = "CONSUME_BROADCASTING"


@dataclass(frozen=True, slots=True)
class MessageTrack:
    """The state of a message in one group. ``retries`` counts its retries; ``online``: the group has members."""

    group: str
    track_type: str
    online: bool
    retries: int
    where: MessageQueue
    queue_offset: int
    consumer_offset: int


def message_track_detail(admin: AdminNode, message: MessageExt) -> Rows[MessageTrack]:
    """A row for each group that is online for the message's topic or has offsets of it."""
    groups = query_topic_consume_by_who(admin, message.topic)
    return Rows([_track(admin, message, group) for group in groups], f"track of {message.msg_id}")


def _track(admin: AdminNode, message: MessageExt, group: str) -> MessageTrack:
    connection = _connection(admin, group)
    copies = _copies(admin, message, group)
    newest = max(copies, key=lambda copy: (copy.store_timestamp, copy.physical_offset), default=message)
    confirmed = {row.message_queue: row.consumer_offset for row in stats_of_group(admin, group).queues}
    consumer_offset = confirmed.get(newest.message_queue, 0)
    track_type = _track_type(message, newest, consumer_offset, connection)
    retries = newest.reconsume_times - message.reconsume_times
    position = newest.message_queue, newest.queue_offset, consumer_offset
    return MessageTrack(group, track_type, connection is not None, retries, *position)


def _connection(admin: AdminNode, group: str) -> ConsumerConnection | None:
    try:
        return examine_consumer_connection_info(admin, group)
    except BrokerError as error:
        if error.response_code != ResponseCode.CONSUMER_NOT_ONLINE:
            raise
        return None


def _copies(admin: AdminNode, message: MessageExt, group: str) -> list[MessageExt]:
    """The stored copies of a message for one group: back for retry, waiting for their delay, or dead."""
    retry_topic, dlq_topic = names.retry_topic(group), names.dlq_topic(group)
    copies: list[MessageExt] = []
    for topic in (retry_topic, dlq_topic, names.SCHEDULE_TOPIC):
        for copy in indexed_messages(admin, topic, message.msg_id, message.store_timestamp, END_OF_TIME_MS):
            # The schedule topic has the waiting copies of all groups; the real topic tells them apart.
            waits_for = copy.properties.get(property_names.REAL_TOPIC)
            if copy.msg_id == message.msg_id and (topic != names.SCHEDULE_TOPIC or waits_for == retry_topic):
                copies.append(copy)
    return copies


def _track_type(
    message: MessageExt, newest: MessageExt, consumer_offset: int, connection: ConsumerConnection | None
) -> str:
    # The order matters: the first state that applies is the answer.
    if connection is not None and connection.message_model == "BROADCASTING":
        return CONSUME_BROADCASTING
    if newest.topic.startswith(names.DLQ_PREFIX):
        return DEAD
    if newest.topic == names.SCHEDULE_TOPIC:
        return RETRIED
    if consumer_offset <= newest.queue_offset:
        return NOT_CONSUME_YET if newest is message else RETRIED
    if newest is message and connection is not None and _left_out(message, connection.subscriptions):
        return CONSUMED_BUT_FILTERED
    return CONSUMED


def _left_out(message: MessageExt, subscriptions: Iterable[SubscriptionData]) -> bool:
    """Whether the group's present subscription excludes the message."""
    for wanted in subscriptions:
        if wanted.topic != message.topic:
            continue
        if wanted.expression_type == "TAG":
            return not tags.parse(wanted.sub_string).matches_text(message.tags)
        try:
            return compile_sql(wanted.sub_string).evaluate(message.properties) is not True
        except FilterError:
            return True
    return False
