"""The topics of a store, so that a misspelt one is an error and not an empty table.

RocketMQ's clients get an error for a topic that does not have a route.

    folders of the queues and topics.json ── together all topics
    not checked: topics of brokers and groups (%RETRY%g, RMQ_SYS_TRACE_TOPIC), which are created on demand;
                a store with a part of its log that is not in any queue

Left out: topics that were deleted; their messages stay in the log until its files are deleted, but not in a queue.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqlab.data.arrow.growing import log_end
from mqlab.data.arrow.stores import StoreFolder
from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.wire import names

MAX_NAMES = 20


def check_topics(stores: Sequence[StoreFolder], topics: Sequence[str]) -> None:
    """Raise UsageError, naming the existing topics, for a topic that none of these stores has."""
    checked = [topic for topic in topics if not _is_created_on_demand(topic)]
    if not checked:
        return
    # 1. Collect the topics; a store whose topics are not all known makes the check impossible.
    present: set[str] = set()
    for store in stores:
        of_store = topics_of(store)
        if of_store is None:
            return
        present |= of_store
    # 2. An empty store does not have topics yet, and any name may come later.
    missing = [topic for topic in checked if topic not in present]
    if not missing or not present:
        return
    listed = sorted(topic for topic in present if not _is_created_on_demand(topic)) or sorted(present)
    more = f" and {len(listed) - MAX_NAMES} more" if len(listed) > MAX_NAMES else ""
    raise UsageError(
        f"there is no topic {', '.join(map(repr, missing))} in {', '.join(store.directory for store in stores)}",
        hint=f"topics are {', '.join(listed[:MAX_NAMES])}{more}; messages of a deleted topic can be found by the "
        "column topic",
    )


def topics_of(store: StoreFolder) -> set[str] | None:
    """The topics that queues and topics.json name; None when the log may have others."""
    inspector = StoreReader(store.directory)
    end = log_end(inspector)
    if end.offset > max(end.queues, inspector.min_physical_offset):
        return None
    try:
        table = (inspector.config("topics.json") or {}).get("topicConfigTable") or {}
        return {*inspector.topics(), *map(str, table)}
    except (AttributeError, CorruptionError, TypeError):  # topics.json is damaged; its own reader reports that
        return None


def _is_created_on_demand(topic: str) -> bool:
    return names.is_system_topic(topic) or names.group_of(topic) is not None
