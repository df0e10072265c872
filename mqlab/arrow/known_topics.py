"""Which topics a store has, so that a misspelt one is an error and not a table without rows.

Mirrors: nothing in RocketMQ, where the route of the topic is missing.

    queues' folders and topics.json ── together the topics there are
    not judged: topics of brokers and groups (%RETRY%g, RMQ_SYS_TRACE_TOPIC), which are made when somebody needs them;
                a store of which part of the log is in no queue

Left out: topics that were deleted; their messages are in the log until its files go, and no queue leads to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqlab.arrow.growing import log_end
from mqlab.arrow.stores import Store
from mqlab.errors import CorruptionError, UsageError
from mqlab.inspector.inspector import StoreInspector
from mqlab.wire import names

MOST_NAMES = 20


def check_topics(stores: Sequence[Store], topics: Sequence[str]) -> None:
    """Raise UsageError, naming those there are, for a topic that none of these stores has."""
    judged = [topic for topic in topics if not _made_on_demand(topic)]
    if not judged:
        return
    present: set[str] = set()
    for store in stores:
        of_store = topics_of(store)
        if of_store is None:
            return
        present |= of_store
    missing = [topic for topic in judged if topic not in present]
    if not missing or not present:
        return
    listed = sorted(topic for topic in present if not _made_on_demand(topic)) or sorted(present)
    more = f" and {len(listed) - MOST_NAMES} more" if len(listed) > MOST_NAMES else ""
    raise UsageError(
        f"there is no topic {', '.join(map(repr, missing))} in {', '.join(store.directory for store in stores)}",
        hint=f"topics are {', '.join(listed[:MOST_NAMES])}{more}; messages of a deleted topic can be found by the "
        "column topic",
    )


def topics_of(store: Store) -> set[str] | None:
    """The topics that queues and topics.json name; None when they cannot be all that the log has."""
    inspector = StoreInspector(store.directory)
    end = log_end(inspector)
    if end.offset > max(end.queues, inspector.min_physical_offset):
        return None
    try:
        table = (inspector.config("topics.json") or {}).get("topicConfigTable") or {}
        return {*inspector.topics(), *map(str, table)}
    except (AttributeError, CorruptionError, TypeError):  # topics.json is damaged, which is for its own reader to say
        return None


def _made_on_demand(topic: str) -> bool:
    return names.is_system_topic(topic) or names.group_of(topic) is not None
