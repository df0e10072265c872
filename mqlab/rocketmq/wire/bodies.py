"""The JSON bodies of requests and answers, as dataclasses.

Mirrors: classes of org.apache.rocketmq.remoting.protocol (body, heartbeat, route, subscription, topic).

    34  HeartbeatData ── ProducerData, ConsumerData ── SubscriptionData
    105 TopicRouteData ── QueueData, BrokerData
    103 RegisterBrokerBody ── TopicConfig, DataVersion
    41  LockBatchRequestBody, LockBatchResponseBody        38 consumer ids        206 topic list

Left out: bodies that one handler writes and mqlab never reads; they are in that handler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.body import Body, decoded_json
from mqlab.rocketmq.wire.java_hash import utf16_key
from mqlab.rocketmq.wire.message import MessageQueue

PERM_READ, PERM_WRITE, PERM_INHERIT = 4, 2, 1  # PermName


@dataclass(frozen=True, slots=True)
class DataVersion(Body):
    """How often a table changed, and when last. Compared by state version, counter, timestamp. Mirrors DataVersion."""

    counter: int = 0
    state_version: int = 0
    timestamp: int = 0

    @classmethod
    def at(cls, now_ms: int) -> DataVersion:
        """The version of a new table."""
        return cls(timestamp=now_ms)

    def next(self, now_ms: int) -> DataVersion:
        """The version after one more change."""
        return DataVersion(self.counter + 1, self.state_version, now_ms)


@dataclass(frozen=True, slots=True)
class TopicConfig(Body):
    """A topic on one broker: queue counts and permissions (4 read, 2 write, 1 inherit). Mirrors TopicConfig."""

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = 6
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False
    attributes: dict[str, str] = field(default_factory=dict)

    def queue_data(self, broker_name: str) -> QueueData:
        """The topic as a route shows it."""
        return QueueData(broker_name, self.read_queue_nums, self.write_queue_nums, self.perm, self.topic_sys_flag)


@dataclass(frozen=True, slots=True)
class SubscriptionGroupConfig(Body):
    """A consumer group on one broker. Mirrors SubscriptionGroupConfig."""

    group_name: str
    attributes: dict[str, str] = field(default_factory=dict)
    broker_id: int = 0
    consume_broadcast_enable: bool = True
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_message_orderly: bool = False
    consume_timeout_minute: int = 15
    group_retry_policy: dict[str, Any] = field(default_factory=lambda: {"type": "CUSTOMIZED"})
    group_sys_flag: int = 0
    notify_consumer_ids_changed_enable: bool = True
    retry_max_times: int = 16
    retry_queue_nums: int = 1
    subscription_data_set: list[Any] | None = None
    which_broker_when_consume_slowly: int = 1


@dataclass(frozen=True, slots=True)
class SubscriptionData(Body):
    """What a group subscribes to in a topic; ``sub_version`` is the client's time then. Mirrors SubscriptionData."""

    topic: str
    sub_string: str = "*"
    tags_set: list[str] = field(default_factory=list)
    code_set: list[int] = field(default_factory=list)
    sub_version: int = 0
    expression_type: str = "TAG"
    class_filter_mode: bool = False


@dataclass(frozen=True, slots=True)
class ProducerData(Body):
    """A producer group that lives in a client. Mirrors ProducerData."""

    group_name: str


@dataclass(frozen=True, slots=True)
class ConsumerData(Body):
    """A consumer that lives in a client. Mirrors ConsumerData."""

    group_name: str
    consume_type: str = "CONSUME_PASSIVELY"
    message_model: str = "CLUSTERING"
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    subscription_data_set: list[SubscriptionData] = field(default_factory=list)
    unit_mode: bool = False


@dataclass(frozen=True, slots=True)
class HeartbeatData(Body):
    """The producers and consumers of a client. Request 34. Mirrors HeartbeatData."""

    client_id: str = field(default="", metadata={"json": "clientID"})
    producer_data_set: list[ProducerData] = field(default_factory=list)
    consumer_data_set: list[ConsumerData] = field(default_factory=list)
    heartbeat_fingerprint: int = 0
    without_sub: bool = False


@dataclass(frozen=True, slots=True)
class QueueData(Body):
    """A topic's queues on one broker name. Mirrors QueueData."""

    broker_name: str
    read_queue_nums: int = 0
    write_queue_nums: int = 0
    perm: int = 0
    topic_sys_flag: int = 0


@dataclass(frozen=True, slots=True)
class BrokerData(Body):
    """A broker name and its addresses by broker id, 0 the master. Mirrors BrokerData."""

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str] = field(default_factory=dict)
    enable_acting_master: bool = False


