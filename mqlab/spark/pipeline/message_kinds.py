"""Units of the log as messages: what each is, the topic that its sender named, and the group that sent it back.

Mirrors: the names of TopicValidator and MixAll; MessageConst's RETRY_TOPIC, REAL_TOPIC, ORIGIN_MESSAGE_ID.

    topic                      kind     user_topic
    orders                     normal   orders
    %RETRY%billing             retry    RETRY_TOPIC                    consumer_group billing
    %DLQ%billing               dead     RETRY_TOPIC                    consumer_group billing
    SCHEDULE_TOPIC_XXXX        as REAL_TOPIC says, parked              its message, or RETRY_TOPIC for a retry's
    RMQ_SYS_TRANS_HALF_TOPIC   half     REAL_TOPIC
    RMQ_SYS_TRACE_TOPIC        trace    null; its keys (all ids in it) are left out        ... and op, system

Left out: which half messages were committed; those are stored again in their topic, as normal messages.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqlab.spark.pipeline.log_units import PLAIN
from mqlab.spark.pipeline.schemas import MESSAGES, checked, needs
from mqlab.wire import names
from mqlab.wire import property_names as p

NORMAL, RETRY, DEAD, HALF, OP, TRACE, SYSTEM = "normal", "retry", "dead", "half", "op", "trace", "system"


def messages(raw: DataFrame) -> DataFrame:
    """Units (``log_units.PLAIN`` and ``properties``, or more columns of the source) -> MESSAGES; of a stream too."""
    needs(raw, [*PLAIN, "properties"], "messages")
    topic, properties = F.col("topic"), F.col("properties")
    parked = topic == names.SCHEDULE_TOPIC
    # 1. A parked or half message belongs to the topic in its properties.
    meant_topic = F.when(parked | (topic == names.HALF_TOPIC), properties[p.REAL_TOPIC]).otherwise(topic)
    kind = F.when(topic == names.HALF_TOPIC, HALF).otherwise(_kind(meant_topic))
    # 2. A retry or a dead letter names the topic of its original, and its topic names the group.
    given_back = kind.isin(RETRY, DEAD)
    user_topic = F.when(given_back, properties[p.RETRY_TOPIC]).when(kind.isin(NORMAL, HALF), meant_topic)
    rows = raw.select(
        "broker_name", "topic", "queue_id", "queue_offset", "physical_offset",
        kind.alias("kind"), user_topic.alias("user_topic"),
        F.when(given_back, F.regexp_replace(meant_topic, "^%(RETRY|DLQ)%", "")).alias("consumer_group"),
        parked.alias("parked"), "msg_id",
        F.when(given_back, properties[p.ORIGIN_MESSAGE_ID]).alias("origin_msg_id"),
        F.when(kind == TRACE, "").otherwise(F.coalesce("keys", F.lit(""))).alias("keys"), "tags",
        "born_timestamp", "store_timestamp", F.col("total_size").alias("size"), "body_length", "reconsume_times",
    )  # fmt: skip
    return checked(rows, MESSAGES, "messages")


def _kind(topic: Column) -> Column:
    """The kind of the messages in a topic, by the topic's name."""
    system = topic.isin(*names.SYSTEM_TOPICS) | topic.startswith(names.SYSTEM_TOPIC_PREFIX) | topic.isNull()
    return (
        F.when(topic.startswith(names.RETRY_PREFIX), RETRY)
        .when(topic.startswith(names.DLQ_PREFIX), DEAD)
        .when(topic == names.TRACE_TOPIC, TRACE)
        .when(topic == names.OP_HALF_TOPIC, OP)
        .when(system, SYSTEM)
        .otherwise(NORMAL)
    )
