"""The topics of a broker: how many queues to read and to write, and who may read and write them.

Mirrors: TopicConfigManager; file config/topics.json.

    topic                  read / write queues   perm                made
    TBW102                 8 / 8                 7 (read write inherit)   at start: the template
    orders                 4 / 4                 6 (read write)           by the first send: min(client 4, template 8)
    %RETRY%billing         1 / 1                 6                        by billing's first heartbeat
    SCHEDULE_TOPIC_XXXX    18 / 18               6                        at start

Left out: static topics (queue mapping) and what other attributes than the known ones would mean.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.config import BrokerConfig
from mqlab.rocketmq.broker.tables.table import BrokerTable
from mqlab.rocketmq.broker.tables.topic_attributes import altered_attributes
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire import java_json, names
from mqlab.rocketmq.wire.bodies import PERM_INHERIT, PERM_READ, PERM_WRITE, DataVersion, TopicConfig

PERM_ALL = PERM_READ | PERM_WRITE
MOST_QUEUES = 65_535
"""Of one topic. RocketMQ takes any number, and then a question for the topic takes all of its time and memory."""

UNIT_FLAG, UNIT_SUB_FLAG = 1, 2  # TopicSysFlag


def is_readable(perm: int) -> bool:
    """Mirrors PermName.isReadable."""
    return bool(perm & PERM_READ)


def is_writeable(perm: int) -> bool:
    """Mirrors PermName.isWriteable."""
    return bool(perm & PERM_WRITE)


def no_such_queue(topic: TopicConfig, queue_id: int, consumer: str) -> str:
    """The remark for a consumer at this address that reads a queue which its topic has not."""
    queues = f"topic:[{topic.topic_name}] topicConfig.readQueueNums:[{topic.read_queue_nums}]"
    return f"queueId[{queue_id}] is illegal, {queues} consumer:[/{consumer}]"


def system_topics(config: BrokerConfig, has_timer: bool = False) -> list[TopicConfig]:
    """The topics that every broker creates at its start, in RocketMQ's order."""

    def topic(name: str, queues: int = 1, perm: int = PERM_ALL) -> TopicConfig:
        return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm)

    cluster, broker = config.broker_cluster_name, config.broker_name
    topics = [topic(names.SELF_TEST_TOPIC)]
    # Without its template no topic can be created by a send.
    if config.auto_create_topic_enable:
        topics.append(topic(names.AUTO_CREATE_TOPIC, config.default_topic_queue_nums, PERM_ALL | PERM_INHERIT))
    topics.append(topic(names.BENCHMARK_TOPIC, 1024))
    # One topic is named after the cluster and one after the broker, as in RocketMQ.
    topics.append(topic(cluster, 16, PERM_INHERIT | (PERM_ALL if config.cluster_topic_enable else 0)))
    topics.append(topic(broker, 1, PERM_INHERIT | (PERM_ALL if config.broker_topic_enable else 0)))
    topics.append(topic(names.OFFSET_MOVED_TOPIC))
    topics.append(topic(names.SCHEDULE_TOPIC, 18))
    if config.trace_topic_enable:
        topics.append(topic(config.msg_trace_topic_name))
    topics.append(topic(f"{cluster}_{names.REPLY_TOPIC_POSTFIX}"))
    topics.append(topic(names.REVIVE_LOG_PREFIX + cluster, config.revive_queue_num))
    topics.append(topic(names.SYNC_BROKER_MEMBER_PREFIX + broker, 1, PERM_INHERIT))
    topics.append(topic(names.HALF_TOPIC))
    topics.append(topic(names.OP_HALF_TOPIC))
    if has_timer:
        topics.append(topic(names.TIMER_TOPIC))
    return topics


