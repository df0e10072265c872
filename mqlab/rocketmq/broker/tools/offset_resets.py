"""Moves the offsets of a group: to a time, to the end or to a number; and asks its members for their offsets.

Mirrors: AdminBrokerProcessor.resetOffsetInner, Broker2Client; INVOKE_BROKER_TO_RESET_OFFSET,
INVOKE_BROKER_TO_GET_CONSUMER_STATUS, CLONE_GROUP_OFFSET.

    by the broker (default)    the offset is stored, and the next pull of the queue is answered with it
    by the members             RESET_CONSUMER_CLIENT_OFFSET to each member, which stops its queues, waits 10 s and moves

    by time                    below 0: the end; otherwise the first message stored at or after it, or the end
    by number                  min to max + 1, otherwise SYSTEM_ERROR

Left out: the list form of the request to C++ members is sent, but what they do with it is not modelled.
"""

from __future__ import annotations

from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.promises import Promise, gather
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, text, text_or_null, truth, whole_long_or, whole_or
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.bodies import TopicConfig
from mqlab.rocketmq.wire.body import queue_key, queue_to_value
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import NOT_SET, RemotingCommand
from mqlab.rocketmq.wire.command import request as make_request
from mqlab.rocketmq.wire.java_json import to_json
from mqlab.rocketmq.wire.message import MessageQueue

CALL_TIMEOUT_MS = 5_000
LATEST = -1


