"""Pulls: which of them are allowed, what they read from the store, and which are held because nothing is new.

Mirrors: PullMessageProcessor, DefaultPullMessageResultHandler; PULL_MESSAGE and LITE_PULL_MESSAGE.

    checks in order            refused with
    broker may be read         NO_PERMISSION
    group exists, may read     SUBSCRIPTION_GROUP_NOT_EXIST, NO_PERMISSION
    topic exists, may be read  TOPIC_NOT_EXIST, NO_PERMISSION; a queue id that it does not have: INVALID_PARAMETER
    subscription               PARSE_FAILED, NOT_EXIST, NO_PERMISSION, NOT_LATEST, FILTER_DATA_NOT_EXIST, …_NOT_LATEST
    SQL is allowed             SYSTEM_ERROR

    what the store found       messages: SUCCESS         scanned, nothing matched: PULL_RETRY_IMMEDIATELY
                               offset == end of queue: PULL_NOT_FOUND, held         otherwise: PULL_OFFSET_MOVED
    held and woken             the whole handler runs again; it does not hold the pull again or commit its offset again

Left out: cold data control, pulls forwarded by a proxy, class filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mqlab.errors import FilterError
from mqlab.rocketmq.broker.broadcast_offsets import BroadcastOffsets
from mqlab.rocketmq.broker.long_polling import ANSWER, HELD_PULL, HeldPull, HeldPulls
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables import topics
from mqlab.rocketmq.broker.tables.consumer_filters import TAG_TYPES, ConsumerFilter, PullFilter
from mqlab.rocketmq.broker.tables.consumers import CONSUME_ACTIVELY
from mqlab.rocketmq.broker.tables.groups import READ_BIT
from mqlab.rocketmq.broker.tables.offsets import OFFSETS_FILE
from mqlab.rocketmq.broker.tables.stats import GROUP_GET_LATENCY
from mqlab.rocketmq.filter import tags
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, text, whole, whole_long, whole_long_if_there
from mqlab.rocketmq.wire import names, sys_flag
from mqlab.rocketmq.wire.bodies import SubscriptionData, SubscriptionGroupConfig, TopicConfig
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand

if TYPE_CHECKING:
    from mqlab.rocketmq.store.get_result import GetResult

OFFSET_RESET = "OFFSET_RESET"

PULL_CODES = {
    "FOUND": ResponseCode.SUCCESS,
    "NO_MATCHED_MESSAGE": ResponseCode.PULL_RETRY_IMMEDIATELY,
    "MESSAGE_WAS_REMOVING": ResponseCode.PULL_RETRY_IMMEDIATELY,
    "OFFSET_FOUND_NULL": ResponseCode.PULL_NOT_FOUND,
    "OFFSET_OVERFLOW_ONE": ResponseCode.PULL_NOT_FOUND,
    "OFFSET_OVERFLOW_BADLY": ResponseCode.PULL_OFFSET_MOVED,
    "OFFSET_TOO_SMALL": ResponseCode.PULL_OFFSET_MOVED,
    OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}
"""Store status -> response code. For an empty queue the code depends on the offset, see ``_code``."""

# ForbiddenType: why a pull was refused with NO_PERMISSION
BROKER_FORBIDDEN, GROUP_FORBIDDEN, TOPIC_FORBIDDEN, BROADCASTING_DISABLE_FORBIDDEN, SUBSCRIPTION_FORBIDDEN = range(1, 6)


@dataclass(slots=True)
class PullHeader:
    """The header of a pull request. Mirrors PullMessageRequestHeader."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int
    sys_flag: int
    commit_offset: int
    suspend_timeout_ms: int
    subscription: str | None
    sub_version: int
    expression_type: str | None

    @classmethod
    def of(cls, request: RemotingCommand) -> PullHeader:
        """Read it from a request; Refused when a needed field is missing."""
        fields = request.ext_fields
        return cls(
            text(request, "consumerGroup"),
            text(request, "topic"),
            whole(request, "queueId"),
            whole_long(request, "queueOffset"),
            whole(request, "maxMsgNums"),
            whole(request, "sysFlag"),
            whole_long_if_there(request, "commitOffset", 0),
            whole_long_if_there(request, "suspendTimeoutMillis", 0),
            fields.get("subscription"),
            whole_long_if_there(request, "subVersion", 0),
            fields.get("expressionType"),
        )


