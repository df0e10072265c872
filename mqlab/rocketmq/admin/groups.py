"""Consumer groups: their settings, their progress, their lag.

Mirrors: mqadmin updateSubGroup, deleteSubGroup, consumerProgress; requests 200, 352, 201, 207, 208, 303, 314.

    lag       broker_offset - consumer_offset      stored and not yet confirmed
    inflight  pull_offset - consumer_offset        pulled and not yet confirmed
    delay     how long the oldest unconfirmed message has been waiting

For a group that pops, confirmed means handed out: its lag is 0 with everything unacknowledged (lab.leases shows that).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.errors import BrokerError
from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.admin.steps import Steps, at_each
from mqlab.rocketmq.admin.topics import delete_topic_everywhere, with_settings
from mqlab.rocketmq.answers import Rows, Shown
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire.bodies import SubscriptionGroupConfig
from mqlab.rocketmq.wire.body import queue_from_key
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.java_json import to_long
from mqlab.rocketmq.wire.message import MessageQueue


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """One queue of a group; offsets are next-to-read, ``last_timestamp`` of the last confirmed message, ms.

    Mirrors OffsetWrapper.
    """

    message_queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    pull_offset: int
    last_timestamp: int
    lag: int
    inflight: int


@dataclass(frozen=True, slots=True)
class ConsumeStats(Shown):
    """The progress of a group; ``consume_tps`` is the number of messages pulled per second. Mirrors ConsumeStats."""

    group: str
    queues: tuple[QueueProgress, ...]
    consume_tps: float

    @property
    def total_diff(self) -> int:
        """The number of messages that are stored and not confirmed. Mirrors computeTotalDiff."""
        return sum(queue.lag for queue in self.queues)

    @property
    def total_inflight(self) -> int:
        """The number of messages that are pulled and not confirmed. Mirrors computeInflightTotalDiff."""
        return sum(queue.inflight for queue in self.queues)

    def shown_rows(self) -> Sequence[QueueProgress]:
        return self.queues

    def shown_title(self) -> str:
        return f"progress of {self.group}"

    def shown_notes(self) -> Sequence[str]:
        return [f"Consume TPS: {self.consume_tps:.2f}  Diff Total: {self.total_diff}  Inflight: {self.total_inflight}"]


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a group on one topic; ``delay_ms`` is the waiting time of the oldest unconfirmed message."""

    group: str
    topic: str
    lag: int
    inflight: int
    delay_ms: int


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """One queue in times of storing, ms: oldest and newest message, the last confirmed one, and the delay.

    Mirrors QueueTimeSpan.
    """

    message_queue: MessageQueue
    min_timestamp: int
    max_timestamp: int
    consume_timestamp: int
    delay_ms: int


def create_and_update_subscription_group_config(
    admin: AdminNode, group: str, *, brokers: Sequence[str] | str | None = None, **settings: Any
) -> None:
    """Create a group or change its settings (consume_enable, retry_max_times, …) on all brokers or on those named."""

    def change(address: str) -> None:
        try:
            answer = admin.ask(address, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, group=group)
            before = SubscriptionGroupConfig.from_json(answer.body or b"")
        except BrokerError as error:  # the group is new at this broker: begin with the defaults
            if error.response_code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                raise
            before = SubscriptionGroupConfig(group)
        config = with_settings(before, settings)
        admin.ask(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, config.to_json())

    at_each("create_and_update_subscription_group_config", admin.brokers(brokers), change)


def examine_subscription_group_config(
    admin: AdminNode, group: str, broker: str | None = None
) -> SubscriptionGroupConfig:
    """A group's settings at one broker; BrokerError with code 26 if it does not exist and cannot be created."""
    _, address = admin.brokers(broker)[0]
    answer = admin.ask(address, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, group=group)
    return SubscriptionGroupConfig.from_json(answer.body or b"")


def delete_subscription_group(admin: AdminNode, group: str, *, clean_offset: bool = True) -> None:
    """Delete a group with its offsets, and its retry and dead letter topics, at every broker."""
    steps = Steps("delete_subscription_group")
    steps.take_each(
        [(f"{group} at {broker}", address) for broker, address in admin.brokers()],
        lambda address: admin.ask(
            address, RequestCode.DELETE_SUBSCRIPTIONGROUP, groupName=group, cleanOffset=clean_offset
        ),
    )
    # The broker keeps the topics of a deleted group; as mqadmin does, delete them too.
    for topic in (names.retry_topic(group), names.dlq_topic(group)):
        delete_topic_everywhere(admin, topic, steps)
    steps.finish()


