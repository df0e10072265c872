"""Names with a meaning: retry and dead letter topics, system topics and groups, and what a topic may be called.

Mirrors: TopicValidator, MixAll and NamespaceUtil's prefixes. Lab 00 meets ``%RETRY%``, lab 07 ``%DLQ%``.

    %RETRY%billing            the retry topic of group billing, created by its first heartbeat
    %DLQ%billing              its dead letters, created by the first one
    TBW102                    the template that auto-created topics are made from
    SCHEDULE_TOPIC_XXXX       delayed messages, one queue per level
    rmq_sys_wheel_timer       messages that are due at any moment
    RMQ_SYS_TRANS_HALF_TOPIC  messages whose transaction is open;  …_OP_HALF_TOPIC: which of them are done

Left out: names with a namespace (they are plain names here). POP's retry topics are in mqlab.rocketmq.wire.pop.
"""

from __future__ import annotations

import re
from functools import lru_cache

MASTER_ID = 0  # the broker id of a master; slaves have ids from 1

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"

AUTO_CREATE_TOPIC = "TBW102"
TIMER_TOPIC = "rmq_sys_wheel_timer"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_HALF_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
BENCHMARK_TOPIC = "BenchmarkTest"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
CHECKPOINT_TOPIC = "CHECKPOINT_TOPIC"
REPLY_TOPIC_POSTFIX = "REPLY_TOPIC"
REVIVE_LOG_PREFIX = "rmq_sys_REVIVE_LOG_"
SYNC_BROKER_MEMBER_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"
SYSTEM_TOPIC_PREFIX = "rmq_sys_"

SYSTEM_TOPICS = (
    AUTO_CREATE_TOPIC,
    SCHEDULE_TOPIC,
    BENCHMARK_TOPIC,
    HALF_TOPIC,
    TRACE_TOPIC,
    OP_HALF_TOPIC,
    CHECK_MAX_TIME_TOPIC,
    SELF_TEST_TOPIC,
    OFFSET_MOVED_TOPIC,
    CHECKPOINT_TOPIC,
)
NOT_FOR_SENDING = frozenset(
    (SCHEDULE_TOPIC, HALF_TOPIC, OP_HALF_TOPIC, CHECK_MAX_TIME_TOPIC, SELF_TEST_TOPIC, OFFSET_MOVED_TOPIC)
)

TOOLS_GROUP = "TOOLS_CONSUMER"
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
TRANSACTION_GROUP = SYSTEM_GROUP_PREFIX + "TRANS"
PREDEFINED_GROUPS = (
    TOOLS_GROUP,
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    TRANSACTION_GROUP,
)

MAX_TOPIC_LENGTH = 127  # of any topic that a client names; a broker stores in retry topics of up to 255
MAX_GROUP_LENGTH = 255
_LEGAL = re.compile(r"[%|a-zA-Z0-9_-]+")


def retry_topic(group: str) -> str:
    """Where a group's failed messages wait for their next try.

    >>> retry_topic("billing"), dlq_topic("billing"), group_of("%RETRY%billing"), group_of("orders")
    ('%RETRY%billing', '%DLQ%billing', 'billing', None)
    """
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    """Where messages go that failed too often in a group."""
    return DLQ_PREFIX + group


def group_of(topic: str) -> str | None:
    """The group a retry or dead letter topic belongs to, None for other topics."""
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if topic.startswith(prefix):
            return topic[len(prefix) :]
    return None


def is_system_topic(topic: str) -> bool:
    """True for RocketMQ's own topics (a broker's cluster and broker name topics are known to that broker only)."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


@lru_cache(maxsize=1024)
def topic_problem(topic: str) -> str | None:
    """What is wrong with a topic's name, None when nothing is. Mirrors TopicValidator.validateTopic.

    >>> topic_problem("orders"), topic_problem("заказы") is None
    (None, False)
    """
    if not topic.strip():
        return "The specified topic is blank."
    if _LEGAL.fullmatch(topic) is None:
        return f"The specified topic {topic!r} contains illegal characters, allowed are ^[%|a-zA-Z0-9_-]+$"
    if len(topic) > MAX_TOPIC_LENGTH:
        return f"The specified topic is longer than {MAX_TOPIC_LENGTH} characters: {len(topic)}"
    return None


def group_problem(group: str) -> str | None:
    """What is wrong with a group's name, None when nothing is. Mirrors Validators.checkGroup."""
    if not group.strip():
        return "The specified group is blank."
    if len(group) > MAX_GROUP_LENGTH:
        return f"The specified group is longer than {MAX_GROUP_LENGTH} characters: {len(group)}"
    if _LEGAL.fullmatch(group) is None:
        return f"The specified group {group!r} contains illegal characters, allowed are ^[%|a-zA-Z0-9_-]+$"
    return None
