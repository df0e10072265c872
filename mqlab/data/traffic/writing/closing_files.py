"""The small files of a finished store, as a broker leaves them at a clean stop, and the summary of the store.

Mirrors: ConfigManager.persist of each table, StoreCheckpoint.

    config/topics.json, subscriptionGroup.json, consumerOffset.json, delayOffset.json, consumerFilter.json,
    consumerOrderInfo.json, and transactionMetrics of a day with transactions
    checkpoint      lock      no abort: the store was closed

Left out: .bak files; a broker makes them when it saves for the second time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from mqlab.data.traffic.model import INVOICES, ORDERS, STOCK, TRACED, TrafficModel
from mqlab.data.traffic.writing.offsets_and_truth import Outcomes
from mqlab.data.traffic.writing.store_state import WrittenStore
from mqlab.rocketmq.broker.config import BrokerConfig
from mqlab.rocketmq.broker.tables.groups import GroupTable
from mqlab.rocketmq.broker.tables.topics import TopicTable
from mqlab.rocketmq.broker.tables.transaction_metrics import TransactionMetrics
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store import config_texts
from mqlab.rocketmq.store.checkpoint import Checkpoint
from mqlab.rocketmq.wire.bodies import DataVersion, SubscriptionGroupConfig, TopicConfig
from mqlab.rocketmq.wire.names import SCHEDULE_TOPIC, dlq_topic, retry_topic


@dataclass(frozen=True, slots=True)
class BrokerSummary:
    """The contents of one broker's store: messages by topic, bytes of the log, and the fingerprint of its units."""

    name: str
    messages: int
    topics: dict[str, int]
    log_bytes: int
    first_ms: int
    last_ms: int
    fingerprint: str
    truth: list[dict[str, Any]]


def finish_store(state: WrittenStore, outcomes: Outcomes) -> BrokerSummary:
    """Write the remaining files; the store is complete afterwards."""
    # 1. The index first: the checkpoint names the time up to which it is on disk.
    index_ms = state.index.close() if state.index is not None else 0
    files = RealFiles()
    checkpoint = Checkpoint(files, f"{state.directory}/checkpoint")
    checkpoint.physic_msg_timestamp = checkpoint.logics_msg_timestamp = outcomes.last_ms
    checkpoint.index_msg_timestamp = index_ms
    checkpoint.flush()
    # 2. The tables in config, as a broker saves them when it stops.
    files.make_directory(f"{state.directory}/config")
    for name, value in _configs(state, outcomes).items():
        text = config_texts.encode(name, value)
        files.write(f"{state.directory}/config/{name}", text.encode(), sync=True)
    if outcomes.half_queue is not None:
        metrics = TransactionMetrics(lambda: outcomes.last_ms)
        metrics.add(INVOICES, outcomes.half_queue.open_count)
        files.write(f"{state.directory}/config/transactionMetrics", metrics.encode().encode(), sync=True)
    files.write(f"{state.directory}/lock", b"lock", sync=True)
    files.sync_directory(state.directory)
    return BrokerSummary(
        state.broker_name,
        state.written,
        _message_counts(state),
        state.log.end,
        outcomes.first_ms,
        outcomes.last_ms,
        state.queues.fingerprint(),
        outcomes.truth(),
    )


def _message_counts(state: WrittenStore) -> dict[str, int]:
    """Topic -> messages, of the topics that have any."""
    counts: Counter[str] = Counter()
    for (topic, _), count in zip(state.queues.places, state.queues.ends.tolist(), strict=True):
        if count:
            counts[topic] += count
    return dict(counts)


def _configs(state: WrittenStore, outcomes: Outcomes) -> dict[str, dict[str, Any]]:
    start_ms = state.day.start_ms
    version = DataVersion(1, 0, start_ms).to_value()
    delays = {
        queue + 1: int(offset)
        for (topic, queue), offset in zip(state.queues.places, outcomes.delivered(), strict=True)
        if topic == SCHEDULE_TOPIC and offset
    }
    return {
        "topics.json": {**_topics(state).to_value(), "dataVersion": version},
        "subscriptionGroup.json": {**_groups(state.asked.model).to_value(), "dataVersion": version},
        "consumerOffset.json": {"dataVersion": version, "offsetTable": outcomes.committed()},
        "delayOffset.json": {"dataVersion": version, "offsetTable": delays},
        "consumerFilter.json": {"filterDataByTopic": {}},
        "consumerOrderInfo.json": {"table": {}},
    }


def _topics(state: WrittenStore) -> TopicTable:
    model = state.asked.model
    config = replace(
        BrokerConfig(), broker_name=state.broker_name, broker_cluster_name=model.cluster, trace_topic_enable=True
    )
    topics = TopicTable(config, lambda: model.start_ms)
    for topic, queue_count in ((ORDERS, model.queues), (STOCK, model.stock_queues), *model.topics_on_request):
        topics.update(TopicConfig(topic, queue_count, queue_count))
    for group in model.groups:
        topics.update(TopicConfig(retry_topic(group.name), 1, 1))
    # A broker makes a dead letter topic when its first message comes.
    counts = _message_counts(state)
    for group in TRACED:
        if dlq_topic(group.name) in counts:
            topics.update(TopicConfig(dlq_topic(group.name), 1, 1))
    return topics


def _groups(model: TrafficModel) -> GroupTable:
    groups = GroupTable(lambda: model.start_ms)
    for group in model.groups:
        groups.update(SubscriptionGroupConfig(group.name, retry_max_times=group.max_reconsume_times))
    return groups