def query_all_groups(admin: AdminNode, *, system: bool = False) -> list[str]:
    """The names of all groups, sorted; RocketMQ's own groups only with ``system``."""
    groups: dict[str, None] = {}
    for _, address in admin.brokers():
        groups.update(dict.fromkeys(groups_at(admin, address)))
    return sorted(group for group in groups if system or group not in names.PREDEFINED_GROUPS)


def groups_at(admin: AdminNode, address: str) -> list[str]:
    """The groups of one broker. Unlike a request for the settings of a group, this does not create the group."""
    table = admin.ask_value(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    return list(table.get("subscriptionGroupTable") or {})


def check_group_exists(admin: AdminNode, group: str) -> None:
    """Raise BrokerError with code 26 for a group that no broker has."""
    brokers = admin.brokers()
    if not any(group in groups_at(admin, address) for _, address in brokers):
        no_such = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        raise BrokerError(no_such, f"Group {group} does not exist", address=brokers[0][1] if brokers else "")


def examine_consume_stats(admin: AdminNode, group: str, topic: str | None = None) -> ConsumeStats:
    """Every queue of a group, of one topic or of all, its retries included.

    BrokerError with code 26 for a group without offsets that no broker has.
    """
    stats = stats_of_group(admin, group, topic)
    if not stats.queues:  # a group without offsets and an unknown one look the same here
        check_group_exists(admin, group)
    return stats


def stats_of_group(admin: AdminNode, group: str, topic: str | None = None) -> ConsumeStats:
    """As examine_consume_stats, and without rows for a group that no broker has."""
    rows, tps = [], 0.0
    for _, address in admin.brokers_of_group(group):
        stats = admin.ask_value(address, RequestCode.GET_CONSUME_STATS, consumerGroup=group, topic=topic)
        tps += float(stats.get("consumeTps") or 0)
        for key, offsets in (stats.get("offsetTable") or {}).items():
            end_offset, confirmed = to_long(offsets["brokerOffset"]), to_long(offsets["consumerOffset"])
            pulled = to_long(offsets.get("pullOffset", confirmed))
            times = to_long(offsets["lastTimestamp"]), end_offset - confirmed, max(pulled - confirmed, 0)
            rows.append(QueueProgress(queue_from_key(key), end_offset, confirmed, pulled, *times))
    return ConsumeStats(group, tuple(sorted(rows, key=lambda row: row.message_queue)), tps)


def consumer_progress(admin: AdminNode) -> Rows[Lag]:
    """Every group that has offsets, one row per group and topic. Mirrors consumerProgress without -g."""
    return Rows([row for group in query_all_groups(admin) for row in lag(admin, group)], "progress of all groups")


def lag(admin: AdminNode, group: str) -> Rows[Lag]:
    """The lag of a group, one row per topic."""
    stats = examine_consume_stats(admin, group)
    topics = sorted({queue.message_queue.topic for queue in stats.queues})
    rows = []
    for topic in topics:
        queues = [queue for queue in stats.queues if queue.message_queue.topic == topic]
        behind, inflight = sum(queue.lag for queue in queues), sum(queue.inflight for queue in queues)
        delay_ms = max((span.delay_ms for span in query_consume_time_span(admin, topic, group)), default=0)
        rows.append(Lag(group, topic, behind, inflight, delay_ms))
    return Rows(rows, f"lag of {group}")


def query_consume_time_span(admin: AdminNode, topic: str, group: str) -> Rows[TimeSpan]:
    """Every queue of a topic in times: the first and the last stored message, and the group's position."""
    rows = []
    for _, address in admin.brokers_of(topic):
        answer = admin.ask_value(address, RequestCode.QUERY_CONSUME_TIME_SPAN, topic=topic, group=group)
        for span in answer.get("consumeTimeSpanSet") or []:
            queue = span["messageQueue"]
            rows.append(
                TimeSpan(
                    MessageQueue(queue["topic"], queue["brokerName"], to_long(queue["queueId"])),
                    to_long(span["minTimeStamp"]),
                    to_long(span["maxTimeStamp"]),
                    to_long(span["consumeTimeStamp"]),
                    to_long(span["delayTime"]),
                )
            )
    return Rows(sorted(rows, key=lambda row: row.message_queue), f"times of {group} on {topic}")


def clone_group_offset(admin: AdminNode, source: str, target: str, topic: str, *, offline: bool = True) -> None:
    """Copy the offsets of a group on a topic to another group."""
    fields: dict[str, Any] = {"srcGroup": source, "destGroup": target, "topic": topic, "offline": offline}
    clone = RequestCode.CLONE_GROUP_OFFSET
    at_each("clone_group_offset", admin.brokers_of(topic), lambda address: admin.ask(address, clone, **fields))
