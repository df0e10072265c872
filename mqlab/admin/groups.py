"""Consumer groups: their settings, how far they have come, how far they are behind.

Mirrors: mqadmin updateSubGroup, deleteSubGroup, consumerProgress; requests 200, 352, 201, 207, 208, 303, 314.

    lag       broker_offset - consumer_offset      stored and not yet confirmed
    inflight  pull_offset - consumer_offset        handed out and not yet confirmed
    delay     how long the oldest unconfirmed message has been waiting

Left out: groups of POP consumers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.admin.answers import Rows, Shown
from mqlab.admin.requests import AdminNode
from mqlab.admin.topics import delete_topic, with_settings
from mqlab.errors import BrokerError
from mqlab.wire import names
from mqlab.wire.bodies import SubscriptionGroupConfig
from mqlab.wire.body import queue_from_key
from mqlab.wire.codes import RequestCode, ResponseCode
from mqlab.wire.message import MessageQueue

NOT_ONLINE = (ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.SYSTEM_ERROR)


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
    """How far a group has come; ``consume_tps``: messages handed out a second. Mirrors ConsumeStats."""

    group: str
    queues: tuple[QueueProgress, ...]
    consume_tps: float

    @property
    def total_diff(self) -> int:
        """All that is stored and not confirmed. Mirrors computeTotalDiff."""
        return sum(queue.lag for queue in self.queues)

    @property
    def total_inflight(self) -> int:
        """All that is handed out and not confirmed. Mirrors computeInflightTotalDiff."""
        return sum(queue.inflight for queue in self.queues)

    def shown_rows(self) -> Sequence[QueueProgress]:
        return self.queues

    def shown_title(self) -> str:
        return f"progress of {self.group}"

    def shown_notes(self) -> Sequence[str]:
        return [f"Consume TPS: {self.consume_tps:.2f}  Diff Total: {self.total_diff}  Inflight: {self.total_inflight}"]


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a group is behind on one topic; ``delay_ms``: how long the oldest unconfirmed message has waited."""

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
    """Make a group or change its settings (consume_enable, retry_max_times, …) on all brokers or on those named."""
    for _, address in admin.brokers(brokers):
        try:
            answer = admin.ask(address, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, group=group)
            before = SubscriptionGroupConfig.from_json(answer.body or b"")
        except BrokerError as error:
            if error.response_code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                raise
            before = SubscriptionGroupConfig(group)
        config = with_settings(before, settings)
        admin.ask(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, config.to_json())


def examine_subscription_group_config(
    admin: AdminNode, group: str, broker: str | None = None
) -> SubscriptionGroupConfig:
    """A group's settings at one broker; BrokerError with code 26 when it has none and may not be made."""
    _, address = admin.brokers(broker)[0]
    answer = admin.ask(address, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, group=group)
    return SubscriptionGroupConfig.from_json(answer.body or b"")


def delete_subscription_group(admin: AdminNode, group: str, *, clean_offset: bool = True) -> None:
    """Delete a group with its offsets, and its retry and dead letter topics, everywhere."""
    for _, address in admin.brokers():
        admin.ask(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, groupName=group, cleanOffset=clean_offset)
    for topic in (names.retry_topic(group), names.dlq_topic(group)):
        delete_topic(admin, topic)


def query_all_groups(admin: AdminNode, *, system: bool = False) -> list[str]:
    """All groups that some broker knows, by name; RocketMQ's own ones only if asked for."""
    found: dict[str, None] = {}
    for _, address in admin.brokers():
        found.update(dict.fromkeys(groups_at(admin, address)))
    return sorted(group for group in found if system or group not in names.PREDEFINED_GROUPS)


def groups_at(admin: AdminNode, address: str) -> list[str]:
    """The groups that one broker knows, without making any (asking for a group's settings may make it)."""
    table = admin.ask_value(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    return list(table.get("subscriptionGroupTable") or {})


def check_group_exists(admin: AdminNode, group: str) -> None:
    """BrokerError with code 26 for a group that no broker knows."""
    brokers = admin.brokers()
    if not any(group in groups_at(admin, address) for _, address in brokers):
        no_such = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        raise BrokerError(no_such, f"Group {group} does not exist", address=brokers[0][1] if brokers else "")


def examine_consume_stats(admin: AdminNode, group: str, topic: str | None = None) -> ConsumeStats:
    """Every queue of a group, of one topic or of all, its retries included.

    BrokerError with code 26 for a group without offsets that no broker knows.
    """
    found = stats_of_group(admin, group, topic)
    if not found.queues:
        check_group_exists(admin, group)
    return found


def stats_of_group(admin: AdminNode, group: str, topic: str | None = None) -> ConsumeStats:
    """As examine_consume_stats, and without rows for a group that no broker has."""
    rows, tps = [], 0.0
    for _, address in admin.brokers_of_group(group):
        found = admin.ask_value(address, RequestCode.GET_CONSUME_STATS, consumerGroup=group, topic=topic)
        tps += float(found.get("consumeTps") or 0)
        for key, offsets in (found.get("offsetTable") or {}).items():
            most, confirmed = int(offsets["brokerOffset"]), int(offsets["consumerOffset"])
            pulled = int(offsets.get("pullOffset", confirmed))
            times = int(offsets["lastTimestamp"]), most - confirmed, max(pulled - confirmed, 0)
            rows.append(QueueProgress(queue_from_key(key), most, confirmed, pulled, *times))
    return ConsumeStats(group, tuple(sorted(rows, key=lambda row: row.message_queue)), tps)


def consumer_progress(admin: AdminNode) -> Rows[Lag]:
    """Every group that has offsets, a row for each of its topics. Mirrors consumerProgress without -g."""
    return Rows([row for group in query_all_groups(admin) for row in lag(admin, group)], "progress of all groups")


def lag(admin: AdminNode, group: str) -> Rows[Lag]:
    """How far a group is behind, a row per topic."""
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
    """Every queue of a topic in times: from when to when it reaches, and where the group is."""
    rows = []
    for _, address in admin.brokers_of(topic):
        found = admin.ask_value(address, RequestCode.QUERY_CONSUME_TIME_SPAN, topic=topic, group=group)
        for span in found.get("consumeTimeSpanSet") or []:
            queue = span["messageQueue"]
            rows.append(
                TimeSpan(
                    MessageQueue(queue["topic"], queue["brokerName"], int(queue["queueId"])),
                    int(span["minTimeStamp"]),
                    int(span["maxTimeStamp"]),
                    int(span["consumeTimeStamp"]),
                    int(span["delayTime"]),
                )
            )
    return Rows(sorted(rows, key=lambda row: row.message_queue), f"times of {group} on {topic}")


def clone_group_offset(admin: AdminNode, source: str, target: str, topic: str, *, offline: bool = True) -> None:
    """Let a group stand where another one stands on a topic."""
    fields: dict[str, Any] = {"srcGroup": source, "destGroup": target, "topic": topic, "offline": offline}
    for _, address in admin.brokers_of(topic):
        admin.ask(address, RequestCode.CLONE_GROUP_OFFSET, **fields)
