"""Topics: their names, routes, settings and offsets; creating, changing and deleting them.

Mirrors: mqadmin topicList, topicRoute, topicStatus, updateTopic, deleteTopic; requests 206, 105, 202, 17, 215.

    topic    broker    queue  min_offset  max_offset  last_update_timestamp
    orders   broker-a  0      0           51          2026-01-01 00:00:04.000

Left out: static topics and order configuration by queue.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mqlab.errors import BrokerError, UsageError, did_you_mean
from mqlab.rocketmq.admin.requests import AdminNode, value_of
from mqlab.rocketmq.admin.steps import Steps, at_each
from mqlab.rocketmq.answers import Rows, Shown
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire.bodies import BrokerData, QueueData, SubscriptionGroupConfig, TopicConfig
from mqlab.rocketmq.wire.body import queue_from_key
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.java_json import to_long
from mqlab.rocketmq.wire.message import MessageQueue

Config = TypeVar("Config", TopicConfig, SubscriptionGroupConfig)


@dataclass(frozen=True, slots=True)
class TopicName:
    """A topic and its kind: NORMAL, RETRY, DLQ or SYSTEM."""

    topic: str
    kind: str


@dataclass(frozen=True, slots=True)
class TopicRoute(Shown):
    """The route of a topic: queues by broker name, and addresses by broker id. Mirrors TopicRouteData."""

    topic: str
    queue_datas: tuple[QueueData, ...]
    broker_datas: tuple[BrokerData, ...]

    def shown_rows(self) -> Sequence[dict[str, object]]:
        addresses = {data.broker_name: data.broker_addrs for data in self.broker_datas}
        return [
            {
                "broker": data.broker_name,
                "read_queue_nums": data.read_queue_nums,
                "write_queue_nums": data.write_queue_nums,
                "perm": data.perm,
                "addresses": addresses.get(data.broker_name, {}),
            }
            for data in self.queue_datas
        ]

    def shown_title(self) -> str:
        return f"route of {self.topic}"


@dataclass(frozen=True, slots=True)
class QueueStats:
    """One queue of a topic; offsets are queue offsets, ``max_offset`` is the next message's. Mirrors TopicOffset."""

    message_queue: MessageQueue
    min_offset: int
    max_offset: int
    last_update_timestamp: int


def fetch_all_topic_list(admin: AdminNode) -> Rows[TopicName]:
    """Every topic of a name server, sorted by name."""
    topics = value_of(admin.ask_name_server(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)).get("topicList") or []
    known = admin.cluster_info()
    own = {*known.cluster_addr_table, *known.broker_addr_table}
    return Rows([TopicName(topic, _kind(topic, own)) for topic in sorted(topics)], "topics")


def examine_topic_route_info(admin: AdminNode, topic: str) -> TopicRoute:
    """The route of a topic; BrokerError with code 17 when the name server has none."""
    route = admin.route(topic)
    queues = sorted(route.queue_datas, key=lambda data: data.broker_name)
    return TopicRoute(topic, tuple(queues), tuple(sorted(route.broker_datas, key=lambda data: data.broker_name)))


def examine_topic_config(admin: AdminNode, topic: str, broker: str | None = None) -> TopicConfig:
    """A topic's settings at one broker (default: the first that has it)."""
    _, address = (admin.brokers(broker) if broker else admin.brokers_of(topic))[0]
    return _config_at(admin, topic, address)


def _config_at(admin: AdminNode, topic: str, address: str) -> TopicConfig:
    return TopicConfig.from_json(admin.ask(address, RequestCode.GET_TOPIC_CONFIG, topic=topic, lo=True).body or b"")


def examine_topic_stats(admin: AdminNode, topic: str) -> Rows[QueueStats]:
    """Every queue of a topic with its smallest and largest offset."""
    rows = []
    for _, address in admin.brokers_of(topic):
        table = admin.ask_value(address, RequestCode.GET_TOPIC_STATS_INFO, topic=topic).get("offsetTable") or {}
        for key, stats in table.items():
            offsets = to_long(stats["minOffset"]), to_long(stats["maxOffset"])
            rows.append(QueueStats(queue_from_key(key), *offsets, to_long(stats["lastUpdateTimestamp"])))
    return Rows(sorted(rows, key=lambda row: row.message_queue), f"queues of {topic}")