@dataclass(frozen=True, slots=True)
class TopicRouteData(Body):
    """Where a topic lives. Answer to 105. Mirrors TopicRouteData."""

    queue_datas: list[QueueData] = field(default_factory=list)
    broker_datas: list[BrokerData] = field(default_factory=list)
    filter_server_table: dict[str, list[str]] = field(default_factory=dict)
    order_topic_conf: str | None = None

    def readable_queues(self, topic: str) -> list[MessageQueue]:
        """The queues that consumers may read, sorted. Mirrors MQClientInstance.topicRouteData2TopicSubscribeInfo."""
        return [
            MessageQueue(topic, data.broker_name, queue_id)
            for data in sorted(self.queue_datas, key=lambda data: utf16_key(data.broker_name))
            if data.perm & PERM_READ
            for queue_id in range(data.read_queue_nums)
        ]


@dataclass(frozen=True, slots=True)
class ClusterInfo(Body):
    """All brokers of all clusters. Answer to 106. Mirrors ClusterInfo."""

    broker_addr_table: dict[str, BrokerData] = field(default_factory=dict)
    cluster_addr_table: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RegisterBrokerBody(Body):
    """A broker's topics. Request 103. Mirrors RegisterBrokerBody with its TopicConfigAndMappingSerializeWrapper."""

    topic_config_table: dict[str, TopicConfig] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)
    filter_server_list: list[str] = field(default_factory=list)

    def to_value(self) -> dict[str, Any]:
        """The topics are one level deeper, next to tables of static topics that are always empty here."""
        wrapper = {
            "dataVersion": self.data_version.to_value(),
            "mappingDataVersion": self.data_version.to_value(),
            "topicConfigTable": {name: topic.to_value() for name, topic in self.topic_config_table.items()},
            "topicQueueMappingDetailMap": {},
            "topicQueueMappingInfoMap": {},
        }
        return {"filterServerList": list(self.filter_server_list), "topicConfigSerializeWrapper": wrapper}

    @classmethod
    def from_value(cls, value: Any) -> RegisterBrokerBody:
        wrapper = value.get("topicConfigSerializeWrapper") if isinstance(value, dict) else None
        topics = _Topics.from_value(wrapper)
        return cls(topics.topic_config_table, topics.data_version, list(value.get("filterServerList") or ()))


@dataclass(frozen=True, slots=True)
class _Topics(Body):
    topic_config_table: dict[str, TopicConfig] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


@dataclass(frozen=True, slots=True)
class LockBatchRequestBody(Body):
    """Queues to lock or unlock for a client. Requests 41 and 42. Mirrors LockBatchRequestBody."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueue] = field(default_factory=list)
    only_this_broker: bool = False


@dataclass(frozen=True, slots=True)
class LockBatchResponseBody(Body):
    """The queues that are locked for the asking client now. Answer to 41. Mirrors LockBatchResponseBody."""

    lock_ok_mq_set: list[MessageQueue] = field(default_factory=list, metadata={"json": "lockOKMQSet"})


@dataclass(frozen=True, slots=True)
class CheckClientRequestBody(Body):
    """A subscription for the broker to judge. Request 46. Mirrors CheckClientRequestBody."""

    client_id: str
    group: str
    subscription_data: SubscriptionData


def consumer_ids_to_json(client_ids: Iterable[str]) -> bytes:
    """Answer to 38. Mirrors GetConsumerListByGroupResponseBody."""
    return java_json.to_json({"consumerIdList": list(client_ids)})


def consumer_ids_from_json(data: bytes) -> list[str]:
    """The client ids in an answer to 38; none when there is no list. Raises CorruptionError for any other body."""
    value = decoded_json(data, "list of client ids")
    ids = value.get("consumerIdList") if isinstance(value, dict) else value
    if ids is not None and not (isinstance(value, dict) and isinstance(ids, list)):
        raise CorruptionError("consumerIdList must be a list", expected="a list of client ids", found=str(ids)[:80])
    return [str(client_id) for client_id in ids or ()]


def topic_list_to_json(topics: Iterable[str], broker_addr: str | None = None) -> bytes:
    """Answer to 206, 224, 304 and 311 to 313. Mirrors TopicList."""
    value: dict[str, Any] = {} if broker_addr is None else {"brokerAddr": broker_addr}
    return java_json.to_json({**value, "topicList": list(topics)})


def kv_table_to_json(table: Mapping[str, str]) -> bytes:
    """A table of strings. Mirrors KVTable."""
    return java_json.to_json({"table": dict(table)})