class OffsetResets:
    """Handlers of the requests that move offsets or ask members for theirs."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def invoke_broker_to_reset_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """INVOKE_BROKER_TO_RESET_OFFSET."""
        group, topic_name, timestamp_ms = (
            text_or_null(request, "group"),
            text(request, "topic"),
            whole_long_or(request, "timestamp", 0),
        )
        if self._state.config.use_server_side_reset_offset:
            offsets = self._reset_here(group, topic_name, timestamp_ms, request)
        else:
            offsets = self._reset_members(group, topic_name, timestamp_ms, truth(request, "isForce"))
        table = {queue_key(queue): offset for queue, offset in offsets.items()}
        return request.reply(body=to_json({"offsetTable": table}))

    def _reset_here(
        self, group: str, name: str, timestamp_ms: int, request: RemotingCommand
    ) -> dict[MessageQueue, int]:
        state = self._state
        # 1. What can be reset? Offsets of a slave are replaced by its master.
        if state.store.config.broker_role == "SLAVE":
            raise Refused(ResponseCode.SYSTEM_ERROR, "Can not reset offset in slave broker")
        topic = state.topics.get(name)
        if topic is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic {name} does not exist")
        if group not in state.groups:
            raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} does not exist")
        # 2. The new offsets: of one queue, by number or by time, or of all queues by time.
        queue_id = whole_or(request, "queueId", -1)
        number = whole_long_or(request, "offset", None)
        targets = {}
        if queue_id is not None and queue_id >= 0:
            by_number = number is not None and number != LATEST
            targets[queue_id] = (
                self._in_range(topic, queue_id, number) if by_number else self._by_time(topic, queue_id, timestamp_ms)
            )
        else:
            for queue in range(topic.read_queue_nums):
                targets[queue] = self._by_time(topic, queue, timestamp_ms)
        # 3. The next pull of each queue is answered with its new offset.
        for queue, target in targets.items():
            state.offset_table.assign_reset(group, name, queue, target)
        return {MessageQueue(name, state.config.broker_name, queue): target for queue, target in targets.items()}

    def _in_range(self, topic: TopicConfig, queue_id: int, number: int | None) -> int:
        store = self._state.store
        first, end = store.min_offset(topic.topic_name, queue_id), store.max_offset(topic.topic_name, queue_id)
        if number is None or not first <= number <= end + 1:
            range_text = f"[{first}-{end}]"
            raise Refused(ResponseCode.SYSTEM_ERROR, f"Target offset {number} not in consume queue range {range_text}")
        return number

    def _by_time(self, topic: TopicConfig, queue_id: int, timestamp_ms: int) -> int:
        if timestamp_ms < 0:
            return self._state.store.max_offset(topic.topic_name, queue_id)
        return self._state.store.search_offset(topic.topic_name, queue_id, timestamp_ms)

    def _reset_members(self, group: str, name: str, timestamp_ms: int, force: bool) -> dict[MessageQueue, int]:
        state = self._state
        topic = state.topics.get(name)
        if topic is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"no topic in this broker. topic={name}")
        offsets = {}
        for queue_id in range(topic.write_queue_nums):
            stored = state.offset_table.query(group, name, queue_id)
            if stored == -1:
                raise Refused(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{group}> not exist")
            # Without force, an offset only moves back: messages are consumed again, but none are skipped.
            target = max(self._by_time(topic, queue_id, timestamp_ms), 0)
            offsets[MessageQueue(name, state.config.broker_name, queue_id)] = target if force else min(target, stored)
        # Offline members cannot be asked to move: RocketMQ refuses instead of storing the offsets.
        members = state.consumers.get(group)
        if members is None:
            raise Refused(
                ResponseCode.CONSUMER_NOT_ONLINE,
                f"Consumer not online, so can not reset offset, Group: {group} Topic: {name} Timestamp: {timestamp_ms}",
            )
        for member in list(members.members.values()):
            content = _offsets_as_list(offsets) if member.language == "CPP" else _offsets_as_map(offsets)
            member.channel.send_oneway(
                make_request(
                    RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
                    content,
                    topic=name,
                    group=group,
                    timestamp=timestamp_ms,
                    isForce=force,
                )
            )
        return offsets

    def invoke_broker_to_get_consumer_status(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """INVOKE_BROKER_TO_GET_CONSUMER_STATUS: the offsets in the offset stores of the members."""
        group, topic = text(request, "group"), text(request, "topic")
        only = request.ext_fields.get("clientAddr")
        members = self._state.consumers.get(group)
        if members is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{group}]")
        # 1. Ask all members at the same time, or only one of them.
        questions: list[tuple[str, Promise[RemotingCommand]]] = []
        for member in list(members.members.values()):
            if not only or member.client_id == only:
                question = make_request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, topic=topic, group=group)
                questions.append((member.client_id, member.channel.invoke(question, CALL_TIMEOUT_MS)))

        # 2. Answer when all of them have answered or timed out; those that failed are left out.
        def answered(answers: list[Promise[RemotingCommand]]) -> None:
            table = {}
            for (client_id, _), answer in zip(questions, answers, strict=True):
                if answer.error is None and answer.value.code == ResponseCode.SUCCESS and answer.value.body:
                    value = java_json.loads(answer.value.body.decode("utf-8", "replace"))
                    table[client_id] = value.get("messageQueueTable") or {}
            body = to_json({"consumerTable": table, "messageQueueTable": {}})
            reply(request.reply(ResponseCode.SUCCESS, NOT_SET, body))

        gather([promise for _, promise in questions]).then(answered)
        return None

    def clone_group_offset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """CLONE_GROUP_OFFSET: a group gets the offsets of another group."""
        source, target = text(request, "srcGroup"), text(request, "destGroup")
        one_topic = request.ext_fields.get("topic") or ""
        members = self._state.consumers.get(source)
        for topic in [one_topic] if one_topic.strip() else self._state.offset_table.topics_of(source):
            left_out = members is not None and topic not in members.subscriptions and not truth(request, "offline")
            if topic in self._state.topics and not left_out:
                self._state.offset_table.clone(source, target, topic)
        return request.reply()


def _offsets_as_map(offsets: dict[MessageQueue, int]) -> bytes:
    return to_json({"offsetTable": {queue_key(queue): offset for queue, offset in offsets.items()}})


def _offsets_as_list(offsets: dict[MessageQueue, int]) -> bytes:
    return to_json({"offsetTable": [{**queue_to_value(queue), "offset": offset} for queue, offset in offsets.items()]})