@dataclass(slots=True)
class PullOutcome:
    """What the header of the answer needs: the store's status and offsets."""

    status: str
    next_begin_offset: int
    min_offset: int
    max_offset: int
    found: GetResult | None = None


class Pulling:
    """Handlers of the pull requests. Mirrors PullMessageProcessor."""

    def __init__(self, state: BrokerState, held_pulls: HeldPulls, broadcast_offsets: BroadcastOffsets) -> None:
        self._state = state
        self._held_pulls = held_pulls
        self._broadcast_offsets = broadcast_offsets

    def pull_message(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """PULL_MESSAGE and LITE_PULL_MESSAGE."""
        return self._pull(PullHeader.of(request), channel, request, reply, first=True)

    def _run_again(self, header: PullHeader, held: HeldPull) -> None:
        """Answer a held pull that was woken, even if there is nothing. Mirrors executeRequestWhenWakeup."""
        try:
            answer = self._pull(header, held.channel, held.request, held.reply, first=False)
        except Refused as no:
            answer = no.answer_to(held.request)
        except Exception as error:  # nothing else would answer this pull, and what woke it did not fail
            self._state.ports.note("handler.failed", code=held.request.code, error=repr(error))
            answer = held.request.reply(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")
        held.state = HELD_PULL[held.state, ANSWER]
        if answer is not None:
            held.reply(answer)

    def _pull(
        self, header: PullHeader, channel: Channel, request: RemotingCommand, reply: Reply, *, first: bool
    ) -> Answer:
        # 1. May this client read here, and with which filter?
        group, topic = self._checked(header, request, channel)
        subscription, consumer_filter = self._subscription(header, group)
        self._check_filter_allowed(header, subscription, channel)
        message_filter = self._filter(header, subscription, consumer_filter)
        # 2. Read, and remember how far the client is, also when nothing was found.
        answer = self._read(header, channel, message_filter)
        code = self._code(answer.status, header.queue_offset)
        self._note_positions(header, channel, code, answer, first)
        # 3. Nothing new: hold the pull if the client waits for an answer. A pull that was held is answered now.
        if code == ResponseCode.PULL_NOT_FOUND and first and header.sys_flag & sys_flag.PULL_SUSPEND:
            self._hold(header, channel, request, reply, message_filter)
            return None
        # 4. Answer with the stored bytes as they are.
        body = None
        if code == ResponseCode.SUCCESS and answer.found is not None:
            body = b"".join(answer.found.units)
            stats = self._state.stats
            stats.got(header.group, header.topic, len(answer.found.units), len(body))
            if self._state.config.transfer_msg_by_heap:  # the time to copy them; 0 in virtual time
                stats.add(GROUP_GET_LATENCY, f"{header.queue_id}@{header.topic}@{header.group}", 0)
        code, suggested = self._suggestion(code, group, answer)
        return request.reply(
            code,
            answer.status,
            body,
            suggestWhichBrokerId=suggested,
            nextBeginOffset=answer.next_begin_offset,
            minOffset=answer.min_offset,
            maxOffset=answer.max_offset,
            topicSysFlag=topic.topic_sys_flag,
            groupSysFlag=group.group_sys_flag,
        )

    def _checked(
        self, header: PullHeader, request: RemotingCommand, channel: Channel
    ) -> tuple[SubscriptionGroupConfig, TopicConfig]:
        state, config = self._state, self._state.config
        # 1. The broker itself: an operator may have closed it for reading.
        if not topics.is_readable(config.broker_permission):
            raise _forbidden(f"the broker[{state.identity.ip}] pulling message is forbidden", BROKER_FORBIDDEN)
        if request.code == RequestCode.LITE_PULL_MESSAGE and not config.lite_pull_message_enable:
            raise _forbidden(f"the broker[{state.identity.ip}] for lite pull consumer is forbidden", BROKER_FORBIDDEN)
        # 2. The group; a new one is created here if groups are created automatically.
        group = state.groups.find(header.group)
        if group is None:
            remark = f"subscription group [{header.group}] does not exist"
            raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        if not group.consume_enable:
            raise _forbidden(f"subscription group no permission, {header.group}", GROUP_FORBIDDEN)
        # 3. The topic and its queue.
        topic = state.topics.get(header.topic)
        if topic is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist, create it first")
        if not topics.is_readable(topic.perm):
            raise _forbidden(f"the topic[{header.topic}] pulling message is forbidden", TOPIC_FORBIDDEN)
        if not 0 <= header.queue_id < topic.read_queue_nums:
            remark = topics.no_such_queue(topic, header.queue_id, channel.remote_address)
            raise Refused(ResponseCode.INVALID_PARAMETER, remark)
        return group, topic

    def _subscription(
        self, header: PullHeader, group: SubscriptionGroupConfig
    ) -> tuple[SubscriptionData, ConsumerFilter | None]:
        # 1. The request may have an expression of its own; pull consumers work this way.
        if header.sys_flag & sys_flag.PULL_SUBSCRIPTION:
            return self._brought_along(header)
        # 2. Otherwise the expression of the last heartbeats is used: one per group, see tables/consumers.
        members = self._state.consumers.get(header.group)
        if members is None:
            raise Refused(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist")
        if not group.consume_broadcast_enable and members.is_broadcasting:
            raise _forbidden(
                f"the consumer group[{header.group}] can not consume by broadcast way", BROADCASTING_DISABLE_FORBIDDEN
            )
        if self._state.groups.is_forbidden(header.group, header.topic, READ_BIT):
            raise _forbidden(
                f"the consumer group[{header.group}] is forbidden for topic[{header.topic}]", SUBSCRIPTION_FORBIDDEN
            )
        subscription = members.subscriptions.get(header.topic)
        if subscription is None:
            raise Refused(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist")
        # 3. The client has a newer expression than the broker: it waits until its heartbeat has arrived.
        if subscription.sub_version < header.sub_version:
            raise Refused(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
        if subscription.expression_type in TAG_TYPES:
            return subscription, None
        consumer_filter = self._state.filters.get(header.topic, header.group)
        if consumer_filter is None:
            raise Refused(ResponseCode.FILTER_DATA_NOT_EXIST, "the broker has no filter data: is the expression wrong?")
        if consumer_filter.client_version < header.sub_version:
            raise Refused(ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest")
        return subscription, consumer_filter

    def _brought_along(self, header: PullHeader) -> tuple[SubscriptionData, ConsumerFilter | None]:
        """The request carries its own expression, which is used instead of the registered one."""
        try:
            if header.expression_type in TAG_TYPES:
                return tag_subscription(header.topic, header.subscription, header.sub_version), None
            expression, kind = header.subscription or "", header.expression_type or ""
            consumer_filter = self._state.filters.build(
                header.topic, header.group, expression, kind, header.sub_version
            )
        except FilterError as error:
            raise Refused(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"parse the consumer's subscription failed: {error.text}"
            ) from error
        return (
            SubscriptionData(
                topic=header.topic, sub_string=expression, sub_version=header.sub_version, expression_type=kind
            ),
            consumer_filter,
        )

    def _check_filter_allowed(self, header: PullHeader, subscription: SubscriptionData, channel: Channel) -> None:
        if subscription.expression_type not in TAG_TYPES and not self._state.config.enable_property_filter:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"The broker does not support consumer to filter message by {subscription.expression_type}",
            )
        if self._state.config.reject_pull_consumer_enable:
            members = self._state.consumers.get(header.group)
            active = members is None or members.consume_type == CONSUME_ACTIVELY
            unknown = members is None or channel not in members.members
            if active and unknown and header.group != names.TOOLS_GROUP:
                raise Refused(ResponseCode.SUBSCRIPTION_NOT_EXIST, "pull consumers are rejected by this broker")

    def _filter(
        self, header: PullHeader, subscription: SubscriptionData, consumer_filter: ConsumerFilter | None
    ) -> PullFilter:
        """The filter of this pull."""
        if not self._state.config.filter_support_retry:
            return PullFilter(subscription, consumer_filter)
        return PullFilter(subscription, consumer_filter, lambda topic: self._state.filters.get(topic, header.group))

    def _read(self, header: PullHeader, channel: Channel, message_filter: PullFilter) -> PullOutcome:
        store, topic, queue_id = self._state.store, header.topic, header.queue_id
        # An operator has moved the group's offset: the client gets the new offset instead of messages.
        reset = self._state.offset_table.take_reset(header.group, topic, queue_id)
        if reset is not None and self._state.config.use_server_side_reset_offset:
            bounds = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
            return PullOutcome(OFFSET_RESET, reset, *bounds)
        store_filter = None if message_filter.passes_all else message_filter
        result = store.get(topic, queue_id, header.queue_offset, header.max_msg_nums, message_filter=store_filter)
        self._state.store_stats.got(len(result.units))
        return PullOutcome(result.status, result.next_begin_offset, result.min_offset, result.max_offset, result)

    def _code(self, status: str, queue_offset: int) -> int:
        code = PULL_CODES.get(status)
        if code is None:  # NO_MATCHED_LOGIC_QUEUE, NO_MESSAGE_IN_QUEUE
            code = ResponseCode.PULL_NOT_FOUND if queue_offset == 0 else ResponseCode.PULL_OFFSET_MOVED
        return code

    def _note_positions(
        self, header: PullHeader, channel: Channel, code: int, answer: PullOutcome, first: bool
    ) -> None:
        """Remember where the pull has read and, on its first run only, commit the offset it brings."""
        state = self._state
        self._broadcast_offsets.pulled(
            header.group,
            header.topic,
            header.queue_id,
            answer.next_begin_offset if code == ResponseCode.PULL_OFFSET_MOVED else header.queue_offset,
            channel,
        )
        state.offset_table.pulled(header.group, header.topic, header.queue_id, answer.next_begin_offset)
        if first and header.sys_flag & sys_flag.PULL_COMMIT_OFFSET and OFFSETS_FILE not in state.store.failures.reasons:
            state.offset_table.commit(header.group, header.topic, header.queue_id, header.commit_offset)

    def _suggestion(self, code: int, group: SubscriptionGroupConfig, answer: PullOutcome) -> tuple[int, int]:
        """The response code as a slave answers it, and the id of the broker that the next pull should go to."""
        suggested = names.MASTER_ID
        if self._state.config.slave_read_enable:
            # A client that is far behind is sent to a slave, and back when it has caught up.
            slowly = answer.found is not None and answer.found.suggest_pulling_from_slave
            suggested = group.which_broker_when_consume_slowly if slowly else group.broker_id
        store = self._state.store.config
        if code == ResponseCode.PULL_OFFSET_MOVED and store.broker_role == "SLAVE" and not store.offset_check_in_slave:
            return ResponseCode.PULL_RETRY_IMMEDIATELY, group.broker_id
        return code, suggested

    def _hold(
        self, header: PullHeader, channel: Channel, request: RemotingCommand, reply: Reply, message_filter: PullFilter
    ) -> None:
        timeout_ms = header.suspend_timeout_ms  # how long the client is ready to wait
        if not self._state.config.long_polling_enable:
            timeout_ms = self._state.config.short_polling_time_mills
        self._held_pulls.hold(
            HeldPull(
                header.topic,
                header.queue_id,
                header.queue_offset,
                header.group,
                request,
                channel,
                reply,
                message_filter,
                self._state.now_ms(),
                timeout_ms,
                partial(self._run_again, header),
            )
        )


def tag_subscription(topic: str, expression: str | None, sub_version: int) -> SubscriptionData:
    """A TAG subscription made from its text. Raises FilterError. Mirrors FilterAPI.buildSubscriptionData."""
    parsed = tags.parse(expression)
    return SubscriptionData(
        topic=topic,
        sub_string=parsed.sub_string,
        tags_set=list(parsed.tags_set),
        code_set=list(parsed.code_set),
        sub_version=sub_version,
        expression_type="TAG",
    )


def _forbidden(remark: str, forbidden_type: int) -> Refused:
    return Refused(ResponseCode.NO_PERMISSION, remark, forbiddenType=forbidden_type)