def create_topic(
    admin: AdminNode,
    topic: str,
    *,
    read_queue_nums: int = 8,
    write_queue_nums: int = 8,
    perm: int = 6,
    order: bool = False,
    attributes: str = "",
    brokers: Sequence[str] | str | None = None,
) -> None:
    """Create a topic on all brokers, or on those named; an existing topic gets these settings.

    The routes change with the next registration of the brokers, some milliseconds later.
    """
    config = TopicConfig(topic, read_queue_nums, write_queue_nums, perm, order=order)
    at_each("create_topic", admin.brokers(brokers), lambda address: _put_topic(admin, address, config, attributes))


def update_topic(
    admin: AdminNode,
    topic: str,
    *,
    brokers: Sequence[str] | str | None = None,
    attributes: str = "",
    **settings: int | bool,
) -> None:
    """Change settings of a topic (read_queue_nums, write_queue_nums, perm, order) at every broker that has it."""
    named = [brokers] if isinstance(brokers, str) else brokers

    # Each broker may have other settings: change them one by one.
    def change(address: str) -> None:
        _put_topic(admin, address, with_settings(_config_at(admin, topic, address), settings), attributes)

    at_each("update_topic", admin.brokers(named or [name for name, _ in admin.brokers_of(topic)]), change)


def _put_topic(admin: AdminNode, address: str, config: TopicConfig, attributes: str) -> None:
    admin.ask(
        address,
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        topic=config.topic_name,
        defaultTopic=names.AUTO_CREATE_TOPIC,
        readQueueNums=config.read_queue_nums,
        writeQueueNums=config.write_queue_nums,
        perm=config.perm,
        topicFilterType=config.topic_filter_type,
        topicSysFlag=config.topic_sys_flag,
        order=config.order,
        attributes=attributes,
    )


def delete_topic(admin: AdminNode, topic: str) -> None:
    """Delete a topic, its queues and its offsets at every broker, and at every name server."""
    steps = Steps("delete_topic")
    delete_topic_everywhere(admin, topic, steps)
    steps.finish()


def delete_topic_everywhere(admin: AdminNode, topic: str, steps: Steps) -> None:
    """The steps that delete a topic: its brokers, then the name servers if every broker deleted it."""
    before = len(steps.outcomes)
    steps.take_each(
        [(f"{topic} at {broker}", address) for broker, address in admin.brokers()],
        lambda address: admin.ask(address, RequestCode.DELETE_TOPIC_IN_BROKER, topic=topic),
    )
    # Brokers first: a broker that still has the topic would register it again.
    kept = [step.target for step in steps.outcomes[before:] if not step.done]
    servers = [(f"{topic} at name server {address}", address) for address in sorted(admin.name_servers.addresses)]
    if not kept:
        steps.take_each(servers, lambda address: admin.ask(address, RequestCode.DELETE_TOPIC_IN_NAMESRV, topic=topic))
        return
    for target, _ in servers:
        steps.leave(target, f"not tried: {', '.join(kept)} would be registered again")


def query_topic_consume_by_who(admin: AdminNode, topic: str) -> list[str]:
    """The groups that are online for a topic or have offsets of it, by name."""
    groups: dict[str, None] = {}
    for _, address in admin.brokers_of(topic):
        answer = admin.ask_value(address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, topic=topic)
        groups.update(dict.fromkeys(answer.get("groupList") or []))
    return sorted(groups)


def readable_queues(admin: AdminNode, topic: str) -> list[tuple[MessageQueue, str]]:
    """A topic's readable queues, each with the address of its broker; empty for an unknown topic."""
    try:
        route = examine_topic_route_info(admin, topic)
    except BrokerError as error:
        if error.response_code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        return []
    address = {data.broker_name: data.broker_addrs.get(0) for data in route.broker_datas}
    queues = []
    for data in route.queue_datas:
        where = address.get(data.broker_name)
        if where is not None:
            queues += [(MessageQueue(topic, data.broker_name, n), where) for n in range(data.read_queue_nums)]
    return queues


def with_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    """The config (a dataclass) with some fields replaced; UsageError names the nearest field."""
    fields = [field.name for field in dataclasses.fields(config)]
    for name in settings:
        if name not in fields:
            raise UsageError(f"{type(config).__name__} has no setting {name!r}", hint=did_you_mean(name, fields))
    return dataclasses.replace(config, **settings)


def _kind(topic: str, own_topics: set[str]) -> str:
    if topic.startswith(names.RETRY_PREFIX):
        return "RETRY"
    if topic.startswith(names.DLQ_PREFIX):
        return "DLQ"
    system = names.is_system_topic(topic) or topic in own_topics or topic.endswith(names.REPLY_TOPIC_POSTFIX)
    return "SYSTEM" if system else "NORMAL"