class TopicTable(BrokerTable[str, TopicConfig]):
    """topic -> its configuration. Mirrors TopicConfigManager.

    ``changed`` gets the topics that were created or changed (none for a deletion), after the version advanced.
    """

    def __init__(
        self,
        config: BrokerConfig,
        now_ms: Callable[[], int],
        *,
        has_timer: bool = False,
        note: Callable[..., None] = lambda *_, **__: None,
    ) -> None:
        self.config = config
        self._now_ms = now_ms
        self.changed: Signal[[list[TopicConfig]]] = Signal()
        self._note = note
        self.data_version = DataVersion.at(now_ms())
        self._entries: dict[str, TopicConfig] = {topic.topic_name: topic for topic in system_topics(config, has_timer)}
        self.system_names = tuple(dict.fromkeys((*self._entries, *names.SYSTEM_TOPICS)))

    def is_system(self, topic: str) -> bool:
        """True for the topics that this broker created at its start, and for RocketMQ's other reserved names."""
        return topic in self.system_names or names.is_system_topic(topic)

    def problem_of(self, config: TopicConfig) -> str | None:
        """Why an operator may not create or change a topic like this, None if it is allowed. Mirrors TopicValidator."""
        topic = config.topic_name
        problem = names.topic_problem(topic)
        if problem is not None:
            return problem
        if self.is_system(topic):
            return f"The topic[{topic}] is conflict with system topic."
        for name in ("perm", "read_queue_nums", "write_queue_nums"):
            value = getattr(config, name)
            if isinstance(value, bool) or not isinstance(value, int):
                return f"{name} of topic {topic} is a whole number, not {value!r}"
        if not 0 <= config.perm <= PERM_READ | PERM_WRITE | PERM_INHERIT:
            return f"perm {config.perm} of topic {topic} is not within 0 to 7 (4 read, 2 write, 1 inherit)"
        if min(config.read_queue_nums, config.write_queue_nums) < 0:
            return f"topic {topic} cannot have a negative number of queues"
        if max(config.read_queue_nums, config.write_queue_nums) > MOST_QUEUES:
            return (
                f"topic {topic} cannot have more than {MOST_QUEUES:,} queues: many answers have a row for each of them"
            )
        return None

    def create_on_send(
        self, topic: str, default_topic: str, client_queue_nums: int, topic_sys_flag: int = 0
    ) -> TopicConfig | None:
        """Create a topic that a producer sends to from a template topic; None if the template does not allow it.

        Mirrors createTopicInSendMessageMethod.
        """
        current = self._entries.get(topic)
        if current is not None:
            return current
        template = self._entries.get(default_topic)
        if template is None or not template.perm & PERM_INHERIT:
            return None
        if default_topic == names.AUTO_CREATE_TOPIC and not self.config.auto_create_topic_enable:
            return None  # TBW102 comes from a file that was written with other settings
        queues = max(0, min(client_queue_nums, template.write_queue_nums))
        return self._create(
            TopicConfig(
                topic_name=topic,
                read_queue_nums=queues,
                write_queue_nums=queues,
                perm=template.perm & ~PERM_INHERIT,
                topic_filter_type=template.topic_filter_type,
                topic_sys_flag=topic_sys_flag,
            ),
            by="send",
        )

    def create_on_send_back(
        self, topic: str, queue_nums: int, *, perm: int = PERM_ALL, order: bool | None = None, topic_sys_flag: int = 0
    ) -> TopicConfig:
        """Create a retry, dead letter or other topic of the broker itself; only ``order`` of an existing one changes.

        Mirrors createTopicInSendMessageBackMethod.
        """
        current = self._entries.get(topic)
        if current is None:
            config = TopicConfig(
                topic_name=topic,
                read_queue_nums=queue_nums,
                write_queue_nums=queue_nums,
                perm=perm,
                topic_sys_flag=topic_sys_flag,
                order=bool(order),
            )
            return self._create(config, by="broker")
        if order is not None and current.order != order:
            return self.update(dataclasses.replace(current, order=order))
        return current

    def update(self, config: TopicConfig, attribute_changes: Mapping[str, str] | None = None) -> TopicConfig:
        """Create or replace a topic; attributes are changed by ``{"+name": value, "-name": ""}``.

        Raises UsageError for attributes that are unknown or cannot change. Mirrors updateTopicConfig.
        """
        before = self._entries.get(config.topic_name)
        current = {} if before is None else dict(before.attributes)
        attributes = altered_attributes(current, attribute_changes or {}, create=before is None)
        config = dataclasses.replace(config, attributes=attributes)
        if before is None:
            return self._create(config, by="admin")
        self._entries[config.topic_name] = config
        self._advance([config])
        self._note("topic.updated", topic=config.topic_name, before=_counts(before), now=_counts(config))
        return config

    def set_order(self, ordered: Iterable[str]) -> None:
        """Mark the topics that the name servers list as ordered. Mirrors updateOrderTopicConfig."""
        changed = []
        for topic in ordered:
            current = self._entries.get(topic)
            if current is not None and not current.order:
                self._entries[topic] = dataclasses.replace(current, order=True)
                changed.append(self._entries[topic])
        if changed:
            self._advance(changed)

    def take_over(self, text: str) -> bool:
        """A slave uses its master's topics (GET_ALL_TOPIC_CONFIG); False if it has them already.

        Raises CorruptionError. Mirrors SlaveSynchronize.syncTopicConfig.
        """
        version, topics = _parsed(text)
        if version == self.data_version:
            return False
        self._entries = topics
        self.data_version = version or self.data_version
        self.changed([])
        return True

    def touch(self) -> None:
        """Advance the version because the permissions of the broker itself have changed."""
        self._advance([])

    def delete(self, topic: str) -> bool:
        """Remove a topic; False if there is none. Mirrors deleteTopicConfig."""
        if self._entries.pop(topic, None) is None:
            return False
        self._advance([])
        self._note("topic.deleted", topic=topic)
        return True

    def to_value(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "dataVersion": self.data_version.to_value(),
            "topicConfigTable": {name: topic.to_value() for name, topic in self._entries.items()},
        }

    def encode(self) -> str:
        """The text of topics.json."""
        return java_json.pretty(self.to_value())

    def decode(self, text: str) -> None:
        """Add the topics of a file to those created at the start. Raises CorruptionError."""
        version, loaded = _parsed(text)
        self.data_version = version or self.data_version
        self._entries.update(loaded)

    def _create(self, config: TopicConfig, by: str) -> TopicConfig:
        self._entries[config.topic_name] = config
        self._note("topic.created", topic=config.topic_name, by=by, **_counts(config))
        self._advance([config])
        return config

    def _advance(self, changed: list[TopicConfig]) -> None:
        self.data_version = self.data_version.next(self._now_ms())
        self.changed(changed)

    def __repr__(self) -> str:
        return f"<TopicTable: {len(self._entries)} topics, version {self.data_version.counter}>"


def _parsed(text: str) -> tuple[DataVersion | None, dict[str, TopicConfig]]:
    """Version and topics of a file's or an answer's text. Raises CorruptionError."""
    try:
        value = java_json.loads(text)
        table = java_json.table(value, "topicConfigTable")
        topics = {name: TopicConfig.from_value(topic) for name, topic in table.items()}
        version = java_json.data_of(value, "dataVersion")
        return (DataVersion.from_value(version) if version else None), topics
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptionError(
            "topics cannot be read", expected='{"topicConfigTable":{"orders":{…}}}', found=error
        ) from error


def _counts(config: TopicConfig) -> dict[str, int]:
    return {
        "read_queue_nums": config.read_queue_nums,
        "write_queue_nums": config.write_queue_nums,
        "perm": config.perm,
    }
