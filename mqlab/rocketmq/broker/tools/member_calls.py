"""Questions to one member of a group, passed on by the broker: its running info, and "consume this message now".

Mirrors: AdminBrokerProcessor.callConsumer, Broker2Client; GET_CONSUMER_RUNNING_INFO, CONSUME_MESSAGE_DIRECTLY.

    tool ─▶ broker ─▶ member (10 s) ─▶ the answer is passed on unchanged
            not connected: SYSTEM_ERROR      no answer in time: CONSUME_MSG_TIMEOUT

Left out: pushing replies of request-reply messages (326).
"""

from __future__ import annotations

from mqlab.errors import CorruptionError, RemotingError
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, text, text_or_null
from mqlab.rocketmq.wire import ids, record
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.command import request as make_request

CALL_TIMEOUT_MS = 10_000
V3_1_8 = 57  # members with an older version do not know these requests


class MemberCalls:
    """Handlers of the requests that are passed on to a member."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def get_consumer_running_info(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_CONSUMER_RUNNING_INFO."""
        self._call(request, request.body, dict(request.ext_fields), reply)
        return None

    def consume_message_directly(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """CONSUME_MESSAGE_DIRECTLY: the broker reads the message by its offset id and adds it to the request."""
        state = self._state
        fields = {**request.ext_fields, "brokerName": state.config.broker_name}
        topic = state.topics.get(fields.get("topic", ""))
        if topic is not None:
            fields["topicSysFlag"] = str(topic.topic_sys_flag)
        group = state.groups.get(text(request, "consumerGroup"))
        if group is not None:
            fields["groupSysFlag"] = str(group.group_sys_flag)
        try:
            _, physical_offset = ids.parse_offset_msg_id(text(request, "msgId"))
        except CorruptionError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
        message = state.store.message_at(physical_offset)
        if message is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {physical_offset}")
        self._call(request, record.encode(message), fields, reply)
        return None

    def _call(self, request: RemotingCommand, content: bytes | None, fields: dict[str, str], reply: Reply) -> None:
        group, client_id = text(request, "consumerGroup"), text_or_null(request, "clientId")
        # 1. The member must be connected, and new enough to know the request.
        members = self._state.consumers.get(group)
        member = members.member(client_id) if members is not None else None
        if member is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online")
        if member.version < V3_1_8:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"The Consumer <{client_id}> is too old: version {member.version}")
        # 2. Pass the request on with its fields, and later the answer with its fields.
        question = make_request(request.code, content)
        question.ext_fields.update(fields)

        def answered(answer: RemotingCommand) -> None:
            copy = request.reply(answer.code, answer.remark, answer.body)
            copy.ext_fields.update(answer.ext_fields)
            reply(copy)

        def failed(error: BaseException) -> None:
            timed_out = isinstance(error, RemotingError) and error.code == "timeout"
            code = ResponseCode.CONSUME_MSG_TIMEOUT if timed_out else ResponseCode.SYSTEM_ERROR
            reply(request.reply(code, f"consumer <{group}> <{client_id}>: {error}"))

        member.channel.invoke(question, CALL_TIMEOUT_MS).then(answered, failed)
