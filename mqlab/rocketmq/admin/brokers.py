"""Brokers: their status, counters and settings, and the removal of expired files.

Mirrors: mqadmin clusterList, brokerStatus, statsAll, getBrokerConfig, updateBrokerConfig, cleanExpiredCQ,
cleanUnusedTopic, deleteExpiredCommitLog; requests 28, 315, 26, 25, 306, 316, 329.

    counter     key          minute               hour   day
    TOPIC_PUT_NUMS  orders   sum  tps  avgpt      …      …

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.errors import BrokerError
from mqlab.rocketmq.admin.clusters import KeyValue, examine_broker_cluster_info
from mqlab.rocketmq.admin.groups import stats_of_group
from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.admin.steps import at_each
from mqlab.rocketmq.admin.topics import fetch_all_topic_list, query_topic_consume_by_who
from mqlab.rocketmq.answers import Rows, Shown
from mqlab.rocketmq.wire.body import camel_case
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.java_json import to_long
from mqlab.rocketmq.wire.names import MASTER_ID

WINDOWS = ("statsDay", "statsHour", "statsMinute")


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """One line of clusterList: rates per second in the last minute, and counts since midnight."""

    cluster: str
    broker: str
    address: str
    version: str
    in_tps: float
    out_tps: float
    messages_in: int
    messages_out: int
    dispatch_behind_bytes: int


@dataclass(frozen=True, slots=True)
class Window:
    """A counter over one window: ``avgpt`` is the average per count. Mirrors BrokerStatsItem."""

    window: str
    sum: int
    tps: float
    avgpt: float


@dataclass(frozen=True, slots=True)
class BrokerStatsData(Shown):
    """One counter of one broker. Mirrors BrokerStatsData."""

    broker: str
    stats_name: str
    stats_key: str
    windows: tuple[Window, ...]

    def shown_rows(self) -> Sequence[Window]:
        return self.windows

    def shown_title(self) -> str:
        return f"{self.stats_name} {self.stats_key} at {self.broker}"


@dataclass(frozen=True, slots=True)
class TopicTraffic:
    """One topic and one group that reads it, as statsAll shows them; without a group only what comes in."""

    topic: str
    group: str | None
    accumulation: int | None
    in_tps: float
    out_tps: float
    in_24_hours: int
    out_24_hours: int


def cluster_list(admin: AdminNode) -> Rows[BrokerStatus]:
    """Every master with the rates and counts of its messages. Mirrors clusterList."""
    rows = []
    clusters = {row.broker: row.cluster for row in examine_broker_cluster_info(admin)}
    for broker, address in admin.brokers():
        stats = {stat.name: stat.value for stat in fetch_broker_runtime_stats(admin, broker)}
        rows.append(
            BrokerStatus(
                clusters[broker],
                broker,
                address,
                stats.get("brokerVersionDesc", ""),
                _first_number(stats.get("putTps", "")),
                _first_number(stats.get("getTransferredTps", "")),
                # The broker counts from its start; the difference to the count at midnight is today's.
                to_long(stats.get("msgPutTotalTodayNow", 0)) - to_long(stats.get("msgPutTotalTodayMorning", 0)),
                to_long(stats.get("msgGetTotalTodayNow", 0)) - to_long(stats.get("msgGetTotalTodayMorning", 0)),
                to_long(stats.get("dispatchBehindBytes", 0)),
            )
        )
    return Rows(rows, "cluster")


def fetch_broker_runtime_stats(admin: AdminNode, broker: str, broker_id: int = MASTER_ID) -> Rows[KeyValue]:
    """The status values of a broker (the master, or a slave by id), sorted by name. Mirrors brokerStatus."""
    address = admin.address_of(broker, broker_id)
    table = admin.ask_value(address, RequestCode.GET_BROKER_RUNTIME_INFO).get("table") or {}
    return Rows([KeyValue(name, str(table[name])) for name in sorted(table)], f"status of {broker}")


def view_broker_stats_data(admin: AdminNode, broker: str, stats_name: str, stats_key: str) -> BrokerStatsData:
    """One counter over a minute, an hour and a day; BrokerError with code 1 if it does not exist."""
    _, address = admin.brokers(broker)[0]
    counter = _counter(admin, address, stats_name, stats_key)
    return BrokerStatsData(broker, stats_name, stats_key, tuple(_window(name, counter[name]) for name in WINDOWS[::-1]))


def stats_all(admin: AdminNode, topic: str | None = None) -> Rows[TopicTraffic]:
    """The messages into and out of topics, one row per topic and group. Mirrors statsAll."""
    topics = [topic] if topic else [row.topic for row in fetch_all_topic_list(admin) if row.kind == "NORMAL"]
    rows = []
    for name in topics:
        in_tps, in_day = _summed(admin, name, "TOPIC_PUT_NUMS", name)
        groups = query_topic_consume_by_who(admin, name)
        for group in groups:
            out_tps, out_day = _summed(admin, name, "GROUP_GET_NUMS", f"{name}@{group}")
            behind = stats_of_group(admin, group, name).total_diff
            rows.append(TopicTraffic(name, group, max(behind, 0), in_tps, out_tps, in_day, out_day))
        if not groups:
            rows.append(TopicTraffic(name, None, None, in_tps, 0.0, in_day, 0))
    return Rows(rows, "traffic")


def _summed(admin: AdminNode, topic: str, stats_name: str, stats_key: str) -> tuple[float, int]:
    """A counter over all brokers of a topic: the rate per second in the last minute, the sum of the longest window."""
    tps, total = 0.0, 0
    for _, address in admin.brokers_of(topic):
        try:
            counter = _counter(admin, address, stats_name, stats_key)
        except BrokerError as error:
            if error.response_code != ResponseCode.SYSTEM_ERROR:
                raise
            continue  # this broker has not counted it
        # The longest window with a count: a young broker has no day or hour yet.
        tps += float(counter["statsMinute"]["tps"])
        total += next((to_long(counter[name]["sum"]) for name in WINDOWS if counter[name]["sum"]), 0)
    return tps, total


def _counter(admin: AdminNode, address: str, stats_name: str, stats_key: str) -> dict[str, Any]:
    code = RequestCode.VIEW_BROKER_STATS_DATA
    return admin.ask_value(address, code, statsName=stats_name, statsKey=stats_key)


def get_broker_config(admin: AdminNode, broker: str) -> dict[str, str]:
    """Every setting of a broker, by RocketMQ's names, as strings."""
    _, address = admin.brokers(broker)[0]
    text = (admin.ask(address, RequestCode.GET_BROKER_CONFIG).body or b"").decode("utf-8", "replace")
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def update_broker_config(admin: AdminNode, broker: str, **settings: object) -> None:
    """Change settings of a running broker; names in snake_case; all of them are changed or none."""
    _, address = admin.brokers(broker)[0]
    lines = "".join(f"{camel_case(name)}={_java(value)}\n" for name, value in settings.items())
    admin.ask(address, RequestCode.UPDATE_BROKER_CONFIG, lines.encode())


def delete_expired_commit_log(admin: AdminNode, broker: str | None = None) -> None:
    """Delete log files older than file_reserved_time now, at any hour, at one broker or all."""
    _clean(admin, RequestCode.DELETE_EXPIRED_COMMITLOG, broker)


def clean_expired_consumer_queue(admin: AdminNode, broker: str | None = None) -> None:
    """Delete queues whose messages are all gone from the log."""
    _clean(admin, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, broker)


def clean_unused_topic(admin: AdminNode, broker: str | None = None) -> None:
    """Delete the queues of topics that the broker no longer has."""
    _clean(admin, RequestCode.CLEAN_UNUSED_TOPIC, broker)


def _clean(admin: AdminNode, code: RequestCode, broker: str | None) -> None:
    at_each(code.name.lower(), admin.brokers(broker), lambda address: admin.ask(address, code))


def _window(name: str, counts: dict[str, Any]) -> Window:
    return Window(name, to_long(counts["sum"]), float(counts["tps"]), float(counts["avgpt"]))


def _first_number(text: str) -> float:
    first = text.split()
    return float(first[0]) if first else 0.0


def _java(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
