"""What every POP request is checked for, and the header fields they share.

Mirrors: the early returns of PopMessageProcessor, NotificationProcessor, AckMessageProcessor and
ChangeInvisibleTimeProcessor, with RocketMQ's texts. Numbers that are missing are 0, as in RocketMQ.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.errors import FilterError
from mqlab.rocketmq.broker.pulling import tag_subscription
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables import topics
from mqlab.rocketmq.broker.tables.consumer_filters import TAG_TYPES, PullFilter
from mqlab.rocketmq.remoting.endpoint import Channel
from mqlab.rocketmq.remoting.requests import Refused, truth, whole, whole_long, whole_long_or
from mqlab.rocketmq.wire.bodies import SubscriptionData, TopicConfig
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.pop import Handle

FAQ = " \nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
MOST_MESSAGES = 32
LATE_MS = 500

EXTRA_INFO_METHODS = {
    "split": ("split", 35),
    "getReviveQid": ("getReviveQid", 63),
    "getRetry": ("getRealTopic", 89),
    "getBrokerName": ("getBrokerName", 102),
}
"""How a message of ExtraInfoUtil begins -> the method that threw it, and its line."""


@dataclass(frozen=True, slots=True)
class PopHeader:
    """The header of POP_MESSAGE, and what NOTIFICATION and PEEK_MESSAGE have of it. Mirrors PopMessageRequestHeader."""

    group: str
    topic: str
    queue_id: int
    max_nums: int
    invisible_time: int
    poll_time: int
    born_time: int
    init_mode: int
    expression_type: str | None
    expression: str | None
    is_orderly: bool
    attempt_id: str | None

    @classmethod
    def of(cls, request: RemotingCommand, now_ms: int) -> PopHeader:
        """Read it from a request; a born time that is missing is now."""
        fields = request.ext_fields
        return cls(
            fields.get("consumerGroup", ""),
            fields.get("topic", ""),
            whole_long_or(request, "queueId", 0),
            whole_long_or(request, "maxMsgNums", 0),
            whole_long_or(request, "invisibleTime", 0),
            whole_long_or(request, "pollTime", 0),
            now_ms if fields.get("bornTime", "0") == "0" else whole_long_or(request, "bornTime", 0),
            whole_long_or(request, "initMode", 0),
            fields.get("expType"),
            fields.get("exp"),
            truth(request, "order"),
            fields.get("attemptId"),
        )


def known_topic(state: BrokerState, topic: str) -> TopicConfig:
    """A topic's configuration; Refused when there is none."""
    config = state.topics.get(topic)
    if config is None:
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please!{FAQ}")
    return config


def check_popping(state: BrokerState, header: PopHeader, channel: Channel) -> TopicConfig:
    """Whether a group may pop from a topic; the topic's configuration. Refused with RocketMQ's code and text."""
    pops = f"the broker[{state.identity.ip}] pop message"
    if not topics.is_readable(state.config.broker_permission):
        raise Refused(ResponseCode.NO_PERMISSION, f"{pops} is forbidden")
    if header.max_nums > MOST_MESSAGES:
        raise Refused(ResponseCode.INVALID_PARAMETER, f"{pops}'s num is greater than {MOST_MESSAGES}")
    if state.timer is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"{pops} is forbidden because timerWheelEnable is false")
    return check_reading(state, header, channel)


def check_reading(state: BrokerState, header: PopHeader, channel: Channel) -> TopicConfig:
    """Whether a group may read a topic; the topic's configuration. Refused with RocketMQ's code and text."""
    if not topics.is_readable(state.config.broker_permission):
        remark = f"the broker[{state.identity.ip}] peeking message is forbidden"
        raise Refused(ResponseCode.NO_PERMISSION, remark)
    config = known_topic(state, header.topic)
    if not topics.is_readable(config.perm):
        raise Refused(ResponseCode.NO_PERMISSION, f"the topic[{header.topic}] peeking message is forbidden")
    if header.queue_id >= config.read_queue_nums:
        raise Refused(
            ResponseCode.INVALID_PARAMETER, topics.no_such_queue(config, header.queue_id, channel.remote_address)
        )
    group = state.groups.find(header.group)
    if group is None:
        reason = f"subscription group [{header.group}] does not exist,{FAQ}"
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
    if not group.consume_enable:
        raise Refused(ResponseCode.NO_PERMISSION, f"subscription group no permission, {header.group}")
    return config


def filter_of(state: BrokerState, header: PopHeader) -> PullFilter:
    """The filter that a pop brings along; no expression means everything. Refused when it does not parse."""
    expression = header.expression or "*"
    kind = header.expression_type if header.expression else "TAG"
    try:
        if kind in TAG_TYPES:
            return PullFilter(tag_subscription(header.topic, expression, state.now_ms()), None)
        sql = state.filters.build(header.topic, header.group, expression, kind or "", state.now_ms())
        return PullFilter(SubscriptionData(topic=header.topic, sub_string=expression, expression_type=kind or ""), sql)
    except FilterError as error:
        raise Refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed") from error


def check_given_out(
    state: BrokerState, request: RemotingCommand, channel: Channel, *, may_be_the_end: bool
) -> tuple[str, int, int]:
    """Topic, queue and offset of an ack or a change. Refused for those that the store cannot have given out."""
    topic = request.ext_fields.get("topic", "")
    config = known_topic(state, topic)
    queue_id, offset = whole(request, "queueId"), whole_long(request, "offset")
    if not 0 <= queue_id < config.read_queue_nums:
        raise Refused(ResponseCode.MESSAGE_ILLEGAL, topics.no_such_queue(config, queue_id, channel.remote_address))
    first, end = state.store.min_offset(topic, queue_id), state.store.max_offset(topic, queue_id)
    if offset < first or offset > end or (offset == end and not may_be_the_end):
        remark = f"offset is illegal, key:{topic}@{queue_id}, commit:{offset}, store:{first}~{end}"
        raise Refused(ResponseCode.NO_MESSAGE, remark)
    return topic, queue_id, offset


def handle_of(request: RemotingCommand, *, revive_queue_first: bool = False) -> Handle:
    """The handle of an ack or a change. Refused with Java's exception for one that cannot be read."""
    text = request.ext_fields.get("extraInfo")
    if text is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, java_error("split extraInfo is null"))
    fields = text.count(" ") + 1
    if revive_queue_first and fields < 4:
        raise Refused(ResponseCode.SYSTEM_ERROR, java_error(f"getReviveQid fail, extraInfoStrs length {fields}"))
    try:
        return Handle.parse(text)
    except ValueError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, java_error(str(error))) from error


def java_error(text: str) -> str:
    """What a client sees of the exception that RocketMQ throws."""
    method, line = EXTRA_INFO_METHODS.get(text.partition(" ")[0], ("", 0))
    if method:
        frame = f"org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil.{method}(ExtraInfoUtil.java:{line})"
        return f"java.lang.IllegalArgumentException: {text}, {frame}"
    frame = "java.base/java.lang.NumberFormatException.forInputString(NumberFormatException.java:67)"
    return f"java.lang.NumberFormatException: {text}, {frame}"
