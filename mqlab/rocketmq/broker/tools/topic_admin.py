"""Creates, changes, deletes and lists topics and groups.

Mirrors: AdminBrokerProcessor.

    UPDATE_AND_CREATE_TOPIC        INVALID_PARAMETER for a wrong name or a system topic, SYSTEM_ERROR for attributes;
                                   nothing happens if the topic is already as requested
    DELETE_TOPIC_IN_BROKER         removes configuration, offsets and queues, those of popping groups' retry topics too;
                                   the messages stay in the log
    GET_TOPIC_CONFIG               TOPIC_NOT_EXIST if there is none
    GET_SUBSCRIPTIONGROUP_CONFIG   creates a missing group, if groups may be created

Left out: paging of the lists, static topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqlab.errors import UsageError
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.groups import READ_BIT
from mqlab.rocketmq.broker.tables.topic_attributes import altered_attributes, parse_attributes
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, body, text, truth, whole, whole_or
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.bodies import SubscriptionGroupConfig, TopicConfig
from mqlab.rocketmq.wire.codes import ResponseCode, request_name
from mqlab.rocketmq.wire.command import NOT_SET, RemotingCommand
from mqlab.rocketmq.wire.java_json import to_json
from mqlab.rocketmq.wire.pop import pop_retry_topic

FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")


class TopicAdmin:
    """Handlers of the requests that change and list topics and groups."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def update_and_create_topic(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UPDATE_AND_CREATE_TOPIC."""
        config = TopicConfig(
            topic_name=text(request, "topic"),
            read_queue_nums=whole(request, "readQueueNums"),
            write_queue_nums=whole(request, "writeQueueNums"),
            perm=whole(request, "perm"),
            topic_filter_type=_filter_type(request),
            topic_sys_flag=whole_or(request, "topicSysFlag", 0),
            order=truth(request, "order"),
        )
        self._update_topic(config, request.ext_fields.get("attributes") or "")
        return request.reply(ResponseCode.SUCCESS, NOT_SET)

    def update_and_create_topic_list(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UPDATE_AND_CREATE_TOPIC_LIST: all topics, or none if one is wrong."""
        configs = [TopicConfig.from_value(value) for value in _listed(request, "topicConfigList")]
        # All are checked before the first one is changed.
        for config in configs:
            self._check_topic(config, config.attributes)
        for config in configs:
            self._put_topic(config, config.attributes)
        return request.reply(ResponseCode.SUCCESS, NOT_SET)

    def _update_topic(self, config: TopicConfig, attributes: str) -> None:
        try:
            changes = parse_attributes(attributes)
        except UsageError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
        self._check_topic(config, changes)
        current = self._state.topics.get(config.topic_name)
        if current is None or changes or current != config:
            self._put_topic(config, changes)

    def _put_topic(self, config: TopicConfig, changes: Mapping[str, str]) -> None:
        try:
            self._state.topics.update(config, changes)
        except UsageError as error:  # the list changes the same topic twice
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error

    def _check_topic(self, config: TopicConfig, changes: Mapping[str, str]) -> None:
        """Refuse a topic that is not allowed, or a change of its attributes that is not possible."""
        problem = self._state.topics.problem_of(config)
        if problem is not None:
            raise Refused(ResponseCode.INVALID_PARAMETER, problem)
        if changes.get("+message.type") == "MIXED" and not self._state.config.enable_mixed_message_type:
            raise Refused(ResponseCode.INVALID_PARAMETER, "MIXED message type is not supported.")
        current = self._state.topics.get(config.topic_name)
        try:
            altered_attributes({} if current is None else current.attributes, changes, create=current is None)
        except UsageError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error

    def delete_topic_in_broker(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """DELETE_TOPIC_IN_BROKER. It is not an error if there is no such topic."""
        topic = request.ext_fields.get("topic", "")
        if not topic.strip():
            raise Refused(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
        if self._state.topics.is_system(topic):
            raise Refused(ResponseCode.INVALID_PARAMETER, f"The topic[{topic}] is conflict with system topic.")
        # Retry topics of popping groups go with it.
        groups = self._state.offset_table.groups_of(topic)
        retries = [pop_retry_topic(topic, group, v2=v2) for group in groups for v2 in (True, False)]
        for name in [*(name for name in retries if name in self._state.topics), topic]:
            self._delete(name)
        return request.reply()

    def _delete(self, topic: str) -> None:
        """Everything that is kept by topic goes; messages stay in the log until their files expire."""
        self._state.topics.delete(topic)
        self._state.offset_table.remove_topic(topic)
        self._state.store.delete_topic(topic)
        self._state.stats.remove_topic(topic)

    def get_all_topic_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ALL_TOPIC_CONFIG."""
        empty: dict[str, object] = {"topicQueueMappingDetailMap": {}, "topicQueueMappingInfoMap": {}}
        return request.reply(body=to_json({**self._state.topics.to_value(), **empty}))

    def get_topic_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_TOPIC_CONFIG."""
        topic = self._state.topics.get(text(request, "topic"))
        if topic is None:
            remark = f"No topic in this broker. topic: {request.ext_fields['topic']}"
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, remark)
        return request.reply(body=to_json(topic.to_value()))

    def get_system_topic_list_from_broker(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_SYSTEM_TOPIC_LIST_FROM_BROKER."""
        return request.reply(body=to_json({"topicList": list(self._state.topics.system_names)}))

    def update_and_create_subscriptiongroup(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP."""
        self._update_group(SubscriptionGroupConfig.from_value(_loaded(request)))
        return request.reply()

    def update_and_create_subscriptiongroup_list(
        self, channel: Channel, request: RemotingCommand, reply: Reply
    ) -> Answer:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST."""
        for value in _listed(request, "groupConfigList"):
            self._update_group(SubscriptionGroupConfig.from_value(value))
        return request.reply()

    def _update_group(self, group: SubscriptionGroupConfig) -> None:
        # As in RocketMQ any name will do: only groups that are made by use are checked.
        try:
            self._state.groups.update(group)
        except UsageError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error

    def get_all_subscriptiongroup_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ALL_SUBSCRIPTIONGROUP_CONFIG."""
        return request.reply(body=to_json(self._state.groups.to_value()))

    def get_subscriptiongroup_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_SUBSCRIPTIONGROUP_CONFIG."""
        group = self._state.groups.find(text(request, "group"))
        if group is None:
            raise Refused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"No group in this broker. group: {request.ext_fields['group']}",
            )
        return request.reply(body=to_json(group.to_value()))

    def update_and_get_group_forbidden(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UPDATE_AND_GET_GROUP_FORBIDDEN: whether a group may read a topic; ``readable`` changes it."""
        group, topic, groups = text(request, "group"), text(request, "topic"), self._state.groups
        if request.ext_fields.get("readable") is not None:
            groups.forbid(group, topic, READ_BIT, taken=not truth(request, "readable"))
        readable = not groups.is_forbidden(group, topic, READ_BIT)
        return request.reply(
            ResponseCode.SUCCESS, "", body=to_json({"group": group, "readable": readable, "topic": topic})
        )

    def delete_subscriptiongroup(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """DELETE_SUBSCRIPTIONGROUP, with its offsets if the request has cleanOffset."""
        group = text(request, "groupName")
        self._state.groups.delete(group)
        if truth(request, "cleanOffset"):
            self._state.offset_table.remove_group(group)
        self._state.stats.remove_group(group)
        return request.reply()


def _filter_type(request: RemotingCommand) -> str:
    """Refused for a name that TopicFilterType does not have. Mirrors CreateTopicRequestHeader.checkFields."""
    kind = request.ext_fields.get("topicFilterType")
    if kind not in FILTER_TYPES:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"topicFilterType = [{kind or 'null'}] value invalid")
    return kind


def _listed(request: RemotingCommand, name: str) -> list[Any]:
    """The list in a body; Refused without it, for which RocketMQ answers the text of a NullPointerException."""
    listed = _loaded(request).get(name)
    if listed is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"{request_name(request.code)} needs the list {name}")
    return list(listed)


def _loaded(request: RemotingCommand) -> dict[str, Any]:
    try:
        value = java_json.loads(body(request).decode("utf-8"))
    except ValueError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Refused(ResponseCode.SYSTEM_ERROR, f"the body is not a JSON object but {type(value).__name__}")
    return value
