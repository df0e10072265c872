"""The small files of a finished store: configuration, checkpoint, lock; as a broker leaves them at a clean stop.

Mirrors: ConfigManager.persist of each table, StoreCheckpoint. Lab 00 reads consumerOffset.json.

    config/topics.json, subscriptionGroup.json, consumerOffset.json, delayOffset.json, consumerFilter.json,
    consumerOrderInfo.json      checkpoint      lock      no abort: the store was closed

Left out: .bak files; a broker makes them when it saves for the second time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mqlab.broker.config import BrokerConfig
from mqlab.broker.tables.groups import GroupTable
from mqlab.broker.tables.topics import TopicTable
from mqlab.runtime.files import RealFiles
from mqlab.store import config_texts
from mqlab.store.checkpoint import Checkpoint
from mqlab.traffic.model import GROUPS, TRACED
from mqlab.wire.bodies import DataVersion, SubscriptionGroupConfig, TopicConfig
from mqlab.wire.names import SCHEDULE_TOPIC, dlq_topic, retry_topic

if TYPE_CHECKING:
    from mqlab.traffic.broker_store import BrokerStore, BrokerSummary


def finish_store(store: BrokerStore) -> BrokerSummary:
    """Write what is left to write; the store is whole afterwards."""
    from mqlab.traffic.broker_store import BrokerSummary

    index_ms = store.index.close() if store.index is not None else 0
    files = RealFiles()
    checkpoint = Checkpoint(files, f"{store.directory}/checkpoint")
    checkpoint.physic_msg_timestamp = checkpoint.logics_msg_timestamp = store.outcomes.last_ms
    checkpoint.index_msg_timestamp = index_ms
    checkpoint.flush()
    files.make_directory(f"{store.directory}/config")
    for name, value in _configs(store).items():
        text = config_texts.encode(name, value)
        files.write(f"{store.directory}/config/{name}", text.encode(), sync=True)
    files.write(f"{store.directory}/lock", b"lock", sync=True)
    files.sync_directory(store.directory)
    topics: Counter[str] = Counter()
    for (topic, _), count in zip(store.queues.places, store.queues.ends.tolist(), strict=True):
        if count:
            topics[topic] += count
    name = store.asked.broker_name(store.broker)
    return BrokerSummary(
        name, store.written, dict(topics), store.log.end, store.outcomes.first_ms, store.outcomes.last_ms,
        store.queues.fingerprint(), store.outcomes.truth(),
    )  # fmt: skip


def _configs(store: BrokerStore) -> dict[str, dict[str, Any]]:
    start_ms = store.day.start_ms
    version = DataVersion(1, 0, start_ms).to_value()
    delays = {
        queue + 1: int(offset)
        for (topic, queue), offset in zip(store.queues.places, store.outcomes.delivered(), strict=True)
        if topic == SCHEDULE_TOPIC and offset
    }
    return {
        "topics.json": {**_topics(store).to_value(), "dataVersion": version},
        "subscriptionGroup.json": {**_groups(start_ms).to_value(), "dataVersion": version},
        "consumerOffset.json": {"dataVersion": version, "offsetTable": store.outcomes.committed()},
        "delayOffset.json": {"dataVersion": version, "offsetTable": delays},
        "consumerFilter.json": {"filterDataByTopic": {}},
        "consumerOrderInfo.json": {"table": {}},
    }


def _topics(store: BrokerStore) -> TopicTable:
    model, name = store.asked.model, store.asked.broker_name(store.broker)
    config = replace(BrokerConfig(), broker_name=name, broker_cluster_name=model.cluster, trace_topic_enable=True)
    topics = TopicTable(config, lambda: model.start_ms)
    for topic, queues in (("orders", model.queues), ("stock", model.stock_queues)):
        topics.update(TopicConfig(topic, queues, queues))
    for group in GROUPS:
        topics.update(TopicConfig(retry_topic(group.name), 1, 1))
    held = {topic for (topic, _), count in zip(store.queues.places, store.queues.ends.tolist(), strict=True) if count}
    for group in TRACED:
        if dlq_topic(group.name) in held:
            topics.update(TopicConfig(dlq_topic(group.name), 1, 1))
    return topics


def _groups(start_ms: int) -> GroupTable:
    groups = GroupTable(lambda: start_ms)
    for group in GROUPS:
        groups.update(SubscriptionGroupConfig(group.name, retry_max_times=group.max_reconsume_times))
    return groups
